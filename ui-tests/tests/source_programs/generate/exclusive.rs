//! Mutable references that live across boundaries: segments, host code and functions write through them; values that methods take;
//! and references behind a `?`.

use rand::{Rng, seq::IndexedRandom};

use super::{Generator, Kind, Scope};
use crate::program::{Part, Stmt};

impl Generator {
    /// One of the forms.
    pub(super) fn written_through(&mut self, scope: &mut Scope) -> Vec<Stmt> {
        match self.rng.random_range(0..6) {
            0 => self.given_to_methods(scope),
            1 => self.behind_question_mark(scope),
            2 => self.elements(scope),
            _ => self.referred_to(scope),
        }
    }

    /// A block in which a reference to a variable, perhaps with its name, is written through.
    fn referred_to(&mut self, scope: &mut Scope) -> Vec<Stmt> {
        let Some(of) = scope.assignable().choose(&mut self.rng).cloned() else {
            return self.given_to_methods(scope);
        };
        // A macro's names cannot be put together.
        let same = !of.contains('$') && self.chance(0.4);
        self.fresh += 1;
        let by = if same { of.clone() } else { format!("by{}", self.fresh) };
        let mut inner = scope.nested();
        inner.update(&of, |v| v.kind = Kind::Gone);
        let mut stmts = Vec::new();
        if self.chance(0.5) {
            stmts.push(Stmt::text(format!("{of} = {}?;", self.work(scope))));
        }
        let other = scope.assignable().into_iter().find(|name| *name != of);
        let made = match other {
            Some(other) if self.chance(0.3) => {
                let condition = self.condition(scope);
                inner.update(&other, |v| v.kind = Kind::Gone);
                format!("let {by} = if {condition} {{ &mut {of} }} else {{ &mut {other} }};")
            }
            Some(other) if self.chance(0.3) => {
                inner.update(&other, |v| v.kind = Kind::Gone);
                let second = format!("second{}", self.fresh);
                let swapped = self.written(&inner, &second);
                stmts.push(Stmt::text(format!("let ({by}, {second}) = (&mut {of}, &mut {other});")));
                stmts.extend(swapped);
                format!("std::mem::swap({by}, {second});")
            }
            _ => format!("let {by} = &mut {of};"),
        };
        stmts.push(Stmt::text(made));
        let mut by = by;
        for _ in 0..self.rng.random_range(2..5) {
            if self.chance(0.15) {
                self.fresh += 1;
                let renamed = format!("by{}", self.fresh);
                stmts.push(Stmt::text(format!("let {renamed} = {by};")));
                by = renamed;
            }
            stmts.extend(self.written(&inner, &by));
        }
        let block = Stmt { condition: None, parts: vec![Part::Block(stmts)] };
        vec![block, Stmt::text(format!("ops::store(&kv.s, &{of})?;"))]
    }

    /// A statement or two that write through a reference, or pass it to a boundary.
    fn written(&mut self, scope: &Scope, by: &str) -> Vec<Stmt> {
        let t = self.tensor(scope);
        self.fresh += 1;
        let old = format!("old{}", self.fresh);
        let texts = match self.rng.random_range(0..6) {
            0 => vec![format!("*{by} = {}?;", self.work(scope))],
            1 => vec![format!("*{by} = ops::sub(&*{by}, {t})?;")],
            2 => vec![format!("change({by}, {t})?;")],
            3 => vec![
                format!("let {old} = change({by}, {t})?;"),
                format!("*{by} = {}mix(&{old}, {by})?;", self.eager()),
            ],
            4 => vec![format!("if {} {{ *{by} = ops::neg(&*{by})?; }}", self.condition(scope))],
            _ => vec![
                format!("let {old} = {}att({by})?;", self.eager()),
                format!("*{by} = ops::add(&{old}, &*{by})?;"),
            ],
        };
        texts.into_iter().map(Stmt::text).collect()
    }

    /// A loop over the elements of a list, or over those beside layers.
    fn elements(&mut self, scope: &mut Scope) -> Vec<Stmt> {
        self.fresh += 1;
        let (list, by, name) = (format!("cells{}", self.fresh), format!("cell{}", self.fresh), self.name());
        let (one, two) = (self.work(scope), self.tensor(scope));
        let made = format!("let mut {list} = vec![{one}?, ({two}).clone()];");
        let head = if self.chance(0.5) {
            format!("for {by} in &mut {list} ")
        } else {
            format!("for ({by}, layer) in {list}.iter_mut().zip(&m.layers) ")
        };
        let mut inner = scope.nested();
        inner.loops += 1;
        let mut body: Vec<Stmt> =
            (0..self.rng.random_range(1..4)).flat_map(|_| self.written(&inner, &by)).collect();
        if head.contains("layer") {
            body.push(Stmt::text(format!(
                "change({by}, &scaled(x, 0.5)?)?; *{by} = ops::add(&*{by}, &layer.a)?;"
            )));
        }
        scope.add(&name, Kind::Tensor, true);
        vec![
            Stmt::text(made),
            Stmt { condition: None, parts: vec![Part::Text(head), Part::Block(body)] },
            Stmt::text(format!("let mut {name} = ops::sub(&{list}[0], &{list}[1])?;")),
        ]
    }

    /// A value whose methods take it.
    fn given_to_methods(&mut self, scope: &mut Scope) -> Vec<Stmt> {
        self.fresh += 1;
        let (sum, name) = (format!("sum{}", self.fresh), self.name());
        let (a, b, n) = (self.tensor(scope), self.tensor(scope), self.number(scope));
        let (mut stmts, last) = match self.rng.random_range(0..4) {
            0 => {
                let stmts =
                    vec![format!("let mut {sum} = Sum::new().with({a});"), format!("{sum}.push({b});")];
                (stmts, format!("{sum}.finish()?"))
            }
            1 => (
                vec![format!("let {sum} = Sum::new().with({a});"), format!("let {sum} = {sum}.with({b});")],
                format!("if {} {{ {sum}.finish()? }} else {{ {sum}.first()? }}", self.condition(scope)),
            ),
            2 => (
                vec![format!("let {sum} = (Sum::new().with({a}), Sum::new().with({b}));")],
                format!("ops::sub(&{sum}.0.finish()?, &{sum}.1.finish()?)?"),
            ),
            _ => {
                let made = format!("let {sum} = pick({n}, {a}).map(|t| ops::neg(&t)).transpose()?;");
                (vec![made], format!("{sum}.unwrap_or_else(|| ({b}).clone())"))
            }
        };
        if self.device == 0 && self.chance(0.4) {
            stmts.push(format!("let _ = {};", self.region(scope)));
        }
        stmts.push(format!("let mut {name} = {last};"));
        scope.add(&name, Kind::Tensor, true);
        stmts.into_iter().map(Stmt::text).collect()
    }

    /// A layer that may be missing, used on both sides of a boundary.
    fn behind_question_mark(&mut self, scope: &mut Scope) -> Vec<Stmt> {
        if self.device > 0 {
            // An error in an arm would be one of every call.
            return self.given_to_methods(scope);
        }
        self.fresh += 1;
        let (layer, at, t) = (format!("layer{}", self.fresh), self.number(scope), self.tensor(scope));
        let found = match self.rng.random_range(0..3) {
            0 => format!("m.layers.get({at}).ok_or_else(missing)?"),
            1 => "m.layers.iter().last().ok_or(missing())?".to_owned(),
            _ => format!("m.layers.iter().nth({at}).ok_or_else(missing)?"),
        };
        let (one, two) = (self.name(), self.name());
        let first = format!("let {one} = ops::add({t}, &{layer}.a)?;");
        scope.add(&one, Kind::Tensor, false);
        let region = format!("let mut {two} = {};", self.region(scope));
        scope.add(&two, Kind::Tensor, true);
        let three = self.name();
        let last = format!("let {three} = ops::mul({}, &{layer}.b)?;", self.tensor(scope));
        scope.add(&three, Kind::Tensor, false);
        [format!("let {layer} = {found};"), first, region, last].map(Stmt::text).into()
    }
}

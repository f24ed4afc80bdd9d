//! Right programs that rustc refused, without a word of ours, as segments and host code were written: names that change their
//! meaning beside a boundary, and variables that change there.

use rand::{Rng, seq::IndexedRandom};

use super::{Generator, Kind, Scope};
use crate::program::{Part, Stmt};

impl Generator {
    /// One of the forms.
    pub(super) fn beside_boundaries(&mut self, scope: &mut Scope) -> Vec<Stmt> {
        let stmts = match self.rng.random_range(0..6) {
            0 => self.assigned_behind_a_reference(scope),
            1 => self.named_like_a_closure(scope),
            2 => self.consumed_by_a_closure(scope),
            3 => self.returned_among_assignments(scope),
            4 => self.closure_of_a_macro(scope),
            _ => self.replaced_pointers(scope),
        };
        let block = Part::Block(stmts.into_iter().map(Stmt::text).collect());
        let mut all = vec![Stmt { condition: None, parts: vec![block] }];
        let after = self.tensor(scope);
        all.push(Stmt::text(format!("ops::store(&kv.s, {after})?;")));
        all
    }

    /// Of a reference, the last use is in the run before an assignment without device work.
    fn assigned_behind_a_reference(&mut self, scope: &Scope) -> Vec<String> {
        let Some(named) = scope.assignable().choose(&mut self.rng).cloned() else {
            return self.named_like_a_closure(scope);
        };
        let (new, t) = (self.work(scope), self.tensor(scope));
        let mut stmts = vec![format!("let new = {new}?;"), format!("let old = &{named};")];
        if self.chance(0.5) {
            stmts.push(format!("let _ = {};", self.region(scope)));
        }
        stmts.push(format!("let used = ops::sub(old, {t})?;"));
        stmts.push(match self.rng.random_range(0..3) {
            0 => format!("({named}, _) = (new, 1);"),
            1 => format!("{{ {named} = new; }}"),
            _ => format!("{named} = new;"),
        });
        stmts.push(format!("let _ = {}att(&used)?;", self.eager()));
        stmts
    }

    /// Other values take the name of a closure, whose capture is not in host code.
    fn named_like_a_closure(&mut self, scope: &Scope) -> Vec<String> {
        let (made, n) = (self.work(scope), self.number(scope));
        let mut stmts = vec![
            format!("let own = {made}?;"),
            "let f = |by: f32| ops::scale(&own, by);".to_owned(),
            "let own = f(2.0)?;".to_owned(),
            format!("let own = {}att(&own)?;", self.eager()),
        ];
        let region = format!("let kept = {}scaled(&own, f as f32)?;", self.eager());
        let inner = format!("{region} ops::store(&kv.s, &kept)?;");
        stmts.push(match self.rng.random_range(0..4) {
            0 => format!("for f in 0..2usize {{ {inner} }}"),
            1 => format!("if let Some(f) = Some({n} + 1) {{ {inner} }}"),
            2 => format!("match {n} {{ 0 => {{}} f => {{ {inner} }} }}"),
            _ => format!("let f = {n}; {inner}"),
        });
        stmts
    }

    /// A closure takes what it captures, and another variable takes its name.
    fn consumed_by_a_closure(&mut self, scope: &Scope) -> Vec<String> {
        let (made, t) = (self.work(scope), self.tensor(scope));
        let body = match self.rng.random_range(0..3) {
            0 => "drop(own); scaled(v, -1.0)",
            1 => "let mixed = mix(&own, v)?; let taken = own; mix(&mixed, &taken)",
            _ => "let taken = own; mix(&taken, v)",
        };
        let mut stmts = vec![format!("let own = {made}?;"), format!("let g = |v| {{ {body} }};")];
        if self.chance(0.5) {
            stmts.push(format!("let _ = {};", self.region(scope)));
        }
        stmts.push(format!("let own = g({t})?;"));
        stmts.push(format!("let own = {}att(&own)?;", self.eager()));
        stmts.push("ops::store(&kv.s, &own)?;".to_owned());
        stmts
    }

    /// Arms move a variable; after them, one way leaves the function, and all others assign it.
    fn returned_among_assignments(&mut self, scope: &Scope) -> Vec<String> {
        let mut assignable = scope.assignable();
        if assignable.len() < 2 {
            return self.consumed_by_a_closure(scope);
        }
        let named = assignable.swap_remove(self.rng.random_range(0..assignable.len()));
        let other = assignable.choose(&mut self.rng).expect("another one").clone();
        let mut moved = scope.clone();
        moved.update(&named, |v| v.kind = Kind::Gone);
        let works: Vec<String> = (0..3).map(|_| self.arm(&moved, |g, inner| g.work(inner))).collect();
        let (predicate, n, left) = (self.predicate(&moved), self.number(scope), self.work(&moved));
        let flow = format!(
            "⟦device⟧if {predicate} {{ let taken = {named}; {other} = ops::neg(&taken)?; }} \
             else {{ {named} = {}?; {other} = ops::add(&{other}, &{named})?; }}",
            works[0]
        );
        let decided = match self.rng.random_range(0..3) {
            0 => format!(
                "match {n} {{ 3 => return {left}, 1 => {named} = {}?, _ => {{ {named} = {}?; }} }}",
                works[1], works[2]
            ),
            1 => format!("if {n} > 2 {{ return {left}; }} else {{ {named} = {}?; }}", works[1]),
            _ => format!("{{ if {n} == 2 {{ return {left}; }} {named} = {}?; }}", works[1]),
        };
        vec![flow, decided]
    }

    /// A macro of the function names a closure, and host code calls it.
    fn closure_of_a_macro(&mut self, scope: &Scope) -> Vec<String> {
        let n = self.number(scope);
        let region = format!("let own = {}scaled({}, more!({n}) as f32)?;", self.eager(), self.tensor(scope));
        let mut stmts = vec![
            "let count = |k: usize| k + 1;".to_owned(),
            "macro_rules! more { ($k:expr) => { count(count($k)) } }".to_owned(),
            region,
        ];
        if self.chance(0.5) {
            stmts.insert(2, format!("let _ = {};", self.region(scope)));
        }
        if self.chance(0.3) {
            stmts.insert(2, "let count = 3usize; let _ = count;".to_owned());
        }
        stmts.push("ops::store(&kv.s, &own)?;".to_owned());
        stmts
    }

    /// Pointers to functions that begin as closures, and are replaced.
    fn replaced_pointers(&mut self, scope: &Scope) -> Vec<String> {
        let t = self.tensor(scope);
        let mut stmts = vec![
            "let mut f: for<'a> fn(&Tensor<'a, f32>) -> Result<Tensor<'a, f32>> = |t| scaled(t, 0.5);"
                .to_owned(),
            format!("let own = f({t})?;"),
        ];
        for _ in 0..2 {
            if self.chance(0.5) {
                stmts.push(format!("let _ = {};", self.region(scope)));
            }
            let (by, n) = (self.rng.random_range(2..5), self.number(scope));
            stmts.push(match self.rng.random_range(0..6) {
                0 => format!("f = |t| scaled(t, {by}.0);"),
                1 => format!("if {n} > 1 {{ f = |t| scaled(t, {by}.0); }}"),
                2 => format!("for k in 0..2usize {{ f = if k == {n} {{ |t| scaled(t, {by}.0) }} else {{ f }}; }}"),
                3 => format!("let _ = std::mem::replace(&mut f, |t| scaled(t, {by}.0));"),
                4 if !self.whole => format!("⟦host⟧let f: for<'a> fn(&Tensor<'a, f32>) -> Result<Tensor<'a, f32>> = if {n} > 1 {{ |t| scaled(t, {by}.0) }} else {{ f }};"),
                _ => format!("let f: for<'a> fn(&Tensor<'a, f32>) -> Result<Tensor<'a, f32>> = |t| scaled(t, {by}.0);"),
            });
            stmts.push(match self.chance(0.5) {
                true => "let own = f(&own)?;".to_owned(),
                false => format!("let own = {}f(&own)?;", self.eager()),
            });
        }
        stmts.push("ops::store(&kv.s, &own)?;".to_owned());
        stmts
    }
}

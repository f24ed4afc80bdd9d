//! Values that the arms of `match` and `if let` move: by patterns that bind them or parts of them, behind guards, and by name.
//! Device work uses them before, and what is left of them after it, on both sides of boundaries.

use rand::{Rng, seq::IndexedRandom};

use super::{Generator, Kind, Scope};
use crate::program::{Part, Stmt};

impl Generator {
    /// A value and what moves it. `owned` are tensors that can be moved.
    pub(super) fn moved_by_pattern(
        &mut self,
        scope: &mut Scope,
        depth: usize,
        owned: &[String],
    ) -> Vec<Stmt> {
        let depth = depth - 1;
        match self.rng.random_range(0..10) {
            0 | 1 => self.pair_moved(scope, depth),
            2 | 3 => self.option_moved(scope, depth),
            4 => match owned.choose(&mut self.rng).cloned() {
                Some(name) => self.moved_in_arms(scope, depth, &name),
                None => self.option_moved(scope, depth),
            },
            5 => match scope.assignable().choose(&mut self.rng).cloned() {
                Some(name) => self.moved_and_assigned(scope, &name),
                None => self.pair_moved(scope, depth),
            },
            6 => self.settings_moved(scope, depth),
            _ if self.whole => self.pair_moved(scope, depth),
            7 => self.lists_moved(scope),
            _ => self.made_anew(scope),
        }
    }

    /// A region whose result nothing uses, often.
    fn between(&mut self, scope: &Scope) -> Option<Stmt> {
        self.chance(0.5).then(|| Stmt::text(format!("let _ = {};", self.region(scope))))
    }

    /// A guard, which may look at the tensor that its arm would move.
    fn guard(&mut self, scope: &Scope, bound: &str) -> String {
        let condition = self.condition(scope);
        if self.chance(0.4) { format!("{bound}.rank() == 1 && {condition}") } else { condition }
    }

    /// The value of an arm that owns tensors of these names, and often moves the first of them on.
    fn arm_of(&mut self, scope: &Scope, depth: usize, bound: &[&str]) -> Part {
        let mut inner = scope.nested();
        bound.iter().for_each(|name| inner.add(name, Kind::Tensor, false));
        let mut stmts = Vec::new();
        if self.chance(0.3) {
            let (name, tensor) = (self.name(), self.tensor(scope));
            stmts.push(Stmt::text(format!("let mut {name} = ops::add(&{}, {tensor})?;", bound[0])));
            inner.add(&name, Kind::Tensor, true);
        }
        if self.chance(0.5) {
            let name = self.name();
            inner.update(bound[0], |v| v.kind = Kind::Gone);
            inner.add(&name, Kind::Tensor, true);
            stmts.push(Stmt::text(format!("let mut {name} = {};", bound[0])));
        }
        let length = self.rng.random_range(0..3);
        stmts.extend(self.block(&mut inner, length, depth));
        stmts.push(Stmt::text(self.value(&inner)));
        Part::Block(stmts)
    }

    /// A pair of tensors, of which a part is used, and parts are moved.
    fn pair_moved(&mut self, scope: &mut Scope, depth: usize) -> Vec<Stmt> {
        self.fresh += 1;
        let (pair, one, name) = (format!("pair{}", self.fresh), self.name(), self.name());
        let (l, r) = (self.tensor(scope), self.tensor(scope));
        let form = self.rng.random_range(0..5);
        let mark = if self.chance(0.4) { self.eager() } else { String::new() };
        let is_made_here = mark.is_empty();
        let mut stmts = vec![Stmt::text(format!("let {pair} = {mark}pair({l}, {r})?;"))];
        if self.chance(0.6) {
            let used = format!("let mut {one} = ops::add({}, &{pair}.l)?;", self.tensor(scope));
            stmts.push(Stmt::text(used));
            scope.add(&one, Kind::Tensor, true);
        }
        if is_made_here && (form == 1 || form == 2) {
            // Of what a segment both makes and takes apart, rustc refuses a later use of the other part.
            stmts.push(Stmt::text(format!("let _ = {};", self.region(scope))));
        } else {
            stmts.extend(self.between(scope));
        }
        if self.chance(0.6) {
            let two = self.name();
            let used = format!("let mut {two} = ops::sub(&{pair}.r, {})?;", self.tensor(scope));
            stmts.push(Stmt::text(used));
            scope.add(&two, Kind::Tensor, true);
        }
        let mut left = None;
        let parts = match form {
            0 => {
                let head = format!("let {name} = match {pair} {{ Pair {{ l, r }} if ");
                let guard = self.guard(scope, "l");
                let arm = self.arm_of(scope, depth, &["l", "r"]);
                vec![
                    Part::Text(format!("{head}{guard} => ")),
                    arm,
                    Part::Text(" Pair { r, .. } => r };".into()),
                ]
            }
            1 => {
                left = Some("r");
                vec![Part::Text(format!("let {name} = match {pair} {{ Pair {{ l, .. }} => l }};"))]
            }
            2 => {
                left = Some("l");
                let arm = self.arm_of(scope, depth, &["r"]);
                let other = self.work(scope);
                vec![
                    Part::Text(format!("let {name} = if let Pair {{ r, .. }} = {pair} ")),
                    arm,
                    Part::Text(format!(" else {{ {other}? }};")),
                ]
            }
            3 => {
                // It is only looked at, and moved as a whole.
                let (guard, other) = (self.guard(scope, "l"), self.work(scope));
                let moved = self.name();
                stmts.push(Stmt::text(format!(
                    "let {moved} = match {pair} {{ Pair {{ ref l, .. }} if {guard} => ops::neg(l)?, \
                     Pair {{ ref r, .. }} => ops::sub(r, &{other}?)? }};"
                )));
                scope.add(&moved, Kind::Tensor, false);
                stmts.extend(self.between(scope));
                vec![Part::Text(format!("let {name} = match {pair} {{ all => all.r }};"))]
            }
            _ => vec![Part::Text(format!("let Pair {{ r: {name}, .. }} = {pair};"))],
        };
        stmts.push(Stmt { condition: None, parts });
        scope.add(&name, Kind::Tensor, false);
        if let Some(left) = left {
            stmts.extend(self.between(scope));
            let last = self.name();
            let tensor = self.tensor(scope);
            stmts.push(Stmt::text(format!("let mut {last} = ops::sub(&{pair}.{left}, {tensor})?;")));
            scope.add(&last, Kind::Tensor, true);
        }
        stmts
    }

    /// A tensor that may be missing.
    fn option_moved(&mut self, scope: &mut Scope, depth: usize) -> Vec<Stmt> {
        self.fresh += 1;
        let (opt, one, name) = (format!("opt{}", self.fresh), self.name(), self.name());
        let (n, t) = (self.number(scope), self.tensor(scope));
        let mut stmts = vec![Stmt::text(format!("let {opt} = pick({n}, {t});"))];
        if self.chance(0.6) {
            let (t, other) = (self.tensor(scope), self.work(scope));
            stmts.push(Stmt::text(format!(
                "let mut {one} = match &{opt} {{ Some(v) => ops::add(v, {t})?, None => {other}? }};"
            )));
            scope.add(&one, Kind::Tensor, true);
        }
        stmts.extend(self.between(scope));
        let parts = match self.rng.random_range(0..4) {
            0 => {
                let guard = self.guard(scope, "v");
                let (arm, other) = (self.arm_of(scope, depth, &["v"]), self.value(scope));
                vec![
                    Part::Text(format!("let {name} = match {opt} {{ Some(v) if {guard} => ")),
                    arm,
                    Part::Text(format!(" Some(v) => v, None => {other} }};")),
                ]
            }
            1 => {
                let arm = self.arm_of(scope, depth, &["v"]);
                let other = self.valued(scope, depth, false);
                vec![
                    Part::Text(format!("let {name} = if let Some(v) = {opt} ")),
                    arm,
                    Part::Text(" else ".into()),
                    other,
                    Part::Text(";".into()),
                ]
            }
            2 => {
                let (looked, other) = (self.name(), self.work(scope));
                stmts.push(Stmt::text(format!(
                    "let {looked} = if let Some(ref v) = {opt} {{ ops::neg(v)? }} else {{ {other}? }};"
                )));
                scope.add(&looked, Kind::Tensor, false);
                stmts.extend(self.between(scope));
                let other = self.work(scope);
                vec![Part::Text(format!("let {name} = match {opt} {{ Some(v) => v, None => {other}? }};"))]
            }
            _ => {
                let other = self.work(scope);
                vec![Part::Text(format!("let Some({name}) = {opt} else {{ return {other}; }};"))]
            }
        };
        stmts.push(Stmt { condition: None, parts });
        scope.add(&name, Kind::Tensor, false);
        stmts
    }

    /// A tensor that some arms move and others read.
    fn moved_in_arms(&mut self, scope: &mut Scope, depth: usize, moved: &str) -> Vec<Stmt> {
        let (name, n) = (self.name(), self.number(scope));
        let used = format!("ops::store(&kv.s, &{moved})?;");
        let guard = self.guard(scope, moved);
        let mut others = scope.clone();
        others.update(moved, |v| v.kind = Kind::Gone);
        let arm = self.arm_of(&others, depth, &[moved]);
        let read = self.work(scope);
        scope.update(moved, |v| v.kind = Kind::Gone);
        scope.add(&name, Kind::Tensor, true);
        let head = format!("let mut {name} = match {n} {{ 0 => {moved}, 1 | 2 if {guard} => ");
        vec![
            Stmt::text(used),
            Stmt {
                condition: None,
                parts: vec![Part::Text(head), arm, Part::Text(format!(" _ => {read}? }};"))],
            },
        ]
    }

    /// A variable that is moved in an arm and gets a value from every arm.
    fn moved_and_assigned(&mut self, scope: &Scope, name: &str) -> Vec<Stmt> {
        let (n, t, work) = (self.number(scope), self.tensor(scope), self.work(scope));
        let mark = self.eager();
        let region = format!("{{ let moved = {name}; {mark}att(&moved)? }}");
        let text = match self.rng.random_range(0..4) {
            0 => format!("{name} = match {n} {{ 0 => {name}, 1 => {region} _ => {work}? }};"),
            1 => {
                format!("{name} = if let Some(v) = pick({n}, {t}) {{ mix(&{name}, &v)? }} else {{ {name} }};")
            }
            2 => format!("{name} = match pick({n}, {t}) {{ Some(_) => {region} None => {name} }};"),
            _ => format!("{name} = match {name} {{ v if {n} > 1 => v, v => ops::neg(&v)? }};"),
        };
        vec![Stmt::text(text)]
    }

    /// A host value that is part of a key; device work takes it apart.
    fn settings_moved(&mut self, scope: &mut Scope, depth: usize) -> Vec<Stmt> {
        self.fresh += 1;
        let (settings, one, name) = (format!("settings{}", self.fresh), self.name(), self.name());
        let form = self.rng.random_range(0..3);
        if form == 1 && self.whole {
            return self.pair_moved(scope, depth);
        }
        // Segments return tensors only, so what several of them use is made by the host.
        let is_host = !self.whole && (form == 1 || self.chance(0.5));
        let mark = if is_host { "⟦host⟧" } else { "" };
        let made = format!("{mark}let {settings} = settings({});", self.number(scope));
        let used = format!("let mut {one} = weighted({}, &{settings}.p)?;", self.tensor(scope));
        scope.add(&one, Kind::Tensor, true);
        let between = if is_host { self.between(scope) } else { None };
        let (condition, t) = (self.condition(scope), self.tensor(scope));
        let stmt = match form {
            0 => Stmt::text(format!(
                "let mut {name} = match {settings} {{ Settings {{ p, .. }} if {condition} => weighted({t}, &p)?, \
                 Settings {{ q, .. }} => weighted({t}, &q)? }};"
            )),
            1 => {
                let Part::Block(mut arm) = self.valued(scope, depth, false) else { return Vec::new() };
                arm.insert(0, Stmt::text(format!("ops::store(&kv.s, &weighted({t}, &q)?)?;")));
                Stmt {
                    condition: None,
                    parts: vec![
                        Part::Text(format!(
                            "let mut {name} = match {settings} {{ Settings {{ q, .. }} if {condition} => "
                        )),
                        Part::Block(arm),
                        Part::Text(format!(" other => weighted({t}, &other.p)? }};")),
                    ],
                }
            }
            _ => Stmt::text(format!(
                "let mut {name} = if let Settings {{ p, .. }} = {settings} {{ weighted({t}, &p)? }} else {{ ops::neg({t})? }};"
            )),
        };
        scope.add(&name, Kind::Tensor, true);
        [Some(Stmt::text(made)), Some(Stmt::text(used)), between, Some(stmt)].into_iter().flatten().collect()
    }

    /// A host value that cannot be part of a key, whose parts host code takes.
    fn lists_moved(&mut self, scope: &mut Scope) -> Vec<Stmt> {
        self.fresh += 1;
        let (lists, part) = (format!("lists{}", self.fresh), format!("part{}", self.fresh));
        let made = format!("⟦host⟧let {lists} = lists({});", self.number(scope));
        let one = self.name();
        let first = format!("let {one} = weighted({}, &{lists}.p)?;", self.tensor(scope));
        scope.add(&one, Kind::Tensor, false);
        let between = self.between(scope);
        let condition = self.condition(scope);
        // Code with calls is evaluated on the host only if it is marked.
        let mut mark = self.pick(&["", "⟦host⟧"]);
        let (moved, left) = match self.rng.random_range(0..4) {
            0 => (format!("match {lists} {{ Lists {{ p, .. }} => p }}"), Some("q")),
            1 => {
                // Which part it is follows from a condition, so the segment before would need the whole value, which is refused with
                // advice to mark the statement: without a region between, there is no host code that would run it.
                if between.is_none() {
                    mark = "⟦host⟧";
                }
                let condition = if condition.contains("rank") { "n > 1".to_owned() } else { condition };
                (
                    format!(
                        "match {lists} {{ Lists {{ p, .. }} if {condition} => p, Lists {{ q, .. }} => q }}"
                    ),
                    None,
                )
            }
            2 => {
                mark = "⟦host⟧";
                (format!("if let Lists {{ q, .. }} = {lists} {{ q }} else {{ vec![] }}"), Some("p"))
            }
            _ => (format!("match {lists} {{ all => all.q }}"), None),
        };
        let two = self.name();
        let mut stmts = vec![Stmt::text(made), Stmt::text(first)];
        stmts.extend(between);
        stmts.push(Stmt::text(format!("{mark}let {part} = {moved};")));
        stmts.push(Stmt::text(format!("let mut {two} = weighted({}, &{part})?;", self.tensor(scope))));
        scope.add(&two, Kind::Tensor, true);
        if let Some(left) = left {
            stmts.extend(self.between(scope));
            let three = self.name();
            let tensor = self.tensor(scope);
            stmts.push(Stmt::text(format!("let {three} = weighted({tensor}, &{lists}.{left})?;")));
            scope.add(&three, Kind::Tensor, false);
        }
        stmts
    }

    /// A value made of a host value, or of parts of it, that costs nothing to make, so each segment makes its own; segments and
    /// regions use it, also under another name.
    fn made_anew(&mut self, scope: &mut Scope) -> Vec<Stmt> {
        self.fresh += 1;
        let (of, made) = (format!("settings{}", self.fresh), format!("made{}", self.fresh));
        let n = self.number(scope);
        let (mut source, condition) = (format!("settings({n})"), self.condition(scope));
        let condition = if condition.contains("rank") { "n > 1".to_owned() } else { condition };
        let (value, list) = match self.rng.random_range(0..9) {
            0 => (format!("match {of} {{ Settings {{ p, .. }} => Held {{ p }} }}"), format!("&{made}.p")),
            1 | 2 => {
                source = format!("optional({n})");
                let value = if self.chance(0.5) {
                    format!("if let Some(v) = {of} {{ Held {{ p: v }} }} else {{ Held {{ p: vec![] }} }}")
                } else {
                    format!(
                        "match {of} {{ Some(v) if {condition} => Held {{ p: v }}, _ => Held {{ p: vec![1.0] }} }}"
                    )
                };
                (value, format!("&{made}.p"))
            }
            3 => (format!("Held {{ p: {of}.p }}"), format!("&{made}.p")),
            4 => (format!("Some({of})"), format!("&{made}.as_ref().unwrap().q")),
            5 => (format!("match {of} {{ all => Whole {{ s: all }} }}"), format!("&{made}.s.p")),
            6 => (format!("Settings {{ p: vec![0.25], ..{of} }}"), format!("&{made}.q")),
            7 => (
                format!("match {of} {{ Settings {{ q, .. }} => (Some(q), {n}) }}"),
                format!("{made}.0.as_ref().unwrap()"),
            ),
            _ => (format!("Box::new(move |k: f32| {of}.p[0] + k)"), format!("&[{made}(0.5)]")),
        };
        let mut stmts = vec![Stmt::text(format!("⟦host⟧let {of} = {source};"))];
        stmts.extend(self.between(scope));
        stmts.push(Stmt::text(format!("let {made} = {value};")));
        let aliased = self.chance(0.2);
        for _ in 0..self.rng.random_range(1..4) {
            let (name, t) = (self.name(), self.tensor(scope));
            let mark = if aliased || self.chance(0.4) { self.eager() } else { String::new() };
            if aliased {
                // A reference to it cannot be part of a key either.
                self.fresh += 1;
                let other = format!("other{}", self.fresh);
                stmts.push(Stmt::text(format!("let {other} = &{made};")));
                let list = list.replacen(&made, &other, 1);
                stmts.push(Stmt::text(format!("let mut {name} = {mark}weighted({t}, {list})?;")));
            } else {
                stmts.push(Stmt::text(format!("let mut {name} = {mark}weighted({t}, {list})?;")));
            }
            scope.add(&name, Kind::Tensor, true);
            stmts.extend(self.between(scope));
        }
        stmts
    }
}

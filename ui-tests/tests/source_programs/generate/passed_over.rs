//! Assignments that a jump passes over: alternatives which all assign a variable, and code that leaves before any of them does.
//! What was assigned earlier is read then.

use rand::{Rng, seq::IndexedRandom};

use super::{Generator, Kind, Scope};
use crate::program::{Part, Stmt};

impl Generator {
    /// The end of a loop's body that assigns a variable, and assigns it again after a boundary, unless it jumps between the two.
    pub(super) fn passed_over(&mut self, scope: &Scope) -> Vec<Stmt> {
        let Some(name) =
            scope.assignable().choose(&mut self.rng).filter(|_| self.rng.random_bool(0.6)).cloned()
        else {
            return Vec::new();
        };
        let before = format!("{name} = ops::add(&{name}, {})?;", self.tensor(scope));
        // Code that reads the variable needs it whether it is passed over or not.
        let mut others = scope.clone();
        others.update(&name, |v| v.kind = Kind::Gone);
        let boundary = format!("let _ = {};", self.region(&others));
        let alternatives = self.alternatives(&others, &name);
        [before, boundary, alternatives].map(Stmt::text).into()
    }

    /// A loop of which [`Self::passed_over`] is the whole body, and a use of what it leaves in the variable.
    pub(super) fn left_early(&mut self, scope: &mut Scope) -> Vec<Stmt> {
        let mut inner = scope.nested();
        inner.loops += 1;
        let index = self.host_name();
        inner.add(&index, Kind::Host, false);
        let to = self.pick(&["2", "3", "m.layers.len()"]);
        let looped = Part::Block(self.passed_over(&inner));
        let parts = vec![Part::Text(format!("for {index} in 0..{to} ")), looped];
        vec![
            Stmt { condition: None, parts },
            Stmt::text(format!("ops::store(&kv.s, {})?;", self.tensor(scope))),
        ]
    }

    /// A statement that assigns the variable on every way through it, if it does not jump first.
    fn alternatives(&mut self, scope: &Scope, name: &str) -> String {
        let (one, two) = (self.work(scope), self.work(scope));
        let (c, n, jump) = (self.condition(scope), self.number(scope), self.jump(scope));
        let leaves = format!("if {c} {{ {jump}; }}");
        let guard = format!("{{ {leaves} {n} != 1 }}");
        match self.rng.random_range(0..7) {
            0 => format!("if {guard} {{ {name} = {one}?; }} else {{ {name} = {two}?; }}"),
            1 => format!("match {{ {leaves} {n} }} {{ 0 | 1 => {name} = {one}?, _ => {name} = {two}? }}"),
            2 => format!("{name} = {{ {leaves} {one}? }};"),
            3 => format!(
                "match {n} {{ 0 => {name} = {one}?, _ if {guard} => {name} = {two}?, _ => {name} = {one}? }}"
            ),
            4 => {
                format!("match {n} {{ _ if {guard} => {{ {name} = {one}?; }} _ => {{ {name} = {two}?; }} }}")
            }
            _ => format!("match {n} {{ _ if {guard} => {name} = {one}?, _ => {name} = {two}? }}"),
        }
    }

    /// A jump out of the loop, or out of one around it.
    fn jump(&mut self, scope: &Scope) -> String {
        let jump = self.pick(&["break", "break", "continue"]);
        match scope.labels.choose(&mut self.rng).filter(|_| self.rng.random_bool(0.3)) {
            Some(label) => format!("{jump} {label}"),
            None => jump.to_owned(),
        }
    }
}

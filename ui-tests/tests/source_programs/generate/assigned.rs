//! Variables that are assigned before they are read: a later value replaces one that nothing reads.

use rand::seq::IndexedRandom;

use super::{Generator, Kind, Scope};
use crate::program::{Part, Stmt};

impl Generator {
    /// Two variables that are declared at once, and get their values one after the other, often on either side of a boundary.
    fn declared_together(&mut self, scope: &mut Scope) -> Vec<Stmt> {
        let (one, two) = (self.name(), self.name());
        if one == two {
            return self.deferred(scope);
        }
        scope.add(&one, Kind::Gone, false);
        scope.add(&two, Kind::Gone, false);
        let mut all = vec![format!("let ({one}, ({two}, _));")];
        if self.chance(0.2) {
            all.push(format!("({one}, {two}) = ({}?, {}?);", self.work(scope), self.work(scope)));
            scope.add(&one, Kind::Tensor, false);
        } else {
            all.push(format!("{one} = {};", self.value(scope)));
            scope.add(&one, Kind::Tensor, false);
            if self.chance(0.6) {
                all.push(format!("let _ = {};", self.region(scope)));
            }
            all.push(format!("{two} = {};", self.value(scope)));
        }
        scope.add(&two, Kind::Tensor, false);
        all.into_iter().map(Stmt::text).collect()
    }

    /// A variable that gets its value in both branches.
    pub(super) fn deferred(&mut self, scope: &mut Scope) -> Vec<Stmt> {
        if self.chance(0.3) {
            return self.declared_together(scope);
        }
        let name = self.name();
        // It hides what had its name, and cannot be used yet.
        scope.add(&name, Kind::Gone, false);
        let (c, one, two) = (self.condition(scope), self.value(scope), self.value(scope));
        scope.add(&name, Kind::Tensor, false);
        vec![
            Stmt::text(format!("let {name}: Tensor<'_, f32>;")),
            Stmt {
                condition: None,
                parts: vec![
                    Part::Text(format!("if {c} ")),
                    Part::Block(vec![Stmt::text(format!("{name} = {one};"))]),
                    Part::Text(" else ".into()),
                    Part::Block(vec![Stmt::text(format!("{name} = {two};"))]),
                ],
            },
        ]
    }

    /// A block in which a variable hides one of its name, which its value assigns; the new one is often assigned next. The older
    /// one can be read after the block.
    pub(super) fn shadowing(&mut self, scope: &Scope, depth: usize) -> Vec<Stmt> {
        let Some(name) = scope.assignable().choose(&mut self.rng).cloned() else {
            return vec![Stmt { condition: None, parts: vec![Part::Block(self.inner(scope, depth - 1))] }];
        };
        let Part::Block(mut value) = self.valued(scope, depth - 1, false) else { return Vec::new() };
        let assigned = Stmt::text(format!("{name} = {};", self.value(scope)));
        value.insert(0, assigned);
        if self.chance(0.6) {
            value.insert(0, Stmt::text(format!("let _ = {};", self.region(scope))));
        }
        let mut inner = scope.clone();
        inner.add(&name, Kind::Tensor, true);
        let mut body = vec![Stmt {
            condition: None,
            parts: vec![Part::Text(format!("let mut {name} = ")), Part::Block(value), Part::Text(";".into())],
        }];
        if self.chance(0.7) {
            body.push(Stmt::text(format!("{name} = {}?;", self.work(&inner))));
        }
        body.extend(self.inner(&inner, depth - 1));
        vec![Stmt { condition: None, parts: vec![Part::Block(body)] }]
    }
}

//! Variables that change in the same device work in which another takes their name. What they were changed to is read after
//! the block of the other one. Items of blocks that take the names of variables, closures and functions.

use rand::{Rng, seq::IndexedRandom};

use super::{Generator, Kind, Scope};
use crate::program::{Part, Stmt};

impl Generator {
    /// A block that changes a variable, hides it, and goes on behind a boundary; and a use of the variable.
    pub(super) fn taken_name(&mut self, scope: &Scope) -> Vec<Stmt> {
        let Some(name) = scope.assignable().choose(&mut self.rng).cloned() else { return Vec::new() };
        let (changed, hiding) = (self.work(scope), self.work(scope));
        // The boundary reads neither of the two.
        let mut others = scope.clone();
        others.update(&name, |v| v.kind = Kind::Gone);
        let boundary = format!("let _ = {};", self.region(&others));
        let used = format!("ops::store(&kv.s, &{name})?;");
        let body = if self.chance(0.5) {
            let again = format!("{name} = {}?;", self.work(&others));
            vec![
                format!("{name} = {changed}?;"),
                format!("let mut {name} = {hiding}?;"),
                boundary,
                again,
                used.clone(),
            ]
        } else {
            vec![format!("let {name} = {{ {name} = {changed}?; {hiding}? }};"), boundary, used.clone()]
        };
        let block = Part::Block(body.into_iter().map(Stmt::text).collect());
        vec![Stmt { condition: None, parts: vec![block] }, Stmt::text(used)]
    }

    /// A block with a function or a constant that takes the name of a closure, of a host value or of a function outside.
    pub(super) fn items_of_block(&mut self, scope: &mut Scope) -> Vec<Stmt> {
        let mut stmts = Vec::new();
        if scope.of(Kind::Closure).is_empty() && self.chance(0.7) {
            stmts.extend(self.closure(scope));
        }
        let mut inner = scope.nested();
        let hosts: Vec<String> = scope.of(Kind::Host).iter().map(|v| v.name.clone()).collect();
        let item = match (self.rng.random_range(0..5), hosts.choose(&mut self.rng)) {
            (0 | 1, Some(name)) => {
                inner.add(name, Kind::Host, false);
                format!("const {name}: usize = 2;")
            }
            (2, _) => {
                "fn scaled<'s>(v: &Tensor<'s, f32>, by: f32) -> Result<Tensor<'s, f32>> { ops::add(v, by) }"
                    .into()
            }
            _ => {
                let name = self.pick(&["f", "g"]);
                inner.add(name, Kind::Closure, false);
                format!(
                    "fn {name}<'s>(v: &Tensor<'s, f32>) -> Result<Tensor<'s, f32>> {{ ops::scale(v, 0.25) }}"
                )
            }
        };
        let name = self.name();
        let before = format!("ops::store(&kv.s, &{}?)?;", self.work(&inner));
        let region = format!("let {name} = {};", self.region(&inner));
        inner.add(&name, Kind::Tensor, false);
        let mut body = vec![Stmt::text(before), Stmt::text(region)];
        // An item means the same in all of its block.
        let at = self.rng.random_range(0..=body.len());
        body.insert(at, Stmt::text(item));
        for _ in 0..2 {
            body.push(Stmt::text(format!("ops::store(&kv.s, &{}?)?;", self.work(&inner))));
        }
        stmts.push(Stmt { condition: None, parts: vec![Part::Block(body)] });
        stmts.push(Stmt::text(format!("ops::store(&kv.s, &{}?)?;", self.work(scope))));
        stmts
    }
}

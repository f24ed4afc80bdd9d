//! Variables that change in the same device work in which another takes their name. What they were changed to is read after
//! the block of the other one.

use rand::seq::IndexedRandom;

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
}

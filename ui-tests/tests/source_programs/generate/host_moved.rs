//! Host values that are not copied: segments use them, and later bindings move them.

use rand::seq::IndexedRandom;

use super::{Generator, Kind, Scope};
use crate::program::Stmt;

impl Generator {
    /// A host value, two uses by device work, and a move between them: of all of it, or of a part.
    pub(super) fn host_moved(&mut self, scope: &mut Scope) -> Vec<Stmt> {
        self.fresh += 1;
        let (lists, part) = (format!("lists{}", self.fresh), format!("part{}", self.fresh));
        let made = format!("⟦host⟧let {lists} = lists({});", self.number(scope));
        let one = self.name();
        let first = format!("let {one} = weighted({}, &{lists}.p)?;", self.tensor(scope));
        scope.add(&one, Kind::Tensor, false);
        let boundary = self.chance(0.3).then(|| format!("let _ = {};", self.region(scope)));
        let moves = [
            format!("let {part} = {lists}.p;"),
            format!("let {part} = {lists}; let {part} = {part}.q;"),
            format!("let Lists {{ p: {part}, .. }} = {lists};"),
            format!("let ({part}, _) = ({lists}.p, 1);"),
            format!("let {part}; {part} = {lists}.q;"),
            format!("let {part} = match {lists} {{ Lists {{ p, .. }} => p }};"),
            format!("⟦host⟧let {part} = if let Lists {{ q, .. }} = {lists} {{ q }} else {{ vec![] }};"),
        ];
        let moved = moves.choose(&mut self.rng).expect("there are some").clone();
        let two = self.name();
        let second = format!("let mut {two} = weighted({}, &{part})?;", self.tensor(scope));
        scope.add(&two, Kind::Tensor, true);
        [Some(made), Some(first), boundary, Some(moved), Some(second)]
            .into_iter()
            .flatten()
            .map(Stmt::text)
            .collect()
    }
}

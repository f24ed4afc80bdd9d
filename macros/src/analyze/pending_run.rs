//! The device statements that are not yet part of a segment, and the facts about them that later statements
//! need.

use std::collections::HashSet;

use syn::Stmt;

use super::evaluation_order::Check;
use crate::facts::{
    macros,
    statement::Statement,
    uses::{Sequence, Uses},
};

/// The known facts about the pending run.
#[derive(Default)]
pub(super) struct PendingRun {
    /// Its uses, including those of the closures that it names.
    uses: Sequence,
    /// Names that it binds.
    binds: HashSet<String>,
    /// Names that macros of the user in it may bind.
    maybe_bound: HashSet<String>,
    /// Its statements that may leave, and their uses.
    checks: Vec<(Check, Uses)>,
}

impl PendingRun {
    /// Adds a statement; `captured` are its uses including those of the closures that it names, and `made`
    /// states whether it names any.
    pub(super) fn push(&mut self, statement: &Statement, captured: Uses, made: bool) {
        self.binds.extend(statement.binds.iter().map(|b| b.ident.to_string()));
        if let Stmt::Macro(m) = &statement.stmt {
            self.maybe_bound.extend(macros::names_in(&m.mac));
        }
        self.uses.push(statement);
        if made || captured.0.len() > statement.uses.0.len() {
            self.uses.add(&captured);
        }
        let check = Check::of(&statement.stmt);
        if check.leaves() {
            self.checks.push((check, captured));
        }
    }

    pub(super) fn uses(&self) -> &Uses {
        self.uses.uses()
    }

    pub(super) fn checks(&self) -> &[(Check, Uses)] {
        &self.checks
    }

    /// Returns whether it binds the name.
    pub(super) fn binds(&self, name: &str) -> bool {
        self.binds.contains(name)
    }

    /// Returns whether it binds the name, or a macro in it may.
    pub(super) fn may_bind(&self, name: &str) -> bool {
        self.binds.contains(name) || self.maybe_bound.contains(name)
    }
}

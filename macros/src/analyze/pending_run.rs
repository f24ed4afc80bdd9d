//! The device statements that no segment holds yet, and what is asked of them when another statement comes.

use std::collections::HashSet;

use syn::Stmt;

use super::{
    evaluation_order::Check,
    macro_bindings,
    statement::Statement,
    uses::{Sequence, Uses},
};

/// What is known of the pending run.
#[derive(Default)]
pub(super) struct PendingRun {
    /// What it uses, the closures that it names included.
    uses: Sequence,
    /// Names that it binds.
    binds: HashSet<String>,
    /// Names that macros of the user in it may bind.
    maybe_bound: HashSet<String>,
    /// Its statements that may leave, and what they use.
    checks: Vec<(Check, Uses)>,
}

impl PendingRun {
    /// Adds a statement; `captured` are its uses with those of the closures that it names, `made` says that it names
    /// some.
    pub(super) fn push(&mut self, statement: &Statement, captured: Uses, made: bool) {
        self.binds.extend(statement.binds.iter().map(|b| b.ident.to_string()));
        if let Stmt::Macro(m) = &statement.stmt {
            self.maybe_bound.extend(macro_bindings::named_by(&m.mac));
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

    /// Whether it binds the name.
    pub(super) fn binds(&self, name: &str) -> bool {
        self.binds.contains(name)
    }

    /// Whether it binds the name, or a macro in it may.
    pub(super) fn may_bind(&self, name: &str) -> bool {
        self.binds.contains(name) || self.maybe_bound.contains(name)
    }
}

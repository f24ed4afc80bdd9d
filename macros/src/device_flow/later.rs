//! The variables that code after some other code needs.

use std::collections::BTreeSet;

use syn::Stmt;

use crate::{
    facts::{assigned, jumps, uses},
    parse::syntax,
};

/// The variables of which code needs the value from before; not those that it binds itself.
#[derive(Clone, Default)]
pub(crate) struct Later {
    pub(super) names: BTreeSet<String>,
    /// Names that stand for other values after the statements so far.
    bound: BTreeSet<String>,
    /// Of these, variables from before that get another value before any jump.
    replaced: BTreeSet<String>,
    /// Whether it may be left other than by an error.
    may_leave: bool,
}

impl Later {
    /// Code of which no more is known than the names; it may be left.
    pub(super) fn of(names: BTreeSet<String>) -> Self {
        Self { names, may_leave: true, ..Self::default() }
    }

    /// Code after a statement that may itself jump past it.
    pub(super) fn after(self, stmt: &Stmt) -> Self {
        Self { may_leave: self.may_leave || jumps::leaves(stmt), ..self }
    }

    pub(crate) fn stmt(&mut self, stmt: &Stmt) {
        let replaced = assigned::by_stmt(stmt);
        uses::of_stmt(stmt)
            .needed()
            .filter(|name| !replaced.contains(*name))
            .for_each(|name| self.name(name));
        if !self.may_leave {
            let from_before = replaced.iter().filter(|name| !self.bound.contains(*name));
            self.replaced.extend(from_before.cloned());
        }
        self.bound.extend(replaced);
        self.bound.extend(syntax::bound_by(stmt).iter().map(|b| b.ident.to_string()));
        self.may_leave |= jumps::leaves(stmt);
    }

    pub(crate) fn name(&mut self, name: &str) {
        if !self.bound.contains(name) {
            self.names.insert(name.to_owned());
        }
    }
}

/// Returns whether code uses the value that a variable has now, given what follows it, the outermost first.
pub(super) fn is_used(name: &str, followed_by: &[Later]) -> bool {
    let mut may_leave = false;
    for later in followed_by.iter().rev() {
        may_leave |= later.may_leave;
        if later.names.contains(name) {
            return true;
        }
        if !may_leave && later.replaced.contains(name) {
            return false;
        }
    }
    false
}

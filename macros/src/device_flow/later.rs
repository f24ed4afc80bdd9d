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
    /// Whether other code of the function may follow some of it, by `break` or `continue`.
    may_leave: bool,
    /// Whether what is inside is a closure's code, which an error or `return` leaves for the code behind the closure.
    is_closure: bool,
}

impl Later {
    /// Code of which no more is known than the names; it may be left.
    pub(super) fn of(names: BTreeSet<String>) -> Self {
        Self { names, may_leave: true, ..Self::default() }
    }

    /// Of a closure around code, which nothing follows in the closure.
    pub(super) fn of_closure() -> Self {
        Self { is_closure: true, ..Self::default() }
    }

    /// Code after a statement that may itself jump past it.
    pub(super) fn after(self, stmt: &Stmt) -> Self {
        Self { may_leave: self.may_leave || jumps::goes_on(stmt), ..self }
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
        self.may_leave |= jumps::goes_on(stmt);
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
    let closure = followed_by.iter().position(|later| later.is_closure).unwrap_or(followed_by.len());
    for (at, later) in followed_by.iter().enumerate().rev() {
        may_leave |= later.may_leave;
        if later.names.contains(name) {
            return true;
        }
        let is_in_closure = at > closure;
        if !may_leave && !is_in_closure && later.replaced.contains(name) {
            return false;
        }
    }
    false
}

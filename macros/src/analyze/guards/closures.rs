//! Closures have the values that they capture: one that takes a value ends it when it is called.

use syn::{
    Expr, ExprCall, Ident, Macro, Stmt,
    visit::{self, Visit},
};

use super::asking::{Asking, Origin, hands_on};
use crate::{
    facts::{classify, macros, statement::Statement, uses::Use},
    parse::syntax::{self, Bound},
};

impl Asking<'_> {
    /// A closure with the values that it has captured: they end where it does. Those that it takes end where it is called, or what it
    /// was given to.
    pub(super) fn closure(&mut self, at: usize, bound: &[Bound], is_move: bool) {
        let Some(name) = bound.first().map(|b| b.ident.to_string()) else { return };
        let uses = &self.run[at].uses.0;
        // What one inside of it captures is taken out of one that borrows.
        let keeps = |u: &Use| is_move && !u.by_value;
        let of = |kept: bool| -> Vec<Origin> {
            let among = uses.iter().filter(|(_, u)| (u.captured || u.by_value) && keeps(u) == kept);
            among.filter_map(|(name, _)| self.known.get(name)).flatten().cloned().collect()
        };
        let (kept, taken) = (of(true), of(false));
        self.forget(bound);
        if !kept.is_empty() && !self.moves_after(at, &name) {
            self.parts(kept.iter().filter(|origin| !self.leaves(&origin.guard.ident)).cloned().collect());
        }
        let ends = |i: usize| self.use_at(i, &name).is_some_and(hands_on) || self.calls(i, &name);
        if !taken.is_empty() && !self.behind(at, &name).any(ends) {
            self.parts(taken.into_iter().filter(|origin| !self.leaves(&origin.guard.ident)).collect());
        }
        if !kept.is_empty() {
            self.known.insert(name, kept);
        }
    }

    /// Returns whether a value is a closure under its name.
    pub(super) fn is_closure(&self, value: &Expr) -> bool {
        let made = |name: &Ident| self.run.iter().rev().find(|s| s.binds(&name.to_string()));
        let made = syntax::plain_name(value).and_then(made).and_then(Statement::local);
        made.is_some_and(|local| classify::closure_name(local).is_some())
    }

    /// Returns whether a statement may call a variable.
    pub(super) fn calls(&self, at: usize, name: &str) -> bool {
        may_call(&self.run[at].stmt, name)
    }
}

/// Returns whether a statement may call what has the name, or a part of it, also in a macro.
fn may_call(stmt: &Stmt, name: &str) -> bool {
    struct Calls<'n>(&'n str, bool);
    fn calls(expr: &Expr, name: &str) -> bool {
        let mut calls = Calls(name, false);
        calls.visit_expr(expr);
        calls.1
    }
    impl<'a> Visit<'a> for Calls<'_> {
        fn visit_expr_call(&mut self, e: &'a ExprCall) {
            self.1 |= syntax::place_base(&e.func).is_some_and(|callee| callee == self.0);
            visit::visit_expr_call(self, e);
        }
        fn visit_macro(&mut self, mac: &'a Macro) {
            if let Some(elements) = macros::elements(mac) {
                return elements.iter().for_each(|e| self.1 |= calls(e, self.0));
            }
            self.1 |= macros::idents(mac.tokens.clone()).iter().any(|name| name == self.0);
        }
    }
    let mut calls = Calls(name, false);
    calls.visit_stmt(stmt);
    calls.1
}

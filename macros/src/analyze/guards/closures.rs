//! Closures have the values that they capture: one that takes a value ends it when it is called.

use syn::{
    Expr, ExprCall, Macro, Stmt,
    visit::{self, Visit},
};

use super::asking::{Asking, Origin};
use crate::{
    facts::{macros, uses::Use},
    parse::syntax::{self, Bound},
};

impl Asking<'_> {
    /// A closure with the values that it has captured: they end where it does, or, if it takes them, where it is called.
    pub(super) fn closure(&mut self, at: usize, bound: &[Bound]) {
        let Some(name) = bound.first().map(|b| b.ident.to_string()) else { return };
        let called = || self.behind(at, &name).any(|i| may_call(&self.run[i].stmt, &name));
        let keeps = |u: &Use| if u.by_value { !called() } else { u.captured };
        let uses = self.run[at].uses.0.iter().filter(|(_, u)| keeps(u));
        let kept: Vec<Origin> =
            uses.filter_map(|(name, _)| self.known.get(name)).flatten().cloned().collect();
        self.forget(bound);
        if kept.is_empty() {
            return;
        }
        if !self.moves_after(at, &name) {
            self.parts(kept.iter().filter(|origin| !self.leaves(origin)).cloned().collect());
        }
        self.known.insert(name, kept);
    }

    /// Returns whether later segments use the variable.
    fn leaves(&self, origin: &Origin) -> bool {
        self.live_outs.carried.iter().any(|o| o.ident == origin.guard.ident)
    }
}

/// Returns whether a statement may call what has the name, also in a macro.
fn may_call(stmt: &Stmt, name: &str) -> bool {
    struct Calls<'n>(&'n str, bool);
    impl<'a> Visit<'a> for Calls<'_> {
        fn visit_expr_call(&mut self, e: &'a ExprCall) {
            let callee: &Expr = syntax::bare(&e.func);
            self.1 |= syntax::plain_name(callee).is_some_and(|callee| callee == self.0);
            visit::visit_expr_call(self, e);
        }
        fn visit_macro(&mut self, mac: &'a Macro) {
            self.1 |= macros::idents(mac.tokens.clone()).iter().any(|name| name == self.0);
        }
    }
    let mut calls = Calls(name, false);
    calls.visit_stmt(stmt);
    calls.1
}

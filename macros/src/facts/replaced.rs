//! Whether a closure may be used after a variable that it captured has been assigned: it keeps the value that it took.

use std::collections::HashSet;

use syn::{
    Block, Expr, Item, Pat, Stmt,
    visit::{self, Visit},
};

use super::{macros, uses};
use crate::parse::syntax;

/// Returns whether statements may assign a variable, or a part of it, and use a closure afterwards, by its name or by that of other
/// closures and macros that they make of it. Calls of the macros `setters` may assign the variable.
pub(crate) fn before_use(stmts: &[Stmt], variable: &str, closure: &str, setters: &HashSet<String>) -> bool {
    let mut order = Order {
        variable,
        setters,
        users: HashSet::from([closure.to_owned()]),
        assigned: false,
        found: false,
    };
    order.statements(stmts);
    order.found
}

/// Visits code in the order in which it is evaluated.
struct Order<'n> {
    variable: &'n str,
    setters: &'n HashSet<String>,
    /// The names whose use is one of the closure.
    users: HashSet<String>,
    /// Set once the variable may have been assigned.
    assigned: bool,
    found: bool,
}

impl Order<'_> {
    fn statements(&mut self, stmts: &[Stmt]) {
        let (variable, users) = (self.variable, self.users.clone());
        for stmt in stmts {
            self.visit_stmt(stmt);
            self.bind(&syntax::bound_by(stmt));
            if let Stmt::Local(syn::Local { init: Some(init), .. }) = stmt
                && matches!(&*init.expr, Expr::Closure(_))
                && self.uses_it(&uses::of_expr(&init.expr))
            {
                self.users.extend(syntax::bound_by(stmt).iter().map(|b| b.ident.to_string()));
            }
        }
        (self.variable, self.users) = (variable, users);
    }

    /// Another variable may have the name of the variable, or of a closure.
    fn bind(&mut self, bound: &[syntax::Bound]) {
        for b in bound {
            let name = b.ident.to_string();
            if name == self.variable {
                self.variable = "";
            }
            self.users.remove(&name);
        }
    }

    fn uses_it(&self, uses: &uses::Uses) -> bool {
        uses.names().any(|name| self.users.contains(name))
    }

    /// Visits code with names of its own.
    fn with(&mut self, pat: Option<&Pat>, f: impl FnOnce(&mut Self)) {
        let (variable, users) = (self.variable, self.users.clone());
        pat.into_iter().for_each(|pat| self.bind(&syntax::bound(pat)));
        f(self);
        (self.variable, self.users) = (variable, users);
    }

    /// Visits code that is one of several ways; `after` collects what is assigned by any of them.
    fn way(&mut self, after: &mut bool, f: impl FnOnce(&mut Self)) {
        let before = self.assigned;
        f(self);
        *after |= self.assigned;
        self.assigned = before;
    }

    fn assign(&mut self, left: &Expr) {
        self.visit_expr(left);
        let assigned = uses::of_assigned(left);
        self.assigned |= assigned.get(self.variable).is_some_and(|u| u.assigned || u.touched);
    }
}

impl<'a> Visit<'a> for Order<'_> {
    fn visit_block(&mut self, block: &'a Block) {
        self.statements(&block.stmts);
    }

    fn visit_stmt(&mut self, stmt: &'a Stmt) {
        match stmt {
            Stmt::Item(Item::Macro(m)) => {
                let named = uses::of_tokens(&m.mac.tokens);
                if self.uses_it(&named) {
                    self.users.extend(m.ident.as_ref().map(ToString::to_string));
                }
            }
            other => visit::visit_stmt(self, other),
        }
    }

    fn visit_macro(&mut self, mac: &'a syn::Macro) {
        let mut named = uses::of_tokens(&mac.tokens);
        mac.path.get_ident().into_iter().for_each(|name| named.entry(name).whole = true);
        let sets = named.names().any(|name| self.setters.contains(name));
        let changes = || named.has(self.variable) && !macros::only_reads(mac);
        self.found |= self.uses_it(&named) && (self.assigned || sets);
        self.assigned |= sets || changes();
    }

    fn visit_arm(&mut self, arm: &'a syn::Arm) {
        self.with(Some(&arm.pat), |o| {
            arm.guard.iter().for_each(|(_, guard)| o.visit_expr(guard));
            o.visit_expr(&arm.body);
        });
    }

    fn visit_expr_let(&mut self, e: &'a syn::ExprLet) {
        self.visit_expr(&e.expr);
        self.bind(&syntax::bound(&e.pat));
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        if let Some(name) = syntax::plain_name(expr) {
            self.found |= self.assigned && self.users.contains(&name.to_string());
            return;
        }
        match expr {
            Expr::Assign(e) => {
                self.visit_expr(&e.right);
                self.assign(&e.left);
            }
            Expr::Binary(e) if syntax::is_assign(&e.op) => {
                self.visit_expr(&e.right);
                self.assign(&e.left);
            }
            Expr::If(e) => {
                let mut after = false;
                self.with(None, |o| {
                    o.visit_expr(&e.cond);
                    o.way(&mut after, |o| o.visit_block(&e.then_branch));
                });
                e.else_branch.iter().for_each(|(_, other)| self.way(&mut after, |o| o.visit_expr(other)));
                self.assigned |= after;
            }
            Expr::Match(e) => {
                self.visit_expr(&e.expr);
                let mut after = false;
                e.arms.iter().for_each(|arm| self.way(&mut after, |o| o.visit_arm(arm)));
                self.assigned |= after;
            }
            Expr::ForLoop(e) => {
                self.visit_expr(&e.expr);
                (0..2).for_each(|_| self.with(Some(&e.pat), |o| o.visit_block(&e.body)));
            }
            Expr::While(e) => (0..2).for_each(|_| {
                self.with(None, |o| {
                    o.visit_expr(&e.cond);
                    o.visit_block(&e.body);
                });
            }),
            Expr::Loop(e) => (0..2).for_each(|_| self.visit_block(&e.body)),
            Expr::Closure(e) => self.with(None, |o| {
                e.inputs.iter().for_each(|pat| o.bind(&syntax::bound_always(pat)));
                o.visit_expr(&e.body);
            }),
            other => visit::visit_expr(self, other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether `f`, which captured `h`, is used after `h` has been assigned; `set` assigns it.
    fn found(code: &str) -> bool {
        let block: Block = syn::parse_str(&format!("{{ {code} }}")).unwrap();
        before_use(&block.stmts, "h", "f", &HashSet::from(["set".to_owned()]))
    }

    #[test]
    fn the_closure_is_used_behind_an_assignment() {
        for code in [
            "h = a; f()",
            "h.a = a; f()",
            "(h, k) = g(); f()",
            "if k { h = a; } f()",
            "if k { h = a; f() } else { b }",
            "match k { 0 => { h = a; } _ => {} } f()",
            "for i in 0..k { f(); h = a; }",
            "while f() { h = a; }",
            "loop { if f() { break; } h = a; }",
            "let g = || f(); h = a; g()",
            "macro_rules! m { () => { f() } } h = a; m!()",
            "h = a; vec![f(), b]",
            "set!(); f()",
            "other!(h, a); f()",
            "apply!(set); f()",
            "{ let h = b; } h = a; f()",
            "{ let f = b; } h = a; f()",
            "{ h = a; } f()",
            "#[device] if p { h = a; } f()",
            "if let Some(f) = k { f(); } h = a; f()",
        ] {
            assert!(found(code), "{code}");
        }
    }

    #[test]
    fn it_is_not() {
        for code in [
            "f(); h = a;",
            "h = f();",
            "if k { h = a; } else { f() }",
            "match f() { h => 0 } h = a;",
            "let h = b; h = a; f()",
            "h = a; let f = b; f()",
            "match k { 0 => { h = a; } _ => f() }",
            "for h in k { h = a; f() }",
            "if let Some(h) = k { h = a; f() }",
            "vec![h, a]; f()",
            "h.len(); f()",
            "let g = || f(); g(); h = a;",
            "h = a; let g = |f| f; g(0)",
        ] {
            assert!(!found(code), "{code}");
        }
    }
}

//! Jumps out of code: `return` of a value, and `break` and `continue` of what is around it.
//!
//! The return of an error is none: it ends the call.

use syn::{
    Block, Expr, ExprReturn, Label, Lifetime, Stmt,
    visit::{self, Visit},
};

use crate::parse::device;

/// Finds the jumps out of the code that it visits, in order, outside closures and items. The arms of control flow of the
/// device have none; its predicate is a part of the code around it.
#[derive(Default)]
pub(crate) struct Jumps<'a> {
    pub(crate) found: Vec<&'a Expr>,
    loops: usize,
    labels: Vec<String>,
}

/// Returns whether the statement can leave its block other than by an error.
pub(crate) fn leaves(stmt: &Stmt) -> bool {
    let mut jumps = Jumps::default();
    jumps.visit_stmt(stmt);
    !jumps.found.is_empty()
}

/// As [`leaves`], of an expression.
pub(crate) fn expr_leaves(expr: &Expr) -> bool {
    let mut jumps = Jumps::default();
    jumps.visit_expr(expr);
    !jumps.found.is_empty()
}

/// Returns whether code can leave what is around it for other code of the function: by `break` or `continue`.
pub(crate) fn expr_goes_on(expr: &Expr) -> bool {
    let mut jumps = Jumps::default();
    jumps.visit_expr(expr);
    jumps.found.iter().any(|jump| !matches!(jump, Expr::Return(_)))
}

/// As [`expr_goes_on`], of a statement.
pub(crate) fn goes_on(stmt: &Stmt) -> bool {
    let mut jumps = Jumps::default();
    jumps.visit_stmt(stmt);
    jumps.found.iter().any(|jump| !matches!(jump, Expr::Return(_)))
}

/// Returns whether the body of a loop ends it by `break`, or a loop or block around it.
pub(crate) fn breaks(body: &Block) -> bool {
    let mut jumps = Jumps::default();
    jumps.visit_block(body);
    jumps.found.iter().any(|jump| matches!(jump, Expr::Break(_)))
}

/// `return Err(…)`.
pub(crate) fn returns_error(r: &ExprReturn) -> bool {
    let is_err = |path: &syn::Path| path.segments.last().is_some_and(|s| s.ident == "Err");
    match r.expr.as_deref() {
        Some(Expr::Call(c)) => matches!(&*c.func, Expr::Path(p) if is_err(&p.path)),
        _ => false,
    }
}

impl Jumps<'_> {
    fn is_outside(&self, label: Option<&Lifetime>) -> bool {
        match label {
            Some(label) => !self.labels.contains(&label.ident.to_string()),
            None => self.loops == 0,
        }
    }

    fn within(&mut self, label: Option<&Label>, is_loop: bool, f: impl FnOnce(&mut Self)) {
        let depth = self.labels.len();
        self.labels.extend(label.map(|l| l.name.ident.to_string()));
        self.loops += usize::from(is_loop);
        f(self);
        self.loops -= usize::from(is_loop);
        self.labels.truncate(depth);
    }
}

impl<'a> Visit<'a> for Jumps<'a> {
    fn visit_expr(&mut self, expr: &'a Expr) {
        if let Some(predicate) = device::predicate(expr) {
            return self.visit_expr(predicate);
        }
        let jumps = match expr {
            Expr::Return(r) => !returns_error(r),
            Expr::Break(b) => self.is_outside(b.label.as_ref()),
            Expr::Continue(c) => self.is_outside(c.label.as_ref()),
            _ => false,
        };
        if jumps {
            self.found.push(expr);
        }
        match expr {
            Expr::ForLoop(e) => self.within(e.label.as_ref(), true, |s| visit::visit_expr(s, expr)),
            Expr::While(e) => self.within(e.label.as_ref(), true, |s| visit::visit_expr(s, expr)),
            Expr::Loop(e) => self.within(e.label.as_ref(), true, |s| visit::visit_expr(s, expr)),
            Expr::Block(e) => self.within(e.label.as_ref(), false, |s| visit::visit_expr(s, expr)),
            other => visit::visit_expr(self, other),
        }
    }

    fn visit_expr_closure(&mut self, _: &'a syn::ExprClosure) {}
    fn visit_item(&mut self, _: &'a syn::Item) {}
}

//! Another name for one variable.

use syn::{
    Expr, Pat,
    visit_mut::{self, VisitMut},
};

use crate::parse::syntax;

/// Renames one variable of a call-free expression, where no inner binding takes its name.
pub(super) struct Rename<'a> {
    pub(super) from: &'a str,
    /// The expression that stands for it.
    pub(super) to: &'a Expr,
}

impl Rename<'_> {
    fn bound_by(&self, pat: &Pat) -> bool {
        syntax::bound(pat).iter().any(|b| b.ident == self.from)
    }

    /// Renames in a condition; whether one of its `let`s binds the name.
    fn condition(&mut self, cond: &mut Expr) -> bool {
        match cond {
            Expr::Let(l) => {
                self.visit_expr_mut(&mut l.expr);
                self.bound_by(&l.pat)
            }
            Expr::Binary(b) => self.condition(&mut b.left) || self.condition(&mut b.right),
            other => {
                self.visit_expr_mut(other);
                false
            }
        }
    }
}

impl VisitMut for Rename<'_> {
    fn visit_expr_mut(&mut self, expr: &mut Expr) {
        if matches!(expr, Expr::Path(p) if p.qself.is_none() && p.path.is_ident(self.from)) {
            *expr = self.to.clone();
        } else {
            visit_mut::visit_expr_mut(self, expr);
        }
    }

    fn visit_expr_closure_mut(&mut self, closure: &mut syn::ExprClosure) {
        if !closure.inputs.iter().any(|pat| self.bound_by(pat)) {
            self.visit_expr_mut(&mut closure.body);
        }
    }

    fn visit_expr_for_loop_mut(&mut self, e: &mut syn::ExprForLoop) {
        self.visit_expr_mut(&mut e.expr);
        if !self.bound_by(&e.pat) {
            self.visit_block_mut(&mut e.body);
        }
    }

    fn visit_field_value_mut(&mut self, field: &mut syn::FieldValue) {
        // `S { i }` becomes `S { i: renamed }`.
        if field.colon_token.is_none() && syntax::plain_name(&field.expr).is_some_and(|n| n == self.from) {
            field.colon_token = Some(Default::default());
        }
        self.visit_expr_mut(&mut field.expr);
    }

    fn visit_block_mut(&mut self, block: &mut syn::Block) {
        if syntax::values_among(&block.stmts).any(|item| item == self.from) {
            return;
        }
        for stmt in &mut block.stmts {
            self.visit_stmt_mut(stmt);
            if syntax::bound_by(stmt).iter().any(|b| b.ident == self.from) {
                return;
            }
        }
    }

    fn visit_arm_mut(&mut self, arm: &mut syn::Arm) {
        if !self.bound_by(&arm.pat) {
            visit_mut::visit_arm_mut(self, arm);
        }
    }

    fn visit_expr_if_mut(&mut self, e: &mut syn::ExprIf) {
        if !self.condition(&mut e.cond) {
            self.visit_block_mut(&mut e.then_branch);
        }
        if let Some((_, other)) = &mut e.else_branch {
            self.visit_expr_mut(other);
        }
    }
}

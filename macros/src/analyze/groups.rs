//! Arguments of a macro that made the function: `$e` is a group without delimiters around the expression. Where the expression is
//! control flow or has a boundary, and stands where such code may, it is the same without the group.

use proc_macro2::TokenStream;
use syn::{
    Arm, Attribute, Block, Expr, ExprParen, Local, Stmt,
    visit_mut::{self, VisitMut},
};

use crate::{facts::classify, parse::attributes};

/// Takes control flow and boundaries out of such groups.
pub(crate) fn open(block: &mut Block) {
    Open.visit_block_mut(block);
}

struct Open;

/// Removes groups around a value that ends where its statement does.
fn value(expr: &mut Expr) {
    while let Some((attrs, inner)) = group(expr) {
        let own = attributes::take(inner);
        let mut inner = std::mem::replace(inner, Expr::Verbatim(TokenStream::new()));
        attributes::put(&mut inner, attrs.into_iter().chain(own).collect());
        *expr = inner;
    }
}

/// Makes parentheses of the group around an operand.
fn operand(expr: &mut Expr) {
    if let Some((attrs, inner)) = group(expr) {
        value(inner);
        let inner = Box::new(std::mem::replace(inner, Expr::Verbatim(TokenStream::new())));
        *expr = Expr::Paren(ExprParen { attrs, paren_token: syn::token::Paren::default(), expr: inner });
    }
}

/// Returns the attributes and the inside of a group that hides control flow or a boundary.
fn group(expr: &mut Expr) -> Option<(Vec<Attribute>, &mut Expr)> {
    let Expr::Group(group) = expr else { return None };
    (is_flow(&group.expr) || classify::expr_has_boundary(&group.expr))
        .then(|| (std::mem::take(&mut group.attrs), &mut *group.expr))
}

impl VisitMut for Open {
    fn visit_stmt_mut(&mut self, stmt: &mut Stmt) {
        if let Stmt::Expr(expr, _) = stmt {
            value(expr);
        }
        visit_mut::visit_stmt_mut(self, stmt);
    }

    fn visit_local_mut(&mut self, local: &mut Local) {
        match &mut local.init {
            // No brace may stand before `else`.
            Some(init) if init.diverge.is_some() => operand(&mut init.expr),
            Some(init) => value(&mut init.expr),
            None => {}
        }
        visit_mut::visit_local_mut(self, local);
    }

    fn visit_arm_mut(&mut self, arm: &mut Arm) {
        value(&mut arm.body);
        visit_mut::visit_arm_mut(self, arm);
    }

    fn visit_expr_mut(&mut self, expr: &mut Expr) {
        match expr {
            Expr::Assign(e) => value(&mut e.right),
            Expr::Paren(e) => value(&mut e.expr),
            Expr::Return(e) => e.expr.as_deref_mut().into_iter().for_each(value),
            // Behind a label, rustc asks for parentheses.
            Expr::Break(e) if e.label.is_some() => e.expr.as_deref_mut().into_iter().for_each(operand),
            Expr::Break(e) => e.expr.as_deref_mut().into_iter().for_each(value),
            Expr::Try(e) => operand(&mut e.expr),
            Expr::Cast(e) => operand(&mut e.expr),
            Expr::Unary(e) => operand(&mut e.expr),
            _ => {}
        }
        visit_mut::visit_expr_mut(self, expr);
    }
}

fn is_flow(expr: &Expr) -> bool {
    match expr {
        Expr::Group(inner) => is_flow(&inner.expr),
        Expr::Block(_) | Expr::If(_) | Expr::Match(_) => true,
        Expr::ForLoop(_) | Expr::Loop(_) | Expr::While(_) => true,
        _ => false,
    }
}

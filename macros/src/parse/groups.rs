//! Arguments of a macro that made the function: `$e` is a group without delimiters around the expression. Where the expression is a
//! block, an `if`, a `match` or a loop, and stands where control flow may, it is the same without the group.

use syn::{
    Arm, Block, Expr, ExprAssign, Local, Stmt,
    visit_mut::{self, VisitMut},
};

/// Takes control flow out of such groups.
pub(crate) fn open(block: &mut Block) {
    Open.visit_block_mut(block);
}

struct Open;

impl Open {
    fn value(&mut self, expr: &mut Expr) {
        while let Expr::Group(group) = expr
            && group.attrs.is_empty()
            && is_flow(&group.expr)
        {
            *expr = (*group.expr).clone();
        }
    }
}

impl VisitMut for Open {
    fn visit_stmt_mut(&mut self, stmt: &mut Stmt) {
        if let Stmt::Expr(expr, _) = stmt {
            self.value(expr);
        }
        visit_mut::visit_stmt_mut(self, stmt);
    }

    fn visit_local_mut(&mut self, local: &mut Local) {
        if let Some(init) = &mut local.init {
            self.value(&mut init.expr);
        }
        visit_mut::visit_local_mut(self, local);
    }

    fn visit_expr_assign_mut(&mut self, e: &mut ExprAssign) {
        self.value(&mut e.right);
        visit_mut::visit_expr_assign_mut(self, e);
    }

    fn visit_arm_mut(&mut self, arm: &mut Arm) {
        self.value(&mut arm.body);
        visit_mut::visit_arm_mut(self, arm);
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

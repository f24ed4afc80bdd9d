//! The types of methods of views.

use super::{check::What, infer::Inference};
use crate::kernel::{
    methods::Class,
    model::{Expr, Scalar, ViewCall},
    views::ViewOp,
};

impl Inference<'_> {
    pub(super) fn view(&mut self, expr: &Expr, call: &ViewCall) {
        for index in &call.index {
            self.expr(index);
            self.check(index.ty, What::IsOf(Class::Integer, "the index of a view"), index.span);
        }
        let element = self.element_of(call.view);
        if let Some(other) = &call.other {
            self.expr(other);
            self.is(other.ty, element, other.span);
        }
        let scalar = match call.op {
            ViewOp::Dim => Scalar::I32,
            ViewOp::Set => Scalar::U32,
            ViewOp::At | ViewOp::AtOr => element,
        };
        self.is(expr.ty, scalar, expr.span);
    }
}

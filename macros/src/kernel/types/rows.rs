//! The types of rows, of their methods and of closures.

use super::{check::What, infer::Inference, table::Inferred};
use crate::kernel::{
    methods::Class,
    model::{Closure, Expr, RowCall, Scalar, TypeId},
    rows::RowOp,
};

impl Inference<'_> {
    pub(super) fn row(&mut self, expr: &Expr, call: &RowCall) {
        let (ty, at) = (expr.ty, expr.span);
        let Some(element) = self.element(&call.row) else { return };
        match call.op {
            RowOp::Map => {
                let Some(closure) = call.closures.first() else { return };
                let value = self.closure(closure, &[element]);
                self.check(value, What::IsElement, closure.body.span);
                self.types.set(ty, Inferred::Row(value));
            }
            RowOp::Zip => {
                let Some(other) = call.values.first().and_then(|other| self.element(other)) else { return };
                let pair = self.types.add(Inferred::Tuple(vec![element, other]));
                self.types.set(ty, Inferred::Row(pair));
            }
            RowOp::Enumerate => {
                let index = self.types.add(Inferred::Scalar(Scalar::U32));
                let pair = self.types.add(Inferred::Tuple(vec![index, element]));
                self.types.set(ty, Inferred::Row(pair));
            }
            RowOp::Sum | RowOp::Max | RowOp::Min => {
                self.check(element, What::Has(Class::Number, call.op.name()), at);
                self.same(ty, element, at);
            }
            RowOp::Argmax | RowOp::Argmin => {
                self.check(element, What::Has(Class::Number, call.op.name()), at);
                self.is(ty, Scalar::U32, at);
            }
            RowOp::Count => {
                let Some(closure) = call.closures.first() else { return };
                let value = self.closure(closure, &[element]);
                self.is(value, Scalar::Bool, closure.body.span);
                self.is(ty, Scalar::U32, at);
            }
            RowOp::Fold => self.fold(ty, element, call),
            RowOp::Len => self.is(ty, Scalar::U32, at),
            RowOp::At => {
                for index in &call.values {
                    self.expr(index);
                    self.check(index.ty, What::IsOf(Class::Integer, "the index of a row"), index.span);
                }
                self.same(ty, element, at);
            }
        }
    }

    /// The type of a row's values.
    fn element(&mut self, row: &Expr) -> Option<TypeId> {
        self.expr(row);
        let element = self.types.add(Inferred::Unknown);
        let wanted = self.types.add(Inferred::Row(element));
        self.agree(row.ty, wanted, row.span).then_some(element)
    }

    fn fold(&mut self, ty: TypeId, element: TypeId, call: &RowCall) {
        let ([init], [step, combine]) = (&call.values[..], &call.closures[..]) else { return };
        self.expr(init);
        let value = self.closure(step, &[init.ty, element]);
        self.same(value, init.ty, step.body.span);
        let value = self.closure(combine, &[init.ty, init.ty]);
        self.same(value, init.ty, combine.body.span);
        self.check(init.ty, What::IsElement, init.span);
        self.same(ty, init.ty, init.span);
    }

    /// Returns the type of a closure's result.
    fn closure(&mut self, closure: &Closure, parameters: &[TypeId]) -> TypeId {
        for ((pattern, own), ty) in closure.parameters.iter().zip(&closure.types).zip(parameters) {
            let bound = self.pattern_type(pattern);
            if self.agree(bound, *ty, closure.span) {
                self.same(*own, bound, closure.span);
            }
        }
        let result = self.types.add(Inferred::Unknown);
        let outer = std::mem::replace(&mut self.output, result);
        self.expr(&closure.body);
        if !closure.body.diverges() {
            self.same(closure.body.ty, result, closure.body.span);
        }
        self.output = outer;
        result
    }
}

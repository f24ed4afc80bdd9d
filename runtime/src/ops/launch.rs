//! From operands to a launch.

use crate::{
    Element, Result, Scope, Tensor,
    backend::{Op, View},
    tensor::Operand,
    value::layout::PaddedDims,
};

/// A tensor that the function already knows to belong to `scope`.
pub(super) fn own<T>(op: &'static str, x: &Tensor<'_, T>) -> Result<Operand> {
    Ok(Operand { view: x.view(op)?, marks: x.raw.marks })
}

/// Allocates the output of `op` and launches it.
pub(super) fn compute<'s, T: Element>(
    scope: Scope<'s>,
    op: impl Into<Op>,
    inputs: &[View],
    shape: &[usize],
    marks: PaddedDims,
) -> Result<Tensor<'s, T>> {
    let op = op.into();
    let out = scope.empty::<T>(&op, shape, marks)?;
    launch(scope, op, inputs, &[out.raw.view()])?;
    Ok(out)
}

/// Launches, unless there is nothing to write: devices refuse empty grids.
pub(super) fn launch(scope: Scope<'_>, op: Op, inputs: &[View], outputs: &[View]) -> Result<()> {
    if outputs.iter().all(|v| v.layout.count() == 0) {
        return Ok(());
    }
    scope.launch(op, inputs, outputs)
}

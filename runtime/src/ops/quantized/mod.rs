//! Products with, and rows of, weights in blocks: what [`linear`](super::linear()), [`linear_bias`](super::linear_bias()) and
//! [`embedding`](super::embedding()) launch for a [`Weight`](crate::Weight) that is not one of floats.

use smallvec::SmallVec;

use self::operation::QuantizedEmbedding;
use super::{
    check::{Shape, meet, refuse, spread},
    gather::{PickCounts, add_counts},
    launch::{compute, launch},
    shape::{contiguous, viewed},
};
use crate::{
    BlockFormat, Element, Error, Numerics, Result, Runtime, Scope, Tensor,
    backend::{Op, View},
    tensor::{Operand, Shown, weight::BlockOperand},
    value::layout::{Layout, PaddedDims},
};

mod cpu;
#[cfg(feature = "cuda")]
mod cuda;
mod linear;
mod operation;

pub(super) use linear::QuantizedLinear;

/// Returns whether the device of `rt` computes with weights in blocks of `format`.
pub(crate) fn computes_with_blocks(rt: &Runtime, format: BlockFormat) -> Result<bool> {
    let embedding = QuantizedEmbedding { format, counts: PickCounts::NONE };
    let product = QuantizedLinear::new(format, Numerics::default());
    Ok(rt.supports(&product.into())? && rt.supports(&embedding.into())?)
}

/// Checks that the device can run `op`; the caller is named `name`.
fn supported(name: &'static str, scope: Scope<'_>, op: &Op, format: BlockFormat) -> Result<()> {
    if scope.supports(op)? {
        return Ok(());
    }
    let reason = format!(
        "this device does not compute with weights in blocks ({format}); load the model with `load::load`, which takes floats \
         instead, or make this weight from a `Param`"
    );
    Err(Error::Argument { op: name, reason })
}

/// `x w^T`, with the bias if there is one; the caller is named `name`.
pub(super) fn linear<'s, T: Element>(
    name: &'static str,
    x: &Tensor<'s, T>,
    w: BlockOperand,
    bias: Option<Operand>,
) -> Result<Tensor<'s, T>> {
    let (scope, [n, k]) = (x.scope(), w.shape);
    let weight = Shown(&w.shape, PaddedDims::NONE);
    let Some((&last, lead)) = x.sizes().split_last() else {
        let reason = "the input needs at least one dimension: `[.., K]`";
        return Err(scope.shape_error(name, &[x.into(), weight], reason));
    };
    refuse(name, scope, x.raw.marks, [lead.len()])?;
    if last != k {
        let reason =
            format!("the last dimension of the input is {last}, of the weight {k}; they must be equal");
        return Err(scope.shape_error(name, &[x.into(), weight], reason));
    }
    if let Some(b) = &bias {
        if b.view.layout.rank() == 1 {
            meet(name, scope, lead.len(), None, b.marks.get(0))?;
        }
        if b.view.layout.shape() != [n] {
            let reason = format!("the bias must be [{n}], as the weight has {n} rows");
            return Err(scope.shape_error(name, &[x.into(), weight, b.into()], reason));
        }
    }
    let numerics = scope.numerics().concerning(T::DTYPE);
    let op = Op::from(QuantizedLinear::new(w.format, numerics));
    supported(name, scope, &op, w.format)?;
    let mut shape: Shape = lead.into();
    shape.push(n);
    let out = scope.empty::<T>(&op, &shape, x.raw.marks.with(lead.len(), None))?;
    let rows = lead.iter().product();
    let output = View { layout: Layout::contiguous(&[rows, n])?, ..out.raw.view() };
    // Rows of all leading dimensions are those of one matrix, of a copy if the strides do not allow it.
    let (copy, layout);
    let x = match viewed(&x.raw.layout, &[rows, k]) {
        Some(tall) => {
            layout = tall;
            x
        }
        None => {
            copy = contiguous(x)?;
            layout = Layout::contiguous(&[rows, k])?;
            &copy
        }
    };
    let mut inputs = SmallVec::<[View; 3]>::from_slice(&[View { layout, ..x.view(name)? }, w.view]);
    if let Some(bias) = bias {
        inputs.push(spread(name, bias.view, output.layout.shape())?);
    }
    launch(scope, op, &inputs, &[output])?;
    Ok(out)
}

/// Rows of `table` at `ids`; the caller is named `name`.
pub(super) fn embedding<'s, T: Element>(
    name: &'static str,
    ids: &Tensor<'s, u32>,
    table: BlockOperand,
) -> Result<Tensor<'s, T>> {
    let scope = ids.scope();
    let mut shape: Shape = ids.sizes().into();
    shape.push(table.shape[1]);
    Layout::contiguous(&shape)?;
    let mut inputs: SmallVec<[View; 4]> = SmallVec::from_slice(&[ids.view(name)?, table.view]);
    let counts = add_counts(scope, &mut inputs, ids.raw.marks, None);
    let op = Op::from(QuantizedEmbedding { format: table.format, counts });
    supported(name, scope, &op, table.format)?;
    compute(scope, op, &inputs, &shape, ids.raw.marks.with(ids.rank(), None))
}

//! Matrix products.

use self::operation::op;
use super::{
    check::{Shape, broadcast, meet, refuse, spread},
    launch::{compute, launch, own},
    quantized,
    shape::viewed,
};
use crate::{
    AsOperand, AsWeight, Number, Result, Scope, Tensor,
    backend::View,
    tensor::{Operand, Shown, weight::Stored},
    value::layout::{Layout, PaddedDims},
};

mod cpu;
#[cfg(feature = "cuda")]
mod cuda;
mod operation;
mod product;
mod thin;

#[cfg(feature = "cuda")]
pub(super) use thin::samples::samples as fused_samples;

pub(super) use cpu::product as product_on_cpu;
#[cfg(feature = "cuda")]
pub(super) use cuda::MatMulKernels;
#[cfg(test)]
pub(crate) use operation::plain as plain_product;
#[cfg(feature = "cuda")]
pub(super) use thin::{
    alone::launch as launch_blocks,
    few_rows::{FEW_ROWS, lines_up},
};
pub(super) use thin::{few_rows::may_fuse_product, fuse::fuse_product};

/// Computes `x w^T`: `x` is `[.., K]`, `w` is `[N, K]` (the layout of stored weights), the result `[.., N]`.
///
/// Corresponds to `torch.nn.functional.linear`.
///
/// Floats accumulate in f32 (an `f64` in f64), integers wrap. Padding of the leading dimensions of `x` and of `N`
/// propagates. With a weight in blocks, a row of the result has the same bits whatever other rows are computed with it; see
/// [`Weight`](crate::Weight) for its accuracy.
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let step = rt.step()?;
/// let x = step.tensor(&[1, 2], &[1.0f32, 2.0])?;
/// let w = step.tensor(&[3, 2], &[1.0f32, 0.0, 0.0, 1.0, 1.0, 1.0])?;
/// let y = ops::linear(&x, &w)?;
/// assert_eq!(y.shape(), [1, 3]);
/// assert_eq!(step.read(&y)?, [1.0, 2.0, 3.0]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns [`Error::Shape`](crate::Error::Shape); [`Error::PaddedMix`](crate::Error::PaddedMix) if `K` is
/// padded.
pub fn linear<'s, T: Number>(
    x: &Tensor<'s, T>,
    w: &(impl AsWeight<'s, T> + ?Sized),
) -> Result<Tensor<'s, T>> {
    let scope = x.scope();
    match w.weight("linear", scope)?.0 {
        Stored::Floats(w) => project("linear", scope, own("linear", x)?, w, None),
        Stored::Blocks(w) => quantized::linear("linear", x, w, None),
    }
}

/// Computes `x w^T + b`: as [`linear`], with a bias `b` of shape `[N]`.
///
/// Corresponds to `torch.nn.functional.linear` with `bias`.
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let step = rt.step()?;
/// let x = step.tensor(&[1, 2], &[1.0f32, 2.0])?;
/// let w = step.tensor(&[2, 2], &[1.0f32, 0.0, 1.0, 1.0])?;
/// let b = step.tensor(&[2], &[10.0f32, 20.0])?;
/// assert_eq!(step.read(&ops::linear_bias(&x, &w, &b)?)?, [11.0, 23.0]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns [`Error::Shape`](crate::Error::Shape); [`Error::PaddedMix`](crate::Error::PaddedMix) if `K` is
/// padded.
pub fn linear_bias<'s, T: Number>(
    x: &Tensor<'s, T>,
    w: &(impl AsWeight<'s, T> + ?Sized),
    b: &(impl AsOperand<'s, T> + ?Sized),
) -> Result<Tensor<'s, T>> {
    let scope = x.scope();
    let w = w.weight("linear_bias", scope)?;
    let b = b.operand("linear_bias", scope)?;
    match w.0 {
        Stored::Floats(w) => project("linear_bias", scope, own("linear_bias", x)?, w, Some(b)),
        Stored::Blocks(w) => quantized::linear("linear_bias", x, w, Some(b)),
    }
}

/// `x w^T`, with the bias if there is one; the caller is named `name`.
pub(super) fn project<'s, T: Number>(
    name: &'static str,
    scope: Scope<'s>,
    x: Operand,
    w: Operand,
    bias: Option<Operand>,
) -> Result<Tensor<'s, T>> {
    let (xs, ws) = (x.view.layout, w.view.layout);
    let (&[n, k], Some((&last, lead))) = (ws.shape(), xs.shape().split_last()) else {
        return Err(scope.shape_error(
            name,
            &[(&x).into(), (&w).into()],
            "the input needs at least one dimension and the weight two: `[.., K]` and `[N, K]`",
        ));
    };
    refuse(name, scope, x.marks, [lead.len()])?;
    refuse(name, scope, w.marks, [1])?;
    if last != k {
        let reason =
            format!("the last dimension of the input is {last}, of the weight {k}; they must be equal");
        return Err(scope.shape_error(name, &[(&x).into(), (&w).into()], reason));
    }
    let mut n_mark = w.marks.get(0);
    if let Some(b) = &bias {
        if b.view.layout.rank() == 1 {
            n_mark = meet(name, scope, lead.len(), n_mark, b.marks.get(0))?;
        }
        if b.view.layout.shape() != [n] {
            let reason = format!("the bias must be [{n}], as the weight has {n} rows");
            return Err(scope.shape_error(name, &[(&x).into(), (&w).into(), b.into()], reason));
        }
    }
    let mut shape: Shape = lead.into();
    shape.push(n);
    let matmul = op::<T>(scope);
    let out = scope.empty::<T>(&matmul, &shape, x.marks.with(lead.len(), n_mark))?;

    // Rows of all leading dimensions make one tall matrix where the strides allow it: one product
    // instead of a batch of small ones.
    let rows = lead.iter().product();
    let (input, output) = match viewed(&xs, &[rows, k]) {
        Some(tall) => (tall, Layout::contiguous(&[rows, n])?),
        None => (xs, out.raw.layout),
    };
    let batch = &input.shape()[..input.rank() - 2];
    let mut weight: Shape = batch.into();
    weight.extend([k, n]);
    let mut inputs = smallvec::SmallVec::<[View; 3]>::new();
    inputs.push(View { layout: input, ..x.view });
    inputs.push(spread(name, View { layout: ws.permuted(&[1, 0]), ..w.view }, &weight)?);
    if let Some(b) = bias {
        inputs.push(spread(name, b.view, output.shape())?);
    }
    launch(scope, matmul, &inputs, &[View { layout: output, ..out.raw.view() }])?;
    Ok(out)
}

/// Multiplies matrices in the last two dimensions: `a` is `[.., M, K]`, `b` is `[.., K, N]`, the result
/// `[.., M, N]`; the dimensions in front broadcast.
///
/// Corresponds to `torch.matmul`, of matrices.
///
/// Floats accumulate in f32 (an `f64` in f64), integers wrap. Padding of `M`, `N` and the dimensions in front
/// propagates.
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let step = rt.step()?;
/// let a = step.tensor(&[2, 2], &[1.0f32, 2.0, 3.0, 4.0])?;
/// let b = step.tensor(&[2, 2], &[1.0f32, 0.0, 0.0, 2.0])?;
/// assert_eq!(step.read(&ops::matmul(&a, &b)?)?, [1.0, 4.0, 3.0, 8.0]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns [`Error::Shape`](crate::Error::Shape); [`Error::PaddedMix`](crate::Error::PaddedMix) if `K` is
/// padded, or one dimension in front by different symbols.
pub fn matmul<'s, T: Number>(
    a: &Tensor<'s, T>,
    b: &(impl AsOperand<'s, T> + ?Sized),
) -> Result<Tensor<'s, T>> {
    let scope = a.scope();
    let b = b.operand("matmul", scope)?;
    product("matmul", "`[.., M, K]` and `[.., K, N]`", scope, own("matmul", a)?, b)
}

/// Multiplies as [`matmul`] does, with `b` transposed in its last two dimensions: `a` is `[.., M, K]`, `b` is
/// `[.., N, K]`, the result `[.., M, N]`.
///
/// Corresponds to `torch.matmul` of `b.mT`.
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let step = rt.step()?;
/// let a = step.tensor(&[1, 2], &[1.0f32, 2.0])?;
/// let b = step.tensor(&[2, 2], &[3.0f32, 4.0, 5.0, 6.0])?;
/// assert_eq!(step.read(&ops::matmul_nt(&a, &b)?)?, [11.0, 17.0]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// See [`matmul`].
pub fn matmul_nt<'s, T: Number>(
    a: &Tensor<'s, T>,
    b: &(impl AsOperand<'s, T> + ?Sized),
) -> Result<Tensor<'s, T>> {
    let scope = a.scope();
    let mut b = b.operand("matmul_nt", scope)?;
    let rank = b.view.layout.rank();
    if rank >= 2 {
        let mut axes: Shape = (0..rank).collect();
        axes.swap(rank - 2, rank - 1);
        let (n, k) = (b.marks.get(rank - 2), b.marks.get(rank - 1));
        b.view.layout = b.view.layout.permuted(&axes);
        b.marks = b.marks.with(rank - 2, k).with(rank - 1, n);
    }
    product("matmul_nt", "`[.., M, K]` and `[.., N, K]` (shown transposed)", scope, own("matmul_nt", a)?, b)
}

/// The product of the last two dimensions; the caller is named `name`.
pub(super) fn product<'s, T: Number>(
    name: &'static str,
    expected: &str,
    scope: Scope<'s>,
    a: Operand,
    b: Operand,
) -> Result<Tensor<'s, T>> {
    let (la, lb) = (a.view.layout, b.view.layout);
    let wrong = |reason: String| Err(scope.shape_error(name, &[(&a).into(), (&b).into()], reason));
    let (&[ref batch_a @ .., m, k], &[ref batch_b @ .., k_b, n]) = (la.shape(), lb.shape()) else {
        return wrong(format!("both operands need at least two dimensions: {expected}"));
    };
    let (of_a, of_b) = (batch_a.len() + 1, batch_b.len());
    let inner = refuse(name, scope, a.marks, [of_a]).and_then(|()| refuse(name, scope, b.marks, [of_b]));
    let both = a.marks.get(of_a) == b.marks.get(of_b);
    inner.map_err(|error| if both { error.or_masked() } else { error })?;
    if k != k_b {
        return wrong(format!("the contracted dimensions are {k} and {k_b}; {expected} is needed"));
    }
    let (mut shape, mut marks) = broadcast(name, scope, &[batch_of(&a), batch_of(&b)])?;
    let batch = shape.len();
    marks = marks.with(batch, a.marks.get(batch_a.len())).with(batch + 1, b.marks.get(batch_b.len() + 1));

    let dims = |last: [usize; 2]| -> Shape { shape.iter().copied().chain(last).collect() };
    let inputs = [spread(name, a.view, &dims([m, k]))?, spread(name, b.view, &dims([k, n]))?];
    shape.extend([m, n]);
    compute(scope, op::<T>(scope), &inputs, &shape, marks)
}

/// The dimensions in front of the matrices, alone.
fn batch_of(x: &Operand) -> Shown<'_> {
    let batch = x.view.layout.rank() - 2;
    let marks = (0..batch).fold(PaddedDims::NONE, |m, axis| m.with(axis, x.marks.get(axis)));
    Shown(&x.view.layout.shape()[..batch], marks)
}

//! Products of groups of rows, each with a matrix of its own.

use self::operation::GROUPED_MM;
use crate::{
    AsOperand, Float, Result, Tensor,
    backend::View,
    ops::{
        check::{Shape, refuse},
        contiguous,
        launch::launch,
        shape::{permuted_marks, viewed},
    },
    tensor::Operand,
    value::layout::Layout,
};

mod cpu;
#[cfg(feature = "cuda")]
mod cuda;
mod operation;

/// Multiplies each row of `x`, `[.., K]`, by the matrix of its group, one of `w`, `[G, K, N]`: the result is `[.., N]`.
///
/// As `torch.nn.functional.grouped_mm`. Rows are counted through all dimensions but the last; those of group `g` are the rows
/// from `ends[g - 1]`, or 0, to `ends[g]`, and the rows behind all groups become 0 and are not read. `ends` is `[G]`; an end
/// before that of the preceding group counts as equal to it, and one behind the rows as their number. The ends are read on the
/// device, so one recording serves groups of all sizes. Floats accumulate in f32. Padding of the first dimension of `x` and
/// of `N` propagates: with the ends of [`moe_route`](crate::ops::moe_route), rows of the padding are behind all groups.
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let step = rt.step()?;
/// let x = step.tensor(&[3, 2], &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0])?;
/// let w = step.tensor(&[2, 2, 1], &[1.0f32, 0.0, 1.0, 1.0])?;
/// let ends = step.tensor(&[2], &[1u32, 2])?;
/// assert_eq!(step.read(&ops::grouped_mm(&x, &w, &ends)?)?, [1.0, 7.0, 0.0]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns [`Error::Shape`](crate::Error::Shape); [`Error::PaddedMix`](crate::Error::PaddedMix) if `K`, `G` or a leading
/// dimension of `x` but the first is padded.
pub fn grouped_mm<'s, T: Float>(
    x: &Tensor<'s, T>,
    w: &(impl AsOperand<'s, T> + ?Sized),
    ends: &(impl AsOperand<'s, u32> + ?Sized),
) -> Result<Tensor<'s, T>> {
    const NAME: &str = "grouped_mm";
    let (w, ends) = (w.operand(NAME, x.scope())?, ends.operand(NAME, x.scope())?);
    product(NAME, "`[.., K]`, `[G, K, N]` and `[G]`", x, w, ends)
}

/// Multiplies as [`grouped_mm`] does, with the matrices transposed, as weights are stored: `w` is `[G, N, K]`.
///
/// Corresponds to `torch.nn.functional.grouped_mm` of `w.mT`.
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let step = rt.step()?;
/// let x = step.tensor(&[2, 2], &[1.0f32, 2.0, 3.0, 4.0])?;
/// let w = step.tensor(&[1, 1, 2], &[1.0f32, 10.0])?;
/// let ends = step.tensor(&[1], &[2u32])?;
/// assert_eq!(step.read(&ops::grouped_mm_nt(&x, &w, &ends)?)?, [21.0, 43.0]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// See [`grouped_mm`].
pub fn grouped_mm_nt<'s, T: Float>(
    x: &Tensor<'s, T>,
    w: &(impl AsOperand<'s, T> + ?Sized),
    ends: &(impl AsOperand<'s, u32> + ?Sized),
) -> Result<Tensor<'s, T>> {
    const NAME: &str = "grouped_mm_nt";
    let (mut w, ends) = (w.operand(NAME, x.scope())?, ends.operand(NAME, x.scope())?);
    if w.view.layout.rank() == 3 {
        w.view.layout = w.view.layout.permuted(&[0, 2, 1]);
        w.marks = permuted_marks(w.marks, &[0, 2, 1]);
    }
    product(NAME, "`[.., K]`, `[G, N, K]` (shown transposed) and `[G]`", x, w, ends)
}

fn product<'s, T: Float>(
    name: &'static str,
    expected: &str,
    x: &Tensor<'s, T>,
    w: Operand,
    ends: Operand,
) -> Result<Tensor<'s, T>> {
    let scope = x.scope();
    let shapes = (x.sizes().split_last(), w.view.layout.shape(), ends.view.layout.shape());
    let (Some((&k, lead)), &[groups, w_k, n], &[given]) = shapes else {
        let reason = format!("the operands must be {expected}");
        return Err(scope.shape_error(name, &[x.into(), (&w).into(), (&ends).into()], reason));
    };
    // Rows are counted through all dimensions, so real ones are those that come first only if the first alone is padded.
    refuse(name, scope, x.raw.marks, (0..=lead.len()).filter(|axis| *axis > 0 || lead.is_empty()))?;
    refuse(name, scope, w.marks, [0, 1])?;
    refuse(name, scope, ends.marks, [0])?;
    if (k, groups) != (w_k, given) {
        let reason = format!("the operands must be {expected}, of one size for each letter");
        return Err(scope.shape_error(name, &[x.into(), (&w).into(), (&ends).into()], reason));
    }
    let rows = lead.iter().product();
    let shape: Shape = lead.iter().copied().chain([n]).collect();
    let marks = x.raw.marks.with(lead.len(), w.marks.get(2));
    let out = scope.empty::<T>(&GROUPED_MM, &shape, marks)?;
    let (x, flat) = match viewed(&x.raw.layout, &[rows, k]) {
        Some(flat) => (x.clone(), flat),
        None => (contiguous(x)?, Layout::contiguous(&[rows, k])?),
    };
    let x = View { layout: flat, ..x.view(name)? };
    let y = View { layout: Layout::contiguous(&[rows, n])?, ..out.raw.view() };
    launch(scope, GROUPED_MM, &[x, w.view, ends.view], &[y])?;
    Ok(out)
}

//! Tensors whose elements are those of others at other places, and triangles.

use super::{
    arange, arange_step, broadcast_to, cast,
    check::{Shape, check_axis},
    composed::composed,
    concat, contiguous, eq, full,
    gather::picked,
    narrow, unsqueeze, where_,
};
#[cfg(feature = "cuda")]
use crate::kernel::definition::Definition;
use crate::{
    AsOperand, Element, Error, IntoShape, Result, Scope, Tensor,
    kernel::{call::Call, definition::Kernel as _},
    tensor::Shown,
    value::layout::{Layout, PaddedDims},
};

mod of {
    use crate::kernel;

    #[kernel(index)]
    pub(super) fn tri(diagonal: i32, [i, j]: [i32; 2]) -> bool {
        j - i <= diagonal
    }
}

/// Joins tensors of one shape along a new dimension `axis`.
///
/// Corresponds to `torch.stack`.
///
/// Padding marks unite.
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let step = rt.step()?;
/// let x = step.tensor(&[2], &[1u32, 2])?;
/// let y = step.tensor(&[2], &[3u32, 4])?;
/// assert_eq!(step.read(&ops::stack(&[&x, &y], 1)?)?, [1, 3, 2, 4]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns [`Error::Argument`] for no tensor; [`Error::Axis`] if `axis` is larger than the rank; [`Error::Rank`];
/// [`Error::Shape`] if the shapes differ; [`Error::PaddedMix`] if their padding does.
pub fn stack<'s, T: Element>(tensors: &[&Tensor<'s, T>], axis: usize) -> Result<Tensor<'s, T>> {
    const NAME: &str = "stack";
    if let Some((first, rest)) = tensors.split_first()
        && rest.iter().any(|x| x.sizes() != first.sizes())
    {
        let shown: Vec<Shown<'_>> = tensors.iter().map(|x| (*x).into()).collect();
        return Err(first.scope().shape_error(NAME, &shown, "all shapes must be equal"));
    }
    composed(NAME, || {
        let all: Vec<Tensor<'s, T>> = tensors.iter().map(|x| unsqueeze(x, axis)).collect::<Result<_>>()?;
        concat(&all.iter().collect::<Vec<_>>(), axis)
    })
}

/// Slices of `x` along `axis` at `index`: another name of [`gather`](super::gather).
///
/// Corresponds to `torch.index_select`.
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let step = rt.step()?;
/// let x = step.tensor(&[3], &[1.0f32, 2.0, 3.0])?;
/// let index = step.tensor(&[2], &[2u32, 0])?;
/// assert_eq!(step.read(&ops::index_select(&x, 0, &index)?)?, [3.0, 1.0]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// See [`gather`](super::gather).
pub fn index_select<'s, T: Element>(
    x: &Tensor<'s, T>,
    axis: usize,
    index: &(impl AsOperand<'s, u32> + ?Sized),
) -> Result<Tensor<'s, T>> {
    picked("index_select", x, axis, index)
}

/// Returns `x` with the elements along `axis` in reverse.
///
/// Corresponds to `torch.flip` along one axis.
///
/// Padding of the other dimensions propagates.
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let step = rt.step()?;
/// let x = step.tensor(&[3], &[1.0f32, 2.0, 3.0])?;
/// assert_eq!(step.read(&ops::flip(&x, 0)?)?, [3.0, 2.0, 1.0]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns [`Error::Axis`]; [`Error::PaddedMix`] if `axis` is padded.
pub fn flip<'s, T: Element>(x: &Tensor<'s, T>, axis: usize) -> Result<Tensor<'s, T>> {
    check_axis("flip", axis, x.rank())?;
    x.scope().refuse_padded("flip", x.raw.marks, axis)?;
    let size = x.size(axis);
    let back = arange_step::<u32>(x.scope(), size, size.saturating_sub(1) as f64, -1.0)?;
    composed("flip", || picked("flip", x, axis, &back))
}

/// Returns `x` with the elements along `axis` moved by `shift` places; those that leave at one end enter at the other.
///
/// Corresponds to `torch.roll` along one axis.
///
/// Padding of the other dimensions propagates.
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let step = rt.step()?;
/// let x = step.tensor(&[3], &[1.0f32, 2.0, 3.0])?;
/// assert_eq!(step.read(&ops::roll(&x, 1, 0)?)?, [3.0, 1.0, 2.0]);
/// assert_eq!(step.read(&ops::roll(&x, -1, 0)?)?, [2.0, 3.0, 1.0]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns [`Error::Axis`]; [`Error::PaddedMix`] if `axis` is padded.
pub fn roll<'s, T: Element>(x: &Tensor<'s, T>, shift: isize, axis: usize) -> Result<Tensor<'s, T>> {
    check_axis("roll", axis, x.rank())?;
    x.scope().refuse_padded("roll", x.raw.marks, axis)?;
    let size = x.size(axis);
    let moved = if size == 0 { 0 } else { shift.rem_euclid(size as isize) as usize };
    composed("roll", || {
        let (front, back) = (narrow(x, axis, size - moved, moved)?, narrow(x, axis, 0, size - moved)?);
        concat(&[&front, &back], axis)
    })
}

/// Repeats `x` in each dimension as often as `times` says, one number for each.
///
/// Corresponds to `torch.Tensor.repeat`.
///
/// Padding of dimensions that are there once propagates.
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let step = rt.step()?;
/// let x = step.tensor(&[1, 2], &[1.0f32, 2.0])?;
/// assert_eq!(step.read(&ops::repeat(&x, &[2, 2])?)?, [1.0, 2.0, 1.0, 2.0, 1.0, 2.0, 1.0, 2.0]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns [`Error::Argument`] if there is not one number for each dimension; [`Error::TooLarge`]; [`Error::PaddedMix`] if a
/// padded dimension is repeated.
pub fn repeat<'s, T: Element>(x: &Tensor<'s, T>, times: &[usize]) -> Result<Tensor<'s, T>> {
    if times.len() != x.rank() {
        let reason = format!("{} numbers for {} dimensions; one for each is needed", times.len(), x.rank());
        return Err(Error::Argument { op: "repeat", reason });
    }
    let mut all = x.clone();
    for (axis, &times) in times.iter().enumerate().filter(|(_, times)| **times != 1) {
        x.scope().refuse_padded("repeat", x.raw.marks, axis)?;
        all = composed("repeat", || repeated(&all, axis, times))?;
    }
    Ok(all)
}

/// `x` so many times along an axis. What is repeated is the inside of each row of the dimensions before it, whatever their
/// number and their padding.
fn repeated<'s, T: Element>(x: &Tensor<'s, T>, axis: usize, times: usize) -> Result<Tensor<'s, T>> {
    let mut shape: Shape = x.sizes().into();
    let size = shape[axis].checked_mul(times);
    shape[axis] = size.unwrap_or(usize::MAX);
    if size.is_none() {
        return Err(Error::TooLarge { shape: shape.to_vec() });
    }
    let shape = Layout::contiguous(&shape)?;
    let (rows, inside): (usize, usize) =
        (x.sizes()[..axis].iter().product(), x.sizes()[axis..].iter().product());
    let whole = contiguous(x)?.alias(Layout::contiguous(&[rows, 1, inside])?, 0, PaddedDims::NONE);
    let wide = contiguous(&broadcast_to(&whole, [rows, times, inside])?)?;
    Ok(wide.alias(shape, 0, x.raw.marks))
}

/// Returns a row of `classes` elements for each number of `ids`: 1 at that number, 0 elsewhere, so all 0 if it
/// is not below `classes`.
///
/// Corresponds to `torch.nn.functional.one_hot`, which refuses numbers that are no class.
///
/// The result has the shape of `ids` and a further dimension. Padding propagates.
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let step = rt.step()?;
/// let ids = step.tensor(&[2], &[2u32, 0])?;
/// assert_eq!(step.read(&ops::one_hot::<f32>(&ids, 3)?)?, [0.0, 0.0, 1.0, 1.0, 0.0, 0.0]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns [`Error::Rank`].
pub fn one_hot<'s, T: Element>(ids: &Tensor<'s, u32>, classes: usize) -> Result<Tensor<'s, T>> {
    composed("one_hot", || {
        let ids = unsqueeze(ids, ids.rank())?;
        cast(&eq(&ids, &arange::<u32>(ids.scope(), classes)?)?)
    })
}

/// Returns a mask of two dimensions that is true on the diagonal and below it: at `[i, j]` if `j - i <= diagonal`.
///
/// Corresponds to `torch.tril` of ones, and to `tri` of NumPy.
///
/// `(x.dim(0), x.dim(0))` is a shape, too: the mask is padded where `x` is.
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let step = rt.step()?;
/// let causal = ops::tri(step.scope(), [2, 3], 0)?;
/// assert_eq!(step.read(&causal)?, [true, false, false, true, true, false]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns [`Error::Shape`] if the shape does not have two dimensions; [`Error::PaddedSize`] for a size computed from a padded
/// one.
pub fn tri<'s>(scope: Scope<'s>, shape: impl IntoShape<'s>, diagonal: i32) -> Result<Tensor<'s, bool>> {
    let mut call = Call::within(of::tri::DEFINITION, scope);
    call.key(diagonal);
    call.launch_indexed(shape)
}

macro_rules! triangles {
    ($($(#[$doc:meta])* $name:ident($x:ident, $zero:ident, $mask:ident, $diagonal:ident) { $which:expr, $($picked:ident),* } $result:literal;)*) => {$(
        $(#[$doc])*
        ///
        /// Same shape and padding marks as `x`, whose last two dimensions are matrices.
        ///
        /// ```
        /// # use graphable::prelude::*;
        /// # let mut rt = Runtime::new(Device::cpu())?;
        /// # let step = rt.step()?;
        /// let x = step.tensor(&[2, 2], &[1.0f32, 2.0, 3.0, 4.0])?;
        #[doc = concat!("assert_eq!(step.read(&ops::", stringify!($name), "(&x, 0)?)?, ", $result, ");")]
        /// # Ok::<(), Error>(())
        /// ```
        ///
        /// # Errors
        /// Returns [`Error::Shape`] if `x` has fewer than two dimensions.
        pub fn $name<'s, T: Element>($x: &Tensor<'s, T>, $diagonal: i32) -> Result<Tensor<'s, T>> {
            let Some(rows) = $x.rank().checked_sub(2) else {
                let reason = "a matrix is needed, at least two dimensions";
                return Err($x.scope().shape_error(stringify!($name), &[$x.into()], reason));
            };
            composed(stringify!($name), || {
                let $mask = tri($x.scope(), ($x.dim(rows), $x.dim(rows + 1)), $which)?;
                let $zero = &full($x.scope(), (), T::from_f64(0.0))?;
                where_(&$mask, $($picked),*)
            })
        }
    )*};
}

triangles! {
    /// Returns `x` on the `diagonal` of its matrices and below it, 0 above. Diagonal 1 is the one above the main diagonal.
    /// Corresponds to `torch.tril`.
    tril(x, zero, mask, diagonal) { diagonal, x, zero } "[1.0, 0.0, 3.0, 4.0]";
    /// Returns `x` on the `diagonal` of its matrices and above it, 0 below. Diagonal 1 is the one above the main diagonal.
    /// Corresponds to `torch.triu`.
    triu(x, zero, mask, diagonal) { diagonal.saturating_sub(1), zero, x } "[1.0, 2.0, 0.0, 4.0]";
}

/// The kernels of this file, for CI to compile.
#[cfg(feature = "cuda")]
pub(super) fn kernels() -> impl Iterator<Item = &'static Definition> {
    std::iter::once(of::tri::DEFINITION)
}

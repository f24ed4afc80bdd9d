//! Reductions over an axis of which only some elements count, and which may be padded.

use super::{
    argmax, argmin,
    by_type::{ByType, each_type},
    check::{NOT_SPREAD, broadcast, check_axis},
    composed::composed,
    create::{arange, size},
    log_softmax, logsumexp, matmul, max, min, prod, softmax, unsqueeze,
};
#[cfg(feature = "cuda")]
use crate::kernel::definition::{Definition, Kernel as _};
use crate::{
    AsOperand, Element, Number, Real, Result, Tensor,
    backend::View,
    kernel::call::Call,
    tensor::{Operand, Shown},
};

mod rows;

pub(super) use rows::{MEAN, Rows, SUM, reduced};
pub use rows::{masked_all, masked_any, masked_std, masked_var};

/// Kernels of elements that count: of floats, and of each other type.
macro_rules! counts {
    ($($module:ident $t:ident $zero:literal;)*) => {$(
        mod $module {
            use crate::kernel;

            /// `x` where it counts, at a place before the end, and `other` elsewhere.
            #[kernel]
            pub(super) fn counted(x: $t, mask: bool, place: u32, end: u32, other: $t) -> $t {
                if mask && place < end { x } else { other }
            }

            /// `x` at a place before the end, and zero in the padding, which may contain anything.
            #[kernel]
            pub(super) fn real(x: $t, place: u32, end: u32) -> $t {
                if place < end { x } else { $zero }
            }
        }
    )*};
}

counts! {
    f32s f32 0.0;
    i32s i32 0;
    u32s u32 0;
    u8s u8 0;
    f64s f64 0.0;
    i64s i64 0;
    i8s i8 0;
}

/// The places along `axis`, which broadcast to `x`.
fn places<'s, T: Element>(x: &Tensor<'s, T>, axis: usize) -> Result<Tensor<'s, u32>> {
    let mut places = arange::<u32>(x.scope(), x.dim(axis))?;
    for _ in axis + 1..x.rank() {
        places = unsqueeze(&places, places.rank())?;
    }
    Ok(places)
}

/// The mask as it broadcasts to `x`.
fn spread<'s, T: Element>(
    name: &'static str,
    x: &Tensor<'s, T>,
    mask: &(impl AsOperand<'s, bool> + ?Sized),
    axis: usize,
) -> Result<Operand> {
    let scope = x.scope();
    check_axis(name, axis, x.rank())?;
    let given = mask.operand(name, scope)?;
    let (_, marks) = broadcast(name, scope, &[Shown::from(x), (&given).into()])?;
    let Some(layout) = given.view.layout.broadcast_to(x.sizes()) else {
        return Err(scope.shape_error(name, &[(&given).into(), x.into()], NOT_SPREAD));
    };
    Ok(Operand { view: View { layout, ..given.view }, marks })
}

/// `x`, with `other` where `mask` is false and in the padding of `axis`, whose mark is gone: nothing in it is padding now.
fn counted<'s, T: Number>(
    name: &'static str,
    x: &Tensor<'s, T>,
    mask: &(impl AsOperand<'s, bool> + ?Sized),
    axis: usize,
    other: f64,
) -> Result<Tensor<'s, T>> {
    const OF: ByType = each_type!(f32s::counted);
    let given = spread(name, x, mask, axis)?;
    let (places, end) = (places(x, axis)?, size(x, axis)?);
    let mut call = Call::new(OF.of::<T>(), x)?;
    call.operand(given);
    call.argument::<u32>(&places)?;
    call.argument::<u32>(&end)?;
    call.number::<T>(other);
    let all: Tensor<'s, T> = call.launch()?;
    Ok(all.alias(all.raw.layout, 0, all.raw.marks.with(axis, None)))
}

macro_rules! masked {
    ($($(#[$doc:meta])* $name:ident of $plain:ident -> $to:ty, $other:expr, $result:literal, $shape:literal;)*) => {$(
        $(#[$doc])*
        ///
        /// As in [`masked_mean`](super::masked_mean), `mask` broadcasts to `x`, and `axis` may be padded: elements in the
        /// padding do not count, whatever `mask` contains there. Padding of the other dimensions propagates.
        ///
        /// ```
        /// # use graphable::prelude::*;
        /// # let mut rt = Runtime::new(Device::cpu())?;
        /// # let step = rt.step()?;
        /// let x = step.tensor(&[2, 3], &[1.0f32, 2.0, 9.0, 4.0, 3.0, 9.0])?;
        /// let mask = step.tensor(&[3], &[true, true, false])?;
        #[doc = concat!("assert_eq!(step.read(&ops::", stringify!($name), "(&x, &mask, 1)?)?, ", $result, ");")]
        /// # Ok::<(), Error>(())
        /// ```
        ///
        /// # Errors
        #[doc = concat!("Returns [`Error::Axis`](crate::Error::Axis); [`Error::Shape`](crate::Error::Shape) if ", $shape, ";")]
        /// [`Error::PaddedMix`](crate::Error::PaddedMix) if one dimension is padded by different symbols.
        pub fn $name<'s, T: Number>(
            x: &Tensor<'s, T>,
            mask: &(impl AsOperand<'s, bool> + ?Sized),
            axis: usize,
        ) -> Result<Tensor<'s, $to>> {
            composed(stringify!($name), || $plain(&counted(stringify!($name), x, mask, axis, $other)?, axis))
        }
    )*};
}

masked! {
    /// Returns the maximum over `axis`, which is removed, of the elements whose `mask` is true; `-inf`, or the smallest integer, if there are none.
    /// Corresponds to `torch.masked.amax`.
    masked_max of max -> T, f64::NEG_INFINITY, "[2.0, 4.0]",
        "`mask` does not broadcast to `x`, or if `axis` is empty";
    /// Returns the minimum over `axis`, which is removed, of the elements whose `mask` is true; `inf`, or the largest integer, if there are none.
    /// Corresponds to `torch.masked.amin`.
    masked_min of min -> T, f64::INFINITY, "[1.0, 3.0]",
        "`mask` does not broadcast to `x`, or if `axis` is empty";
    /// Returns the index of the first maximum along `axis`, which is removed, of the elements whose `mask` is true; 0 if there are none,
    /// or if all of them are `-inf`, or the smallest integer.
    /// Corresponds to `torch.masked.argmax`.
    masked_argmax of argmax -> u32, f64::NEG_INFINITY, "[1, 0]",
        "`mask` does not broadcast to `x`, or if `axis` is empty";
    /// Returns the index of the first minimum along `axis`, which is removed, of the elements whose `mask` is true; 0 if there are none,
    /// or if all of them are `inf`, or the largest integer.
    /// Corresponds to `torch.masked.argmin`.
    masked_argmin of argmin -> u32, f64::INFINITY, "[0, 1]",
        "`mask` does not broadcast to `x`, or if `axis` is empty";
    /// Returns the product over `axis`, which is removed, of the elements whose `mask` is true; 1 if there are none.
    /// Corresponds to `torch.masked.prod`.
    masked_prod of prod -> T, 1.0, "[2.0, 12.0]", "`mask` does not broadcast to `x`";
}

/// Computes [`logsumexp`](super::logsumexp) over `axis`, which is removed, of the elements whose `mask` is true; `-inf` if there are
/// none.
///
/// Corresponds to `torch.masked.logsumexp`.
///
/// As in [`masked_mean`](super::masked_mean), `mask` broadcasts to `x`, and `axis` may be padded: elements in the padding do
/// not count, whatever `mask` contains there. Padding of the other dimensions propagates.
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let step = rt.step()?;
/// let x = step.tensor(&[1, 3], &[7.0f32, 5.0, 9.0])?;
/// let mask = step.tensor(&[3], &[true, false, false])?;
/// assert_eq!(step.read(&ops::masked_logsumexp(&x, &mask, 1)?)?, [7.0]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns [`Error::Axis`](crate::Error::Axis); [`Error::Shape`](crate::Error::Shape) if `mask` does not broadcast to `x`, or if
/// `axis` is empty; [`Error::PaddedMix`](crate::Error::PaddedMix) if one dimension is padded by different symbols.
pub fn masked_logsumexp<'s, T: Real>(
    x: &Tensor<'s, T>,
    mask: &(impl AsOperand<'s, bool> + ?Sized),
    axis: usize,
) -> Result<Tensor<'s, T>> {
    const NAME: &str = "masked_logsumexp";
    composed(NAME, || logsumexp(&counted(NAME, x, mask, axis, f64::NEG_INFINITY)?, axis))
}

/// Computes [`softmax`](super::softmax) along `axis` over the elements whose `mask` is true; 0 at the others.
///
/// Corresponds to `torch.masked.softmax`.
///
/// As in [`masked_mean`](super::masked_mean), `mask` broadcasts to `x`, and `axis` may be padded: elements in the padding do
/// not count, whatever `mask` contains there. The result has the shape and the padding marks of `x`.
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let step = rt.step()?;
/// let x = step.tensor(&[1, 3], &[5.0f32, 5.0, 9.0])?;
/// let mask = step.tensor(&[3], &[true, true, false])?;
/// assert_eq!(step.read(&ops::masked_softmax(&x, &mask, 1)?)?, [0.5, 0.5, 0.0]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns [`Error::Axis`](crate::Error::Axis); [`Error::Shape`](crate::Error::Shape) if `mask` does not broadcast to `x`;
/// [`Error::PaddedMix`](crate::Error::PaddedMix) if one dimension is padded by different symbols.
pub fn masked_softmax<'s, T: Real>(
    x: &Tensor<'s, T>,
    mask: &(impl AsOperand<'s, bool> + ?Sized),
    axis: usize,
) -> Result<Tensor<'s, T>> {
    along_counted("masked_softmax", softmax, x, mask, axis)
}

/// Computes [`log_softmax`](super::log_softmax) along `axis` over the elements whose `mask` is true; `-inf` at the others.
///
/// Corresponds to `torch.masked.log_softmax`.
///
/// As in [`masked_softmax`], `axis` may be padded.
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let step = rt.step()?;
/// let x = step.tensor(&[1, 3], &[5.0f32, 7.0, 9.0])?;
/// let mask = step.tensor(&[3], &[true, false, false])?;
/// let y = step.read(&ops::masked_log_softmax(&x, &mask, 1)?)?;
/// assert_eq!(y, [0.0, f32::NEG_INFINITY, f32::NEG_INFINITY]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// As [`masked_softmax`].
pub fn masked_log_softmax<'s, T: Real>(
    x: &Tensor<'s, T>,
    mask: &(impl AsOperand<'s, bool> + ?Sized),
    axis: usize,
) -> Result<Tensor<'s, T>> {
    along_counted("masked_log_softmax", log_softmax, x, mask, axis)
}

/// An operation along `axis` of the elements that count, which keeps the axis and its mark.
fn along_counted<'s, T: Real>(
    name: &'static str,
    along: impl FnOnce(&Tensor<'s, T>, usize) -> Result<Tensor<'s, T>>,
    x: &Tensor<'s, T>,
    mask: &(impl AsOperand<'s, bool> + ?Sized),
    axis: usize,
) -> Result<Tensor<'s, T>> {
    composed(name, || {
        let some = counted(name, x, mask, axis, f64::NEG_INFINITY)?;
        let y = along(&some, axis)?;
        Ok(y.alias(y.raw.layout, 0, some.raw.marks.with(axis, x.raw.marks.get(axis))))
    })
}

/// `x`, with zeros in the padding of `axis`, whose mark is gone.
fn real<'s, T: Number>(x: &Tensor<'s, T>, axis: usize) -> Result<Tensor<'s, T>> {
    const OF: ByType = each_type!(f32s::real);
    // A call does not keep its arguments.
    let (places, end) = (places(x, axis)?, size(x, axis)?);
    let mut call = Call::new(OF.of::<T>(), x)?;
    call.argument::<u32>(&places)?;
    call.argument::<u32>(&end)?;
    let all: Tensor<'s, T> = call.launch()?;
    Ok(all.alias(all.raw.layout, 0, all.raw.marks.with(axis, None)))
}

/// Multiplies as [`matmul`](super::matmul) does, with an inner dimension that may be padded: `a` is
/// `[.., M, K]`, `b` is `[.., K, N]`, the result `[.., M, N]`; terms in the padding of `K` do not count,
/// whatever the operands contain there.
///
/// Corresponds to `torch.matmul` of the real columns and rows.
///
/// Both operands are padded along `K` by one symbol, or neither is. Where they are, each is copied with zeros in the padding.
/// Padding of `M`, `N` and the dimensions in front propagates.
///
/// ```
/// use graphable::prelude::*;
///
/// /// Correlations of the columns, for any number of rows.
/// #[graphable]
/// fn correlations(#[host] #[dims(B, 2)] x: &Tensor<f32>) -> Result<Tensor<f32>> {
///     ops::masked_matmul(&ops::transpose(x, 0, 1)?, x)
/// }
///
/// # fn main() -> Result<()> {
/// let mut rt = Runtime::new(Device::cpu())?;
/// let graph = CorrelationsGraph::builder().bucket("B", Schedule::new([8])).build(&mut rt)?;
/// let step = rt.step()?;
/// let y = graph.call(&step, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])?;
/// assert_eq!(step.read(&y)?, [35.0, 44.0, 44.0, 56.0]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Returns [`Error::Shape`](crate::Error::Shape); [`Error::PaddedMix`](crate::Error::PaddedMix) if one operand alone is padded
/// along `K`, or by another symbol than the other one, or one dimension in front is by different symbols.
pub fn masked_matmul<'s, T: Number>(a: &Tensor<'s, T>, b: &Tensor<'s, T>) -> Result<Tensor<'s, T>> {
    composed("masked_matmul", || {
        let (Some(of_a), Some(of_b)) = (a.rank().checked_sub(1), b.rank().checked_sub(2)) else {
            return matmul(a, b);
        };
        let symbol = a.raw.marks.get(of_a);
        // A product refuses padding of one operand alone.
        if symbol.is_none() || symbol != b.raw.marks.get(of_b) {
            return matmul(a, b);
        }
        matmul(&real(a, of_a)?, &real(b, of_b)?)
    })
}

/// The kernels of this file, for CI to compile.
#[cfg(feature = "cuda")]
pub(super) fn kernels() -> impl Iterator<Item = &'static Definition> {
    super::by_type::definitions!([f32s, i32s, u32s, u8s, f64s, i64s, i8s] [counted, real])
        .chain(rows::kernels())
}

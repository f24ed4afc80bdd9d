//! Reductions of the elements that count, as kernels of rows which know their real number.

use super::{
    super::{
        by_type::{Further, of_reals},
        create::size,
        launch::own,
    },
    spread,
};
use crate::{
    AsOperand, DType, Element, Real, Result, Tensor,
    kernel::{
        call::Call,
        definition::{Definition, Kernel as _},
    },
    tensor::Operand,
};

/// Kernels of floats. A value counts if its mask is true and it is before the end.
macro_rules! moments {
    ($($module:ident $t:ident)*) => {$(
        mod $module {
            use crate::kernel;

            #[kernel]
            fn divided(squares: $t, count: u32, correction: u32) -> $t {
                squares / count.saturating_sub(correction) as $t
            }

            #[kernel(reduce)]
            pub(super) fn masked_var(x: Row<$t>, mask: Row<bool>, end: u32, #[key] correction: u32) -> $t {
                let all = x.zip(mask).enumerate();
                let count = mask.enumerate().count(|(i, m)| m && i < end);
                let mean = all.map(|(i, (v, m))| if m && i < end { v } else { 0.0 }).sum() / count as $t;
                let off = all.map(|(i, (v, m))| if m && i < end { v - mean } else { 0.0 });
                divided(off.map(|d| d * d).sum(), count, correction)
            }

            #[kernel(reduce)]
            pub(super) fn masked_std(x: Row<$t>, mask: Row<bool>, end: u32, #[key] correction: u32) -> $t {
                let all = x.zip(mask).enumerate();
                let count = mask.enumerate().count(|(i, m)| m && i < end);
                let mean = all.map(|(i, (v, m))| if m && i < end { v } else { 0.0 }).sum() / count as $t;
                let off = all.map(|(i, (v, m))| if m && i < end { v - mean } else { 0.0 });
                divided(off.map(|d| d * d).sum(), count, correction).sqrt()
            }
        }
    )*};
}

moments! {
    floats f32
    doubles f64
}

/// Sums and means of a type, in a wider one; those of 32-bit floats have loops of their own.
macro_rules! sums {
    ($($module:ident $t:ident $wide:ident $zero:literal |$sum:ident, $count:ident| $mean:expr;)*) => {$(
        mod $module {
            use crate::kernel;

            #[kernel(reduce)]
            pub(super) fn masked_sum(x: Row<$t>, mask: Row<bool>, end: u32) -> $t {
                x.zip(mask).enumerate().map(|(i, (v, m))| if m && i < end { v } else { $zero }).sum()
            }

            #[kernel(reduce)]
            pub(super) fn masked_mean(x: Row<$t>, mask: Row<bool>, end: u32) -> $t {
                let $count = mask.enumerate().count(|(i, m)| m && i < end);
                let wide = x.map(|v| v as $wide).zip(mask).enumerate();
                let $sum = wide.map(|(i, (v, m))| if m && i < end { v } else { $zero }).sum();
                $mean
            }
        }
    )*};
}

sums! {
    f64s f64 f64 0.0 |sum, count| sum / (count as f64).max(1.0);
    i64s i64 i64 0 |sum, count| sum / count as i64;
    i32s i32 i64 0 |sum, count| (sum / count as i64) as i32;
    i8s i8 i64 0 |sum, count| (sum / count as i64) as i8;
    u32s u32 i64 0 |sum, count| (sum / count as i64) as u32;
    u8s u8 i64 0 |sum, count| (sum / count as i64) as u8;
}

mod bools {
    use crate::kernel;

    #[kernel(reduce)]
    pub(super) fn masked_any(x: Row<bool>, mask: Row<bool>, end: u32) -> bool {
        x.zip(mask).enumerate().count(|(i, (v, m))| v && m && i < end) > 0
    }

    #[kernel(reduce)]
    pub(super) fn masked_all(x: Row<bool>, mask: Row<bool>, end: u32) -> bool {
        x.zip(mask).enumerate().count(|(i, (v, m))| !v && m && i < end) == 0
    }
}

/// The kernels of types of which sums have no loops of their own.
#[derive(Debug)]
pub(in crate::ops) struct Rows {
    i32: &'static Definition,
    u32: &'static Definition,
    u8: &'static Definition,
    further: Further,
}

impl Rows {
    /// The one for elements `T`; none for floats that are computed in `f32`.
    pub(in crate::ops) fn of<T: Element>(&self) -> Option<&'static Definition> {
        match T::DTYPE {
            DType::I32 => Some(self.i32),
            DType::U32 => Some(self.u32),
            DType::U8 => Some(self.u8),
            _ => self.further.of::<T>(),
        }
    }
}

macro_rules! rows {
    ($name:ident) => {
        Rows {
            i32: i32s::$name::DEFINITION,
            u32: u32s::$name::DEFINITION,
            u8: u8s::$name::DEFINITION,
            further: Further::new::<f64s::$name, i64s::$name, i8s::$name>(),
        }
    };
}

/// The kernels of sums and of means.
pub(in crate::ops) const SUM: Rows = rows!(masked_sum);
pub(in crate::ops) const MEAN: Rows = rows!(masked_mean);

/// A kernel of the elements along `axis`, their mask, and their real number.
pub(in crate::ops) fn reduced<'s, T: Element, U: Element>(
    definition: &'static Definition,
    x: &Tensor<'s, T>,
    mask: &(impl AsOperand<'s, bool> + ?Sized),
    axis: usize,
    correction: Option<usize>,
) -> Result<Tensor<'s, U>> {
    let name = definition.name;
    let mask = spread(name, x, mask, axis)?;
    // The kernel knows which elements are real, so nothing of the axis is padding to it.
    let marks = mask.marks.with(axis, None);
    let mut call = Call::within(definition, x.scope());
    call.operand(Operand { marks, ..own(name, x)? });
    call.operand(Operand { marks, ..mask });
    let end = match mask.marks.get(axis) {
        Some(_) => Some(size(&x.alias(x.raw.layout, 0, mask.marks), axis)?),
        None => None,
    };
    match &end {
        Some(end) => call.argument::<u32>(end)?,
        // Rows that are longer than a `u32` counts are refused below.
        None => call.key(u32::try_from(x.size(axis)).unwrap_or(u32::MAX)),
    }
    if let Some(correction) = correction {
        call.key(u32::try_from(correction).unwrap_or(u32::MAX));
    }
    call.launch_along(axis)
}

/// Returns the variance over `axis`, which is removed, of the elements whose `mask` is true: the sum of the squared distances
/// from their mean, divided by their number less `correction`.
///
/// Corresponds to `torch.masked.var`.
///
/// As [`var`](super::super::var) of these elements: 1 is for an estimate from a sample, 0 for the variance of the elements
/// themselves; NaN where their number is not larger than `correction` and they are equal, so also where there are none. Two
/// passes in f32, of an `f64` in f64. As in [`masked_mean`](super::super::masked_mean), `mask` broadcasts to `x`, and `axis` may
/// be padded: elements in the padding do not count, whatever `mask` contains there. Padding of the other dimensions propagates.
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let step = rt.step()?;
/// let x = step.tensor(&[2, 3], &[1.0f32, 3.0, 9.0, 4.0, 4.0, 9.0])?;
/// let mask = step.tensor(&[3], &[true, true, false])?;
/// assert_eq!(step.read(&ops::masked_var(&x, &mask, 1, 0)?)?, [1.0, 0.0]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns [`Error::Axis`](crate::Error::Axis); [`Error::Shape`](crate::Error::Shape) if `mask` does not broadcast to `x`;
/// [`Error::PaddedMix`](crate::Error::PaddedMix) if one dimension is padded by different symbols.
pub fn masked_var<'s, T: Real>(
    x: &Tensor<'s, T>,
    mask: &(impl AsOperand<'s, bool> + ?Sized),
    axis: usize,
    correction: usize,
) -> Result<Tensor<'s, T>> {
    reduced(of_reals!(floats::masked_var, doubles::masked_var), x, mask, axis, Some(correction))
}

/// Returns the standard deviation over `axis`, which is removed, of the elements whose `mask` is true: the root of
/// [`masked_var`].
///
/// Corresponds to `torch.masked.std`.
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let step = rt.step()?;
/// let x = step.tensor(&[2, 3], &[1.0f32, 5.0, 9.0, 4.0, 4.0, 9.0])?;
/// let mask = step.tensor(&[3], &[true, true, false])?;
/// assert_eq!(step.read(&ops::masked_std(&x, &mask, 1, 0)?)?, [2.0, 0.0]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// See [`masked_var`].
pub fn masked_std<'s, T: Real>(
    x: &Tensor<'s, T>,
    mask: &(impl AsOperand<'s, bool> + ?Sized),
    axis: usize,
    correction: usize,
) -> Result<Tensor<'s, T>> {
    reduced(of_reals!(floats::masked_std, doubles::masked_std), x, mask, axis, Some(correction))
}

/// Returns whether any element along `axis`, which is removed, is true where `mask` is; false if `mask` is nowhere.
///
/// Corresponds to `torch.any` of `x & mask`.
///
/// Of shapes and padding as [`masked_var`].
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let step = rt.step()?;
/// let x = step.tensor(&[2, 2], &[false, true, true, false])?;
/// let mask = step.tensor(&[2], &[true, false])?;
/// assert_eq!(step.read(&ops::masked_any(&x, &mask, 1)?)?, [false, true]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// See [`masked_var`].
pub fn masked_any<'s>(
    x: &Tensor<'s, bool>,
    mask: &(impl AsOperand<'s, bool> + ?Sized),
    axis: usize,
) -> Result<Tensor<'s, bool>> {
    reduced(bools::masked_any::DEFINITION, x, mask, axis, None)
}

/// Returns whether all elements along `axis`, which is removed, are true where `mask` is; true if `mask` is nowhere.
///
/// Corresponds to `torch.all` of `x | ~mask`.
///
/// Of shapes and padding as [`masked_var`].
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let step = rt.step()?;
/// let x = step.tensor(&[2, 2], &[false, true, true, false])?;
/// let mask = step.tensor(&[2], &[true, false])?;
/// assert_eq!(step.read(&ops::masked_all(&x, &mask, 1)?)?, [false, true]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// See [`masked_var`].
pub fn masked_all<'s>(
    x: &Tensor<'s, bool>,
    mask: &(impl AsOperand<'s, bool> + ?Sized),
    axis: usize,
) -> Result<Tensor<'s, bool>> {
    reduced(bools::masked_all::DEFINITION, x, mask, axis, None)
}

/// The kernels of this file, for CI to compile.
#[cfg(feature = "cuda")]
pub(in crate::ops) fn kernels() -> impl Iterator<Item = &'static Definition> {
    use crate::ops::by_type::definitions;

    definitions!([floats, doubles] [masked_var, masked_std])
        .chain(definitions!([f64s, i8s, u32s] [masked_sum, masked_mean]))
        .chain(definitions!([bools] [masked_any, masked_all]))
}

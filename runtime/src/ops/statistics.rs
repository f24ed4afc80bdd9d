//! Further reductions over one axis, as kernels of rows.

use super::by_type::{each_type, of_reals};
use crate::{
    Element, Error, Number, Real, Result, Tensor,
    kernel::{
        call::Call,
        definition::{Definition, Kernel as _},
    },
    ops::check::check_axis,
};

/// Kernels of floats. A NaN is unequal to itself.
mod floats {
    use crate::kernel;

    /// NaN is the smallest, and stays.
    #[kernel]
    fn lesser(a: f32, b: f32) -> f32 {
        if a < b || a != a { a } else { b }
    }

    /// A number that orders as `x` does: the largest for NaN, and one for both zeros.
    #[kernel]
    fn order(x: f32) -> i32 {
        let bits = (x + 0.0).to_bits() as i32;
        if x != x { i32::MAX } else { bits ^ (bits >> 31 & 0x7fff_ffff) }
    }

    #[kernel(reduce)]
    pub(super) fn min(x: Row<f32>) -> f32 {
        x.fold(f32::INFINITY, |a, b| lesser(a, b), |a, b| lesser(a, b))
    }

    #[kernel(reduce)]
    pub(super) fn argmax(x: Row<f32>) -> u32 {
        x.map(|v| order(v)).argmax()
    }

    /// NaN is found as the smallest.
    #[kernel(reduce)]
    pub(super) fn argmin(x: Row<f32>) -> u32 {
        x.map(|v| order(-v)).argmax()
    }

    #[kernel(reduce)]
    pub(super) fn prod(x: Row<f32>) -> f32 {
        x.fold(1.0, |product, v| product * v, |a, b| a * b)
    }

    #[kernel(reduce)]
    pub(super) fn logsumexp(x: Row<f32>) -> f32 {
        let max = x.max();
        let shift = if max.is_finite() { max } else { 0.0 };
        x.map(|v| (v - shift).exp()).sum().ln() + shift
    }

    #[kernel(reduce)]
    pub(super) fn var(x: Row<f32>, #[key] correction: u32) -> f32 {
        let n = x.len() as f32;
        let mean = x.sum() / n;
        x.map(|v| (v - mean) * (v - mean)).sum() / (x.len() as u32).saturating_sub(correction) as f32
    }

    #[kernel(reduce)]
    pub(super) fn std(x: Row<f32>, #[key] correction: u32) -> f32 {
        let n = x.len() as f32;
        let mean = x.sum() / n;
        (x.map(|v| (v - mean) * (v - mean)).sum() / (x.len() as u32).saturating_sub(correction) as f32).sqrt()
    }
}

/// Kernels of integers, which wrap.
macro_rules! integers {
    ($($module:ident $t:ident;)*) => {$(
        mod $module {
            use crate::kernel;

            #[kernel(reduce)]
            pub(super) fn min(x: Row<$t>) -> $t {
                x.min()
            }

            #[kernel(reduce)]
            pub(super) fn argmax(x: Row<$t>) -> u32 {
                x.argmax()
            }

            #[kernel(reduce)]
            pub(super) fn argmin(x: Row<$t>) -> u32 {
                x.argmin()
            }

            #[kernel(reduce)]
            pub(super) fn prod(x: Row<$t>) -> $t {
                x.fold(1, |product, v| product * v, |a, b| a * b)
            }
        }
    )*};
}

integers! {
    i32s i32;
    u32s u32;
    u8s u8;
    i64s i64;
    i8s i8;
}

/// Kernels of `f64`. A NaN is unequal to itself.
mod f64s {
    use crate::{kernel, ops::by_type::rank};

    /// NaN is the smallest, and stays.
    #[kernel]
    fn lesser(a: f64, b: f64) -> f64 {
        if a < b || a != a { a } else { b }
    }

    #[kernel(reduce)]
    pub(super) fn min(x: Row<f64>) -> f64 {
        x.fold(f64::INFINITY, |a, b| lesser(a, b), |a, b| lesser(a, b))
    }

    #[kernel(reduce)]
    pub(super) fn argmax(bits: Row<i64>) -> u32 {
        bits.map(|v| rank(v, i64::MAX)).argmax()
    }

    #[kernel(reduce)]
    pub(super) fn argmin(bits: Row<i64>) -> u32 {
        bits.map(|v| rank(v, i64::MIN)).argmin()
    }

    #[kernel(reduce)]
    pub(super) fn prod(x: Row<f64>) -> f64 {
        x.fold(1.0, |product, v| product * v, |a, b| a * b)
    }

    #[kernel(reduce)]
    pub(super) fn logsumexp(x: Row<f64>) -> f64 {
        let max = x.max();
        let shift = if max.is_finite() { max } else { 0.0 };
        x.map(|v| (v - shift).exp()).sum().ln() + shift
    }

    #[kernel(reduce)]
    pub(super) fn var(x: Row<f64>, #[key] correction: u32) -> f64 {
        let n = x.len() as f64;
        let mean = x.sum() / n;
        x.map(|v| (v - mean) * (v - mean)).sum() / (x.len() as u32).saturating_sub(correction) as f64
    }

    #[kernel(reduce)]
    pub(super) fn std(x: Row<f64>, #[key] correction: u32) -> f64 {
        let n = x.len() as f64;
        let mean = x.sum() / n;
        (x.map(|v| (v - mean) * (v - mean)).sum() / (x.len() as u32).saturating_sub(correction) as f64).sqrt()
    }
}

mod bools {
    use crate::kernel;

    #[kernel(reduce)]
    pub(super) fn any(x: Row<bool>) -> bool {
        x.count(|v| v) > 0
    }

    #[kernel(reduce)]
    pub(super) fn all(x: Row<bool>) -> bool {
        x.count(|v| !v) == 0
    }
}

/// The kernel of a name for elements `T`.
macro_rules! kernel_of {
    ($name:ident) => {
        const { &each_type!(floats::$name) }.of::<T>()
    };
}

/// A reduction, of which that of nothing may have no value.
fn over<'s, T: Element, U: Element>(
    definition: &'static Definition,
    x: &Tensor<'s, T>,
    axis: usize,
    of_nothing: bool,
    correction: Option<usize>,
) -> Result<Tensor<'s, U>> {
    let name = definition.name;
    check_axis(name, axis, x.rank())?;
    x.scope().refuse_padded(name, x.raw.marks, axis).map_err(Error::or_masked)?;
    if x.size(axis) == 0 && !of_nothing {
        let reason = format!("axis {axis} is empty, so it has no {name}");
        return Err(x.scope().shape_error(name, &[x.into()], reason));
    }
    let mut call = Call::new(definition, x)?;
    if let Some(correction) = correction {
        call.key(u32::try_from(correction).unwrap_or(u32::MAX));
    }
    call.launch_along(axis)
}

macro_rules! reductions {
    ($(
        $(#[$doc:meta])*
        $name:ident: <$($t:ident: $bound:ident)?> $from:ty => $to:ty, $kernel:expr, $of_nothing:literal, $x:literal => $result:literal;
    )*) => {$(
        $(#[$doc])*
        ///
        /// ```
        /// # use graphable::prelude::*;
        /// # let mut rt = Runtime::new(Device::cpu())?;
        /// # let step = rt.step()?;
        #[doc = concat!("let x = step.tensor(&[2, 2], &", $x, ")?;")]
        #[doc = concat!("assert_eq!(step.read(&ops::", stringify!($name), "(&x, 1)?)?, ", $result, ");")]
        /// # Ok::<(), Error>(())
        /// ```
        ///
        /// Padding of the other dimensions propagates.
        ///
        /// # Errors
        /// Returns [`Error::Axis`](crate::Error::Axis); [`Error::PaddedMix`](crate::Error::PaddedMix) if `axis` is padded;
        /// [`Error::Shape`](crate::Error::Shape) if it is empty and nothing has no such value.
        pub fn $name<'s $(, $t: $bound)?>(x: &Tensor<'s, $from>, axis: usize) -> Result<Tensor<'s, $to>> {
            over($kernel, x, axis, $of_nothing, None)
        }
    )*};
}

reductions! {
    /// Returns the minimum over `axis`, which is removed; NaN if any element is NaN.
    /// Corresponds to `torch.amin`.
    min: <T: Number> T => T, kernel_of!(min), false, "[1.0f32, 9.0, 3.0, 4.0]" => "[1.0, 3.0]";
    /// Returns the index of the first maximum along `axis`, which is removed. NaN counts as larger than every number.
    /// Corresponds to `torch.argmax` with `dim`.
    argmax: <T: Number> T => u32, kernel_of!(argmax), false, "[1.0f32, 9.0, 4.0, 3.0]" => "[1, 0]";
    /// Returns the index of the first minimum along `axis`, which is removed. NaN counts as smaller than every number.
    /// Corresponds to `torch.argmin` with `dim`.
    argmin: <T: Number> T => u32, kernel_of!(argmin), false, "[1.0f32, 9.0, 4.0, 3.0]" => "[0, 1]";
    /// Returns the product over `axis`, which is removed; 1 for an empty axis. Floats are multiplied in f32, an `f64` in f64; integers wrap.
    /// Corresponds to `torch.prod` with `dim`.
    prod: <T: Number> T => T, kernel_of!(prod), true, "[1.0f32, 9.0, 4.0, 3.0]" => "[9.0, 12.0]";
    /// Returns `ln(sum(e^x))` over `axis`, which is removed, without overflow; `-inf` where all are.
    /// Corresponds to `torch.logsumexp` with `dim`.
    logsumexp: <T: Real> T => T, of_reals!(floats::logsumexp, f64s::logsumexp), false,
        "[200.0f32, f32::NEG_INFINITY, 0.0, f32::NEG_INFINITY]" => "[200.0, 0.0]";
    /// Returns whether any element along `axis`, which is removed, is true; false of an empty axis.
    /// Corresponds to `torch.any` with `dim`.
    any: <> bool => bool, bools::any::DEFINITION, true, "[true, false, false, false]" => "[true, false]";
    /// Returns whether all elements along `axis`, which is removed, are true; true of an empty axis.
    /// Corresponds to `torch.all` with `dim`.
    all: <> bool => bool, bools::all::DEFINITION, true, "[true, true, true, false]" => "[true, false]";
}

/// Returns the variance over `axis`, which is removed: the sum of the squared distances from the mean, divided
/// by the size less `correction`. That is 1 for an estimate from a sample, and 0 for the variance of the
/// elements themselves.
///
/// Corresponds to `torch.var` with `dim`.
///
/// NaN where the size is not larger than `correction` and the elements are equal. Two passes in f32, of an `f64` in f64. Padding of the other
/// dimensions propagates.
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let step = rt.step()?;
/// let x = step.tensor(&[2, 2], &[1.0f32, 3.0, 4.0, 4.0])?;
/// assert_eq!(step.read(&ops::var(&x, 1, 1)?)?, [2.0, 0.0]);
/// assert_eq!(step.read(&ops::var(&x, 1, 0)?)?, [1.0, 0.0]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns [`Error::Axis`](crate::Error::Axis); [`Error::Shape`](crate::Error::Shape) if `axis` is empty;
/// [`Error::PaddedMix`](crate::Error::PaddedMix) if it is padded.
pub fn var<'s, T: Real>(x: &Tensor<'s, T>, axis: usize, correction: usize) -> Result<Tensor<'s, T>> {
    over(of_reals!(floats::var, f64s::var), x, axis, false, Some(correction))
}

/// Returns the standard deviation over `axis`, which is removed: the root of [`var`].
///
/// Corresponds to `torch.std` with `dim`.
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let step = rt.step()?;
/// let x = step.tensor(&[2, 2], &[1.0f32, 5.0, 4.0, 4.0])?;
/// assert_eq!(step.read(&ops::std(&x, 1, 0)?)?, [2.0, 0.0]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// See [`var`].
pub fn std<'s, T: Real>(x: &Tensor<'s, T>, axis: usize, correction: usize) -> Result<Tensor<'s, T>> {
    over(of_reals!(floats::std, f64s::std), x, axis, false, Some(correction))
}

/// The kernels of this file, for CI to compile.
#[cfg(feature = "cuda")]
pub(super) fn kernels() -> impl Iterator<Item = &'static Definition> {
    let of_floats = [
        floats::min::DEFINITION,
        floats::argmax::DEFINITION,
        floats::argmin::DEFINITION,
        floats::prod::DEFINITION,
        floats::logsumexp::DEFINITION,
        floats::std::DEFINITION,
    ];
    let of_integers = [
        i32s::min::DEFINITION,
        i32s::argmax::DEFINITION,
        i32s::argmin::DEFINITION,
        i32s::prod::DEFINITION,
        u32s::prod::DEFINITION,
        u8s::prod::DEFINITION,
    ];
    of_floats.into_iter().chain(of_integers).chain([
        bools::any::DEFINITION,
        f64s::argmax::DEFINITION,
        f64s::logsumexp::DEFINITION,
        f64s::std::DEFINITION,
    ])
}

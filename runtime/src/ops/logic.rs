//! Logic of `bool`, and what kind of number a float is.

use super::{
    by_type::of_reals,
    pointwise::{of_one, of_two},
};
#[cfg(feature = "cuda")]
use crate::kernel::definition::Definition;
use crate::{Argument, Real, Result, Tensor, kernel::definition::Kernel as _};

mod of {
    use crate::kernel;

    #[kernel]
    pub(super) fn logical_and(a: bool, b: bool) -> bool {
        a && b
    }

    #[kernel]
    pub(super) fn logical_or(a: bool, b: bool) -> bool {
        a || b
    }

    #[kernel]
    pub(super) fn logical_xor(a: bool, b: bool) -> bool {
        a != b
    }

    #[kernel]
    pub(super) fn logical_not(x: bool) -> bool {
        !x
    }

    #[cfg(feature = "cuda")]
    #[kernel]
    pub(super) fn logic(a: bool, b: bool) -> bool {
        let known = logical_or(a, logical_xor(a, b));
        logical_and(b, logical_not(known))
    }
}

/// Kernels of floats.
macro_rules! tests_of_floats {
    ($($module:ident $t:ident)*) => {$(
        mod $module {
            use crate::kernel;

            #[kernel]
            pub(super) fn isnan(x: $t) -> bool {
                x.is_nan()
            }

            #[kernel]
            pub(super) fn isinf(x: $t) -> bool {
                x.is_infinite()
            }

            #[kernel]
            pub(super) fn isfinite(x: $t) -> bool {
                x.is_finite()
            }

            #[cfg(feature = "cuda")]
            #[kernel]
            pub(super) fn kinds(x: $t, y: $t) -> bool {
                isnan(x) || isinf(y) && isfinite(x)
            }
        }
    )*};
}

tests_of_floats! {
    floats f32
    f64s f64
}

macro_rules! of_bools {
    ($($(#[$doc:meta])* $name:ident => $result:literal;)*) => {$(
        $(#[$doc])*
        ///
        /// ```
        /// # use graphable::prelude::*;
        /// # let mut rt = Runtime::new(Device::cpu())?;
        /// # let step = rt.step()?;
        /// let a = step.tensor(&[2, 1], &[false, true])?;
        /// let b = step.tensor(&[2], &[false, true])?;
        #[doc = concat!("assert_eq!(step.read(&ops::", stringify!($name), "(&a, &b)?)?, ", $result, ");")]
        /// # Ok::<(), Error>(())
        /// ```
        ///
        /// Numbers become `bool` by a comparison, such as [`ne`](super::ne) with 0. Shapes broadcast; padding marks unite.
        ///
        /// # Errors
        /// Returns [`Error::Shape`](crate::Error::Shape) if the shapes do not broadcast;
        /// [`Error::PaddedMix`](crate::Error::PaddedMix) if one dimension is padded by different symbols.
        pub fn $name<'s>(a: &Tensor<'s, bool>, b: impl Argument<'s, bool>) -> Result<Tensor<'s, bool>> {
            of_two(of::$name::DEFINITION, a, b)
        }
    )*};
}

of_bools! {
    /// Returns whether both are true.
    /// Corresponds to `torch.logical_and`.
    logical_and => "[false, false, false, true]";
    /// Returns whether either is true.
    /// Corresponds to `torch.logical_or`.
    logical_or => "[false, true, true, true]";
    /// Returns whether one of them is true and the other is not.
    /// Corresponds to `torch.logical_xor`.
    logical_xor => "[false, true, true, false]";
}

/// Returns whether `x` is false.
///
/// Corresponds to `torch.logical_not`.
///
/// Same shape and padding marks as `x`.
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let step = rt.step()?;
/// let x = step.tensor(&[2], &[false, true])?;
/// assert_eq!(step.read(&ops::logical_not(&x)?)?, [true, false]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns only the errors of every operation (see [`ops`](crate::ops)).
pub fn logical_not<'s>(x: &Tensor<'s, bool>) -> Result<Tensor<'s, bool>> {
    of_one(of::logical_not::DEFINITION, x)
}

macro_rules! of_floats {
    ($($(#[$doc:meta])* $name:ident => $result:literal;)*) => {$(
        $(#[$doc])*
        ///
        /// ```
        /// # use graphable::prelude::*;
        /// # let mut rt = Runtime::new(Device::cpu())?;
        /// # let step = rt.step()?;
        /// let x = step.tensor(&[3], &[1.0, f32::NEG_INFINITY, f32::NAN])?;
        #[doc = concat!("assert_eq!(step.read(&ops::", stringify!($name), "(&x)?)?, ", $result, ");")]
        /// # Ok::<(), Error>(())
        /// ```
        ///
        /// Same shape and padding marks as `x`.
        ///
        /// # Errors
        /// Returns only the errors of every operation (see [`ops`](crate::ops)).
        pub fn $name<'s, T: Real>(x: &Tensor<'s, T>) -> Result<Tensor<'s, bool>> {
            of_one(of_reals!(floats::$name, f64s::$name), x)
        }
    )*};
}

of_floats! {
    /// Returns whether `x` is NaN.
    /// Corresponds to `torch.isnan`.
    isnan => "[false, false, true]";
    /// Returns whether `x` is infinite, of either sign.
    /// Corresponds to `torch.isinf`.
    isinf => "[false, true, false]";
    /// Returns whether `x` is neither infinite nor NaN.
    /// Corresponds to `torch.isfinite`.
    isfinite => "[true, false, false]";
}

/// The kernels of this file, for CI to compile: those that call all others.
#[cfg(feature = "cuda")]
pub(super) fn kernels() -> impl Iterator<Item = &'static Definition> {
    [of::logic::DEFINITION, floats::kinds::DEFINITION, f64s::kinds::DEFINITION].into_iter()
}

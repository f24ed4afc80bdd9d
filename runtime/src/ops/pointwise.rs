//! Element-wise operations: from their arguments to a launch, and macros that define them.

use super::launch::compute;
use crate::{
    Argument, Element, Result, Tensor,
    backend::Op,
    kernel::{call::Call, definition::Definition},
};

/// A kernel of one tensor.
pub(super) fn of_one<'s, T: Element, U: Element>(
    definition: &'static Definition,
    x: &Tensor<'s, T>,
) -> Result<Tensor<'s, U>> {
    let view = x.view(definition.name)?;
    compute(x.scope(), Op::fixed(definition), &[view], x.sizes(), x.raw.marks)
}

/// A kernel of a tensor and another argument.
pub(super) fn of_two<'s, T: Element, U: Element>(
    definition: &'static Definition,
    a: &Tensor<'s, T>,
    b: impl Argument<'s, T>,
) -> Result<Tensor<'s, U>> {
    let mut call = Call::new(definition, a)?;
    call.argument(b)?;
    call.launch()
}

/// Operations on two arguments of one type: the bound of the type, the kernel, and an example.
macro_rules! binary {
    ($($(#[$doc:meta])* $name:ident: $bound:ident, $kernel:expr, ($a:literal, $b:literal) => $result:literal;)*) => {$(
        $(#[$doc])*
        ///
        /// ```
        /// # use graphable::prelude::*;
        /// # let mut rt = Runtime::new(Device::cpu())?;
        /// # let step = rt.step()?;
        #[doc = concat!("let a = step.tensor(&[2], &", $a, ")?;")]
        #[doc = concat!("let b = step.tensor(&[2], &", $b, ")?;")]
        #[doc = concat!("assert_eq!(step.read(&ops::", stringify!($name), "(&a, &b)?)?, ", $result, ");")]
        /// # Ok::<(), Error>(())
        /// ```
        ///
        /// `b` may be a number. Shapes broadcast; padding marks unite.
        ///
        /// # Errors
        /// Returns [`Error::Shape`](crate::Error::Shape) if the shapes do not broadcast;
        /// [`Error::PaddedMix`](crate::Error::PaddedMix) if one dimension is padded by different symbols.
        pub fn $name<'s, T: $bound>(
            a: &crate::Tensor<'s, T>,
            b: impl crate::Argument<'s, T>,
        ) -> crate::Result<crate::Tensor<'s, T>> {
            super::pointwise::of_two($kernel, a, b)
        }
    )*};
}

/// Operations on one tensor: the bound of its type, the kernel, and an example.
macro_rules! unary {
    ($($(#[$doc:meta])* $name:ident: $bound:ident, $kernel:expr, $x:literal => $result:literal;)*) => {$(
        $(#[$doc])*
        ///
        /// ```
        /// # use graphable::prelude::*;
        /// # let mut rt = Runtime::new(Device::cpu())?;
        /// # let step = rt.step()?;
        #[doc = concat!("let x = step.tensor(&[2], &", $x, ")?;")]
        #[doc = concat!("assert_eq!(step.read(&ops::", stringify!($name), "(&x)?)?, ", $result, ");")]
        /// # Ok::<(), Error>(())
        /// ```
        ///
        /// Same shape and padding marks as `x`.
        ///
        /// # Errors
        /// Returns only the errors of every operation (see [`ops`](crate::ops)).
        pub fn $name<'s, T: $bound>(x: &crate::Tensor<'s, T>) -> crate::Result<crate::Tensor<'s, T>> {
            super::pointwise::of_one($kernel, x)
        }
    )*};
}

/// Functions of one float: for each, the kernels, the operation, and an example. The kernels that are named first call all
/// of them, so that CI compiles one unit for each type. What is used besides is a kernel of `f32`, and one of `f64`.
macro_rules! real_functions {
    (
        $all:ident using [$($single:path, $double:path as $known:ident),*];
        $($(#[$doc:meta])* $name:ident($x:ident) $body:tt $value:literal => $result:literal;)*
    ) => {
        mod floats {
            $(use $single as $known;)*

            $crate::ops::pointwise::real_kernels! { $all f32 $($name($x) $body)* }
        }

        mod f64s {
            $(use $double as $known;)*

            $crate::ops::pointwise::real_kernels! { $all f64 $($name($x) $body)* }
        }

        $crate::ops::pointwise::unary! {$(
            $(#[$doc])*
            $name: Real, $crate::ops::by_type::of_reals!(floats::$name, f64s::$name), $value => $result;
        )*}
    };
}

/// The kernels of one type.
macro_rules! real_kernels {
    ($all:ident $t:ident $($name:ident($x:ident) { $($body:tt)* })*) => {
        use crate::kernel;

        $(
            #[kernel]
            pub(super) fn $name($x: $t) -> $t {
                $($body)*
            }
        )*

        #[cfg(feature = "cuda")]
        #[kernel]
        pub(super) fn $all(x: $t) -> $t {
            let mut sum: $t = 0.0;
            $(sum += $name(x);)*
            sum
        }
    };
}

pub(super) use {binary, real_functions, real_kernels, unary};

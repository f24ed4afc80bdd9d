//! Values that select a body.

use crate::{Element, Error, Result, Scalar, Scope, Tensor, backend::View};

/// A bool on the device: a [`Scalar`], or a tensor of rank 0, such as the result of a comparison.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot decide on the device",
    label = "expected a `Scalar<bool>`, or a `Tensor<bool>` of rank 0",
    note = "compare numbers first: `ops::gt(&x, 0.0)?`; a `bool` of the host needs no `control`, a plain `if` is enough"
)]
pub trait Predicate<'s>: sealed::Sealed {
    #[doc(hidden)]
    fn tensor(&self) -> &Tensor<'s, bool>;
}

/// An integer on the device: a [`Scalar`] of `i32` or `u32`, or a tensor of rank 0.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot select a body on the device",
    label = "expected a `Scalar` or a `Tensor` of rank 0, of `i32` or `u32`",
    note = "cast other element types with `ops::cast`; a number of the host needs no `control`, a plain `match` is enough"
)]
pub trait SwitchIndex<'s>: sealed::Sealed {
    /// The type of the values.
    type Case: Element + SwitchCase;
    #[doc(hidden)]
    fn tensor(&self) -> &Tensor<'s, Self::Case>;
}

/// An integer, by its bits.
#[doc(hidden)]
pub trait SwitchCase: Copy {
    fn bits(self) -> u32;
}

impl SwitchCase for i32 {
    fn bits(self) -> u32 {
        self.cast_unsigned()
    }
}

impl SwitchCase for u32 {
    fn bits(self) -> u32 {
        self
    }
}

mod sealed {
    #[doc(hidden)]
    pub trait Sealed {}
}

macro_rules! selecting {
    ($($t:ty)*) => {$(
        impl sealed::Sealed for Tensor<'_, $t> {}
        impl sealed::Sealed for Scalar<'_, $t> {}
    )*};
}

selecting! { bool i32 u32 }
impl<P: sealed::Sealed + ?Sized> sealed::Sealed for &P {}

impl<'s> Predicate<'s> for Tensor<'s, bool> {
    fn tensor(&self) -> &Tensor<'s, bool> {
        self
    }
}

impl<'s> Predicate<'s> for Scalar<'s, bool> {
    fn tensor(&self) -> &Tensor<'s, bool> {
        &self.0
    }
}

impl<'s, P: Predicate<'s> + ?Sized> Predicate<'s> for &P {
    fn tensor(&self) -> &Tensor<'s, bool> {
        (**self).tensor()
    }
}

macro_rules! indices {
    ($($t:ty)*) => {$(
        impl<'s> SwitchIndex<'s> for Tensor<'s, $t> {
            type Case = $t;
            fn tensor(&self) -> &Tensor<'s, $t> {
                self
            }
        }

        impl<'s> SwitchIndex<'s> for Scalar<'s, $t> {
            type Case = $t;
            fn tensor(&self) -> &Tensor<'s, $t> {
                &self.0
            }
        }
    )*};
}

indices! { i32 u32 }

impl<'s, I: SwitchIndex<'s> + ?Sized> SwitchIndex<'s> for &I {
    type Case = I::Case;
    fn tensor(&self) -> &Tensor<'s, Self::Case> {
        (**self).tensor()
    }
}

/// Returns the one element of a tensor of rank 0, and its scope.
///
/// # Errors
/// Returns [`Error::Shape`] for any other rank, and [`Error::NeverComputed`].
pub(super) fn scalar<'s, T>(control: &'static str, tensor: &Tensor<'s, T>) -> Result<(Scope<'s>, View)> {
    if tensor.rank() != 0 {
        let reason =
            "what selects a body is a single value, of rank 0; reduce it first (`ops::any`, `ops::all`)";
        return Err(Error::shape(control, &[tensor.sizes()], reason));
    }
    Ok((tensor.scope(), tensor.view(control)?))
}

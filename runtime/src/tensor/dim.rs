//! Sizes of dimensions: numbers, unless a bucket pads them.

use std::{cmp::Ordering, fmt, ops, panic::Location};

use crate::value::dim::{DimKind, RawDim};
use crate::{Error, Result, Runtime};

/// The size of one dimension, returned by [`Tensor::dim`](crate::Tensor::dim).
///
/// It can be used wherever a shape is expected. For a dimension that no bucket pads, it behaves like a
/// number: it compares with numbers, arithmetic with numbers returns sizes, and [`get`](Self::get) returns
/// the `usize`.
///
/// In a function with buckets (`builder().bucket("B", …)`), the size along a bucketed symbol is not a number:
/// a recording serves every real size up to its bucket, so if host code took a different branch or factor for
/// one of them, it would be wrong for the others. As part of a shape, it carries the padding with it:
///
/// - `ops::full(x.scope(), (x.dim(0), 4), 0.0)?` and `ops::arange(x.scope(), x.dim(0))?` create tensors that
///   are padded like `x`, and `ops::reshape(x, (x.dim(0), heads, size))?` preserves the dimension.
/// - [`ops::size`](crate::ops::size) returns the real size as a scalar on the device, for computations.
/// - [`Eager::size`](crate::Eager::size) reads it as a number, in an `#[eager(cx)]` region.
/// - [`get`](Self::get) and comparisons with numbers are [`Error::PaddedSize`], in every mode and for every
///   size, even one that exactly fits its bucket. Two sizes of the same symbol are equal.
///
/// A comparison cannot return an error, so the segment or the call does: the effects of its branch are
/// discarded, even if it panicked. `assert_eq!(x.dim(0), 3)` on a padded size therefore results in
/// [`Error::PaddedSize`], after the panic hook has printed the assertion; in a program compiled with
/// `panic = "abort"`, it aborts.
///
/// ```
/// use graphable::prelude::*;
///
/// /// `[B, heads * size]` as `[B, heads, size]`.
/// fn split_heads<'s>(x: &Tensor<'s, f32>, heads: usize) -> Result<Tensor<'s, f32>> {
///     ops::reshape(x, (x.dim(0), heads, x.dim(1) / heads))
/// }
///
/// # fn main() -> Result<()> {
/// let mut rt = Runtime::new(Device::cpu())?;
/// let step = rt.step()?;
/// let x = step.tensor(&[2, 6], &[0.0f32; 12])?;
/// let heads = split_heads(&x, 3)?;
/// assert_eq!(heads.shape(), [2, 3, 2]);
/// let width: usize = heads.dim(2).get()?;
/// assert_eq!(width, 2);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy)]
pub struct Dim<'s> {
    pub(crate) raw: RawDim,
    /// The runtime to which comparisons report; `None` for sizes made from numbers.
    pub(crate) rt: Option<&'s Runtime>,
    /// The call whose symbols `raw` names.
    pub(crate) call: u64,
}

impl<'s> Dim<'s> {
    /// Returns the size as a number.
    ///
    /// # Errors
    /// Returns [`Error::PaddedSize`] for a dimension that a bucket pads, whatever its size is;
    /// [`Error::Argument`] for arithmetic whose result was negative or above `usize::MAX`, or that divided by
    /// zero.
    #[track_caller]
    pub fn get(self) -> Result<usize> {
        match self.raw.kind {
            DimKind::Number => Ok(self.raw.size),
            _ => Err(self.error("a size as a number", Some(Location::caller()))),
        }
    }

    /// Returns whether a bucket pads the dimension, or one from which the size was computed:
    /// [`get`](Self::get) then returns an error. The answer is the same for every input of a graph, so it is
    /// safe to branch on it.
    pub fn is_padded(self) -> bool {
        self.raw.symbol().is_some()
    }

    /// Returns the error for a size that is not a number.
    pub(crate) fn error(self, op: &'static str, at: Option<&'static Location<'static>>) -> Error {
        if let DimKind::Impossible(reason) = self.raw.kind {
            return Error::Argument { op: "arithmetic with sizes", reason: reason.to_owned() };
        }
        let symbol = match (self.rt, self.raw.symbol()) {
            (Some(rt), Some(symbol)) => rt.symbol_name(symbol),
            _ => "?".to_owned(),
        };
        Error::PaddedSize { op, symbol, at }
    }

    /// Combines `self` and `other` with `f`; the result of a size that is not a number is not a number
    /// either.
    fn with(self, other: Self, f: impl FnOnce(usize, usize) -> Option<usize>, reason: &'static str) -> Self {
        let rt = self.rt.or(other.rt);
        let call = if self.raw.symbol().is_some() { self.call } else { other.call };
        let impossible = |d: Self| matches!(d.raw.kind, DimKind::Impossible(_)).then_some(d.raw.kind);
        let computed = self.raw.symbol().or(other.raw.symbol()).map(DimKind::Computed);
        let known = impossible(self).or_else(|| impossible(other)).or(computed);
        let raw = match (known, f(self.raw.size, other.raw.size)) {
            (Some(kind), size) => RawDim { size: size.unwrap_or(0), kind },
            (None, Some(size)) => RawDim::number(size),
            (None, None) => RawDim { size: 0, kind: DimKind::Impossible(reason) },
        };
        Self { raw, rt, call }
    }

    /// Returns the order of the two if it is the same for all real sizes.
    pub(crate) fn known_order(self, other: Self) -> Option<Ordering> {
        match (self.raw.kind, other.raw.kind) {
            (DimKind::Number, DimKind::Number) => Some(self.raw.size.cmp(&other.raw.size)),
            (DimKind::Padded(a), DimKind::Padded(b)) if a == b && self.call == other.call => {
                Some(Ordering::Equal)
            }
            _ => None,
        }
    }

    /// Makes the running segment or call end with an error, and returns some answer: not always the same one,
    /// so that no loop waits for another answer.
    pub(crate) fn refuse_order(self, other: Self, at: &'static Location<'static>) -> Option<Ordering> {
        let wrong = if self.raw.kind == DimKind::Number { other } else { self };
        let rt = self.rt.or(other.rt)?;
        rt.refused_sizes.answer(|| wrong.error("a comparison of sizes", Some(at)))
    }

    #[track_caller]
    fn order(self, other: Self) -> Option<Ordering> {
        match self.known_order(other) {
            Some(order) => Some(order),
            None => self.refuse_order(other, Location::caller()),
        }
    }
}

impl From<usize> for Dim<'_> {
    fn from(size: usize) -> Self {
        Self { raw: RawDim::number(size), rt: None, call: 0 }
    }
}

impl TryFrom<Dim<'_>> for usize {
    type Error = Error;

    #[track_caller]
    fn try_from(dim: Dim<'_>) -> Result<usize> {
        dim.get()
    }
}

/// `!=` at the position of its caller, which the method of `PartialEq` does not know.
macro_rules! not_equal {
    ($other:ty) => {
        #[track_caller]
        #[allow(clippy::partialeq_ne_impl, reason = "the method that the trait has does not know its caller")]
        fn ne(&self, other: &$other) -> bool {
            !self.eq(other)
        }
    };
}
pub(crate) use not_equal;

/// `<`, `<=`, `>` and `>=` at the position of their caller, for the same reason.
macro_rules! ordered {
    ($other:ty) => {
        #[track_caller]
        fn lt(&self, other: &$other) -> bool {
            self.partial_cmp(other) == Some(Ordering::Less)
        }

        #[track_caller]
        fn le(&self, other: &$other) -> bool {
            matches!(self.partial_cmp(other), Some(Ordering::Less | Ordering::Equal))
        }

        #[track_caller]
        fn gt(&self, other: &$other) -> bool {
            self.partial_cmp(other) == Some(Ordering::Greater)
        }

        #[track_caller]
        fn ge(&self, other: &$other) -> bool {
            matches!(self.partial_cmp(other), Some(Ordering::Greater | Ordering::Equal))
        }
    };
}

impl PartialEq for Dim<'_> {
    #[track_caller]
    fn eq(&self, other: &Self) -> bool {
        (*self).order(*other) == Some(Ordering::Equal)
    }

    not_equal! { Self }
}

impl PartialOrd for Dim<'_> {
    #[track_caller]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        (*self).order(*other)
    }

    ordered! { Self }
}

impl PartialEq<usize> for Dim<'_> {
    #[track_caller]
    fn eq(&self, other: &usize) -> bool {
        (*self).order(Dim::from(*other)) == Some(Ordering::Equal)
    }

    not_equal! { usize }
}

impl PartialOrd<usize> for Dim<'_> {
    #[track_caller]
    fn partial_cmp(&self, other: &usize) -> Option<Ordering> {
        (*self).order(Dim::from(*other))
    }

    ordered! { usize }
}

impl PartialEq<Dim<'_>> for usize {
    #[track_caller]
    fn eq(&self, other: &Dim<'_>) -> bool {
        Dim::from(*self).order(*other) == Some(Ordering::Equal)
    }

    not_equal! { Dim<'_> }
}

impl PartialOrd<Dim<'_>> for usize {
    #[track_caller]
    fn partial_cmp(&self, other: &Dim<'_>) -> Option<Ordering> {
        Dim::from(*self).order(*other)
    }

    ordered! { Dim<'_> }
}

macro_rules! arithmetic {
    ($($trait:ident::$name:ident, $assign:ident::$assign_name:ident => $checked:ident, $reason:expr;)*) => {$(
        impl<'s> ops::$trait for Dim<'s> {
            type Output = Dim<'s>;
            fn $name(self, other: Self) -> Self {
                self.with(other, usize::$checked, $reason)
            }
        }
        impl<'s> ops::$trait<usize> for Dim<'s> {
            type Output = Dim<'s>;
            fn $name(self, other: usize) -> Self {
                self.with(Dim::from(other), usize::$checked, $reason)
            }
        }
        impl<'s> ops::$trait<Dim<'s>> for usize {
            type Output = Dim<'s>;
            fn $name(self, other: Dim<'s>) -> Dim<'s> {
                Dim::from(self).with(other, usize::$checked, $reason)
            }
        }
        impl<'s> ops::$assign for Dim<'s> {
            fn $assign_name(&mut self, other: Self) {
                *self = self.with(other, usize::$checked, $reason);
            }
        }
        impl ops::$assign<usize> for Dim<'_> {
            fn $assign_name(&mut self, other: usize) {
                *self = self.with(Dim::from(other), usize::$checked, $reason);
            }
        }
    )*};
}

arithmetic! {
    Add::add, AddAssign::add_assign => checked_add, "a sum of sizes does not fit in `usize`; check the sizes before adding them";
    Sub::sub, SubAssign::sub_assign => checked_sub, "a difference of sizes is below zero; check which of them is larger";
    Mul::mul, MulAssign::mul_assign => checked_mul, "a product of sizes does not fit in `usize`; check the sizes before multiplying them";
    Div::div, DivAssign::div_assign => checked_div, "a size is divided by zero; check the divisor";
    Rem::rem, RemAssign::rem_assign => checked_rem, "a size is divided by zero; check the divisor";
}

impl fmt::Debug for Dim<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |symbol| self.rt.map_or_else(|| "?".to_owned(), |rt| rt.symbol_name(symbol));
        match self.raw.kind {
            DimKind::Number => write!(f, "{}", self.raw.size),
            DimKind::Padded(symbol) => write!(f, "{}<={}", name(symbol), self.raw.size),
            DimKind::Computed(symbol) => write!(f, "(from {})", name(symbol)),
            DimKind::Impossible(reason) => write!(f, "({reason})"),
        }
    }
}

impl fmt::Display for Dim<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_numbers() {
        let n = Dim::from(6);
        assert_eq!(n, 6);
        assert!(n > 5 && 7 > n && n <= Dim::from(6) && n != 5);
        assert_eq!((n / 2 + 1) * 2 - 1, 7);
        assert_eq!(13 % n, 1);
        assert_eq!(format!("{n} {n:?}"), "6 6");
        assert_eq!((usize::try_from(n).unwrap(), n.is_padded()), (6, false));
    }

    #[test]
    fn arithmetic_without_a_result_is_an_error() {
        for bad in [Dim::from(1) - 2, Dim::from(1) / 0, Dim::from(1) % 0, Dim::from(usize::MAX) * 2] {
            assert!(matches!((bad + 1).get(), Err(Error::Argument { .. })), "{bad}");
            assert!(bad != 0 && bad != 1);
        }
    }
}

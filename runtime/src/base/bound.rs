//! Bounds of the difference between a value and the one that it stands for.

use std::fmt;

use half::{bf16, f16};

use crate::DType;

/// The largest difference between results and those expected: `|got - expected| <= absolute + relative * |expected|`.
///
/// Equal bits are always within it, and a NaN is within it of any other NaN. Integers and bools (0 and 1) are compared as
/// numbers, an `i64` beyond 2⁵³ as the nearest `f64`.
/// With a bound that is negative or NaN, only equal bits are within.
///
/// ```
/// use graphable::passes::Bound;
///
/// assert_eq!(Bound::relative(1e-3).to_string(), "0.001 of the value");
/// assert_eq!(Bound { absolute: 1e-6, relative: 1e-3 }.to_string(), "0.000001 and 0.001 of the value");
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Bound {
    /// The difference that is allowed whatever the value is.
    pub absolute: f64,
    /// The difference that is allowed besides, as a part of the expected value.
    pub relative: f64,
}

impl Bound {
    /// Returns a bound that does not depend on the value.
    #[must_use]
    pub const fn absolute(absolute: f64) -> Self {
        Self { absolute, relative: 0.0 }
    }

    /// Returns a bound that is a part of the value.
    #[must_use]
    pub const fn relative(relative: f64) -> Self {
        Self { absolute: 0.0, relative }
    }

    /// Returns the bound of what is subject to both.
    pub(crate) fn and(self, other: Self) -> Self {
        // One below zero allows nothing, and takes nothing from the other; `max` treats NaN as nothing, too.
        let sum = |a: f64, b: f64| a.max(0.0) + b.max(0.0);
        Self { absolute: sum(self.absolute, other.absolute), relative: sum(self.relative, other.relative) }
    }

    fn holds(self, expected: f64, got: f64) -> bool {
        let is_close = (got - expected).abs() <= self.absolute + self.relative * expected.abs();
        // The difference of infinities, and what is added to one, says nothing.
        is_close && expected.is_finite() && got.is_finite() || expected.is_nan() && got.is_nan()
    }

    /// Returns the first element that is outside: its index, and both values. The bytes are those of as many elements.
    pub(crate) fn first_outside(
        self,
        dtype: DType,
        expected: &[u8],
        got: &[u8],
    ) -> Option<(usize, f64, f64)> {
        let size = dtype.size();
        let elements = expected.chunks_exact(size).zip(got.chunks_exact(size)).enumerate();
        elements
            .filter(|(_, (expected, got))| expected != got)
            .map(|(index, (expected, got))| (index, number(dtype, expected), number(dtype, got)))
            .find(|(_, expected, got)| !self.holds(*expected, *got))
    }
}

/// A part of memory whose bits may differ.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct BoundedPart {
    /// Addresses of the first byte, and after the last one.
    pub(crate) range: (u64, u64),
    /// The type of its elements.
    pub(crate) dtype: DType,
    pub(crate) bound: Bound,
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.absolute == 0.0, self.relative == 0.0) {
            (false, true) => write!(f, "{}", self.absolute),
            (true, _) => write!(f, "{} of the value", self.relative),
            (false, false) => write!(f, "{} and {} of the value", self.absolute, self.relative),
        }
    }
}

/// An element as a number.
fn number(dtype: DType, bytes: &[u8]) -> f64 {
    let wide = bytes.iter().rev().fold(0u64, |word, byte| word << 8 | u64::from(*byte));
    let word = wide as u32;
    match dtype {
        DType::F64 => f64::from_bits(wide),
        // The nearest, as bounds are numbers of that type.
        DType::I64 => wide.cast_signed() as f64,
        DType::I8 => (word as i8).into(),
        DType::F32 => f32::from_bits(word).into(),
        DType::F16 => f16::from_bits(word as u16).into(),
        DType::Bf16 => bf16::from_bits(word as u16).into(),
        DType::I32 => (word as i32).into(),
        DType::U32 | DType::U8 | DType::Bool => word.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outside(bound: Bound, expected: &[f32], got: &[f32]) -> Option<usize> {
        let [expected, got] = [expected, got].map(bytemuck::cast_slice);
        bound.first_outside(DType::F32, expected, got).map(|(index, ..)| index)
    }

    #[test]
    fn floats_are_compared_by_both_parts() {
        let bound = Bound { absolute: 0.5, relative: 0.25 };
        assert_eq!(outside(bound, &[0.0, 4.0, -4.0], &[0.5, 5.5, -2.5]), None);
        assert_eq!(outside(bound, &[0.0, 4.0], &[-0.5, 5.6]), Some(1));
        assert_eq!(outside(Bound::absolute(0.5), &[1e9, 4.0], &[1e9, 4.6]), Some(1));
        assert_eq!(outside(Bound::relative(0.5), &[0.0, 4.0], &[0.0, 6.0]), None);
        assert_eq!(outside(Bound::relative(0.5), &[0.0], &[1e-30]), Some(0));
    }

    #[test]
    fn what_is_no_number_must_be_the_same() {
        let (nan, inf) = (f32::NAN, f32::INFINITY);
        let wide = Bound { absolute: f64::INFINITY, relative: 1.0 };
        assert_eq!(outside(wide, &[nan, inf, -inf, 1.0], &[-nan, inf, -inf, 2.0]), None);
        for (expected, got) in [(inf, -inf), (1.0, inf), (inf, 1.0), (nan, 1.0), (1.0, nan)] {
            assert_eq!(outside(wide, &[expected], &[got]), Some(0), "{expected} {got}");
        }
        for bad in [f64::NAN, -1.0] {
            assert_eq!(outside(Bound::absolute(bad), &[1.0, 1.0], &[1.0, 1.5]), Some(1));
        }
    }

    #[test]
    fn every_type_is_read() {
        let bound = Bound::absolute(1.0);
        let check = |dtype, near: &[u8], far: &[u8], to: &[u8]| {
            assert_eq!(bound.first_outside(dtype, near, to), None, "{dtype}");
            assert!(bound.first_outside(dtype, far, to).is_some(), "{dtype}");
        };
        let half = |x: f32| f16::from_f32(x).to_le_bytes();
        let brain = |x: f32| bf16::from_f32(x).to_le_bytes();
        check(DType::F16, &half(-3.0), &half(-3.5), &half(-2.0));
        check(DType::Bf16, &brain(-3.0), &brain(-3.5), &brain(-2.0));
        check(DType::I32, &(-1i32).to_le_bytes(), &(-2i32).to_le_bytes(), &0i32.to_le_bytes());
        check(DType::U32, &u32::MAX.to_le_bytes(), &1u32.to_le_bytes(), &(u32::MAX - 1).to_le_bytes());
        check(DType::U8, &[7], &[9], &[6]);
        check(DType::F64, &1.5f64.to_le_bytes(), &3.5f64.to_le_bytes(), &2.25f64.to_le_bytes());
        check(DType::I64, &(-1i64).to_le_bytes(), &(-2i64).to_le_bytes(), &0i64.to_le_bytes());
        check(DType::I8, &[0xff], &[0xfe], &[0]);
        assert!(Bound::absolute(0.5).first_outside(DType::Bool, &[0], &[1]).is_some());
    }
}

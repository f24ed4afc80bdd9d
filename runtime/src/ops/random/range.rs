//! The ends of ranges of floats.

use std::ops::Range;

use crate::{DType, Error, Float, Result, bf16, f16};

/// A range, as numbers of its element type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Bounds {
    pub(super) low: f32,
    /// Its length.
    pub(super) span: f32,
    /// The largest number in it.
    pub(super) largest: f32,
}

impl Bounds {
    /// The bounds of `range` for elements `T`.
    ///
    /// # Errors
    /// Returns [`Error::Argument`] if it is empty or not finite.
    pub(super) fn of<T: Float>(op: &'static str, range: &Range<f32>) -> Result<Self> {
        let [low, high] = [range.start, range.end].map(|end| T::from_f64(end.into()).to_f64() as f32);
        let span = high - low;
        if low < high && span.is_finite() {
            return Ok(Self { low, span, largest: below::<T>(high) });
        }
        let (Range { start, end }, dtype) = (range, T::DTYPE);
        let reason = format!(
            "range {start}..{end}, in {dtype} {low}..{high}; it must not be empty, and its ends and its length must be finite"
        );
        Err(Error::Argument { op, reason })
    }
}

/// Binary digits of a significand.
pub(super) fn digits<T: Float>() -> u32 {
    match T::DTYPE {
        DType::F16 => f16::MANTISSA_DIGITS,
        DType::Bf16 => bf16::MANTISSA_DIGITS,
        _ => f32::MANTISSA_DIGITS,
    }
}

/// The number of type `T` before `x`, which is finite and one itself.
fn below<T: Float>(x: f32) -> f32 {
    match T::DTYPE {
        DType::F16 => f16::from_bits(previous(f16::from_f32(x).to_bits())).to_f32(),
        DType::Bf16 => bf16::from_bits(previous(bf16::from_f32(x).to_bits())).to_f32(),
        _ => x.next_down(),
    }
}

/// The bits of the number before one.
fn previous(bits: u16) -> u16 {
    match bits {
        0 | 0x8000 => 0x8001,
        negative if negative >> 15 == 1 => negative + 1,
        positive => positive - 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_number_is_below_the_end() {
        assert_eq!(below::<f32>(1.0), 1.0f32.next_down());
        assert_eq!([below::<f16>(1.0), below::<bf16>(1.0)], [1.0 - 1.0 / 2048.0, 1.0 - 1.0 / 256.0]);
        assert_eq!([below::<f16>(-1.0), below::<bf16>(-1.0)], [-1.0 - 1.0 / 1024.0, -1.0 - 1.0 / 128.0]);
        assert_eq!(below::<f16>(0.0), -(2.0f32.powi(-24)));
        assert_eq!([digits::<f32>(), digits::<f16>(), digits::<bf16>()], [24, 11, 8]);
    }

    #[test]
    fn ends_are_rounded_before_they_are_compared() {
        let bounds = Bounds::of::<bf16>("uniform", &(0.999..1.001)).unwrap_err();
        assert!(bounds.to_string().contains("range 0.999..1.001, in bf16 1..1"), "{bounds}");
        assert_eq!(Bounds::of::<bf16>("uniform", &(0.5..1.001)).unwrap().largest, 1.0 - 1.0 / 256.0);
        for range in [0.0..0.0, 1.0..0.0, f32::NAN..1.0, 0.0..f32::INFINITY, f32::MIN..f32::MAX] {
            assert!(matches!(Bounds::of::<f32>("uniform", &range), Err(Error::Argument { .. })), "{range:?}");
        }
        assert!(Bounds::of::<f16>("uniform", &(0.0..70000.0)).is_err());
    }
}

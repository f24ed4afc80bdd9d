//! Arithmetic of the element types: floats in f32, rounded once; integers directly.

use bytemuck::Pod;
use half::{bf16, f16, slice::HalfFloatSliceExt};

/// An element type in its form in memory. `bool` is `u8` here.
pub(crate) trait Scalar: Pod + Send + Sync {
    /// The type used for computation.
    type Acc: Arith;

    /// `raw` in the computing type; `buf` is used where that differs and must be as long.
    fn acc<'a>(raw: &'a [Self], buf: &'a mut [Self::Acc]) -> &'a [Self::Acc];

    /// The values that [`acc`](Self::acc) returned for `raw`, which are in `buf` if the types differ.
    fn held<'a>(raw: &'a [Self], buf: &'a [Self::Acc]) -> &'a [Self::Acc];

    /// Nearest elements of `values`; the lengths are equal.
    fn round(values: &[Self::Acc], out: &mut [Self]);

    /// One value, rounded once: to nearest for floats, truncated and saturated for integers.
    /// (`half` has a `from_f64` that rounds twice.)
    fn of_f64(value: f64) -> Self;

    /// One value, rounded once.
    fn down(value: Self::Acc) -> Self;
}

/// Arithmetic of a computing type. Integers wrap.
pub(crate) trait Arith: Pod + PartialOrd + Send + Sync {
    /// The neutral element of the maximum.
    const LOWEST: Self;
    fn add(self, other: Self) -> Self;
    /// Integer division by zero returns 0.
    fn div(self, other: Self) -> Self;
    fn to_f64(self) -> f64;
    /// Truncates and saturates for integers; NaN is 0.
    fn from_f32(value: f32) -> Self;
    fn is_nan(self) -> bool;

    /// The larger of both; NaN if either is.
    #[inline(always)]
    fn max(self, other: Self) -> Self {
        if other > self || other.is_nan() { other } else { self }
    }
}

/// A float that is computed in itself.
macro_rules! float {
    ($($t:ident),*) => {$(
        impl Arith for $t {
            const LOWEST: Self = $t::NEG_INFINITY;
            #[inline(always)]
            fn add(self, other: Self) -> Self {
                self + other
            }
            #[inline(always)]
            fn div(self, other: Self) -> Self {
                self / other
            }
            #[inline(always)]
            fn to_f64(self) -> f64 {
                self.into()
            }
            #[inline(always)]
            fn from_f32(value: f32) -> Self {
                value.into()
            }
            #[inline(always)]
            fn is_nan(self) -> bool {
                $t::is_nan(self)
            }
        }

        impl Scalar for $t {
            type Acc = $t;
            direct!();
            fn of_f64(value: f64) -> Self {
                value as $t
            }
        }
    )*};
}

macro_rules! integer {
    ($($t:ident),*) => {$(
        impl Arith for $t {
            const LOWEST: Self = $t::MIN;
            #[inline(always)]
            fn add(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
            #[inline(always)]
            fn div(self, other: Self) -> Self {
                if other == 0 { 0 } else { self.wrapping_div(other) }
            }
            #[inline(always)]
            #[allow(clippy::cast_lossless, reason = "of an `i64` it is the nearest")]
            fn to_f64(self) -> f64 {
                self as f64
            }
            #[inline(always)]
            fn from_f32(value: f32) -> Self {
                value as $t
            }
            #[inline(always)]
            fn is_nan(self) -> bool {
                false
            }
        }
        impl Scalar for $t {
            type Acc = $t;
            direct!();
            fn of_f64(value: f64) -> Self {
                value as $t
            }
        }
    )*};
}

/// The methods of a type that is computed in itself.
macro_rules! direct {
    () => {
        #[inline(always)]
        fn acc<'a>(raw: &'a [Self], _: &'a mut [Self]) -> &'a [Self] {
            raw
        }
        #[inline(always)]
        fn held<'a>(raw: &'a [Self], _: &'a [Self]) -> &'a [Self] {
            raw
        }
        fn round(values: &[Self], out: &mut [Self]) {
            out.copy_from_slice(values);
        }
        #[inline(always)]
        fn down(value: Self) -> Self {
            value
        }
    };
}

integer!(i64, i32, i8, u32, u16, u8);

float!(f32, f64);

macro_rules! half_float {
    ($($t:ident $load:expr, $round:expr;)*) => {$(
        impl Scalar for $t {
            type Acc = f32;
            fn acc<'a>(raw: &'a [Self], buf: &'a mut [f32]) -> &'a [f32] {
                $load(raw, buf);
                buf
            }
            fn held<'a>(_: &'a [Self], buf: &'a [f32]) -> &'a [f32] {
                buf
            }
            fn round(values: &[f32], out: &mut [Self]) {
                $round(values, out);
            }
            fn down(value: f32) -> Self {
                $t::from_f32(value)
            }
            fn of_f64(value: f64) -> Self {
                $t::from_f32(round_to_odd(value))
            }
        }
    )*};
}

half_float! {
    f16 |src: &[f16], dst: &mut [f32]| src.convert_to_f32_slice(dst),
        |src: &[f32], dst: &mut [f16]| dst.convert_from_f32_slice(src);
    bf16 widened, rounded;
}

// bf16 is the upper half of f32. `half` looks for NaN one by one, which is not vectorised.

fn widened(src: &[bf16], dst: &mut [f32]) {
    for (to, from) in dst.iter_mut().zip(src) {
        *to = f32::from_bits(u32::from(from.to_bits()) << 16);
    }
}

fn rounded(src: &[f32], dst: &mut [bf16]) {
    for (to, from) in dst.iter_mut().zip(src) {
        let bits = from.to_bits();
        // Half of the last place, less one if that is even: a tie goes to even.
        let near = bits.wrapping_add(0x7fff + (bits >> 16 & 1));
        // A NaN stays one, whatever its bits.
        let bits = if bits & 0x7fff_ffff > 0x7f80_0000 { bits | 0x0040_0000 } else { near };
        *to = bf16::from_bits((bits >> 16) as u16);
    }
}

/// Returns `value` as an f32 whose last bit is set if anything was lost, so that rounding it again to a
/// narrower type has the same result as rounding `value` once.
fn round_to_odd(value: f64) -> f32 {
    let near = value as f32;
    let back = f64::from(near);
    if back == value || near.is_nan() || near.to_bits() & 1 == 1 {
        near
    } else if back.abs() > value.abs() {
        f32::from_bits(near.to_bits() - 1)
    } else {
        f32::from_bits(near.to_bits() + 1)
    }
}

/// Runs `$body` with `$t` as the memory form of `$dtype`.
macro_rules! with_scalar {
    ($dtype:expr, $t:ident => $body:expr) => {
        match $dtype {
            $crate::DType::F32 => {
                type $t = f32;
                $body
            }
            $crate::DType::F16 => {
                type $t = half::f16;
                $body
            }
            $crate::DType::Bf16 => {
                type $t = half::bf16;
                $body
            }
            $crate::DType::I32 => {
                type $t = i32;
                $body
            }
            $crate::DType::U32 => {
                type $t = u32;
                $body
            }
            $crate::DType::F64 => {
                type $t = f64;
                $body
            }
            $crate::DType::I64 => {
                type $t = i64;
                $body
            }
            $crate::DType::I8 => {
                type $t = i8;
                $body
            }
            $crate::DType::U8 | $crate::DType::Bool => {
                type $t = u8;
                $body
            }
        }
    };
}

/// Runs `$body` with `$t` as plain words of the size of `$dtype`, for kernels that only move data.
macro_rules! with_word {
    ($dtype:expr, $t:ident => $body:expr) => {
        match $dtype.size() {
            8 => {
                type $t = u64;
                $body
            }
            4 => {
                type $t = u32;
                $body
            }
            2 => {
                type $t = u16;
                $body
            }
            _ => {
                type $t = u8;
                $body
            }
        }
    };
}

pub(crate) use {with_scalar, with_word};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_round_once() {
        // Just above the tie between 1 and the next bf16: through f32 the excess is lost.
        let tie = 1.0 + f64::powi(2.0, -8);
        assert_eq!(bf16::from_f64(tie + 1e-12).to_f32(), 1.0, "`half` itself rounds twice");
        assert_eq!(<bf16 as Scalar>::of_f64(tie + 1e-12).to_f32(), 1.0 + f32::powi(2.0, -7));
        assert_eq!(<bf16 as Scalar>::of_f64(tie).to_f32(), 1.0);
        assert_eq!(<bf16 as Scalar>::of_f64(-tie - 1e-12).to_f32(), -1.0 - f32::powi(2.0, -7));
        // Just below a tie that goes up.
        let tie = 1.0 + 3.0 * f64::powi(2.0, -8);
        assert_eq!(<bf16 as Scalar>::of_f64(tie).to_f32(), 1.0 + f32::powi(2.0, -6));
        assert_eq!(<bf16 as Scalar>::of_f64(tie - 1e-12).to_f32(), 1.0 + f32::powi(2.0, -7));
        assert_eq!(<f16 as Scalar>::of_f64(1e300), f16::INFINITY);
        assert!(<f16 as Scalar>::of_f64(f64::NAN).is_nan());
        assert_eq!(<f16 as Scalar>::of_f64(0.0).to_bits(), 0);
        assert_eq!(<f16 as Scalar>::of_f64(-0.0).to_bits(), 0x8000);
    }

    #[test]
    fn the_maximum_keeps_nan() {
        assert!(Arith::max(f32::NAN, 1.0).is_nan() && Arith::max(1.0, f32::NAN).is_nan());
        assert_eq!(Arith::max(-1.0f32, -2.0), -1.0);
        assert_eq!(i32::MIN.div(-1), i32::MIN);
        assert_eq!(5u8.div(0), 0);
    }
}

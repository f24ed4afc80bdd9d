//! Element types of device memory.

use std::fmt;

use bytemuck::{Pod, Zeroable};
use half::{bf16, f16};

/// The element type of a tensor, as a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[non_exhaustive]
pub enum DType {
    /// IEEE 754 binary32.
    F32,
    /// IEEE 754 binary16.
    F16,
    /// bfloat16.
    Bf16,
    /// Signed 32-bit integer.
    I32,
    /// Unsigned 32-bit integer.
    U32,
    /// Unsigned 8-bit integer.
    U8,
    /// One byte, 0 or 1.
    Bool,
    /// IEEE 754 binary64.
    F64,
    /// Signed 64-bit integer.
    I64,
    /// Signed 8-bit integer.
    I8,
}

impl DType {
    /// Every type.
    pub(crate) const ALL: [Self; 10] = [
        Self::F32,
        Self::F16,
        Self::Bf16,
        Self::F64,
        Self::I32,
        Self::I64,
        Self::I8,
        Self::U32,
        Self::U8,
        Self::Bool,
    ];

    /// Returns the size of one element, in bytes.
    pub const fn size(self) -> usize {
        match self {
            Self::F64 | Self::I64 => 8,
            Self::F32 | Self::I32 | Self::U32 => 4,
            Self::F16 | Self::Bf16 => 2,
            Self::I8 | Self::U8 | Self::Bool => 1,
        }
    }

    /// Returns whether the type is a floating-point type.
    pub const fn is_float(self) -> bool {
        matches!(self, Self::F32 | Self::F16 | Self::Bf16 | Self::F64)
    }

    /// Returns whether it is the type of a [`Float`]: a floating-point type that is computed in `f32`.
    pub(crate) const fn is_computed_in_f32(self) -> bool {
        matches!(self, Self::F32 | Self::F16 | Self::Bf16)
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::F32 => "f32",
            Self::F16 => "f16",
            Self::Bf16 => "bf16",
            Self::I32 => "i32",
            Self::U32 => "u32",
            Self::U8 => "u8",
            Self::Bool => "bool",
            Self::F64 => "f64",
            Self::I64 => "i64",
            Self::I8 => "i8",
        })
    }
}

mod sealed {
    pub trait Sealed {}
}

/// A Rust type that can be an element of a [`Tensor`](crate::Tensor).
///
/// Implemented only for `f32`, `f16`, `bf16`, `f64`, `i32`, `i64`, `i8`, `u32`, `u8` and `bool`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an element type",
    label = "not an element type",
    note = "elements are f32, f16, bf16, f64, i32, i64, i8, u32, u8 and bool"
)]
pub trait Element: sealed::Sealed + Copy + Send + Sync + fmt::Debug + PartialEq + 'static {
    /// The value-level name of this type.
    const DTYPE: DType;
    /// The plain-data form in device memory: the type itself, and `u8` for `bool`.
    type Repr: Pod;
    /// Converts to the form in memory.
    fn to_repr(self) -> Self::Repr;
    /// Converts from the form in memory; any non-zero byte is `true`.
    fn from_repr(repr: Self::Repr) -> Self;
    /// Returns the value as `f64`: exact for every element type but `i64`, of whose values it is the nearest, ties to even.
    /// [`to_i64`](Self::to_i64) is exact for those.
    fn to_f64(self) -> f64;
    /// Returns the value of an integer or a `bool` as `i64`, which is exact; `None` for floats.
    fn to_i64(self) -> Option<i64>;
    /// Returns the value nearest to `value`, rounded once, ties to even. Integers saturate, and NaN becomes
    /// 0; `bool` is `value != 0`.
    fn from_f64(value: f64) -> Self;
}

/// Elements with arithmetic: every element type except `bool`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no arithmetic on the device",
    label = "`f32`, `f16`, `bf16`, `f64`, `i32`, `i64`, `i8`, `u32` or `u8` is needed here",
    note = "cast it first: `ops::cast::<_, f32>(&t)?`"
)]
pub trait Number: Element {}

/// Floating-point elements: `f32`, `f16`, `bf16` and `f64`. They have functions such as `exp` and `erf`, statistics such as
/// `var`, softmax, norms, losses and convolutions.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a floating-point element",
    label = "`f32`, `f16`, `bf16` or `f64` is needed here",
    note = "cast it first: `ops::cast::<_, f32>(&t)?`"
)]
pub trait Real: Number {}

/// Floating-point elements that are computed in `f32`: `f32`, `f16`, `bf16`. An `f64` is a [`Real`]: attention, random
/// numbers and weights in blocks are not defined for it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a floating-point element that is computed in `f32`",
    label = "`f32`, `f16` or `bf16` is needed here",
    note = "cast it first: `ops::cast::<_, f32>(&t)?`"
)]
pub trait Float: Real {}

/// Integer elements: `i32`, `i64`, `i8`, `u32`, `u8`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an integer element",
    label = "`i32`, `i64`, `i8`, `u32` or `u8` is needed here",
    note = "cast it first: `ops::cast::<_, i32>(&t)?`"
)]
pub trait Integer: Number {}

macro_rules! element {
    ($t:ty, $d:ident, $to:expr, $whole:expr, $from:expr) => {
        impl sealed::Sealed for $t {}
        impl Element for $t {
            const DTYPE: DType = DType::$d;
            type Repr = $t;
            fn to_repr(self) -> $t {
                self
            }
            fn from_repr(repr: $t) -> Self {
                repr
            }
            fn to_f64(self) -> f64 {
                $to(self)
            }
            fn to_i64(self) -> Option<i64> {
                $whole(self)
            }
            fn from_f64(value: f64) -> Self {
                $from(value)
            }
        }
        impl Number for $t {}
    };
}

element!(f32, F32, f64::from, |_| None, |v: f64| v as f32);
element!(f16, F16, |v: f16| v.to_f64(), |_| None, |v: f64| f16::from_f32(to_odd(v)));
element!(bf16, Bf16, |v: bf16| v.to_f64(), |_| None, |v: f64| bf16::from_f32(to_odd(v)));
element!(f64, F64, |v: f64| v, |_| None, |v: f64| v);
element!(i32, I32, f64::from, |v: i32| Some(v.into()), |v: f64| v.round_ties_even() as i32);
element!(i64, I64, |v: i64| v as f64, Some, |v: f64| v.round_ties_even() as i64);
element!(i8, I8, f64::from, |v: i8| Some(v.into()), |v: f64| v.round_ties_even() as i8);
element!(u32, U32, f64::from, |v: u32| Some(v.into()), |v: f64| v.round_ties_even() as u32);
element!(u8, U8, f64::from, |v: u8| Some(v.into()), |v: f64| v.round_ties_even() as u8);

/// Converts `value` to an `f32` that a narrower type can be rounded from as if from `value` itself.
///
/// It is rounded to odd: an inexact value becomes the neighbour whose last bit is set, so that rounding can
/// neither create nor resolve a tie of the narrower type. (`half` goes through the nearest `f32`, which can.)
fn to_odd(value: f64) -> f32 {
    let nearest = value as f32;
    let exact = f64::from(nearest) == value || nearest.is_nan();
    if exact || nearest.to_bits() & 1 == 1 {
        return nearest;
    }
    // The neighbour on the other side of `value`; this also applies to infinity, whose last bit is 0.
    let away_from_zero = value.abs() > f64::from(nearest).abs();
    let bits = nearest.to_bits();
    f32::from_bits(if away_from_zero { bits + 1 } else { bits - 1 })
}

impl Real for f32 {}
impl Real for f16 {}
impl Real for bf16 {}
impl Real for f64 {}

impl Float for f32 {}
impl Float for f16 {}
impl Float for bf16 {}

impl Integer for i32 {}
impl Integer for i64 {}
impl Integer for i8 {}
impl Integer for u32 {}
impl Integer for u8 {}

impl sealed::Sealed for bool {}
impl Element for bool {
    const DTYPE: DType = DType::Bool;
    type Repr = u8;
    fn to_repr(self) -> u8 {
        u8::from(self)
    }
    fn from_repr(repr: u8) -> Self {
        repr != 0
    }
    fn to_f64(self) -> f64 {
        f64::from(u8::from(self))
    }
    fn to_i64(self) -> Option<i64> {
        Some(self.into())
    }
    fn from_f64(value: f64) -> Self {
        value != 0.0
    }
}

/// Returns the values as bytes in the layout of device memory.
pub(crate) fn to_bytes<T: Element>(values: &[T]) -> Vec<u8> {
    let reprs: Vec<T::Repr> = values.iter().map(|v| v.to_repr()).collect();
    bytemuck::cast_slice(&reprs).to_vec()
}

/// Returns bytes of device memory as values. The length of `bytes` must be a whole number of elements.
pub(crate) fn from_bytes<T: Element>(bytes: &[u8]) -> Vec<T> {
    let size = T::DTYPE.size();
    bytes.chunks_exact(size).map(|chunk| T::from_repr(bytemuck::pod_read_unaligned(chunk))).collect()
}

/// One scalar of the packed host block: sixteen bytes, the value first, zeros after it.
///
/// All slots have the same size, so the block is `Pod` for any mix of element types.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C, align(16))]
pub(crate) struct HostSlot([u8; 16]);

impl HostSlot {
    /// Creates a slot that holds `value`.
    pub(crate) fn of<T: Element>(value: T) -> Self {
        let repr = value.to_repr();
        let bytes = bytemuck::bytes_of(&repr);
        let mut slot = [0; 16];
        slot[..bytes.len()].copy_from_slice(bytes);
        Self(slot)
    }

    /// Returns the value, read as a `T`.
    #[cfg(test)]
    fn get<T: Element>(self) -> T {
        T::from_repr(bytemuck::pod_read_unaligned(&self.0[..T::DTYPE.size()]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_keep_their_value() {
        let block = [HostSlot::of(2.5f32), HostSlot::of(3u32)];
        let bytes = bytemuck::bytes_of(&block);
        assert_eq!(bytes.len(), 32);
        assert_eq!((&bytes[..4], &bytes[16..20]), (&2.5f32.to_le_bytes()[..], &3u32.to_le_bytes()[..]));
        assert_eq!(HostSlot::of(-3i32).get::<i32>(), -3);
        assert!(HostSlot::of(true).get::<bool>());
        assert_eq!(HostSlot::of(bf16::from_f32(1.5)).get::<bf16>(), bf16::from_f32(1.5));
        assert_eq!(HostSlot::of(i64::MIN + 1).get::<i64>(), i64::MIN + 1);
        assert_eq!(HostSlot::of(0.1f64).get::<f64>(), 0.1);
        assert_eq!(HostSlot::of(-3i8).get::<i8>(), -3);
    }

    #[test]
    fn halves_round_once() {
        // Just above, at and just below ties: through the nearest f32 the rest is lost.
        let bits = |p: i32| f64::powi(2.0, p);
        for (tie, down, up) in
            [(1.0 + bits(-8), 1.0, 1.0 + bits(-7)), (1.0 + 3.0 * bits(-8), 1.0 + bits(-7), 1.0 + bits(-6))]
        {
            let even = if down == 1.0 { down } else { up };
            for sign in [1.0, -1.0] {
                let of = |v: f64| <bf16 as Element>::from_f64(sign * v).to_f64() * sign;
                assert_eq!([of(tie - 1e-12), of(tie), of(tie + 1e-12)], [down, even, up]);
            }
        }
        for (tie, down, up) in [(1.0 + bits(-11), 1.0, 1.0 + bits(-10)), (65520.0, 65504.0, f64::INFINITY)] {
            let even = if down == 1.0 { down } else { up };
            let of = |v: f64| <f16 as Element>::from_f64(v).to_f64();
            assert_eq!([of(tie - 1e-10), of(tie), of(tie + 1e-10)], [down, even, up]);
        }
        assert_eq!(<f16 as Element>::from_f64(bits(-25)).to_f64(), 0.0, "a tie with the smallest");
        assert_eq!(<f16 as Element>::from_f64(bits(-25) + bits(-70)).to_f64(), bits(-24));
        assert_eq!(<f16 as Element>::from_f64(-0.0).to_bits(), 0x8000);
        assert_eq!(<f16 as Element>::from_f64(1e-320).to_bits(), 0);
        assert_eq!(<f16 as Element>::from_f64(-1e-320).to_bits(), 0x8000);
        assert_eq!(<bf16 as Element>::from_f64(1e300), bf16::INFINITY);
        assert_eq!(<bf16 as Element>::from_f64(f64::NEG_INFINITY), bf16::NEG_INFINITY);
        assert!(<f16 as Element>::from_f64(f64::NAN).is_nan());
    }

    /// Every value of both types is its own nearest, and halfway points between neighbours go to even.
    #[test]
    fn halves_are_exact_everywhere() {
        fn check<T: Element>(values: impl Iterator<Item = (T, T)>) {
            for (a, b) in values {
                let (x, y) = (a.to_f64(), b.to_f64());
                assert_eq!(T::from_f64(x).to_f64().to_bits(), x.to_bits());
                let mid = (x + y) / 2.0;
                let near = |v: f64| T::from_f64(v).to_f64();
                assert_eq!((near(mid.next_down()), near(mid.next_up())), (x, y), "{x} {y}");
                assert!(near(mid) == x || near(mid) == y);
            }
        }
        check((0..0x7bff).map(|b| (f16::from_bits(b), f16::from_bits(b + 1))));
        check((0..0x7f7f).map(|b| (bf16::from_bits(b), bf16::from_bits(b + 1))));
    }

    #[test]
    fn integers_round_to_nearest() {
        assert_eq!([0.5, 1.5, 2.5, -0.5, -1.5, 1.9, -1.9].map(i32::from_f64), [0, 2, 2, 0, -2, 2, -2]);
        assert_eq!([0.5, 1.5, 254.6, 300.0, -3.0].map(u8::from_f64), [0, 2, 255, 255, 0]);
        assert_eq!([4294967294.5, 1e300, f64::NAN, -0.7].map(u32::from_f64), [u32::MAX - 1, u32::MAX, 0, 0]);
        assert_eq!([1e300, -1e300, f64::NAN, -2.5].map(i64::from_f64), [i64::MAX, i64::MIN, 0, -2]);
        assert_eq!([127.6, -128.6, f64::NAN, -2.5].map(i8::from_f64), [127, -128, 0, -2]);
    }

    #[test]
    fn every_integer_has_an_exact_number_for_the_host() {
        for value in [i64::MIN, i64::MIN + 1, -1, 0, (1 << 53) + 1, i64::MAX - 1, i64::MAX] {
            assert_eq!(Element::to_i64(value), Some(value));
        }
        assert_eq!(((1i64 << 53) + 1).to_f64(), f64::powi(2.0, 53), "the nearest, ties to even");
        assert_eq!(
            (true.to_i64(), u32::MAX.to_i64(), (-1i8).to_i64()),
            (Some(1), Some(4_294_967_295), Some(-1))
        );
        assert_eq!((1.0f64.to_i64(), bf16::ONE.to_i64()), (None, None));
    }

    #[test]
    fn bytes_round_trip() {
        assert_eq!(from_bytes::<bool>(&to_bytes(&[true, false])), [true, false]);
        assert_eq!(from_bytes::<f32>(&to_bytes(&[1.0f32, -2.5])), [1.0, -2.5]);
        assert_eq!(to_bytes(&[f16::from_f32(1.0)]).len(), 2);
    }
}

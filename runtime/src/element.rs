//! Element types of device memory.

use std::fmt;

use bytemuck::{Pod, Zeroable};
use half::{bf16, f16};

/// The element type of a tensor, as a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
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
}

impl DType {
    /// Bytes of one element.
    pub const fn size(self) -> usize {
        match self {
            Self::F32 | Self::I32 | Self::U32 => 4,
            Self::F16 | Self::Bf16 => 2,
            Self::U8 | Self::Bool => 1,
        }
    }

    /// Whether the type is one of the floating-point types.
    pub const fn is_float(self) -> bool {
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
        })
    }
}

mod sealed {
    pub trait Sealed {}
}

/// A Rust type that can be an element of a [`Tensor`](crate::Tensor).
///
/// Implemented for `f32`, `f16`, `bf16`, `i32`, `u32`, `u8` and `bool`, and by nothing else.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an element type",
    label = "not an element type",
    note = "elements are f32, f16, bf16, i32, u32, u8 and bool"
)]
pub trait Element: sealed::Sealed + Copy + Send + Sync + fmt::Debug + PartialEq + 'static {
    /// The value-level name of this type.
    const DTYPE: DType;
    /// The plain-data form in device memory: the type itself, and `u8` for `bool`.
    type Repr: Pod;
    /// To the form in memory.
    fn to_repr(self) -> Self::Repr;
    /// From the form in memory; any non-zero byte is `true`.
    fn from_repr(repr: Self::Repr) -> Self;
    /// The value as `f64`; exact for every element type.
    fn to_f64(self) -> f64;
    /// The nearest value to `value` (rounded to nearest even; integers saturate; `bool` is `value != 0`).
    fn from_f64(value: f64) -> Self;
}

/// Elements with arithmetic: every element type but `bool`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no arithmetic on the device",
    label = "`f32`, `f16`, `bf16`, `i32`, `u32` or `u8` is needed here",
    note = "cast it first: `ops::cast::<_, f32>(&t)?`"
)]
pub trait Number: Element {}

/// Floating-point elements: `f32`, `f16`, `bf16`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a floating-point element",
    label = "`f32`, `f16` or `bf16` is needed here",
    note = "cast it first: `ops::cast::<_, f32>(&t)?`"
)]
pub trait Float: Number {}

macro_rules! element {
    ($t:ty, $d:ident, $to:expr, $from:expr) => {
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
            fn from_f64(value: f64) -> Self {
                $from(value)
            }
        }
        impl Number for $t {}
    };
}

element!(f32, F32, |v: f32| f64::from(v), |v: f64| v as f32);
element!(f16, F16, |v: f16| v.to_f64(), |v: f64| f16::from_f64(v));
element!(bf16, Bf16, |v: bf16| v.to_f64(), |v: f64| bf16::from_f64(v));
element!(i32, I32, |v: i32| f64::from(v), |v: f64| v as i32);
element!(u32, U32, |v: u32| f64::from(v), |v: f64| v as u32);
element!(u8, U8, |v: u8| f64::from(v), |v: f64| v as u8);

impl Float for f32 {}
impl Float for f16 {}
impl Float for bf16 {}

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
    fn from_f64(value: f64) -> Self {
        value != 0.0
    }
}

/// Values as the bytes that device memory holds.
pub(crate) fn to_bytes<T: Element>(values: &[T]) -> Vec<u8> {
    let reprs: Vec<T::Repr> = values.iter().map(|v| v.to_repr()).collect();
    bytemuck::cast_slice(&reprs).to_vec()
}

/// Bytes of device memory as values. `bytes` must be a whole number of elements.
pub(crate) fn from_bytes<T: Element>(bytes: &[u8]) -> Vec<T> {
    let size = T::DTYPE.size();
    bytes.chunks_exact(size).map(|chunk| T::from_repr(bytemuck::pod_read_unaligned(chunk))).collect()
}

/// One scalar of the packed host block: sixteen bytes, the value first, zeros after it.
///
/// Every slot has one size, so that the block is `Pod` whatever the mix of element types.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C, align(16))]
pub struct HostSlot([u8; 16]);

impl HostSlot {
    /// A slot that holds `value`.
    pub fn of<T: Element>(value: T) -> Self {
        let repr = value.to_repr();
        let bytes = bytemuck::bytes_of(&repr);
        let mut slot = [0; 16];
        slot[..bytes.len()].copy_from_slice(bytes);
        Self(slot)
    }

    /// The value, read as a `T`.
    pub fn get<T: Element>(self) -> T {
        T::from_repr(bytemuck::pod_read_unaligned(&self.0[..T::DTYPE.size()]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_keep_their_value() {
        assert_eq!(HostSlot::of(-3i32).get::<i32>(), -3);
        assert!(HostSlot::of(true).get::<bool>());
        assert_eq!(HostSlot::of(bf16::from_f32(1.5)).get::<bf16>(), bf16::from_f32(1.5));
    }

    #[test]
    fn bytes_round_trip() {
        assert_eq!(from_bytes::<bool>(&to_bytes(&[true, false])), [true, false]);
        assert_eq!(from_bytes::<f32>(&to_bytes(&[1.0f32, -2.5])), [1.0, -2.5]);
        assert_eq!(to_bytes(&[f16::from_f32(1.0)]).len(), 2);
    }
}

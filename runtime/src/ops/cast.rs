//! Conversion between element types.

use super::launch::compute;
use crate::{
    DType, Element, Result, Tensor,
    backend::Op,
    kernel::definition::{Definition, Kernel as _},
};

/// Kernels from one type to another that is computed in.
macro_rules! casts {
    ($($module:ident($x:ident: $from:ident) -> $to:ident { $($value:tt)* })*) => {$(
        mod $module {
            use crate::kernel;

            #[kernel]
            pub(super) fn cast($x: $from) -> $to {
                $($value)*
            }
        }
    )*};
}

casts! {
    f32_to_f32(x: f32) -> f32 { x }
    f32_to_i32(x: f32) -> i32 { x as i32 }
    f32_to_u32(x: f32) -> u32 { x as u32 }
    f32_to_u8(x: f32) -> u8 { x as u8 }
    f32_to_bool(x: f32) -> bool { x != 0.0 }
    i32_to_f32(x: i32) -> f32 { x as f32 }
    u32_to_f32(x: u32) -> f32 { x as f32 }
    u8_to_f32(x: u8) -> f32 { x as f32 }
    bits_to_bits(x: u32) -> u32 { x }
    bits_to_u8(x: u32) -> u8 { x as u8 }
    bits_to_bool(x: u32) -> bool { x != 0 }
    u8_to_bits(x: u8) -> u32 { x as u32 }
    u8_to_u8(x: u8) -> u8 { x }
    u8_to_bool(x: u8) -> bool { x != 0 }
    f32_to_f64(x: f32) -> f64 { x as f64 }
    f32_to_i64(x: f32) -> i64 { x as i64 }
    f32_to_i8(x: f32) -> i8 { x as i8 }
    f64_to_f32(x: f64) -> f32 { x as f32 }
    f64_to_i32(x: f64) -> i32 { x as i32 }
    f64_to_i64(x: f64) -> i64 { x as i64 }
    f64_to_i8(x: f64) -> i8 { x as i8 }
    f64_to_u32(x: f64) -> u32 { x as u32 }
    f64_to_u8(x: f64) -> u8 { x as u8 }
    f64_to_bool(x: f64) -> bool { x != 0.0 }
    i32_to_f64(x: i32) -> f64 { x as f64 }
    u32_to_f64(x: u32) -> f64 { x as f64 }
    u8_to_f64(x: u8) -> f64 { x as f64 }
    i8_to_f64(x: i8) -> f64 { x as f64 }
    i8_to_f32(x: i8) -> f32 { x as f32 }
    i64_to_f64(x: i64) -> f64 { x as f64 }
    i64_to_f32(x: i64) -> f32 { x as f32 }
    i32_to_i64(x: i32) -> i64 { x as i64 }
    u32_to_i64(x: u32) -> i64 { x as i64 }
    u8_to_i64(x: u8) -> i64 { x as i64 }
    i8_to_i64(x: i8) -> i64 { x as i64 }
    i8_to_i32(x: i8) -> i32 { x as i32 }
    i64_to_bits(x: i64) -> u32 { x as u32 }
    i64_to_u8(x: i64) -> u8 { x as u8 }
    i64_to_bool(x: i64) -> bool { x != 0 }
    moved_8(x: i64) -> i64 { x }
}

/// Kernels from integers to floats of 16 bits, whose elements are rounded twice: here to odd where an f32 cannot hold
/// them, which keeps what the second rounding depends on.
macro_rules! casts_to_half {
    ($($module:ident($x:ident: $t:ident) if $fits:expr;)*) => {$(
        mod $module {
            use crate::kernel;

            #[kernel]
            pub(super) fn cast($x: $t) -> f32 {
                // Of the two multiples of 256 around it the odd one.
                let whole = $x & !0xff;
                let odd = if whole == $x { $x } else { whole | 0x100 };
                (if $fits { $x } else { odd }) as f32
            }
        }
    )*};
}

casts_to_half! {
    i32_to_half(x: i32) if x >= -0x100_0000 && x <= 0x100_0000;
    u32_to_half(x: u32) if x <= 0x100_0000;
}

/// Kernels from types of 64 bits to floats of 16 bits, likewise.
mod to_half {
    use crate::kernel;

    /// For a value that an f32 cannot hold, returns the one of the two around it whose last bit is set.
    #[kernel]
    pub(super) fn of_f64(x: f64) -> f32 {
        let near = x as f32;
        let back = near as f64;
        let bits = near.to_bits();
        if back == x || x != x || bits & 1 == 1 {
            near
        } else if back.abs() > x.abs() {
            f32::from_bits(bits - 1)
        } else {
            f32::from_bits(bits + 1)
        }
    }

    /// Of the two numbers of 24 bits around it the odd one.
    #[kernel]
    pub(super) fn of_i64(x: i64) -> f32 {
        let size = if x < 0 { -x } else { x };
        let places = (40 - size.leading_zeros() as i32).max(0);
        let below = (1i64 << places) - 1;
        let whole = x & !below;
        (if whole == x { x } else { whole | (1i64 << places) }) as f32
    }
}

/// The kernel between two types. A `bool` is its byte, and integers of 32 bits are their bits where the sign is nothing.
fn kernel(from: DType, to: DType) -> &'static Definition {
    use DType::{Bf16, Bool, F16, F32, F64, I8, I32, I64, U8, U32};
    match (from, to) {
        (F64, F16 | Bf16) => to_half::of_f64::DEFINITION,
        (I64, F16 | Bf16) => to_half::of_i64::DEFINITION,
        (F32 | F16 | Bf16, F64) => f32_to_f64::cast::DEFINITION,
        (F32 | F16 | Bf16, I64) => f32_to_i64::cast::DEFINITION,
        (F32 | F16 | Bf16, I8) => f32_to_i8::cast::DEFINITION,
        (F64, F32) => f64_to_f32::cast::DEFINITION,
        (F64, I32) => f64_to_i32::cast::DEFINITION,
        (F64, I64) => f64_to_i64::cast::DEFINITION,
        (F64, I8) => f64_to_i8::cast::DEFINITION,
        (F64, U32) => f64_to_u32::cast::DEFINITION,
        (F64, U8) => f64_to_u8::cast::DEFINITION,
        (F64, Bool) => f64_to_bool::cast::DEFINITION,
        (I32, F64) => i32_to_f64::cast::DEFINITION,
        (U32, F64) => u32_to_f64::cast::DEFINITION,
        (U8 | Bool, F64) => u8_to_f64::cast::DEFINITION,
        (I8, F64) => i8_to_f64::cast::DEFINITION,
        (I8, F32 | F16 | Bf16) => i8_to_f32::cast::DEFINITION,
        (I64, F64) => i64_to_f64::cast::DEFINITION,
        (I64, F32) => i64_to_f32::cast::DEFINITION,
        (I32, I64) => i32_to_i64::cast::DEFINITION,
        (U32, I64) => u32_to_i64::cast::DEFINITION,
        (U8 | Bool, I64) => u8_to_i64::cast::DEFINITION,
        (I8, I64) => i8_to_i64::cast::DEFINITION,
        (I8, I32 | U32) => i8_to_i32::cast::DEFINITION,
        (I64, I32 | U32) => i64_to_bits::cast::DEFINITION,
        (I64, I8 | U8) => i64_to_u8::cast::DEFINITION,
        (I64, Bool) => i64_to_bool::cast::DEFINITION,
        (F64, F64) | (I64, I64) => moved_8::cast::DEFINITION,
        (I32 | U32, I8) => bits_to_u8::cast::DEFINITION,
        (I8, I8 | U8) | (U8 | Bool, I8) => u8_to_u8::cast::DEFINITION,
        (I8, Bool) => u8_to_bool::cast::DEFINITION,
        (F32 | F16 | Bf16, F32 | F16 | Bf16) => f32_to_f32::cast::DEFINITION,
        (F32 | F16 | Bf16, I32) => f32_to_i32::cast::DEFINITION,
        (F32 | F16 | Bf16, U32) => f32_to_u32::cast::DEFINITION,
        (F32 | F16 | Bf16, U8) => f32_to_u8::cast::DEFINITION,
        (F32 | F16 | Bf16, Bool) => f32_to_bool::cast::DEFINITION,
        (I32, F32) => i32_to_f32::cast::DEFINITION,
        (U32, F32) => u32_to_f32::cast::DEFINITION,
        (I32, F16 | Bf16) => i32_to_half::cast::DEFINITION,
        (U32, F16 | Bf16) => u32_to_half::cast::DEFINITION,
        (I32 | U32, I32 | U32) => bits_to_bits::cast::DEFINITION,
        (I32 | U32, U8) => bits_to_u8::cast::DEFINITION,
        (I32 | U32, Bool) => bits_to_bool::cast::DEFINITION,
        (U8 | Bool, F32 | F16 | Bf16) => u8_to_f32::cast::DEFINITION,
        (U8 | Bool, I32 | U32) => u8_to_bits::cast::DEFINITION,
        (U8 | Bool, U8) => u8_to_u8::cast::DEFINITION,
        (U8 | Bool, Bool) => u8_to_bool::cast::DEFINITION,
    }
}

/// Converts `x` to elements `U`: `ops::cast::<_, bf16>(&x)?`.
///
/// Corresponds to `torch.Tensor.to` with a dtype.
///
/// Conversions to floats round to nearest even; floats to integers truncate and saturate, and NaN becomes 0;
/// between integers the low bits are kept, as with `as`; anything to `bool` is `x != 0`. A cast to its own
/// type returns `x` itself, without a copy. The result has the shape and padding marks of `x`.
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let step = rt.step()?;
/// let x = step.tensor(&[3], &[1.9f32, -1.0, 300.0])?;
/// let y = ops::cast::<_, u8>(&x)?;
/// assert_eq!(step.read(&y)?, [1, 0, 255]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns only the errors of every operation (see [`ops`](crate::ops)).
pub fn cast<'s, T: Element, U: Element>(x: &Tensor<'s, T>) -> Result<Tensor<'s, U>> {
    if T::DTYPE == U::DTYPE {
        return Ok(Tensor::from_raw(x.rt, x.clone().into_raw()));
    }
    let op = Op::fixed(kernel(T::DTYPE, U::DTYPE));
    compute(x.scope(), op, &[x.view("cast")?], x.sizes(), x.raw.marks)
}

/// The kernels of this file, for CI to compile.
#[cfg(feature = "cuda")]
pub(super) fn kernels() -> impl Iterator<Item = &'static Definition> {
    use DType::{Bf16, Bool, F32, F64, I8, I32, I64, U8, U32};
    let types = [F32, Bf16, F64, I32, I64, I8, U32, U8, Bool];
    let mut all: Vec<&'static Definition> = Vec::new();
    for definition in types.into_iter().flat_map(|from| types.map(|to| kernel(from, to))) {
        if !all.iter().any(|known| known.id == definition.id) {
            all.push(definition);
        }
    }
    all.into_iter()
}

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

/// The kernel between two types. A `bool` is its byte, and integers of 32 bits are their bits where the sign is nothing.
fn kernel(from: DType, to: DType) -> &'static Definition {
    use DType::{Bf16, Bool, F16, F32, I32, U8, U32};
    match (from, to) {
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

/// `x` with elements `U`: `ops::cast::<_, bf16>(&x)?`.
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
    use DType::{Bf16, Bool, F32, I32, U8, U32};
    let types = [F32, Bf16, I32, U32, U8, Bool];
    types.into_iter().flat_map(move |from| types.map(|to| kernel(from, to)))
}

//! Sums of the elements up to each.

use super::lines::Lines;
#[cfg(feature = "cuda")]
use crate::kernel::definition::{Definition, Kernel as _};
use crate::{
    Number, Result, Tensor,
    kernel::call::Call,
    ops::{
        by_type::{ByType, each_type},
        cast,
    },
};

/// Elements that one pass adds.
const WIDTH: usize = 8;

/// Kernels that add to each element those at one to seven times a distance before it.
macro_rules! scans {
    ($($module:ident $t:ident $zero:literal;)*) => {$(
        mod $module {
            use crate::kernel;

            #[kernel(index)]
            pub(super) fn cumsum(x: View<$t, 2>, distance: i32, [row, i]: [i32; 2]) -> $t {
                let mut sum = $zero;
                for k in 0..8 {
                    sum += x.at_or([row, i - (7 - k) * distance], $zero);
                }
                sum
            }
        }
    )*};
}

scans! {
    f32s f32 0.0;
    i32s i32 0;
    u32s u32 0;
    u8s u8 0;
    f64s f64 0.0;
    i64s i64 0;
    i8s i8 0;
}

/// Returns the sum of the elements along `axis` up to each one, which is included.
///
/// Corresponds to `torch.cumsum` with `dim`.
///
/// Floats are added in f32, an `f64` in f64; integers wrap. The order in which they are added is the same on every device. The result has
/// the shape and padding marks of `x`; `axis` may be padded, as no sum depends on what is behind it.
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let step = rt.step()?;
/// let x = step.tensor(&[2, 2], &[1.0f32, 2.0, 3.0, 4.0])?;
/// assert_eq!(step.read(&ops::cumsum(&x, 1)?)?, [1.0, 3.0, 3.0, 7.0]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns [`Error::Axis`](crate::Error::Axis); [`Error::Shape`](crate::Error::Shape) if there are more than 2^30 elements along
/// `axis`.
pub fn cumsum<'s, T: Number>(x: &Tensor<'s, T>, axis: usize) -> Result<Tensor<'s, T>> {
    if T::DTYPE.is_computed_in_f32() {
        // Of 16 bits: not rounded between the passes.
        return cast(&scanned(&cast::<_, f32>(x)?, axis)?);
    }
    scanned(x, axis)
}

fn scanned<'s, T: Number>(x: &Tensor<'s, T>, axis: usize) -> Result<Tensor<'s, T>> {
    const OF: ByType = each_type!(f32s::cumsum);
    let (lines, mut sums) = Lines::with_padding("cumsum", x, axis)?;
    let mut distance = 1;
    while distance < lines.length {
        let mut call = Call::new(OF.of::<T>(), &sums)?;
        call.key(distance as i32);
        sums = call.launch_indexed([lines.count, lines.length])?;
        distance = distance.saturating_mul(WIDTH);
    }
    lines.restore(&sums)
}

/// The kernels of this file, for CI to compile.
#[cfg(feature = "cuda")]
pub(super) fn kernels() -> impl Iterator<Item = &'static Definition> {
    [f32s::cumsum::DEFINITION, i32s::cumsum::DEFINITION, u8s::cumsum::DEFINITION, f64s::cumsum::DEFINITION]
        .into_iter()
}

//! Conversion between element types.

use super::launch::compute;
use crate::{Element, Result, Tensor, backend::operations::CAST};

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
    compute(x.scope(), CAST, &[x.view("cast")?], x.sizes(), x.raw.marks)
}

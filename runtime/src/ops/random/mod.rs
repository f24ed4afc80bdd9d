//! Random numbers, drawn from a generator on the device.

use std::ops::Range;

use self::range::Bounds;
use super::{check::refuse, composed::composed, gather::gather, order::argsort, state};
#[cfg(feature = "cuda")]
use crate::kernel::definition::Definition;
use crate::{
    DType, Error, Float, Integer, IntoDim, IntoShape, Result, Rng, Scope, Tensor,
    kernel::{call::Call, definition::Kernel as _},
    value::layout::PaddedDims,
};

mod kernels;
mod range;

/// The kernels of this folder, for CI to compile: that which calls all others.
#[cfg(feature = "cuda")]
pub(super) fn kernels() -> impl Iterator<Item = &'static Definition> {
    [kernels::all::DEFINITION, kernels::further::DEFINITION].into_iter()
}

/// Returns a tensor of random numbers of `range`, all equally probable: PyTorch's `rand` and `uniform_`.
///
/// `rng` advances by one call. Of the 32 random bits of an element ([`Random::bits`](crate::Random::bits)), the upper
/// 24 (f16: 11, bf16: 8) are a multiple `u` of 2⁻²⁴ (2⁻¹¹, 2⁻⁸) in `[0, 1)`, and the result is `low + u * (high - low)`,
/// rounded, but never `high`. It is equal on every device, bit by bit. The ends of the range are rounded to `T`.
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// let rng = Rng::new(&rt, 7)?;
/// let step = rt.step()?;
/// let x = ops::uniform::<f32>(&rng, step.scope(), [2, 2], -1.0..1.0)?;
/// assert!(step.read(&x)?.iter().all(|v| (-1.0..1.0).contains(v)));
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns [`Error::Argument`] if the range is empty, or an end or its length is not finite;
/// [`Error::PaddedSize`] for a size computed from a padded one.
pub fn uniform<'s, T: Float>(
    rng: &Rng,
    scope: Scope<'s>,
    shape: impl IntoShape<'s>,
    range: Range<f32>,
) -> Result<Tensor<'s, T>> {
    let Bounds { low, span, largest } = Bounds::of::<T>("uniform", &range)?;
    let digits = range::digits::<T>();
    kernels::uniform::<T>(scope, rng, 32 - digits, 0.5f32.powi(digits as i32), low, span, largest, shape)
}

/// Returns a tensor of random numbers of the normal distribution: PyTorch's `randn` and `normal_`.
///
/// `rng` advances by one call. The numbers are [`Random::normal`](crate::Random::normal), in `f32`; devices differ by
/// the rounding of their logarithms and cosines.
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// let rng = Rng::new(&rt, 7)?;
/// let step = rt.step()?;
/// let x = ops::normal::<f32>(&rng, step.scope(), [1000], 5.0, 0.1)?;
/// let mean = step.item(&ops::mean(&x, 0)?)?;
/// assert!((4.9..5.1).contains(&mean));
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns [`Error::Argument`] if `mean` or `std` is not finite, or `std` is negative; [`Error::PaddedSize`] for a
/// size computed from a padded one.
pub fn normal<'s, T: Float>(
    rng: &Rng,
    scope: Scope<'s>,
    shape: impl IntoShape<'s>,
    mean: f32,
    std: f32,
) -> Result<Tensor<'s, T>> {
    if !mean.is_finite() || !std.is_finite() || std < 0.0 {
        let reason = format!("mean {mean}, std {std}; both must be finite, and std not negative");
        return Err(Error::Argument { op: "normal", reason });
    }
    kernels::normal::<T>(scope, rng, mean, std, shape)
}

/// Returns a tensor of random numbers of the exponential distribution with this rate: PyTorch's `exponential_`.
///
/// `rng` advances by one call. The numbers are [`Random::exponential`](crate::Random::exponential) divided by `rate`,
/// in `f32`: positive and finite before they are rounded to `T`.
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// let rng = Rng::new(&rt, 7)?;
/// let step = rt.step()?;
/// let x = ops::exponential::<f32>(&rng, step.scope(), [4], 2.0)?;
/// assert!(step.read(&x)?.iter().all(|v| *v > 0.0));
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns [`Error::Argument`] if `rate` is not between 1.4e-37 and 2.3e18, so that numbers of `f32` could be 0 or infinite (a
/// narrower `T` has a smaller range, to which they are rounded); [`Error::PaddedSize`] for a size computed from a padded one.
pub fn exponential<'s, T: Float>(
    rng: &Rng,
    scope: Scope<'s>,
    shape: impl IntoShape<'s>,
    rate: f32,
) -> Result<Tensor<'s, T>> {
    // Of 64 random bits, a number of mean 1 is between 2^-65 and 65 ln 2.
    const SMALLEST: f32 = 2.7e-20;
    const LARGEST: f32 = 45.5;
    let mean = rate.recip();
    if !(mean * SMALLEST >= f32::MIN_POSITIVE && (mean * LARGEST).is_finite()) {
        let reason =
            format!("rate {rate}; it must be between 1.4e-37 and 2.3e18, so that no number is 0 or infinite");
        return Err(Error::Argument { op: "exponential", reason });
    }
    kernels::exponential::<T>(scope, rng, mean, shape)
}

/// Returns a tensor of random numbers of the standard Gumbel distribution, all finite.
///
/// Corresponds to the noise of `torch.nn.functional.gumbel_softmax`.
///
/// `rng` advances by one call. The index of the largest element of logits plus such numbers is a sample of the softmax
/// of the logits, which this example draws for two rows.
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// let rng = Rng::new(&rt, 7)?;
/// let step = rt.step()?;
/// let logits = step.tensor(&[2, 3], &[0.0f32, 50.0, 0.0, 0.0, 0.0, 50.0])?;
/// let noise = ops::gumbel(&rng, step.scope(), logits.shape())?;
/// let tokens = ops::argmax(&ops::add(&logits, &noise)?, 1)?;
/// assert_eq!(step.read(&tokens)?, [1, 2]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns [`Error::PaddedSize`] for a size computed from a padded one.
pub fn gumbel<'s, T: Float>(rng: &Rng, scope: Scope<'s>, shape: impl IntoShape<'s>) -> Result<Tensor<'s, T>> {
    kernels::gumbel::<T>(scope, rng, shape)
}

/// Returns a tensor of random whole numbers of `range`: PyTorch's `randint`.
///
/// Of a range of `n` numbers, all are equally probable, up to `n / 2⁶⁴` of their probability: at most 2⁻³² but for `i64`, where
/// some numbers of a range nearly as large as the type are twice as probable as others. The end of the range is not in it,
/// so the largest number of a type is never drawn.
///
/// `rng` advances by one call. The numbers are equal on every device.
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// let rng = Rng::new(&rt, 7)?;
/// let step = rt.step()?;
/// let x = ops::randint(&rng, step.scope(), [100], -1..2)?;
/// assert!(step.read(&x)?.iter().all(|v: &i32| (-1..2).contains(v)));
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns [`Error::Argument`] if the range is empty; [`Error::PaddedSize`] for a size computed from a padded one.
pub fn randint<'s, T: Integer>(
    rng: &Rng,
    scope: Scope<'s>,
    shape: impl IntoShape<'s>,
    range: Range<T>,
) -> Result<Tensor<'s, T>> {
    const NAME: &str = "randint";
    // Every integer has one.
    let [low, high] = [range.start, range.end].map(|end| end.to_i64().unwrap_or_default());
    if low >= high {
        return Err(Error::Argument { op: NAME, reason: format!("range {low}..{high}; it is empty") });
    }
    let kernel = match T::DTYPE {
        DType::I32 => kernels::i32s::DEFINITION,
        DType::U8 => kernels::u8s::DEFINITION,
        DType::I8 => kernels::i8s::DEFINITION,
        DType::I64 => kernels::i64s::DEFINITION,
        _ => kernels::u32s::DEFINITION,
    };
    let mut call = Call::within(kernel, scope);
    composed(NAME, || call.random(rng))?;
    match T::DTYPE {
        DType::I32 => call.key(low as i32),
        DType::U8 => call.key(low as u8),
        DType::I8 => call.key(low as i8),
        DType::I64 => call.key(low),
        _ => call.key(low as u32),
    }
    let span = high.wrapping_sub(low);
    match T::DTYPE {
        DType::I64 => call.key(span),
        // At most 2^32 - 1.
        _ => call.key(span as u32),
    }
    composed(NAME, || call.launch_shaped(shape))
}

/// Returns 1 with probability `p[i]`, otherwise 0, with the shape and padding marks of `p`: PyTorch's `bernoulli`.
///
/// `rng` advances by one call. An element is 1 if [`Random::uniform`](crate::Random::uniform) is below its probability:
/// never for NaN and numbers up to 0, always from 1 on. The result is equal on every device.
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// let rng = Rng::new(&rt, 7)?;
/// let step = rt.step()?;
/// let x = ops::bernoulli(&rng, &step.tensor(&[2], &[0.0f32, 1.0])?)?;
/// assert_eq!(step.read(&x)?, [0.0, 1.0]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns only the errors of every operation (see [`ops`](crate::ops)).
pub fn bernoulli<'s, T: Float>(rng: &Rng, p: &Tensor<'s, T>) -> Result<Tensor<'s, T>> {
    let mut call = Call::new(kernels::bernoulli::DEFINITION, p)?;
    call.random(rng)?;
    call.launch()
}

/// Replaces elements by 0 with probability `p`, and divides the others by `1 - p`: PyTorch's `dropout` while it trains.
///
/// `rng` advances by one call, also if `p` is 0 and nothing changes. A dropped element is 0 whatever it was, where
/// PyTorch keeps NaN. Same shape and padding marks as `x`; the result is equal on every device.
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// let rng = Rng::new(&rt, 7)?;
/// let step = rt.step()?;
/// let x = step.tensor(&[100], &[1.0f32; 100])?;
/// let y = step.read(&ops::dropout(&rng, &x, 0.5)?)?;
/// assert!(y.contains(&0.0) && y.contains(&2.0) && y.iter().all(|v| [0.0, 2.0].contains(v)));
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns [`Error::Argument`] if `p` is not a number of `[0, 1]`.
pub fn dropout<'s, T: Float>(rng: &Rng, x: &Tensor<'s, T>, p: f32) -> Result<Tensor<'s, T>> {
    if !(0.0..=1.0).contains(&p) {
        return Err(Error::Argument { op: "dropout", reason: format!("p is {p}; it must be in [0, 1]") });
    }
    // Of p = 1 nothing is left to be scaled.
    let scale = if p < 1.0 { (1.0 - p).recip() } else { 0.0 };
    let mut call = Call::new(kernels::dropout::DEFINITION, x)?;
    call.random(rng)?;
    call.key(p);
    call.key(scale);
    call.launch()
}

/// Returns the numbers `0 .. n` in a random order, all orders equally probable: PyTorch's `randperm`.
///
/// `rng` advances by one call. The order is that of 64 random bits for each number, so it is equal on every device.
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// let rng = Rng::new(&rt, 7)?;
/// let step = rt.step()?;
/// let order = step.read(&ops::randperm(&rng, step.scope(), 5)?)?;
/// assert!((0..5).all(|n| order.contains(&n)));
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns [`Error::PaddedMix`] if `n` is a padded size, whose real one the order would depend on, and
/// [`Error::PaddedSize`] for a size computed from a padded one.
pub fn randperm<'s>(rng: &Rng, scope: Scope<'s>, n: impl IntoDim<'s>) -> Result<Tensor<'s, u32>> {
    const NAME: &str = "randperm";
    let n = scope.resolve_dim(NAME, n.into_dim())?;
    refuse(NAME, scope, PaddedDims::NONE.with(0, n.symbol), [0])?;
    composed(NAME, || {
        let (first, second) = kernels::bits(scope, rng, [n.size])?;
        // By the second words, and then, stably, by the first.
        let order = argsort(&second, 0, false)?;
        let last = argsort(&gather(&first, 0, &order)?, 0, false)?;
        gather(&order, 0, &last)
    })
}

/// Returns a copy of the state of `rng`, in the order of the calls: `[4]`, the words of the seed and of the counter, lower
/// ones first.
///
/// Corresponds to `torch.Generator.get_state`.
///
/// With [`set_rng_state`], a segment can go back to it, for example where a condition on the device decides whether its
/// calls count. On the host, use [`Rng::save`].
///
/// ```
/// use graphable::prelude::*;
///
/// /// A number, which is drawn again by the next call unless `counts` is set.
/// #[graphable]
/// fn maybe(counts: &Tensor<bool>, rng: &Rng) -> Result<Tensor<f32>> {
///     let before = ops::rng_state(rng, counts.scope())?;
///     let x = ops::uniform(rng, counts.scope(), (), 0.0..1.0)?;
///     let after = ops::rng_state(rng, counts.scope())?;
///     ops::set_rng_state(rng, &ops::where_(counts, &after, &before)?)?;
///     Ok(x)
/// }
///
/// # fn main() -> Result<()> {
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let rng = Rng::new(&rt, 7)?;
/// # let graph = MaybeGraph::builder().build(&mut rt)?;
/// let mut seen = Vec::new();
/// for counts in [false, true, true] {
///     let step = rt.step()?;
///     seen.push(step.item(&graph.call(&step, &step.tensor([1], &[counts])?, &rng)?)?);
/// }
/// assert_eq!(seen[0], seen[1]);
/// assert_ne!(seen[1], seen[2]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Returns only the errors of every operation (see [`ops`](crate::ops)).
pub fn rng_state<'s>(rng: &Rng, scope: Scope<'s>) -> Result<Tensor<'s, u32>> {
    composed("rng_state", || state::load(scope, &rng.state))
}

/// Overwrites the state of `rng` with one that [`rng_state`] returned.
///
/// Corresponds to `torch.Generator.set_state`.
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// let (from, to) = (Rng::new(&rt, 7)?, Rng::new(&rt, 8)?);
/// let step = rt.step()?;
/// ops::set_rng_state(&to, &ops::rng_state(&from, step.scope())?)?;
/// assert_eq!(to.save(&step)?, from.save(&step)?);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns [`Error::Shape`] if it is not of four elements, and [`Error::PaddedMix`] if it is padded.
pub fn set_rng_state<'s>(rng: &Rng, state: &Tensor<'s, u32>) -> Result<()> {
    composed("set_rng_state", || state::store(&rng.state, state))
}

//! The changes of logits before one is chosen.

use std::ops::RangeInclusive;

use super::{kernels::of, per_row::PerRow};
use crate::{
    AsOperand, Error, Result, Tensor,
    kernel::{
        call::Call,
        definition::{Definition, Kernel as _},
    },
    ops::composed::composed,
};

/// Makes tokens that were `seen` less likely: their logits are divided by `penalty` if positive, and multiplied if not.
///
/// `logits` is `[.., V]`, `seen` is `[.., V]` or has fewer leading dimensions, for all of which it counts, and `penalty` is [one value for each row](PerRow): above 1, repetitions
/// become rarer, and 1 changes nothing. A value on the device that is not positive and finite counts as 1. This is the
/// repetition penalty of transformers and vLLM, which count the tokens of the prompt as seen. Padding of the rows propagates.
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let step = rt.step()?;
/// let logits = step.tensor(&[3], &[4.0f32, -4.0, 1.0])?;
/// let seen = step.tensor(&[3], &[true, true, false])?;
/// let y = ops::apply_repetition_penalty(&logits, &seen, 2.0)?;
/// assert_eq!(step.read(&y)?, [2.0, -8.0, 1.0]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns [`Error::Argument`] if the penalty is a number that is not positive and finite; [`Error::Shape`] if the shapes do
/// not fit; [`Error::PaddedMix`] if `V` is padded, or one dimension is by different symbols.
pub fn apply_repetition_penalty<'a, 's: 'a>(
    logits: &Tensor<'s, f32>,
    seen: &(impl AsOperand<'s, bool> + ?Sized),
    penalty: impl Into<PerRow<'a, 's, f32>>,
) -> Result<Tensor<'s, f32>> {
    let penalty = penalty.into();
    check_repetition_penalty("apply_repetition_penalty", penalty)?;
    composed("apply_repetition_penalty", || {
        penalized(of::repetition_penalty::DEFINITION, logits, seen, penalty)
    })
}

/// Makes tokens that were `seen` less likely: `penalty` is subtracted from their logits.
///
/// `logits` is `[.., V]`, `seen` is `[.., V]` or has fewer leading dimensions, for all of which it counts, and `penalty` is [one value for each row](PerRow); 0 changes nothing. A
/// value on the device that is not finite counts as 0. This is the presence penalty of vLLM, for which only the tokens of
/// the answer count as seen. Padding of the rows propagates.
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let step = rt.step()?;
/// let logits = step.tensor(&[3], &[4.0f32, -4.0, 1.0])?;
/// let seen = step.tensor(&[3], &[true, true, false])?;
/// let y = ops::apply_presence_penalty(&logits, &seen, 0.5)?;
/// assert_eq!(step.read(&y)?, [3.5, -4.5, 1.0]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns [`Error::Argument`] if the penalty is a number that is not finite; [`Error::Shape`] if the shapes do not fit;
/// [`Error::PaddedMix`] if `V` is padded, or one dimension is by different symbols.
pub fn apply_presence_penalty<'a, 's: 'a>(
    logits: &Tensor<'s, f32>,
    seen: &(impl AsOperand<'s, bool> + ?Sized),
    penalty: impl Into<PerRow<'a, 's, f32>>,
) -> Result<Tensor<'s, f32>> {
    let penalty = penalty.into();
    check_presence_penalty("apply_presence_penalty", penalty)?;
    composed("apply_presence_penalty", || penalized(of::presence_penalty::DEFINITION, logits, seen, penalty))
}

/// Divides logits, less the largest of their row, by `temperature`: below 1, likely tokens become likelier.
///
/// Corresponds to `TemperatureLogitsWarper` of `transformers`.
///
/// `logits` is `[.., V]`, and `temperature` is [one value for each row](PerRow). To subtract the largest changes no probability, and
/// keeps small temperatures from overflowing. At temperature 0, only the first of the largest logits is left, and all others
/// are `-inf`; so are rows on the device whose temperature is negative or NaN. NaN counts as `-inf`. Padding of the rows
/// propagates.
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let step = rt.step()?;
/// let logits = step.tensor(&[2, 3], &[1.0f32, 3.0, 3.0, 1.0, 3.0, 3.0])?;
/// let temperatures = step.tensor(&[2], &[0.5f32, 0.0])?;
/// let y = ops::apply_temperature(&logits, &temperatures)?;
/// let none = f32::NEG_INFINITY;
/// assert_eq!(step.read(&y)?, [-4.0, 0.0, 0.0, none, 0.0, none]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns [`Error::Argument`] if the temperature is a number that is negative or not finite; [`Error::Shape`] if the shapes
/// do not fit; [`Error::PaddedMix`] if `V` is padded, or one dimension is by different symbols.
pub fn apply_temperature<'a, 's: 'a>(
    logits: &Tensor<'s, f32>,
    temperature: impl Into<PerRow<'a, 's, f32>>,
) -> Result<Tensor<'s, f32>> {
    let temperature = temperature.into();
    check_temperature("apply_temperature", temperature)?;
    composed("apply_temperature", || {
        let (max, best): (Tensor<'s, f32>, Tensor<'s, u32>) =
            Call::new(of::best::DEFINITION, logits)?.launch_rows()?;
        let mut call = Call::new(of::temperature::DEFINITION, logits)?;
        call.argument(temperature)?;
        call.argument::<f32>(&max)?;
        call.argument::<u32>(&best)?;
        call.launch_rows()
    })
}

/// Keeps the `k` largest logits of each row; the others become `-inf`.
///
/// `logits` is `[.., V]`, and `k` is [one value for each row](PerRow); 0, and any number from `V` on, keeps all. Logits that
/// equal the smallest of them are kept as well, as in transformers and vLLM. NaN counts as `-inf`. Padding of the rows
/// propagates.
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let step = rt.step()?;
/// let logits = step.tensor(&[2, 3], &[1.0f32, 3.0, 2.0, 1.0, 3.0, 2.0])?;
/// let y = ops::apply_top_k(&logits, &step.tensor(&[2], &[2u32, 0])?)?;
/// assert_eq!(step.read(&y)?, [f32::NEG_INFINITY, 3.0, 2.0, 1.0, 3.0, 2.0]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns [`Error::Shape`] if the shapes do not fit; [`Error::PaddedMix`] if `V` is padded, or one dimension is by different
/// symbols.
pub fn apply_top_k<'a, 's: 'a>(
    logits: &Tensor<'s, f32>,
    k: impl Into<PerRow<'a, 's, u32>>,
) -> Result<Tensor<'s, f32>> {
    composed("apply_top_k", || {
        let mut call = Call::new(of::top_k::DEFINITION, logits)?;
        call.argument(k.into())?;
        call.launch_rows()
    })
}

/// Keeps the most likely tokens of each row that together have at least the probability `p`; the logits of the
/// others become `-inf`.
///
/// `logits` is `[.., V]`, and `p` is [one value for each row](PerRow); from 1 on, it keeps all, as NaN does, and the most
/// likely token is always kept. As in transformers and vLLM, a token is kept if those that are more likely do not have `p`
/// together, so that the last one exceeds it. Tokens of the same probability are kept or not together, and those less likely
/// than the most likely one by a factor of more than 2^126 have none. NaN counts as `-inf`. Padding of the rows propagates.
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let step = rt.step()?;
/// // Probabilities 1/2, 1/4 and 1/4; then 1/5, 3/5 and 1/5.
/// let logits = step.tensor(&[2, 3], &[2f32.ln(), 0.0, 0.0, 0.0, 3f32.ln(), 0.0])?;
/// let y = ops::apply_top_p(&logits, &step.tensor(&[2], &[0.6f32, 0.5])?)?;
/// let none = f32::NEG_INFINITY;
/// assert_eq!(step.read(&y)?, [2f32.ln(), 0.0, 0.0, none, 3f32.ln(), none]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns [`Error::Argument`] if `p` is a number that is not from 0 to 1; [`Error::Shape`] if the shapes do not fit;
/// [`Error::PaddedMix`] if `V` is padded, or one dimension is by different symbols.
pub fn apply_top_p<'a, 's: 'a>(
    logits: &Tensor<'s, f32>,
    p: impl Into<PerRow<'a, 's, f32>>,
) -> Result<Tensor<'s, f32>> {
    let p = p.into();
    check_part("apply_top_p", "top_p", p)?;
    composed("apply_top_p", || filtered(of::top_p::DEFINITION, logits, p))
}

/// Keeps the tokens of each row that are at least `p` times as likely as the most likely one; the logits of the others become
/// `-inf`.
///
/// `logits` is `[.., V]`, and `p` is [one value for each row](PerRow); up to 0, it keeps all, as NaN does, and the most likely
/// token is always kept. As in transformers and vLLM. NaN counts as `-inf`. Padding of the rows propagates.
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let step = rt.step()?;
/// let logits = step.tensor(&[3], &[0.0f32, -1.0, -2.0])?;
/// let y = ops::apply_min_p(&logits, 0.2)?;
/// assert_eq!(step.read(&y)?, [0.0, -1.0, f32::NEG_INFINITY]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns [`Error::Argument`] if `p` is a number that is not from 0 to 1; [`Error::Shape`] if the shapes do not fit;
/// [`Error::PaddedMix`] if `V` is padded, or one dimension is by different symbols.
pub fn apply_min_p<'a, 's: 'a>(
    logits: &Tensor<'s, f32>,
    p: impl Into<PerRow<'a, 's, f32>>,
) -> Result<Tensor<'s, f32>> {
    let p = p.into();
    check_part("apply_min_p", "min_p", p)?;
    composed("apply_min_p", || filtered(of::min_p::DEFINITION, logits, p))
}

/// A kernel of logits and one parameter.
fn filtered<'s>(
    definition: &'static Definition,
    logits: &Tensor<'s, f32>,
    parameter: PerRow<'_, 's, f32>,
) -> Result<Tensor<'s, f32>> {
    let mut call = Call::new(definition, logits)?;
    call.argument(parameter)?;
    call.launch_rows()
}

fn penalized<'s>(
    definition: &'static Definition,
    logits: &Tensor<'s, f32>,
    seen: &(impl AsOperand<'s, bool> + ?Sized),
    penalty: PerRow<'_, 's, f32>,
) -> Result<Tensor<'s, f32>> {
    let mut call = Call::new(definition, logits)?;
    call.argument::<bool>(seen)?;
    call.argument(penalty)?;
    call.launch_rows()
}

pub(super) fn check_temperature(op: &'static str, value: PerRow<'_, '_, f32>) -> Result<()> {
    check(op, "temperature", value, |t| t >= 0.0 && t.is_finite(), "a finite number from 0")
}

pub(super) fn check_part(op: &'static str, name: &str, value: PerRow<'_, '_, f32>) -> Result<()> {
    const ALL: RangeInclusive<f32> = 0.0..=1.0;
    check(op, name, value, |p| ALL.contains(&p), "from 0 to 1")
}

pub(super) fn check_repetition_penalty(op: &'static str, value: PerRow<'_, '_, f32>) -> Result<()> {
    check(op, "repetition_penalty", value, |p| p > 0.0 && p.is_finite(), "a finite number above 0")
}

pub(super) fn check_presence_penalty(op: &'static str, value: PerRow<'_, '_, f32>) -> Result<()> {
    check(op, "presence_penalty", value, f32::is_finite, "a finite number")
}

/// Checks a number; what is on the device has a meaning whatever it is.
fn check(
    op: &'static str,
    name: &str,
    value: PerRow<'_, '_, f32>,
    is_valid: impl Fn(f32) -> bool,
    valid: &str,
) -> Result<()> {
    match value.number() {
        Some(number) if !is_valid(number) => {
            Err(Error::Argument { op, reason: format!("{name} is {number}; it must be {valid}") })
        }
        _ => Ok(()),
    }
}

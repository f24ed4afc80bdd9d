//! The choice.

use super::{
    config::SampleConfig,
    filters::{
        apply_min_p, apply_presence_penalty, apply_repetition_penalty, apply_temperature, apply_top_k,
        apply_top_p,
    },
    kernels::of,
};
use crate::{
    AsOperand, Float, Result, Rng, Tensor,
    kernel::{call::Call, definition::Kernel as _},
    ops::{cast, composed::composed},
};

/// Chooses a token of each row of `logits` at random, by penalties, temperature and filters.
///
/// Corresponds to `generate` of `transformers` with `do_sample=True`, for one token.
///
/// This is [`sample_with`], with a random number for each row: the middle of one of 2^23 equal parts of the numbers from 0
/// to 1. So probabilities are right to 2^-23, and tokens that are less likely than that are chosen rarely or never. `rng`
/// advances by one call, unless the temperature is the number 0, which needs none.
///
/// ```
/// use graphable::prelude::*;
///
/// /// The next tokens of sequences, which become less likely from then on.
/// #[graphable]
/// fn next(
///     #[host]
///     #[dims(B, 4)]
///     logits: &Tensor<f32>,
///     #[host]
///     #[dims(B)]
///     temperature: &Tensor<f32>,
///     seen: &State<bool>,
///     rng: &Rng,
/// ) -> Result<Tensor<u32>> {
///     let of_rows = ops::cache_view(seen).narrow(0, 0, logits.dim(0))?;
///     let config = ops::SampleConfig::new().repetition_penalty(&of_rows, 1.2).temperature(temperature).top_p(0.95);
///     let tokens = ops::sample(rng, logits, config)?;
///     ops::mark_tokens(seen, &tokens)?;
///     Ok(tokens)
/// }
///
/// # fn main() -> Result<()> {
/// let mut rt = Runtime::new(Device::cpu())?;
/// let (seen, rng) = (State::zeros(&rt, &[8, 4])?, Rng::new(&rt, 7)?);
/// let graph = NextGraph::builder().bucket("B", Schedule::new([8])).build(&mut rt)?;
/// for want in [1, 2] {
///     let step = rt.step()?;
///     let logits = [0.0, 4.0, 3.9, 0.0].repeat(2);
///     let tokens = graph.call(&step, &logits[..], &[0.0, 0.8], &seen, &rng)?;
///     assert_eq!(step.read(&tokens)?[0], want); // greedy
/// }
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Returns the errors of [`sample_with`].
pub fn sample<'s, T: Float>(
    rng: &Rng,
    logits: &Tensor<'s, T>,
    config: SampleConfig<'_, 's>,
) -> Result<Tensor<'s, u32>> {
    config.check("sample")?;
    composed("sample", || {
        // Also where it is not used.
        rng.operand("sample", logits.scope())?;
        let logits = penalized(cast(logits)?, config)?;
        if config.temperature.number() == Some(0.0) {
            return greedy(&logits);
        }
        let logits = filtered(logits, config)?;
        let shape = logits.shape();
        let Some((_, rows)) = shape.split_last() else { return greedy(&logits) };
        choose_token(&logits, &of::middle::<f32>(logits.scope(), rng, rows)?)
    })
}

/// Chooses a token of each row of `logits` by penalties, temperature and filters, with a number from 0 to 1 for each row.
///
/// `logits` is `[.., V]`, and the result is `[..]`. The order is that of transformers: repetition penalty, presence penalty,
/// temperature, top-k, top-p of what top-k keeps, min-p; vLLM has min-p before top-k. What is left is chosen from as in
/// [`choose_token`]; if the temperature is the number 0, `uniforms` is not used. All of it is computed in `f32`. Padding of
/// the rows propagates.
///
/// Tokens are the same on every device for the same logits and numbers. The probabilities for users are
/// [`token_log_probs`](super::token_log_probs), of `logits` as in vLLM.
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let step = rt.step()?;
/// let logits = step.tensor(&[2, 3], &[1.0f32, 3.0, 2.0, 1.0, 3.0, 2.0])?;
/// let config = ops::SampleConfig::new().temperature(0.8).top_p(0.9);
/// let uniforms = step.tensor(&[2], &[0.1f32, 0.9])?;
/// assert_eq!(step.read(&ops::sample_with(&logits, config, &uniforms)?)?, [1, 2]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns [`Error::Argument`](crate::Error::Argument) if a number of `config` is not valid;
/// [`Error::Shape`](crate::Error::Shape) if the shapes do not fit; [`Error::PaddedMix`](crate::Error::PaddedMix) if `V` is
/// padded, or one dimension is by different symbols.
pub fn sample_with<'s, T: Float>(
    logits: &Tensor<'s, T>,
    config: SampleConfig<'_, 's>,
    uniforms: &(impl AsOperand<'s, f32> + ?Sized),
) -> Result<Tensor<'s, u32>> {
    config.check("sample_with")?;
    composed("sample_with", || {
        let logits = penalized(cast(logits)?, config)?;
        if config.temperature.number() == Some(0.0) {
            return greedy(&logits);
        }
        choose_token(&filtered(logits, config)?, uniforms)
    })
}

/// Chooses a token of each row of `logits` with the probability that [`softmax`](crate::ops::softmax) gives it, by a number
/// from 0 to 1 for each row.
///
/// Corresponds to `torch.multinomial` of `torch.softmax`, for one number of each row.
///
/// `logits` is `[.., V]`, `uniforms` and the result are `[..]`; rows broadcast. The token is the first one such that it and
/// those before it have more than that part of the total: the inverse of the cumulative distribution. One number decides a
/// row, so that the choice needs no noise for each token, and can be repeated from the number alone. Everything that it
/// depends on is computed in the same way on every device, so that equal logits and numbers choose equal tokens.
///
/// A token of logit `-inf`, or NaN, or of less than 2^-126 of the largest probability, is not chosen; infinite logits share
/// all of it. A row without any logit above `-inf` chooses [`NO_TOKEN`](super::NO_TOKEN). A number below 0, or NaN, counts as
/// 0, and one from 1 on as the largest below 1. Padding of the rows propagates.
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let step = rt.step()?;
/// // Probabilities 1/2, 1/4 and 1/4.
/// let logits = step.tensor(&[1, 3], &[2f32.ln(), 0.0, 0.0])?;
/// let uniforms = step.tensor(&[4], &[0.0f32, 0.49, 0.51, 0.76])?;
/// assert_eq!(step.read(&ops::choose_token(&logits, &uniforms)?)?, [0, 0, 1, 2]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns [`Error::Shape`](crate::Error::Shape) if the shapes do not fit; [`Error::PaddedMix`](crate::Error::PaddedMix) if
/// `V` is padded, or one dimension is by different symbols.
pub fn choose_token<'s>(
    logits: &Tensor<'s, f32>,
    uniforms: &(impl AsOperand<'s, f32> + ?Sized),
) -> Result<Tensor<'s, u32>> {
    let last = logits.sizes().last().map_or(0, |size| size.saturating_sub(1));
    composed("choose_token", || {
        let mut call = Call::new(of::choose::DEFINITION, logits)?;
        call.argument::<f32>(uniforms)?;
        call.refuse_more_dimensions()?;
        call.key((usize::BITS - last.leading_zeros()).div_ceil(2));
        call.launch_rows()
    })
}

/// The first of the largest logits of each row.
fn greedy<'s>(logits: &Tensor<'s, f32>) -> Result<Tensor<'s, u32>> {
    Call::new(of::greedy::DEFINITION, logits)?.launch_rows()
}

fn penalized<'s>(mut logits: Tensor<'s, f32>, config: SampleConfig<'_, 's>) -> Result<Tensor<'s, f32>> {
    if let Some(penalty) = config.repetition.filter(|penalty| penalty.value.number() != Some(1.0)) {
        logits = apply_repetition_penalty(&logits, penalty.seen, penalty.value)?;
    }
    if let Some(penalty) = config.presence.filter(|penalty| penalty.value.number() != Some(0.0)) {
        logits = apply_presence_penalty(&logits, penalty.seen, penalty.value)?;
    }
    Ok(logits)
}

/// The effects of temperature and filters; those that keep everything are left out.
fn filtered<'s>(mut logits: Tensor<'s, f32>, config: SampleConfig<'_, 's>) -> Result<Tensor<'s, f32>> {
    if config.temperature.number() != Some(1.0) {
        logits = apply_temperature(&logits, config.temperature)?;
    }
    if config.top_k.number() != Some(0) {
        logits = apply_top_k(&logits, config.top_k)?;
    }
    if config.top_p.number() != Some(1.0) {
        logits = apply_top_p(&logits, config.top_p)?;
    }
    if config.min_p.number() != Some(0.0) {
        logits = apply_min_p(&logits, config.min_p)?;
    }
    Ok(logits)
}

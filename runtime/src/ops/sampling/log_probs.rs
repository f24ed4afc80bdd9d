//! Logarithms of probabilities.

use super::kernels::of;
use crate::{
    AsOperand, Error, Float, Result, Tensor,
    kernel::{call::Call, definition::Kernel as _},
    ops::{cast, composed::composed, topk},
};

/// Returns the logarithm of the probability of a token of each row of `logits`.
///
/// `logits` is `[.., V]`, `tokens` and the result are `[..]`. The probabilities are those of
/// [`log_softmax`](crate::ops::log_softmax), in `f32`, where NaN counts as `-inf`. Pass the model's logits for what vLLM
/// reports, or those that penalties and filters left. [`NO_TOKEN`](super::NO_TOKEN) has `-inf`, unless there are no tokens at all. Padding of the rows
/// propagates.
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let step = rt.step()?;
/// let logits = step.tensor(&[2, 2], &[5.0f32, f32::NEG_INFINITY, 1.0, 1.0])?;
/// let tokens = step.tensor(&[2], &[0u32, 1])?;
/// assert_eq!(step.read(&ops::token_log_probs(&logits, &tokens)?)?, [0.0, 0.5f32.ln()]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns [`Error::Shape`](crate::Error::Shape) if the shapes do not fit; [`Error::PaddedMix`](crate::Error::PaddedMix) if
/// `V` is padded, or one dimension is by different symbols. Later, at a read:
/// [`Error::IndexOutOfRange`](crate::Error::IndexOutOfRange) for any other number from `V` on.
pub fn token_log_probs<'s, T: Float>(
    logits: &Tensor<'s, T>,
    tokens: &(impl AsOperand<'s, u32> + ?Sized),
) -> Result<Tensor<'s, f32>> {
    composed("token_log_probs", || {
        let mut call = Call::new(of::token_log_probs::DEFINITION, &cast::<_, f32>(logits)?)?;
        call.argument::<u32>(tokens)?;
        call.refuse_more_dimensions()?;
        call.launch_rows()
    })
}

/// Returns the logarithms of the `n` largest probabilities of each row of `logits`, the largest first, and their tokens.
///
/// Corresponds to `torch.topk` of `torch.log_softmax`, and to the `logprobs` of vLLM.
///
/// `logits` is `[.., V]`, both results are `[.., n]`. The probabilities are those of [`token_log_probs`]; of equal ones, the
/// first tokens are taken. Padding of the rows propagates.
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let step = rt.step()?;
/// let logits = step.tensor(&[1, 3], &[f32::NEG_INFINITY, 1.0, 1.0])?;
/// let (log_probs, tokens) = ops::top_log_probs(&logits, 2)?;
/// assert_eq!(step.read(&log_probs)?, [0.5f32.ln(); 2]);
/// assert_eq!(step.read(&tokens)?, [1, 2]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns [`Error::Shape`](crate::Error::Shape) for more than 2^30 tokens, or if there is no dimension; [`Error::Argument`](crate::Error::Argument) if
/// `n` is larger than `V`; [`Error::PaddedMix`](crate::Error::PaddedMix) if `V` is padded.
pub fn top_log_probs<'s, T: Float>(
    logits: &Tensor<'s, T>,
    n: usize,
) -> Result<(Tensor<'s, f32>, Tensor<'s, u32>)> {
    const NAME: &str = "top_log_probs";
    if let Some(&size) = logits.sizes().last().filter(|size| n > **size) {
        return Err(Error::Argument { op: NAME, reason: format!("n is {n}, and there are {size} tokens") });
    }
    composed(NAME, || {
        let logits: Tensor<'s, f32> = cast(logits)?;
        let (max, total): (Tensor<'s, f32>, Tensor<'s, f32>) =
            Call::new(of::total::DEFINITION, &logits)?.launch_rows()?;
        let mut call = Call::new(of::log_probs::DEFINITION, &logits)?;
        call.argument::<f32>(&max)?;
        call.argument::<f32>(&total)?;
        let log_probs: Tensor<'s, f32> = call.launch_rows()?;
        topk(&log_probs, n, log_probs.rank() - 1)
    })
}

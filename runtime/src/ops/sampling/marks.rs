//! The tokens that were seen.

use super::kernels::{NO_TOKEN, of};
use crate::{
    AsOperand as _, Result, State, Tensor,
    kernel::{call::Call, definition::Kernel as _},
    ops::{composed::composed, full, scatter_rows},
};

/// Marks tokens in a state: element `[i, tokens[i]]` of `state` becomes true, or `[tokens[i]]` if it has one dimension.
///
/// Corresponds to `get_token_bin_counts_and_mask` of vLLM, of which it keeps the mask.
///
/// `state` is `[rows, V]`, with at least as many rows as there are tokens (in a bucket, as its size), or `[V]`, for all of them; `tokens` is `[N]`. A number
/// from `V` on, such as [`NO_TOKEN`](super::NO_TOKEN), is skipped. If `N` is padded, only the real tokens count. The state is
/// what [`apply_repetition_penalty`](super::apply_repetition_penalty) and
/// [`apply_presence_penalty`](super::apply_presence_penalty) take.
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// let seen = State::<bool>::zeros(&rt, &[2, 3])?;
/// let step = rt.step()?;
/// ops::mark_tokens(&seen, &step.tensor(&[2], &[2u32, 0])?)?;
/// let seen = ops::load(step.scope(), &seen)?;
/// assert_eq!(step.read(&seen)?, [false, false, true, true, false, false]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns [`Error::Shape`](crate::Error::Shape) if the shapes do not fit, or the state has 2^32 elements or more.
pub fn mark_tokens<'s>(state: &State<bool>, tokens: &Tensor<'s, u32>) -> Result<()> {
    const NAME: &str = "mark_tokens";
    let scope = tokens.scope();
    let given = state.operand(NAME, scope)?;
    let rows = match (state.shape(), tokens.sizes()) {
        (&[size], &[_]) => Some((size, 0)),
        (&[rows, size], &[n]) if n <= rows => Some((size, size)),
        _ => None,
    };
    let is_small = state.shape().iter().product::<usize>() < NO_TOKEN as usize;
    let Some((size, stride)) = rows.filter(|_| is_small) else {
        let reason = "the state must be `[rows, V]`, of less than 2^32 elements, with a row for each of the tokens, which are `[N]`; or `[V]`";
        return Err(scope.shape_error(NAME, &[(&given).into(), tokens.into()], reason));
    };
    composed(NAME, || {
        let mut call = Call::new(of::place::DEFINITION, tokens)?;
        call.key(size as u32);
        call.key(stride as u32);
        let places: Tensor<'s, u32> = call.launch_indexed(tokens.shape())?;
        scatter_rows(state, &places, &full(scope, tokens.shape(), true)?)
    })
}

//! All of a state, written and read.

use super::{
    check::refuse,
    launch::{compute, launch},
};
use crate::{
    AsOperand, Element, Error, Result, Scope, State, Tensor, memory::COPY, value::layout::PaddedDims,
};

/// Overwrites all of `state` with `src`, which has the same shape.
///
/// Corresponds to `torch.Tensor.copy_` to a buffer.
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// let state = State::zeros(&rt, &[2])?;
/// let step = rt.step()?;
/// ops::store(&state, &step.tensor(&[2], &[1.0f32, 2.0])?)?;
/// assert_eq!(step.read(&ops::load(step.scope(), &state)?)?, [1.0, 2.0]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns [`Error::Shape`]; [`Error::PaddedMix`] if `src` is padded (state has one size for all buckets).
pub fn store<'s, T: Element>(state: &State<T>, src: &Tensor<'s, T>) -> Result<()> {
    const NAME: &str = "store";
    let scope = src.scope();
    let target = state.operand(NAME, scope)?.view;
    refuse(NAME, scope, src.raw.marks, 0..src.rank())?;
    if state.shape() != src.sizes() {
        let reason = "state and source must have one shape";
        return Err(Error::shape(NAME, &[state.shape(), src.sizes()], reason));
    }
    launch(scope, COPY, &[src.view(NAME)?], &[target])
}

/// Returns a copy of the current contents of `state`, in the order of the calls.
///
/// Corresponds to `torch.clone` of a buffer.
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// let state = State::new(&rt, &[2], &[1.0f32, 2.0])?;
/// let step = rt.step()?;
/// let before = ops::load(step.scope(), &state)?;
/// ops::store(&state, &ops::scale(&before, 10.0)?)?;
/// assert_eq!(step.read(&before)?, [1.0, 2.0]); // a copy
/// assert_eq!(step.read(&ops::load(step.scope(), &state)?)?, [10.0, 20.0]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns only the errors of every operation (see [`ops`](crate::ops)).
pub fn load<'s, T: Element>(scope: Scope<'s>, state: &State<T>) -> Result<Tensor<'s, T>> {
    let source = state.operand("load", scope)?.view;
    compute(scope, COPY, &[source], state.shape(), PaddedDims::NONE)
}

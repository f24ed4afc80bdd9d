//! The state of generators, from and to the host.

use crate::{Eager, Result, Rng, RngState, kernel::random::advance, ops};

impl Rng {
    /// Starts again with this seed, at the first call.
    ///
    /// # Errors
    /// Returns the errors of [`restore`](Self::restore).
    pub fn seed(&self, cx: &Eager<'_>, seed: u64) -> Result<()> {
        self.restore(cx, RngState { seed, counter: 0 })
    }

    /// Returns the state after all calls so far, for which it waits.
    ///
    /// ```
    /// # use graphable::prelude::*;
    /// # let mut rt = Runtime::new(Device::cpu())?;
    /// let rng = Rng::new(&rt, 7)?;
    /// let step = rt.step()?;
    /// let state = rng.save(&step)?;
    /// assert_eq!((state.seed, state.counter), (7, 0));
    /// let first = step.read(&ops::uniform::<f32>(&rng, step.scope(), [3], 0.0..1.0)?)?;
    /// rng.restore(&step, state)?;
    /// assert_eq!(step.read(&ops::uniform::<f32>(&rng, step.scope(), [3], 0.0..1.0)?)?, first);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`Error::CapabilityInSegment`](crate::Error::CapabilityInSegment),
    /// [`Error::DifferentRuntimes`](crate::Error::DifferentRuntimes), and errors of the device.
    pub fn save(&self, cx: &Eager<'_>) -> Result<RngState> {
        let words = cx.read(&ops::rng_state(self, cx.scope())?)?;
        let mut state = [0; 4];
        for (to, word) in state.iter_mut().zip(words) {
            *to = word;
        }
        Ok(RngState::of_words(state))
    }

    /// Continues from a state that was saved.
    ///
    /// # Errors
    /// Returns [`Error::CapabilityInSegment`](crate::Error::CapabilityInSegment),
    /// [`Error::DifferentRuntimes`](crate::Error::DifferentRuntimes), and errors of the device.
    pub fn restore(&self, cx: &Eager<'_>, state: RngState) -> Result<()> {
        let words = state.words();
        ops::set_rng_state(self, &cx.tensor([words.len()], &words)?)
    }

    /// Creates a generator whose seed is drawn from this one: equal states have equal forks, and the numbers of a fork
    /// depend on no call that is made after it. It counts as a call. A graph records each generator that it is called with, so
    /// fork once and keep the forks: a new one for each call would be recorded anew each time.
    ///
    /// ```
    /// use graphable::prelude::*;
    ///
    /// #[graphable]
    /// fn pair(x: &Tensor<f32>, left: &Rng, right: &Rng) -> Result<Tensor<f32>> {
    ///     let (a, b) = join(
    ///         x.scope(),
    ///         || ops::uniform(left, x.scope(), x.shape(), 0.0..1.0),
    ///         || ops::uniform(right, x.scope(), x.shape(), 0.0..1.0),
    ///     )?;
    ///     ops::sub(&a, &b)
    /// }
    ///
    /// # fn main() -> Result<()> {
    /// # let mut rt = Runtime::new(Device::cpu())?;
    /// let rng = Rng::new(&rt, 7)?;
    /// let graph = PairGraph::builder().build(&mut rt)?;
    /// let (left, right) = {
    ///     let step = rt.step()?;
    ///     (rng.fork(&step)?, rng.fork(&step)?)
    /// };
    /// for _ in 0..4 {
    ///     let step = rt.step()?;
    ///     let y = graph.call(&step, &step.tensor([1], &[0.0f32])?, &left, &right)?;
    ///     assert_ne!(step.item(&y)?, 0.0);
    /// }
    /// assert_eq!(rt.stats().recordings, 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Returns [`Error::CapabilityInSegment`](crate::Error::CapabilityInSegment),
    /// [`Error::DifferentRuntimes`](crate::Error::DifferentRuntimes), and errors of the device.
    pub fn fork(&self, cx: &Eager<'_>) -> Result<Self> {
        let child = Self::new(cx.rt, 0)?;
        advance::fork(cx.scope(), self, &child)?;
        Ok(child)
    }
}

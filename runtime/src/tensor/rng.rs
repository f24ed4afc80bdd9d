//! Generators of random numbers.

use std::fmt;

use crate::{Result, Runtime, Scope, State, backend::View};

/// A stream of random numbers on the device: a seed and a counter, owned and shared as a [`State`] is.
///
/// Each call of an operation that draws from it ([`ops::uniform`](crate::ops::uniform) and the others, and
/// [kernels](macro@crate::kernel) with a [`Random`](crate::Random) parameter) takes the numbers of the next call and
/// advances the counter by one, whatever the shape is. The counter is on the device, where replays advance it as eager
/// calls do, so a program draws the same numbers in every mode, and buckets change none of them. A call that fails, or
/// whose error is ignored, may or may not have advanced it.
///
/// ```
/// use graphable::prelude::*;
///
/// /// Adds a little noise.
/// #[graphable]
/// fn noised(#[host] #[dims(B, 4)] x: &Tensor<f32>, rng: &Rng) -> Result<Tensor<f32>> {
///     ops::add(x, &ops::uniform(rng, x.scope(), x.shape(), -0.1..0.1)?)
/// }
///
/// let mut rt = Runtime::new(Device::cpu())?;
/// let rng = Rng::new(&rt, 7)?;
/// let graph = NoisedGraph::builder().bucket("B", Schedule::new([2])).build(&mut rt)?;
/// let mut seen = Vec::new();
/// for _ in 0..4 {
///     let step = rt.step()?;
///     seen.push(step.read(&graph.call(&step, &[0.0; 4], &rng)?)?);
/// }
/// assert!(seen.windows(2).all(|pair| pair[0] != pair[1])); // Replays go on where the last one stopped.
///
/// let step = rt.step()?;
/// rng.seed(&step, 7)?;
/// assert_eq!(step.read(&graph.call(&step, &[0.0; 4], &rng)?)?, seen[0]);
/// # Ok::<(), Error>(())
/// ```
///
/// Branches of a [`join`](crate::join) each need one of their own, because their order would decide who gets which
/// numbers: [`fork`](Self::fork).
#[derive(Clone)]
pub struct Rng {
    pub(crate) state: State<u32>,
}

/// The state of an [`Rng`], to store and to compare.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct RngState {
    /// The state on which the numbers depend, besides the call and the element.
    pub seed: u64,
    /// The number of calls that have drawn from it.
    pub counter: u64,
}

impl Rng {
    /// Creates a generator. Those of one seed have the same numbers.
    ///
    /// # Errors
    /// Returns errors of the device.
    pub fn new(rt: &Runtime, seed: u64) -> Result<Self> {
        let words = RngState { seed, counter: 0 }.words();
        Ok(Self { state: State::new(rt, &[words.len()], &words)? })
    }

    /// Its memory, which `op` writes.
    pub(crate) fn operand(&self, op: &'static str, scope: Scope<'_>) -> Result<View> {
        scope.check(op, self.state.owned.runtime)?;
        Ok(self.state.view())
    }
}

impl fmt::Debug for Rng {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Rng")
    }
}

impl RngState {
    /// As the device has it.
    pub(crate) fn words(self) -> [u32; 4] {
        let [seed, counter] = [self.seed, self.counter].map(|n| [n as u32, (n >> 32) as u32]);
        [seed[0], seed[1], counter[0], counter[1]]
    }

    pub(crate) fn of_words([seed, above, counter, after]: [u32; 4]) -> Self {
        let number = |low: u32, high: u32| u64::from(high) << 32 | u64::from(low);
        Self { seed: number(seed, above), counter: number(counter, after) }
    }

    /// After so many calls.
    #[must_use]
    pub(crate) fn after(self, calls: u32) -> Self {
        Self { counter: self.counter.wrapping_add(calls.into()), ..self }
    }
}

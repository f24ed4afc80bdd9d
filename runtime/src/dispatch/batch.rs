//! What a call's batch is, and who says so.

use std::{cell::RefCell, fmt};

use crate::{ModeSet, Step};

/// What a call works on, as far as the choice of its graph depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct BatchDescriptor {
    /// New tokens of all sequences together, without padding; at least 1.
    pub num_tokens: usize,
    /// Whether every sequence has [`Batching::query_len`](crate::Batching::query_len) new tokens: one, unless
    /// tokens are drafted ahead.
    pub uniform_decode: bool,
    /// How many adapters (LoRA) are in use; see [`Batching::adapters`](crate::Batching::adapters).
    pub adapters: usize,
}

impl BatchDescriptor {
    /// Any batch: prompts, or prompts and decodes together.
    pub fn mixed(num_tokens: usize) -> Self {
        Self { num_tokens, uniform_decode: false, adapters: 0 }
    }

    /// A batch in which every sequence has [`Batching::query_len`](crate::Batching::query_len) new tokens.
    pub fn decode(num_tokens: usize) -> Self {
        Self { num_tokens, uniform_decode: true, adapters: 0 }
    }

    /// The same with that many adapters in use.
    #[must_use]
    pub fn with_adapters(self, adapters: usize) -> Self {
        Self { adapters, ..self }
    }
}

impl fmt::Display for BatchDescriptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { num_tokens, uniform_decode, adapters } = self;
        write!(f, "{num_tokens} tokens, {}", if *uniform_decode { "uniform decode" } else { "mixed" })?;
        if *adapters > 0 {
            write!(f, ", {adapters} adapters")?;
        }
        Ok(())
    }
}

/// The sizes that a batch is captured for: what is told apart by mode, after padding.
///
/// A key of mode `Piecewise` has no request count and is never uniform: segments do not see requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub struct BatchKey {
    /// Tokens, padded.
    pub num_tokens: usize,
    /// Adapters, rounded up to a captured count.
    pub adapters: usize,
    /// Requests, padded; of mode `Full` only.
    pub num_reqs: Option<usize>,
    /// Whether it is for uniform decodes alone.
    pub uniform: bool,
}

/// What is said of the calls of a scope.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Said {
    pub(crate) batch: BatchDescriptor,
    pub(crate) allowed: ModeSet,
    /// The calls are captures ahead of time.
    pub(crate) ahead: bool,
}

/// The batches that are said now, the innermost last.
#[derive(Debug, Default)]
pub(crate) struct Batches {
    next: u64,
    said: Vec<(u64, Said)>,
    /// What `capture_all` says, over all of its steps.
    capture: Option<Said>,
}

impl Batches {
    /// A new step has begun: what a forgotten guard said ends with its step.
    pub(crate) fn end_step(&mut self) {
        self.said.clear();
    }

    /// A capture ahead of time knows what it is for, whatever its closure says, which may be that of serving.
    pub(crate) fn now(&self) -> Option<Said> {
        self.capture.or_else(|| self.said.last().map(|(_, said)| *said))
    }

    /// Says what a capture ahead of time is for, or that it is over.
    pub(crate) fn capture(&mut self, said: Option<Said>) {
        self.capture = said;
    }
}

/// Says what the batch of calls is while this lives; see [`Step::batch`].
#[must_use = "the batch is forgotten when this is dropped"]
pub struct BatchScope<'s> {
    batches: &'s RefCell<Batches>,
    id: u64,
}

impl BatchScope<'_> {
    /// Allows these modes alone, for calls of any graph.
    ///
    /// A call gets the most that its graph, its batch and this allow: `Full` before `Piecewise` before `None`. A
    /// mode that the caller leaves out is no fallback; it is counted as a skip. Where nothing is left, the call
    /// is [`Error::NoAllowedMode`](crate::Error::NoAllowedMode): without `None`, no call runs without a graph.
    pub fn allow(self, modes: ModeSet) -> Self {
        let mut batches = self.batches.borrow_mut();
        if let Some((_, said)) = batches.said.iter_mut().find(|(id, _)| *id == self.id) {
            said.allowed = modes;
        }
        drop(batches);
        self
    }
}

impl Drop for BatchScope<'_> {
    fn drop(&mut self) {
        let id = self.id;
        self.batches.borrow_mut().said.retain(|(other, _)| *other != id);
    }
}

impl fmt::Debug for BatchScope<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BatchScope")
    }
}

impl<'s> Step<'s> {
    /// Says what the batch is, for calls that start before the guard is dropped: graphs that tell batches apart
    /// ([`Mode::FullDecodeOnly`](crate::Mode::FullDecodeOnly),
    /// [`Mode::FullAndPiecewise`](crate::Mode::FullAndPiecewise), boundaries that do not support every batch)
    /// choose by it.
    ///
    /// ```
    /// use graphable::{BatchDescriptor, prelude::*};
    ///
    /// #[graphable]
    /// fn double(#[host] #[dims(T)] x: &Tensor<f32>) -> Result<Tensor<f32>> {
    ///     let h = ops::scale(x, 4.0)?;
    ///     let h = #[eager(support = UniformBatch)]
    ///     ops::scale(&h, 0.25)?;
    ///     ops::scale(&h, 2.0)
    /// }
    ///
    /// # fn main() -> Result<()> {
    /// let mut rt = Runtime::new(Device::cpu())?;
    /// let graph = DoubleGraph::builder()
    ///     .mode(Mode::FullAndPiecewise)
    ///     .bucket("T", Schedule::new([4]))
    ///     .build(&mut rt)?;
    /// graph.capture_all(&mut rt)?; // the segments, then the whole call
    /// for batch in [BatchDescriptor::mixed(3), BatchDescriptor::decode(3)] {
    ///     let before = rt.stats().replays;
    ///     let step = rt.step()?;
    ///     let scope = step.batch(batch);
    ///     let y = graph.call(&step, &[1.0, 2.0, 3.0])?;
    ///     assert_eq!(step.read(&y)?, [2.0, 4.0, 6.0]);
    ///     drop((y, scope, step));
    ///     // Two segments of the mixed batch, one graph of the decode.
    ///     assert_eq!(rt.stats().replays - before, if batch.uniform_decode { 1 } else { 2 });
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Scopes nest, and the innermost one counts; in a capture ahead of time none does, since it goes through all
    /// batches by itself. A graph whose mode does not depend on the batch looks at
    /// [`BatchScope::allow`] alone.
    pub fn batch(&self, batch: BatchDescriptor) -> BatchScope<'s> {
        let batches = &self.rt.batches;
        let mut now = batches.borrow_mut();
        now.next += 1;
        let id = now.next;
        now.said.push((id, Said { batch, allowed: ModeSet::ALL, ahead: false }));
        drop(now);
        BatchScope { batches, id }
    }
}

//! The batch of a call, and how it is declared.

use std::{cell::RefCell, fmt};

use crate::{
    BatchDescriptor, ModeSet, Step,
    runtime::scopes::{Batches, Said},
};

/// The sizes for which a batch is captured, as far as the mode distinguishes them, after padding.
///
/// A key of mode `Piecewise` has no number of requests and is never uniform, because segments do not depend
/// on requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub struct BatchKey {
    /// The padded number of tokens.
    pub num_tokens: usize,
    /// The number of adapters, rounded up to a captured count.
    pub adapters: usize,
    /// The padded number of requests; only in mode `Full`.
    pub num_reqs: Option<usize>,
    /// If set, the key is only for uniform decodes.
    pub uniform: bool,
}

/// Declares the batch of calls while it is alive; see [`Step::batch`].
#[must_use = "the batch is forgotten when this is dropped"]
pub struct BatchGuard<'s> {
    batches: &'s RefCell<Batches>,
    id: u64,
}

impl BatchGuard<'_> {
    /// Restricts calls of any graph to these modes.
    ///
    /// A call gets the highest mode that its graph, its batch and this set allow: `Full` before `Piecewise`
    /// before `None`. A mode that the caller excludes is not a fallback; it is counted as a skip. If no mode
    /// remains, the call returns [`Error::NoAllowedMode`](crate::Error::NoAllowedMode): without `None`, no
    /// call runs without a graph.
    pub fn allow(self, modes: ModeSet) -> Self {
        self.batches.borrow_mut().allow(self.id, modes);
        self
    }
}

impl Drop for BatchGuard<'_> {
    fn drop(&mut self) {
        self.batches.borrow_mut().remove(self.id);
    }
}

impl fmt::Debug for BatchGuard<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BatchGuard")
    }
}

impl<'s> Step<'s> {
    /// Declares the batch of calls that start before the guard is dropped. Graphs that distinguish batches
    /// ([`Mode::FullDecodeOnly`](crate::Mode::FullDecodeOnly),
    /// [`Mode::FullAndPiecewise`](crate::Mode::FullAndPiecewise), boundaries that do not support every batch)
    /// use it to choose.
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
    /// Scopes nest, and the innermost one applies. Ahead-of-time captures ignore them, because they cover all
    /// batches themselves. A graph whose mode does not depend on the batch uses only [`BatchGuard::allow`].
    pub fn batch(&self, batch: BatchDescriptor) -> BatchGuard<'s> {
        let batches = &self.rt.batches;
        let id = batches.borrow_mut().push(Said { batch, allowed: ModeSet::ALL, ahead: false });
        BatchGuard { batches, id }
    }
}

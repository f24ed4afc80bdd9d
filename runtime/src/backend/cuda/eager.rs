//! Launches outside captures.
//!
//! Between two graphs, a single-kernel graph whose parameter is replaced takes the driver half the time of a
//! kernel launch (see [`SingleKernelGraph`]). Next to other kernels it is the opposite: there the device
//! starts each kernel while its predecessor ends, which it does not do across graphs. So the kernel of an
//! operation that was the only one between two replays the last few times gets a graph of its own; products
//! of the library, copies of host inputs and fills are not considered, which can only cost time. Such a graph
//! takes about 110 KB of device memory (CUDA 13.0, H200), so their number is bounded.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::{
    CudaBackend, CudaOptions,
    driver::{Function, SingleKernelGraph},
    kernels::Grid,
    shared::{Shared, retire_graph},
    usage_gated_cache::{Limits, UsageGatedCache, Use},
};
use crate::{Error, Result};

/// A graph and the bytes that it took.
#[derive(Debug)]
struct Ready {
    single: SingleKernelGraph,
    bytes: u64,
}

/// A kernel and how it is launched.
type Key = (Function, Grid);

/// Times in a row that a kernel was alone before it is expected to be.
const SURE: u8 = 2;
/// Kernels of which that is remembered.
const REMEMBERED: usize = 1024;

/// The graphs of one backend.
#[derive(Debug)]
pub(super) struct SingleKernelGraphs {
    hot: UsageGatedCache<Key, Ready>,
    /// The number of consecutive times that a kernel was the only one between two graphs.
    alone: FxHashMap<Key, u8>,
    /// The kernel that followed a graph, as long as nothing has followed it.
    first: Option<Key>,
    /// Off while products are measured: there each kernel is launched as in a segment.
    pub(super) paused: bool,
}

impl SingleKernelGraphs {
    pub(super) fn new(options: &CudaOptions) -> Self {
        let limits = if options.test_mode {
            // Few, soon, and often given up.
            Limits { after: 0, kept: 8, known: 64, idle: 64 }
        } else {
            Limits { after: 8, kept: 64, known: 1024, idle: 8192 }
        };
        Self { hot: UsageGatedCache::new(limits), alone: FxHashMap::default(), first: None, paused: false }
    }

    /// Notes that a kernel follows a graph; returns whether it is expected to be alone.
    fn begin(&mut self, key: Key) -> bool {
        self.first = Some(key);
        self.alone.get(&key).is_some_and(|&times| times >= SURE)
    }

    /// Another kernel comes: whether the one before was the first.
    fn follow(&mut self) -> bool {
        let Some(first) = self.first.take() else { return false };
        self.alone.remove(&first);
        true
    }

    /// A graph comes.
    pub(super) fn end(&mut self) {
        let Some(first) = self.first.take() else { return };
        if self.alone.len() >= REMEMBERED && !self.alone.contains_key(&first) {
            // Learned again.
            self.alone.clear();
        }
        let times = self.alone.entry(first).or_default();
        *times = SURE.min(*times + 1);
    }

    /// Returns their number, and their bytes.
    pub(super) fn usage(&self) -> (usize, u64) {
        self.hot.iter().fold((0, 0), |(count, bytes), ready| (count + 1, bytes + ready.bytes))
    }

    /// Releases all of them, after the work that is on the stream.
    pub(super) fn release(&mut self, shared: &Shared) {
        self.hot.take().for_each(|ready| ready.retire(shared));
    }
}

impl Ready {
    fn new(shared: &Shared, function: Function, grid: Grid, params: &[u8]) -> Result<Option<Self>> {
        let context = &shared.context;
        let (before, _) = context.memory()?;
        // Captures of others are not disturbed.
        let single = context.unordered(|| SingleKernelGraph::new(&shared.stream, function, grid, params))?;
        let (after, _) = context.memory()?;
        Ok(single.map(|single| Self { single, bytes: before.saturating_sub(after) }))
    }

    fn retire(self, shared: &Shared) {
        let (exec, graph) = self.single.into_parts();
        retire_graph(shared, Some(exec), Some(Arc::new(graph)), Vec::new());
    }
}

impl CudaBackend {
    /// A kernel is launched outside captures that gets no graph of its own.
    pub(super) fn before_plain_kernel(&mut self) {
        self.singles.follow();
        self.after_kernel = true;
    }

    /// Launches a kernel outside captures. A kernel that `waits` by itself for its predecessor may be started
    /// while the predecessor ends.
    ///
    /// # Errors
    /// Returns errors of the driver.
    pub(super) fn launch_eagerly(
        &mut self,
        function: Function,
        grid: Grid,
        params: &[u8],
        waits: bool,
    ) -> Result<()> {
        let key = (function, grid);
        let single = if self.singles.paused || self.singles.follow() || self.after_kernel {
            None
        } else if self.singles.begin(key) {
            self.single(key, params)?
        } else {
            None
        };
        if let Some(at) = single {
            match self.singles.hot.get(at).single.launch(&self.shared.stream, params) {
                Err(lost @ Error::ContextLost { .. }) => return Err(lost),
                Err(error) => self.no_single(key, &error),
                Ok(()) => return Ok(()),
            }
        }
        let overlap = std::mem::replace(&mut self.after_kernel, true);
        self.shared.stream.launch(function, grid, params, overlap && waits)
    }

    /// Launching the kernel needs none of it.
    fn no_single(&mut self, key: Key, reason: &Error) {
        tracing::debug!(error = %reason, "an eager operation gets no graph of its own");
        if let Some(gone) = self.singles.hot.refuse(key) {
            gone.retire(&self.shared);
        }
    }

    /// The graph of a kernel, made if it is time; `None` without one.
    fn single(&mut self, key: Key, params: &[u8]) -> Result<Option<usize>> {
        let (hot, shared) = (&mut self.singles.hot, &self.shared);
        match hot.count(key) {
            Use::Plain => Ok(None),
            Use::Made(at) => Ok(Some(at)),
            Use::Make => match Ready::new(shared, key.0, key.1, params) {
                Ok(Some(ready)) => {
                    if let Some(gone) = hot.put(key, ready) {
                        gone.retire(shared);
                    }
                    Ok(hot.find(key))
                }
                Ok(None) => {
                    // There was none to release.
                    let _ = hot.refuse(key);
                    Ok(None)
                }
                Err(lost @ Error::ContextLost { .. }) => Err(lost),
                Err(error) => {
                    self.no_single(key, &error);
                    Ok(None)
                }
            },
        }
    }
}

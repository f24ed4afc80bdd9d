//! Launches outside captures.
//!
//! A kernel that is launched again and again with one grid gets a graph of its own, whose parameter is replaced
//! for each launch: the driver takes half the time for it (see [`Single`]). Such a graph takes some 110 KB of the
//! device (CUDA 13.0, H200), so there is a bounded number of them.

use std::sync::Arc;

use super::{
    CudaBackend, CudaOptions,
    driver::{Function, Single},
    hot::{Hot, Limits, Use},
    kernels::Grid,
    shared::{Shared, retire_graph},
};
use crate::{Error, Result};

/// A graph and the bytes that it took.
#[derive(Debug)]
struct Ready {
    single: Single,
    bytes: u64,
}

/// The graphs of one backend.
#[derive(Debug)]
pub(super) struct Singles {
    hot: Hot<(Function, Grid), Ready>,
    /// Off while products are measured: there each kernel is launched as in a segment.
    pub(super) paused: bool,
}

impl Singles {
    pub(super) fn new(options: &CudaOptions) -> Self {
        let limits = if options.test_mode {
            // Few, soon, and often given up.
            Limits { after: 1, kept: 8, known: 64, idle: 64 }
        } else {
            Limits { after: 8, kept: 64, known: 1024, idle: 8192 }
        };
        Self { hot: Hot::new(limits), paused: false }
    }

    /// How many there are, and their bytes.
    pub(super) fn usage(&self) -> (usize, u64) {
        self.hot.iter().fold((0, 0), |(count, bytes), ready| (count + 1, bytes + ready.bytes))
    }

    /// Lets go of all of them, behind what is on the stream.
    pub(super) fn release(&mut self, shared: &Shared) {
        self.hot.take().for_each(|ready| ready.retire(shared));
    }
}

impl Ready {
    fn new(shared: &Shared, function: Function, grid: Grid, params: &[u8]) -> Result<Option<Self>> {
        let context = &shared.context;
        let (before, _) = context.memory()?;
        // Captures of others are not disturbed.
        let single = context.unordered(|| Single::new(&shared.stream, function, grid, params))?;
        let (after, _) = context.memory()?;
        Ok(single.map(|single| Self { single, bytes: before.saturating_sub(after) }))
    }

    fn retire(self, shared: &Shared) {
        let (exec, graph) = self.single.into_parts();
        retire_graph(shared, Some(exec), Some(Arc::new(graph)), Vec::new());
    }
}

impl CudaBackend {
    /// Launches a kernel outside captures.
    ///
    /// # Errors
    /// What the driver says.
    pub(super) fn launch_eagerly(&mut self, function: Function, grid: Grid, params: &[u8]) -> Result<()> {
        let shared = &self.shared;
        let key = (function, grid);
        let counted = if self.singles.paused { Use::Plain } else { self.singles.hot.count(key) };
        let made = match counted {
            Use::Plain => None,
            Use::Made(at) => Some(at),
            Use::Make => match Ready::new(shared, function, grid, params) {
                Ok(Some(ready)) => {
                    if let Some(gone) = self.singles.hot.put(key, ready) {
                        gone.retire(shared);
                    }
                    match self.singles.hot.count(key) {
                        Use::Made(at) => Some(at),
                        _ => None,
                    }
                }
                Ok(None) => {
                    self.singles.hot.refuse(key);
                    None
                }
                Err(lost @ Error::ContextLost { .. }) => return Err(lost),
                Err(error) => {
                    // Launching the kernel needs none of it.
                    tracing::debug!(%error, "an eager operation gets no graph of its own");
                    self.singles.hot.refuse(key);
                    None
                }
            },
        };
        match made {
            Some(at) => {
                self.after_kernel = false;
                self.singles.hot.get(at).single.launch(&shared.stream, params)
            }
            None => {
                let overlap = std::mem::replace(&mut self.after_kernel, true);
                shared.stream.launch(function, grid, params, overlap)
            }
        }
    }
}

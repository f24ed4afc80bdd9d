//! Branches of a capture.
//!
//! They need no streams and events of their own: on the one stream that is captured, a branch begins by letting
//! the next node wait for what the fork waited for, and the join lets it wait for the last nodes of all
//! branches. The graph is the same as with a stream for each, and there is nothing that an abandoned capture
//! could leave unjoined, or a second fork find with nodes of the first.

use super::driver::{CaptureDependencies, Stream};
use crate::Result;

/// An open fork.
#[derive(Debug)]
pub(super) struct Fork {
    start: CaptureDependencies,
    /// Where the branches that are over end.
    ends: Vec<CaptureDependencies>,
}

impl Fork {
    /// # Errors
    /// What the driver says; a capture that was invalidated.
    pub(super) fn open(stream: &Stream) -> Result<Self> {
        Ok(Self { start: stream.waits()?, ends: Vec::new() })
    }

    /// Starts branch `index`, which ends the one before it.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub(super) fn branch(&mut self, index: usize, stream: &Stream) -> Result<()> {
        if index == 0 {
            // The capture stands there already.
            return Ok(());
        }
        self.ends.push(stream.waits()?);
        stream.set_waits(&self.start)
    }

    /// # Errors
    /// As [`open`](Self::open).
    pub(super) fn join(mut self, stream: &Stream) -> Result<()> {
        self.ends.push(stream.waits()?);
        stream.set_waits(&CaptureDependencies::joined(&self.start, &self.ends))
    }
}

//! Branches of a capture.
//!
//! They need no separate streams and events: on the one captured stream, a branch begins by making the next
//! node wait for what the fork waited for, and the join makes it wait for the last nodes of all branches. The
//! graph is the same as with a stream for each branch, and an aborted capture cannot leave anything unjoined,
//! nor can a second fork encounter nodes of the first.

use super::driver::{CaptureDependencies, Stream};
use crate::Result;

/// An open fork.
#[derive(Debug)]
pub(super) struct Fork {
    start: CaptureDependencies,
    /// The ends of the branches that are complete.
    ends: Vec<CaptureDependencies>,
}

impl Fork {
    /// # Errors
    /// Returns errors of the driver, or an error for a capture that was invalidated.
    pub(super) fn open(stream: &Stream) -> Result<Self> {
        Ok(Self { start: stream.waits()?, ends: Vec::new() })
    }

    /// Starts branch `index`, which ends the one before it.
    ///
    /// # Errors
    /// See [`open`](Self::open).
    pub(super) fn branch(&mut self, index: usize, stream: &Stream) -> Result<()> {
        if index == 0 {
            // The capture is already at this point.
            return Ok(());
        }
        self.ends.push(stream.waits()?);
        stream.set_waits(&self.start)
    }

    /// # Errors
    /// See [`open`](Self::open).
    pub(super) fn join(mut self, stream: &Stream) -> Result<()> {
        self.ends.push(stream.waits()?);
        stream.set_waits(&CaptureDependencies::joined(&self.start, &self.ends))
    }
}

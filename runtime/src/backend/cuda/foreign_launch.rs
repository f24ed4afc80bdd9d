//! Detects launches by other code on the capturing stream.
//!
//! In thread-local mode, the driver records what any thread launches on a capturing stream. Nobody requested
//! that this work run on each replay, so the nodes of the capture are counted around every launch of ours: a
//! surplus node is an error. Only the library knows how many nodes its products have. A launch at exactly the
//! same moment as one of ours is not detected, and violates the driver's own rule: graphs are not locked
//! internally, and two threads that add to one at the same time crash the driver (580.159).

use super::CudaBackend;
use crate::{Error, Result};

impl CudaBackend {
    /// Runs `work`, which adds work to the stream: one node for a kernel of ours (`single`).
    ///
    /// # Errors
    /// `work`'s, and [`Error::ForeignWork`]. Returns [`Error::Device`] in a capture whose stream captures nothing, since a
    /// conditional node failed: the work would run at once.
    pub(super) fn watched<R>(
        &mut self,
        single: bool,
        work: impl FnOnce(&mut Self) -> Result<R>,
    ) -> Result<R> {
        if self.capture.as_ref().is_some_and(|capture| capture.suspended) {
            return Err(self.failed("launch", "a conditional node of this capture failed before".into()));
        }
        let Some(before) = self.check_foreign_launches()? else { return work(self) };
        let out = work(self)?;
        let after = self.shared.stream.captured_nodes();
        if let Some(capture) = &mut self.capture {
            capture.nodes = after;
        }
        match after {
            Some(after) if single && after != before + 1 => Err(self.foreign_work()),
            _ => Ok(out),
        }
    }

    /// Compares the number of nodes in the capture with the number of ours, and returns it; `None` outside
    /// captures, in a capture that was invalidated (which its end will report), and if the driver cannot
    /// report it.
    ///
    /// # Errors
    /// Returns [`Error::ForeignWork`].
    pub(super) fn check_foreign_launches(&mut self) -> Result<Option<usize>> {
        let Some(capture) = &mut self.capture else { return Ok(None) };
        let Some(ours) = capture.nodes else { return Ok(None) };
        capture.nodes = self.shared.stream.captured_nodes();
        match capture.nodes {
            Some(now) if now != ours => Err(self.foreign_work()),
            now => Ok(now),
        }
    }

    fn foreign_work(&self) -> Error {
        Error::ForeignWork { device: self.shared.context.name().to_owned() }
    }
}

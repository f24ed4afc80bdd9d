//! Detects launches by other code on the capturing stream.
//!
//! In thread-local mode the driver records what any thread launches on a capturing stream. Nobody asked for that
//! work to run on each replay, so the nodes of the capture are counted around every launch of ours: one too many
//! is an error. A library's product makes a number of nodes that only it knows. What is launched at the very moment of a
//! launch of ours is not seen, and breaks the driver's own rule: graphs are not locked inside, and two threads that
//! add to one at once crash it (580.159).

use super::CudaBackend;
use crate::{Error, Result};

impl CudaBackend {
    /// Runs `work`, which puts something on the stream: one node for a kernel of ours (`single`).
    ///
    /// # Errors
    /// `work`'s, and [`Error::ForeignWork`].
    pub(super) fn watched<R>(
        &mut self,
        single: bool,
        work: impl FnOnce(&mut Self) -> Result<R>,
    ) -> Result<R> {
        let Some(before) = self.check_foreign_launches()? else { return work(self) };
        let out = work(self)?;
        let after = self.shared.stream.captured_nodes();
        if let Some(capture) = &mut self.capture {
            capture.nodes = after;
        }
        match after {
            Some(after) if single && after != before + 1 => Err(self.intruder()),
            _ => Ok(out),
        }
    }

    /// Compares the nodes of the capture with those that are ours, and gives their number; `None` outside
    /// captures, in one that was invalidated (which its end will say), and where the driver cannot tell.
    ///
    /// # Errors
    /// [`Error::ForeignWork`].
    pub(super) fn check_foreign_launches(&mut self) -> Result<Option<usize>> {
        let Some(capture) = &mut self.capture else { return Ok(None) };
        let Some(ours) = capture.nodes else { return Ok(None) };
        capture.nodes = self.shared.stream.captured_nodes();
        match capture.nodes {
            Some(now) if now != ours => Err(self.intruder()),
            now => Ok(now),
        }
    }

    fn intruder(&self) -> Error {
        Error::ForeignWork { device: self.shared.context.name().to_owned() }
    }
}

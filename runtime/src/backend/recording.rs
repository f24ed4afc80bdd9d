//! Captures that are no executable by themselves: several may run by one, which is updated in place.

use std::{any::Any, fmt, sync::Arc};

use crate::{Result, observe::inspect::Topology};

/// What two recordings must have in common, so that one executable can run either: for each node its kind, the
/// kernel, its block, shared memory and attributes; the edges, and how each orders. Grids, addresses and the rest
/// of the parameters may differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature(Arc<[u64]>);

impl Signature {
    /// The words that say it, as a backend chooses them; equal words mean that an update may be tried.
    pub fn new(words: Vec<u64>) -> Self {
        Self(words.into())
    }
}

/// A captured graph, and the memory that its launches need. An executable that runs it does not keep it: who
/// replays it does.
pub trait Recording: Send + Sync + fmt::Debug {
    /// Its number; never given twice in a process.
    fn id(&self) -> u64;

    /// What others must have, too, to share an executable with it.
    ///
    /// # Errors
    /// Why no other can, in a few words.
    fn signature(&self) -> Result<&Signature, &'static str>;

    /// Its nodes and what waits for what, as the device has them.
    ///
    /// # Errors
    /// As [`Executable::topology`](super::Executable::topology).
    fn topology(&self) -> Result<Topology>;

    /// For the backend that made it.
    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync>;
}

/// What came of an update.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Update {
    /// From the next replay on the executable runs that recording; replays under way run what they were launched
    /// with.
    Done,
    /// It cannot run it. It runs what it ran before.
    Refused {
        /// What the device says.
        why: String,
    },
}

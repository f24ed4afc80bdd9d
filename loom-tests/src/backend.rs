//! As much of the runtime as the files need.

use crate::Result;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Error {
    ContextLost { device: String, why: String },
}

pub(crate) trait PendingBytes: Send {
    fn wait(self: Box<Self>) -> Result<Vec<u8>>;
    fn is_ready(&self) -> bool;
}

//! As much of the runtime as the files need.

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Error {
    ContextLost { device: String, reason: String },
}

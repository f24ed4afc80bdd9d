//! The commands of which a program consists.

use crate::{
    Result,
    backend::{Backend, Conditional, Launch},
};

/// One command of a recording.
#[derive(Clone, Debug)]
pub(crate) enum Command {
    Launch {
        launch: Box<Launch>,
        /// The bytes of its workspace; 0 without one.
        workspace: u64,
    },
    /// Fills freed memory, where the backend asks for it.
    Poison {
        addr: u64,
        bytes: u64,
    },
    /// A block is free from here on: nothing reads what it holds, and a later operation may be given its memory. The
    /// device is told nothing.
    Free {
        addr: u64,
        bytes: u64,
    },
    Fork,
    Branch(usize),
    Join,
    /// A conditional node begins; its bodies follow, up to its end.
    Conditional(Conditional),
    Body(usize),
    EndConditional,
}

impl Command {
    /// Adds it to the capture of the backend, or runs it.
    ///
    /// # Errors
    /// Returns errors of the backend.
    pub(crate) fn issue(&self, backend: &mut dyn Backend) -> Result<()> {
        match self {
            Self::Launch { launch, .. } => backend.launch(launch),
            Self::Poison { addr, bytes } => backend.poison(*addr, *bytes),
            Self::Free { .. } => Ok(()),
            Self::Fork => backend.fork(),
            Self::Branch(index) => backend.branch(*index),
            Self::Join => backend.join(),
            Self::Conditional(node) => backend.begin_conditional(node),
            Self::Body(index) => backend.begin_body(*index),
            Self::EndConditional => backend.end_conditional(),
        }
    }

    /// Returns whether what comes before it and what comes after it keep their order: it begins or ends a branch or a
    /// body.
    pub(super) fn is_barrier(&self) -> bool {
        !matches!(self, Self::Launch { .. } | Self::Poison { .. } | Self::Free { .. })
    }
}

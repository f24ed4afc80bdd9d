//! Mapping the files of a model.

use std::{io, path::Path};

use graphable::load::MappedFile;

/// Maps the file at `path`, to which nobody may write until the value is dropped.
pub(crate) fn map(path: &Path) -> io::Result<MappedFile> {
    // SAFETY: the program does not write to the files of a model, and its documentation asks its user that no other program does
    // while the model is loaded. Programs that download replace files.
    unsafe { MappedFile::open(path) }
}

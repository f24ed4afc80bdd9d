//! How the programs open the files of a chat model.

use std::path::Path;

use graphable::load::MappedFile;
use graphable_examples::{Result, checkpoint::Files};

/// Maps the weights of the model at `path`.
pub(crate) fn open(path: &Path) -> Result<Files> {
    // SAFETY: this process does not write to files while it has them mapped: a model is downloaded under another name before it is
    // opened, and a timeline is created before that and written when the weights are dropped. `--help` asks the user that no other
    // process modifies the files of the model while the program runs.
    Files::open_mapped(path, |file| unsafe { MappedFile::open(file) })
}

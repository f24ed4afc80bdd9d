//! Outputs, taken apart into the pieces that recordings keep.

use std::sync::Arc;

use smallvec::SmallVec;

use super::{dim::RawDim, raw::RawTensor};
use crate::{Error, Result};

/// One piece of an output.
#[derive(Clone, Debug)]
pub(crate) enum Entry {
    /// A tensor.
    Tensor(#[doc(hidden)] RawTensor),
    /// A host value, a length or a discriminant.
    Word(u64),
    /// A string.
    Text(Arc<str>),
    /// A size, with the symbol that pads it.
    Size(RawDim),
}

/// Outputs on their way to being decoded. A list goes back to the recorder when they are, so a replay allocates none.
/// It passes through many results, as one word in each: a copy of several words that were just written one by one would
/// wait for them.
pub(crate) type Entries = Box<SmallVec<[Entry; 2]>>;

/// Collects the pieces of an output. Tensors are listed, not retained.
#[derive(Debug, Default)]
pub struct Encoder {
    pub(crate) entries: SmallVec<[Entry; 2]>,
    /// Id of the runtime whose output this is.
    runtime: u64,
    /// Whether a tensor in it belongs to another runtime: its slot means something else there.
    foreign: bool,
}

impl Encoder {
    /// For an output of the runtime of that id.
    pub(crate) fn of_runtime(runtime: u64) -> Self {
        Self { runtime, ..Self::default() }
    }

    /// Records that the output has a part of the runtime of that id.
    pub(crate) fn part_of(&mut self, runtime: u64) {
        self.foreign |= runtime != self.runtime;
    }

    /// Refuses tensors of another runtime in `what`.
    pub(crate) fn check(&self, what: &'static str) -> Result<()> {
        if self.foreign { Err(Error::DifferentRuntimes { op: what }) } else { Ok(()) }
    }

    pub(crate) fn raw(&mut self, raw: &RawTensor) {
        self.entries.push(Entry::Tensor(*raw));
    }

    /// A host value, a length or a discriminant.
    pub fn word(&mut self, word: u64) {
        self.entries.push(Entry::Word(word));
    }

    pub(crate) fn raw_size(&mut self, dim: RawDim) {
        self.entries.push(Entry::Size(dim));
    }

    /// A string.
    pub fn text(&mut self, text: &str) {
        self.entries.push(Entry::Text(text.into()));
    }
}

//! Outputs, split into the pieces that recordings store.

use std::sync::Arc;

use smallvec::SmallVec;

use super::{dim::RawDim, raw::RawTensor};
use crate::{Error, Result};

/// One piece of an output.
#[derive(Clone, Debug)]
pub(crate) enum Entry {
    /// A tensor.
    Tensor(RawTensor),
    /// A host value, a length or a discriminant.
    Word(u64),
    /// A string.
    Text(Arc<str>),
    /// A size, with the symbol that pads it.
    Size(RawDim),
}

/// Outputs to be decoded. After decoding, the list returns to the recorder, so a replay does not allocate. It
/// passes through many results as a single word: copying several words that were just written one by one
/// would stall on the stores.
pub(crate) type Entries = Box<SmallVec<[Entry; 2]>>;

/// Collects the pieces of an output. Tensors are listed, not retained.
#[derive(Debug, Default)]
pub struct Encoder {
    pub(crate) entries: SmallVec<[Entry; 2]>,
    /// The id of the runtime that the output belongs to.
    runtime: u64,
    /// Set if a tensor in it belongs to another runtime, where its slot has a different meaning.
    foreign: bool,
}

impl Encoder {
    /// Creates an encoder for an output of the runtime with that id.
    pub(crate) fn of_runtime(runtime: u64) -> Self {
        Self { runtime, ..Self::default() }
    }

    /// Records that the output contains a part of the runtime with that id.
    pub(crate) fn part_of(&mut self, runtime: u64) {
        self.foreign |= runtime != self.runtime;
    }

    /// Rejects tensors of another runtime in `what`.
    pub(crate) fn check(&self, what: &'static str) -> Result<()> {
        if self.foreign { Err(Error::DifferentRuntimes { op: what }) } else { Ok(()) }
    }

    pub(crate) fn raw(&mut self, raw: &RawTensor) {
        self.entries.push(Entry::Tensor(*raw));
    }

    /// Writes a host value, a length or a discriminant.
    pub fn word(&mut self, word: u64) {
        self.entries.push(Entry::Word(word));
    }

    pub(crate) fn raw_size(&mut self, dim: RawDim) {
        self.entries.push(Entry::Size(dim));
    }

    /// Writes a string.
    pub fn text(&mut self, text: &str) {
        self.entries.push(Entry::Text(text.into()));
    }
}

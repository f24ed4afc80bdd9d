//! How far loading is.

use std::{
    cell::{Cell, RefCell},
    collections::HashSet,
};

use graphable::load::{HostBlocks, HostTensor, TensorSource};

/// How far loading is, in bytes as they are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadProgress {
    /// Bytes of the tensors that are loaded.
    pub done: u64,
    /// Bytes of all tensors that the model has.
    pub total: u64,
}

/// A source that says how far loading is, before and after each of its tensors.
///
/// A tensor is loaded when the next one is asked for, and the last one at [`finish`](Self::finish).
pub(super) struct Watched<'a, S> {
    source: &'a S,
    /// The bytes of a tensor, as they are stored.
    size: &'a dyn Fn(&str) -> u64,
    total: u64,
    done: Cell<u64>,
    /// Of the tensor that is being loaded.
    loading: Cell<u64>,
    /// What was asked for: tied weights are one tensor.
    seen: RefCell<HashSet<String>>,
    each: RefCell<&'a mut dyn FnMut(LoadProgress)>,
}

impl<'a, S: TensorSource> Watched<'a, S> {
    /// `source` for a model that has `tensors`; a name that occurs twice is one tensor.
    pub(super) fn new(
        source: &'a S,
        tensors: impl IntoIterator<Item = String>,
        size: &'a dyn Fn(&str) -> u64,
        each: &'a mut dyn FnMut(LoadProgress),
    ) -> Self {
        let tensors: HashSet<_> = tensors.into_iter().collect();
        let total = tensors.iter().map(|name| size(name)).sum();
        each(LoadProgress { done: 0, total });
        Self {
            source,
            size,
            total,
            done: Cell::new(0),
            loading: Cell::new(0),
            seen: RefCell::default(),
            each: RefCell::new(each),
        }
    }

    /// Says that the last tensor is loaded.
    pub(super) fn finish(self) {
        self.next(0);
    }

    /// Another tensor is asked for, or the same one as floats after it was not there in blocks.
    fn asked_for(&self, name: &str) {
        if self.seen.borrow_mut().insert(name.to_owned()) {
            self.next((self.size)(name));
        }
    }

    /// Says that the tensor before is loaded, and remembers the bytes of the next one.
    fn next(&self, bytes: u64) {
        let loaded = self.loading.replace(bytes);
        if loaded > 0 {
            self.done.set(self.done.get() + loaded);
            (self.each.borrow_mut())(LoadProgress { done: self.done.get(), total: self.total });
        }
    }
}

impl<S: TensorSource> TensorSource for Watched<'_, S> {
    fn name(&self) -> String {
        self.source.name()
    }

    fn names(&self) -> Vec<String> {
        self.source.names()
    }

    fn tensor(&self, name: &str) -> graphable::Result<Option<HostTensor<'_>>> {
        self.asked_for(name);
        self.source.tensor(name)
    }

    fn blocks(&self, name: &str) -> graphable::Result<Option<HostBlocks<'_>>> {
        self.asked_for(name);
        self.source.blocks(name)
    }
}

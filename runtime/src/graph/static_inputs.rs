//! The static buffers of a function's inputs: memory whose address does not change between calls.

use std::sync::Arc;

use super::GraphObject;
use crate::{
    Result, Runtime,
    graph::spec::{Dim, DimsSpec},
    value::{
        layout::Layout,
        owned::{Caller, Owned},
        raw::RawTensor,
    },
};

/// The static buffers of one input.
#[derive(Default)]
pub(super) struct StaticBuffers {
    all: Vec<StaticBuffer>,
    /// The index of the buffer that was filled last.
    last_filled: Option<usize>,
}

/// One static buffer of an input.
struct StaticBuffer {
    /// In bytes.
    capacity: u64,
    memory: Arc<Owned>,
    /// The data that the caller placed there, until a call needs the memory for other data.
    fill: Option<Fill>,
}

/// Data that a caller placed in a static buffer.
#[derive(Clone, Copy)]
pub(super) struct Fill {
    /// The tensor that the caller has, without padding. It may have been dropped.
    pub(super) tensor: RawTensor,
    /// The layout of the data with its padding, which is zeros.
    pub(super) padded: Layout,
}

impl StaticBuffer {
    /// Returns whether the caller still has the tensor that it filled the buffer with: no other data may go there.
    fn is_lent(&self, rt: &Runtime) -> bool {
        self.fill.is_some_and(|fill| rt.core.borrow().memory.shows_static(&fill.tensor))
    }

    /// Returns what was placed there, if anything, and the memory.
    fn filled(&self) -> Option<(Fill, Arc<Owned>)> {
        self.fill.map(|fill| (fill, Arc::clone(&self.memory)))
    }
}

impl GraphObject {
    /// Returns a static buffer of an input for `bytes` bytes. One is kept for each capacity, and one more for each tensor
    /// that a caller filled one with and still has.
    pub(super) fn static_memory(&self, rt: &Runtime, i: usize, bytes: u64) -> Result<Arc<Owned>> {
        let mut statics = self.statics.borrow_mut();
        let buffers = &mut statics[i].all;
        let fitting = buffers.iter_mut().filter(|buffer| buffer.capacity >= bytes && !buffer.is_lent(rt));
        if let Some(buffer) = fitting.min_by_key(|buffer| buffer.capacity) {
            buffer.fill = None;
            return Ok(Arc::clone(&buffer.memory));
        }
        let spec = &self.spec.inputs[i];
        let largest = match spec.dims {
            DimsSpec::Some(dims) => dims.iter().try_fold(spec.dtype.size(), |bytes, d| match *d {
                Dim::Const(n) => bytes.checked_mul(n),
                Dim::Symbol(s) => bytes.checked_mul(self.schedules[s].as_ref()?.largest()),
            }),
            DimsSpec::Unspecified => None,
        };
        let planned = largest.unwrap_or(0) as u64;
        let capacity = if planned >= bytes { planned } else { bytes.next_power_of_two() };
        let memory = rt.allocate_static(capacity, Caller { id: self.id, name: self.spec.name })?;
        buffers.push(StaticBuffer { capacity, memory: Arc::clone(&memory), fill: None });
        Ok(memory)
    }

    /// Returns the fill that a tensor is, if it is one of the input's, and its memory.
    pub(super) fn fill_of(&self, i: usize, raw: &RawTensor) -> Option<(Fill, Arc<Owned>)> {
        let is = |Fill { tensor, .. }: Fill| {
            let same_slot = (tensor.slot, tensor.epoch) == (raw.slot, raw.epoch);
            same_slot && tensor.addr == raw.addr && tensor.layout == raw.layout
        };
        self.statics.borrow()[i].all.iter().find(|buffer| buffer.fill.is_some_and(is))?.filled()
    }

    /// Returns whether a tensor is what the input's memory was filled with.
    pub(super) fn is_filled_with(&self, i: usize, raw: &RawTensor) -> bool {
        self.fill_of(i, raw).is_some()
    }

    /// Returns the last fill of an input and its memory, unless other data needed that.
    pub(super) fn last_fill(&self, i: usize) -> Option<(Fill, Arc<Owned>)> {
        let buffers = &self.statics.borrow()[i];
        buffers.all.get(buffers.last_filled?)?.filled()
    }

    /// Notes what a buffer of an input was filled with.
    pub(super) fn note_fill(&self, i: usize, memory: &Arc<Owned>, fill: Fill) {
        let buffers = &mut self.statics.borrow_mut()[i];
        buffers.last_filled = buffers.all.iter().position(|buffer| Arc::ptr_eq(&buffer.memory, memory));
        if let Some(at) = buffers.last_filled {
            buffers.all[at].fill = Some(fill);
        }
    }

    /// Returns the number of buffers of each input.
    pub(super) fn statics_now(&self) -> Vec<usize> {
        self.statics.borrow().iter().map(|buffers| buffers.all.len()).collect()
    }

    /// Removes and returns the buffers that were allocated since then.
    pub(super) fn take_statics_since(&self, before: &[usize]) -> Vec<Arc<Owned>> {
        let mut statics = self.statics.borrow_mut();
        let new = statics.iter_mut().zip(before).flat_map(|(buffers, &len)| buffers.all.drain(len..));
        new.map(|buffer| buffer.memory).collect()
    }
}

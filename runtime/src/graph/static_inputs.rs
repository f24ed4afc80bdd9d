//! The static buffers of a function's inputs: memory whose address does not change between calls.

use std::sync::Arc;

use super::GraphObject;
use crate::{
    Result, Runtime,
    graph::inputs::{Dim, DimsSpec},
    value::{
        layout::Layout,
        owned::{Caller, Owned},
        raw::RawTensor,
    },
};

/// One static buffer of an input.
pub(super) struct StaticBuffer {
    /// In bytes.
    capacity: u64,
    memory: Arc<Owned>,
    /// The data that the caller placed there, until a call needs the memory for other data.
    fill: Option<Fill>,
}

/// Data that a caller placed in a static buffer.
#[derive(Clone)]
pub(super) struct Fill {
    /// The tensor that the caller has, without padding. It may have been dropped.
    pub(super) tensor: RawTensor,
    /// The layout of the data with its padding, which is zeros.
    pub(super) padded: Layout,
    /// Later fills have larger numbers.
    pub(super) order: u64,
    pub(super) memory: Arc<Owned>,
}

impl StaticBuffer {
    /// Returns whether the caller still has the tensor that it filled the buffer with: no other data may go there.
    fn is_lent(&self, rt: &Runtime) -> bool {
        self.fill.as_ref().is_some_and(|fill| rt.core.borrow().memory.shows_static(&fill.tensor))
    }
}

impl GraphObject {
    /// Returns a static buffer of an input for `bytes` bytes. One is kept for each capacity, and one more for each tensor
    /// that a caller filled one with and still has.
    pub(super) fn static_memory(&self, rt: &Runtime, i: usize, bytes: u64) -> Result<Arc<Owned>> {
        let mut statics = self.statics.borrow_mut();
        let fitting = statics[i].iter_mut().filter(|buffer| buffer.capacity >= bytes && !buffer.is_lent(rt));
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
        statics[i].push(StaticBuffer { capacity, memory: Arc::clone(&memory), fill: None });
        Ok(memory)
    }

    /// Returns the fill that a tensor is, if it is one of the input's.
    pub(super) fn fill_of(&self, i: usize, raw: &RawTensor) -> Option<Fill> {
        let is = |fill: &&Fill| {
            let tensor = &fill.tensor;
            let same_slot = (tensor.slot, tensor.epoch) == (raw.slot, raw.epoch);
            same_slot && tensor.addr == raw.addr && tensor.layout == raw.layout
        };
        let statics = self.statics.borrow();
        statics[i].iter().filter_map(|buffer| buffer.fill.as_ref()).find(is).cloned()
    }

    /// Returns whether a tensor is what the input's memory was filled with.
    pub(super) fn is_filled_with(&self, i: usize, raw: &RawTensor) -> bool {
        self.fill_of(i, raw).is_some()
    }

    /// Returns the latest fill of an input.
    pub(super) fn last_fill(&self, i: usize) -> Option<Fill> {
        let statics = self.statics.borrow();
        statics[i].iter().filter_map(|buffer| buffer.fill.as_ref()).max_by_key(|fill| fill.order).cloned()
    }

    /// Notes what a buffer of an input was filled with.
    pub(super) fn note_fill(&self, i: usize, fill: Fill) {
        let mut statics = self.statics.borrow_mut();
        let buffer = statics[i].iter_mut().find(|buffer| Arc::ptr_eq(&buffer.memory, &fill.memory));
        if let Some(buffer) = buffer {
            buffer.fill = Some(fill);
        }
    }

    /// Returns the number of buffers of each input.
    pub(super) fn statics_now(&self) -> Vec<usize> {
        self.statics.borrow().iter().map(Vec::len).collect()
    }

    /// Removes and returns the buffers that were allocated since then.
    pub(super) fn take_statics_since(&self, before: &[usize]) -> Vec<Arc<Owned>> {
        let mut statics = self.statics.borrow_mut();
        let new = statics.iter_mut().zip(before).flat_map(|(list, &len)| list.drain(len..));
        new.map(|buffer| buffer.memory).collect()
    }
}

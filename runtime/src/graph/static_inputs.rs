//! The static buffers of a function's inputs: memory whose address does not change between calls.

use std::{fmt, marker::PhantomData, sync::Arc};

use super::GraphObject;
use crate::{
    Result, Runtime,
    graph::inputs::{Dim, DimsSpec},
    value::owned::{Caller, Owned},
};

/// The static buffers of one input: capacity in bytes, memory.
pub(super) type Capacities = Vec<(u64, Arc<Owned>)>;

impl GraphObject {
    /// Returns the static buffer of an input for `bytes` bytes; one is kept for each capacity.
    pub(super) fn static_memory(&self, rt: &Runtime, i: usize, bytes: u64) -> Result<Arc<Owned>> {
        let mut statics = self.statics.borrow_mut();
        let fitting = statics[i].iter().filter(|(cap, _)| *cap >= bytes).min_by_key(|(cap, _)| *cap);
        if let Some((_, owned)) = fitting {
            return Ok(Arc::clone(owned));
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
        let owned = rt.allocate_static(capacity, Caller { id: self.id, name: self.spec.name })?;
        statics[i].push((capacity, Arc::clone(&owned)));
        Ok(owned)
    }

    /// Returns the number of buffers of each input.
    pub(super) fn statics_now(&self) -> Vec<usize> {
        self.statics.borrow().iter().map(Vec::len).collect()
    }

    /// Removes and returns the buffers that were allocated since then.
    pub(super) fn take_statics_since(&self, before: &[usize]) -> Vec<Arc<Owned>> {
        let mut statics = self.statics.borrow_mut();
        let new = statics.iter_mut().zip(before).flat_map(|(list, &len)| list.drain(len..));
        new.map(|(_, owned)| owned).collect()
    }
}

/// The static buffers of one input: memory whose address does not change between calls.
pub struct StaticInput<'g, T> {
    graph: &'g GraphObject,
    index: usize,
    _type: PhantomData<fn() -> T>,
}

impl<'g, T> StaticInput<'g, T> {
    /// Refers to the buffers of input `index`.
    #[doc(hidden)]
    pub fn new(graph: &'g GraphObject, index: usize) -> Self {
        Self { graph, index, _type: PhantomData }
    }

    /// Returns the name of the parameter.
    pub fn name(&self) -> &'static str {
        self.graph.spec.inputs[self.index].name
    }
}

impl<T> fmt::Debug for StaticInput<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StaticInput").field("name", &self.name()).finish_non_exhaustive()
    }
}

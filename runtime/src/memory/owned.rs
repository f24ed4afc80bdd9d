//! The existing parameters, states and buffers, by identity and by address.

use std::{
    collections::BTreeMap,
    sync::{Arc, Weak},
};

use rustc_hash::FxHashMap;

use crate::value::{
    memory::Memory,
    owned::{Owned, OwnerId},
};

/// An entry is removed when the runtime learns that its memory was dropped; until then the address is not
/// reused.
#[derive(Default)]
pub(crate) struct OwnedTable {
    all: FxHashMap<OwnerId, Entry>,
    at: BTreeMap<u64, OwnerId>,
    /// The ids of dropped objects with something to evict, which the next step evicts.
    retired: Vec<OwnerId>,
}

struct Entry {
    owned: Weak<Owned>,
    /// May outlive its handles in a view, or in a recording.
    memory: Weak<dyn Memory>,
    addr: u64,
}

impl std::fmt::Debug for OwnedTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OwnedTable").field("len", &self.all.len()).finish_non_exhaustive()
    }
}

impl OwnedTable {
    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// Objects dropped before must have been [removed](Self::remove), because their addresses may be reused.
    pub(crate) fn insert(&mut self, owned: &Arc<Owned>) {
        let addr = owned.memory.addr();
        let memory = Arc::downgrade(&owned.memory);
        self.all.insert(owned.id, Entry { owned: Arc::downgrade(owned), memory, addr });
        self.at.insert(addr, owned.id);
    }

    /// Removes a dropped object. Returns whether its memory is still in use.
    pub(crate) fn remove(&mut self, id: OwnerId) -> bool {
        let Some(Entry { memory, addr, .. }) = self.all.remove(&id) else { return false };
        if self.at.get(&addr) == Some(&id) {
            self.at.remove(&addr);
        }
        memory.strong_count() > 0
    }

    pub(crate) fn get(&self, id: OwnerId) -> Option<Arc<Owned>> {
        self.all.get(&id)?.owned.upgrade()
    }

    /// Returns the memory that begins at `addr`.
    pub(crate) fn beginning(&self, addr: u64) -> Option<Arc<Owned>> {
        self.get(*self.at.get(&addr)?)
    }

    /// Returns the memory that contains the byte at `addr`.
    pub(crate) fn holding(&self, addr: u64) -> Option<Arc<Owned>> {
        let (_, &id) = self.at.range(..=addr).next_back()?;
        self.get(id).filter(|owned| addr - owned.memory.addr() < owned.memory.len())
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Arc<Owned>> {
        self.all.values().filter_map(|entry| entry.owned.upgrade())
    }

    /// Notes that something with that id must be evicted in the next step.
    pub(crate) fn retire(&mut self, id: OwnerId) {
        self.retired.push(id);
    }

    pub(crate) fn take_retired(&mut self) -> Vec<OwnerId> {
        std::mem::take(&mut self.retired)
    }

    /// Returns the number of ids to be evicted.
    pub(crate) fn retired(&self) -> usize {
        self.retired.len()
    }
}

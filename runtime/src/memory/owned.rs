//! The parameters, state and buffers that exist, by identity and by address.

use std::{
    collections::BTreeMap,
    sync::{Arc, Weak},
};

use rustc_hash::FxHashMap;

use super::Core;
use crate::{backend::Memory, tensor::param::Owned};

/// An entry goes when the runtime hears that its memory was dropped; until then nobody has it.
#[derive(Default)]
pub(crate) struct OwnedTable {
    all: FxHashMap<u64, Entry>,
    at: BTreeMap<u64, u64>,
}

struct Entry {
    owned: Weak<Owned>,
    /// May live on behind a view, or in a recording.
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

    /// What was dropped before must have been [removed](Self::remove): its addresses may be given again.
    fn insert(&mut self, owned: &Arc<Owned>) {
        let addr = owned.memory.addr();
        let memory = Arc::downgrade(&owned.memory);
        self.all.insert(owned.id, Entry { owned: Arc::downgrade(owned), memory, addr });
        self.at.insert(addr, owned.id);
    }

    /// Forgets what was dropped. Says whether somebody has its memory still.
    fn remove(&mut self, id: u64) -> bool {
        let Some(Entry { memory, addr, .. }) = self.all.remove(&id) else { return false };
        if self.at.get(&addr) == Some(&id) {
            self.at.remove(&addr);
        }
        memory.strong_count() > 0
    }

    pub(crate) fn get(&self, id: u64) -> Option<Arc<Owned>> {
        self.all.get(&id)?.owned.upgrade()
    }

    /// What holds the byte at `addr`.
    pub(crate) fn holding(&self, addr: u64) -> Option<Arc<Owned>> {
        let (_, &id) = self.at.range(..=addr).next_back()?;
        self.get(id).filter(|owned| addr - owned.memory.addr() < owned.memory.len())
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Arc<Owned>> {
        self.all.values().filter_map(|entry| entry.owned.upgrade())
    }
}

impl Core {
    /// Owned memory was made; `dropped` are the ids of what went before it.
    pub(crate) fn own(&mut self, owned: &Arc<Owned>, dropped: &[u64]) {
        self.note_retired(dropped);
        self.owned_memory.insert(owned);
    }

    /// Owned memory and graph objects were dropped: what was recorded with them goes where the next step begins.
    pub(crate) fn note_retired(&mut self, dropped: &[u64]) {
        for &id in dropped {
            // A view of this step keeps it usable: it may be recorded still.
            let viewed = self.owned_memory.remove(id);
            let aside = self.is_set_aside(id);
            let learnt = self.shapes.contains_key(&id) || self.host_values.contains_key(&id);
            if viewed || aside || learnt || self.tree.holds(id) {
                self.retired.push(id);
            }
        }
    }
}

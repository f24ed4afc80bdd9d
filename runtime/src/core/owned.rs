//! The parameters, state and buffers that exist, by identity and by address.

use std::{
    collections::BTreeMap,
    sync::{Arc, Weak},
};

use rustc_hash::FxHashMap;

use super::Core;
use crate::param::Owned;

/// An entry goes when the runtime hears that its memory was dropped; until then nobody has it.
#[derive(Default)]
pub(crate) struct OwnedTable {
    all: FxHashMap<u64, (u64, Weak<Owned>)>,
    at: BTreeMap<u64, u64>,
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
        self.all.insert(owned.id, (addr, Arc::downgrade(owned)));
        self.at.insert(addr, owned.id);
    }

    fn remove(&mut self, id: u64) {
        let Some((addr, _)) = self.all.remove(&id) else { return };
        if self.at.get(&addr) == Some(&id) {
            self.at.remove(&addr);
        }
    }

    pub(crate) fn get(&self, id: u64) -> Option<Arc<Owned>> {
        self.all.get(&id)?.1.upgrade()
    }

    /// What holds the byte at `addr`.
    pub(crate) fn holding(&self, addr: u64) -> Option<Arc<Owned>> {
        let (_, &id) = self.at.range(..=addr).next_back()?;
        self.get(id).filter(|owned| addr - owned.memory.addr() < owned.memory.len())
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Arc<Owned>> {
        self.all.values().filter_map(|(_, weak)| weak.upgrade())
    }
}

impl Core {
    /// Owned memory was made; `dropped` are the ids of what went before it.
    pub(crate) fn own(&mut self, owned: &Arc<Owned>, dropped: &[u64]) {
        self.note_retired(dropped);
        self.owned_memory.insert(owned);
    }

    /// Owned memory and graph objects were dropped: what was recorded with them goes where the next step begins.
    pub(super) fn note_retired(&mut self, dropped: &[u64]) {
        for &id in dropped {
            self.owned_memory.remove(id);
            let aside = self.set_aside().is_some_and(|tree| tree.holds(id));
            let learnt = self.shapes.contains_key(&id) || self.host_values.contains_key(&id);
            if aside || learnt || self.tree.holds(id) {
                self.retired.push(id);
            }
        }
    }
}

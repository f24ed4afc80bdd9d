//! The memory of persistent values: held memory, and cached memory for the next value of the same size.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, Ordering},
    },
};

use rustc_hash::FxHashMap;

use crate::{
    Result,
    backend::Backend,
    value::owned::{Owned, OwnerId},
    value::persistent::{DroppedMemory, PersistentMemory},
    value::retire::RetireQueue,
};

/// The number of steps after which memory of dropped kept values is freed, if no value of its size was kept.
const CACHED_STEPS: u64 = 4;

/// The queue for memory that nobody holds any more, and the runtime to which it belongs.
pub(crate) struct Queues<'a> {
    pub(crate) runtime: u64,
    pub(crate) retire: &'a Arc<RetireQueue<OwnerId>>,
    pub(crate) dropped: &'a Arc<DroppedMemory>,
}

/// Memory of kept values: held memory, and memory that can be reused.
#[derive(Default)]
pub(crate) struct PersistentSet {
    /// By identity. Dropped memory is removed in the next step.
    held: FxHashMap<OwnerId, Weak<PersistentMemory>>,
    held_bytes: Arc<AtomicU64>,
    /// By size; among equal sizes, the one that has waited longest comes first.
    free_list: BTreeMap<(u64, u64), Arc<Owned>>,
    /// The steps in which cached memory was added, with the keys in the free list, from which it may be gone.
    waiting: VecDeque<(u64, (u64, u64))>,
    cached_bytes: u64,
    step: u64,
    /// The number of blocks that were ever cached.
    count: u64,
}

impl std::fmt::Debug for PersistentSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PersistentSet")
            .field("held", &self.held.len())
            .field("free_list", &self.free_list.len())
            .finish_non_exhaustive()
    }
}

impl PersistentSet {
    /// Begins a step: caches dropped memory, and frees memory that was cached for long. Steps of an estimate
    /// do not count.
    pub(crate) fn begin_step(&mut self, dropped: Vec<Arc<Owned>>, counts: bool) {
        self.step += u64::from(counts);
        while let Some(&(since, key)) = self.waiting.front()
            && since + CACHED_STEPS <= self.step
        {
            self.waiting.pop_front();
            self.take_cached(key);
        }
        for owned in dropped {
            self.held.remove(&owned.id);
            let bytes = owned.memory.len();
            self.count += 1;
            self.waiting.push_back((self.step, (bytes, self.count)));
            self.free_list.insert((bytes, self.count), owned);
            self.cached_bytes += bytes;
        }
    }

    /// Returns the number of steps, without those of estimates; 1 in the first step.
    pub(crate) fn steps(&self) -> u64 {
        self.step
    }

    /// Frees cached memory.
    pub(crate) fn free_cached(&mut self) {
        self.free_list.clear();
        self.waiting.clear();
        self.cached_bytes = 0;
    }

    /// Returns the number of bytes that kept values hold.
    pub(crate) fn held_bytes(&self) -> u64 {
        self.held_bytes.load(Ordering::Relaxed)
    }

    /// Returns the number of cached bytes.
    pub(crate) fn cached_bytes(&self) -> u64 {
        self.cached_bytes
    }

    /// Returns the number of held and cached blocks.
    pub(crate) fn len(&self) -> usize {
        self.held.len() + self.waiting.len()
    }

    pub(crate) fn find(&self, id: OwnerId) -> Option<Arc<PersistentMemory>> {
        self.held.get(&id)?.upgrade()
    }

    /// Returns memory for a value of that many bytes, a multiple of the unit: that of a dropped value, if
    /// there is one. Once nobody holds it, it is added to the queue of `queues`.
    pub(crate) fn hold(
        &mut self,
        backend: &mut dyn Backend,
        bytes: u64,
        queues: &Queues<'_>,
    ) -> Result<Arc<PersistentMemory>> {
        let owned = match self.reuse(bytes) {
            Some(owned) => owned,
            None => Owned::new(queues.runtime, backend.alloc(bytes)?, None, Arc::clone(queues.retire)),
        };
        let id = owned.id;
        let memory = PersistentMemory::held(owned, Arc::downgrade(queues.dropped), &self.held_bytes);
        self.held.insert(id, Arc::downgrade(&memory));
        Ok(memory)
    }

    fn take_cached(&mut self, key: (u64, u64)) -> Option<Arc<Owned>> {
        let owned = self.free_list.remove(&key)?;
        self.cached_bytes -= owned.memory.len();
        Some(owned)
    }

    fn reuse(&mut self, bytes: u64) -> Option<Arc<Owned>> {
        let (&key, _) = self.free_list.range((bytes, 0)..=(bytes, u64::MAX)).next()?;
        self.take_cached(key)
    }
}

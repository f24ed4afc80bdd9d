//! Values that leave their step, and the memory that they get.

use std::{
    collections::{BTreeMap, VecDeque, hash_map},
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, Ordering},
    },
};

use rustc_hash::FxHashMap;

use super::{Core, Placement};
use crate::{
    DType, Result,
    backend::{Op, View},
    memory::pool::{ALIGN, rounded},
    observe::event::CopySlot,
    tensor::{
        RawTensor,
        live_out::Entry,
        param::Owned,
        persistent::{KeptMemory, Piece, SpareQueue},
    },
    value::{layout::Layout, retire::RetireQueue},
};

/// Steps after which memory of dropped kept values is freed, if no value of its size was kept.
const SPARE_STEPS: u64 = 4;

/// Where memory goes when nobody holds it any more.
pub(crate) struct Queues<'a> {
    pub(crate) runtime: u64,
    pub(crate) retire: &'a Arc<RetireQueue>,
    pub(crate) spares: &'a Arc<SpareQueue>,
}

/// One storage on its way out: what of it is shown, and where that goes.
pub(crate) struct Storage {
    start: u64,
    end: u64,
    memory: Option<Arc<KeptMemory>>,
}

/// Memory of kept values: what is held, and what could be used again.
#[derive(Default)]
pub(crate) struct KeptSet {
    /// By identity. What was dropped goes with the next step.
    held: FxHashMap<u64, Weak<KeptMemory>>,
    held_bytes: Arc<AtomicU64>,
    /// By size; of one size the one that has waited longest first.
    spares: BTreeMap<(u64, u64), Arc<Owned>>,
    /// Steps in which they began to wait, with their keys in `spares`, from which they may be gone.
    waiting: VecDeque<(u64, (u64, u64))>,
    spare_bytes: u64,
    step: u64,
    /// How many have ever waited.
    count: u64,
}

impl std::fmt::Debug for KeptSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KeptSet")
            .field("held", &self.held.len())
            .field("spares", &self.spares.len())
            .finish_non_exhaustive()
    }
}

impl KeptSet {
    /// A step begins: takes in what was dropped, and frees what waited for long. Steps of an estimate do not count.
    pub(crate) fn begin_step(&mut self, dropped: Vec<Arc<Owned>>, counts: bool) {
        self.step += u64::from(counts);
        while let Some(&(since, key)) = self.waiting.front()
            && since + SPARE_STEPS <= self.step
        {
            self.waiting.pop_front();
            self.take_spare(key);
        }
        for owned in dropped {
            self.held.remove(&owned.id);
            let bytes = owned.memory.len();
            self.count += 1;
            self.waiting.push_back((self.step, (bytes, self.count)));
            self.spares.insert((bytes, self.count), owned);
            self.spare_bytes += bytes;
        }
    }

    /// How many steps there were, without those of estimates; from 1 in the first.
    pub(crate) fn steps(&self) -> u64 {
        self.step
    }

    /// Frees what nobody holds.
    pub(crate) fn free_spares(&mut self) {
        self.spares.clear();
        self.waiting.clear();
        self.spare_bytes = 0;
    }

    /// Bytes that kept values hold.
    pub(crate) fn held_bytes(&self) -> u64 {
        self.held_bytes.load(Ordering::Relaxed)
    }

    /// Bytes that wait for the next kept value.
    pub(crate) fn spare_bytes(&self) -> u64 {
        self.spare_bytes
    }

    /// How many are held or wait.
    pub(crate) fn len(&self) -> usize {
        self.held.len() + self.waiting.len()
    }

    pub(crate) fn find(&self, id: u64) -> Option<Arc<KeptMemory>> {
        self.held.get(&id)?.upgrade()
    }

    pub(crate) fn hold(&mut self, owned: Arc<Owned>, spares: &Arc<SpareQueue>) -> Arc<KeptMemory> {
        let id = owned.id;
        let memory = KeptMemory::held(owned, Arc::downgrade(spares), &self.held_bytes);
        self.held.insert(id, Arc::downgrade(&memory));
        memory
    }

    pub(crate) fn take_spare(&mut self, key: (u64, u64)) -> Option<Arc<Owned>> {
        let owned = self.spares.remove(&key)?;
        self.spare_bytes -= owned.memory.len();
        Some(owned)
    }

    pub(crate) fn spare(&mut self, bytes: u64) -> Option<Arc<Owned>> {
        let (&key, _) = self.spares.range((bytes, 0)..=(bytes, u64::MAX)).next()?;
        self.take_spare(key)
    }
}

impl Core {
    /// Gives every storage of a value memory that outlives the step.
    ///
    /// The caller has checked that it may look.
    pub(crate) fn keep(&mut self, entries: &[Entry], queues: &Queues<'_>) -> Result<Vec<Piece>> {
        self.check_outputs("keep", entries)?;
        // In the order of their first view, so that equal values get equal memory.
        let mut storages: Vec<Storage> = Vec::new();
        let mut index: FxHashMap<(u64, u32), usize> = FxHashMap::default();
        for entry in entries {
            if let Entry::Tensor(raw) = entry {
                self.add_storage(&mut storages, &mut index, &self.unpadded(*raw));
            }
        }
        for storage in &mut storages {
            if storage.memory.is_none() {
                storage.memory = Some(self.copy_out(storage.start, storage.end, queues)?);
            }
        }
        let mut pieces = Vec::with_capacity(entries.len());
        for entry in entries {
            pieces.push(match entry {
                Entry::Word(word) => Piece::Word(*word),
                Entry::Text(text) => Piece::Text(Arc::clone(text)),
                Entry::Size(dim) => Piece::Size(self.unpadded_size(*dim)?),
                Entry::Tensor(raw) => {
                    let raw = self.unpadded(*raw);
                    let found = index.get(&self.storage_key(&raw)).map(|&at| &storages[at]);
                    let Some((storage, memory)) = found.and_then(|s| Some((s, s.memory.as_ref()?))) else {
                        return Err(crate::Error::NeverComputed { op: "keep" });
                    };
                    Piece::Tensor {
                        memory: Arc::clone(memory),
                        offset: raw.addr - storage.start,
                        dtype: raw.dtype,
                        layout: raw.layout,
                    }
                }
            });
        }
        Ok(pieces)
    }

    /// What two views of one storage have in common: the identity of owned memory that no call overwrites,
    /// else the slot.
    pub(crate) fn storage_key(&self, raw: &RawTensor) -> (u64, u32) {
        if raw.owned != 0 && self.is_stable(raw) { (raw.owned, 0) } else { (0, raw.slot) }
    }

    /// Whether its memory is a parameter's, or was kept before.
    pub(crate) fn is_stable(&self, raw: &RawTensor) -> bool {
        self.slots[raw.slot as usize].home == Placement::Owned
    }

    pub(crate) fn add_storage(
        &self,
        storages: &mut Vec<Storage>,
        index: &mut FxHashMap<(u64, u32), usize>,
        raw: &RawTensor,
    ) {
        let key = self.storage_key(raw);
        let (start, end) = raw.view().range();
        let slot = &self.slots[raw.slot as usize];
        let held = (key.0 != 0).then(|| self.stable_memory(key.0)).flatten();
        let start = match held {
            Some(_) => slot.base,
            // Alignment within the storage stays: kernels choose by it.
            None => slot.base + (start - slot.base) / ALIGN * ALIGN,
        };
        match index.entry(key) {
            hash_map::Entry::Occupied(known) => {
                let storage = &mut storages[*known.get()];
                storage.start = storage.start.min(start);
                storage.end = storage.end.max(end);
            }
            hash_map::Entry::Vacant(new) => {
                new.insert(storages.len());
                storages.push(Storage { start, end, memory: held });
            }
        }
    }

    /// Memory that can be shared instead of copied.
    pub(crate) fn stable_memory(&self, id: u64) -> Option<Arc<KeptMemory>> {
        self.kept.find(id).or_else(|| Some(KeptMemory::shared(self.owned_memory.get(id)?)))
    }

    pub(crate) fn copy_out(&mut self, start: u64, end: u64, queues: &Queues<'_>) -> Result<Arc<KeptMemory>> {
        let bytes = end - start;
        let owned = match self.kept.spare(rounded(bytes)) {
            Some(owned) => owned,
            None => {
                let memory = self.backend.alloc(rounded(bytes))?;
                Owned::new(queues.runtime, memory, (0, ""), Arc::clone(queues.retire))
            }
        };
        let to = owned.memory.addr();
        // From here on, an error gives it back to the spares.
        let memory = self.kept.hold(owned, queues.spares);
        if bytes > 0 {
            let layout = Layout::contiguous(&[bytes as usize])?;
            let view = |addr| View { addr, dtype: DType::U8, layout };
            self.launch_now(Op::Copy, &[view(start)], &[view(to)])?;
            self.log.copied(CopySlot::Kept, bytes);
        }
        Ok(memory)
    }
}

//! Values that leave their step, and the memory that they get.

use std::sync::{Arc, Weak};

use super::{Core, Home, Slot};
use crate::{
    DType, Result,
    backend::{Op, View},
    event::CopySlot,
    kept::{KeptMemory, Piece, SpareQueue},
    layout::Layout,
    output::Entry,
    param::Owned,
    pool::{ALIGN, rounded},
    retire::RetireQueue,
    tensor::RawTensor,
};

/// Steps after which memory of dropped kept values is freed, if no value of its size was kept.
const SPARE_STEPS: u32 = 4;

/// Where memory goes when nobody holds it any more.
pub(crate) struct Queues<'a> {
    pub(crate) runtime: u64,
    pub(crate) retire: &'a Arc<RetireQueue>,
    pub(crate) spares: &'a Arc<SpareQueue>,
}

/// One storage on its way out: what of it is shown, and where that goes.
struct Storage {
    key: (u64, u32),
    start: u64,
    end: u64,
    memory: Option<Arc<KeptMemory>>,
}

/// Memory of kept values: what is held, and what could be used again.
#[derive(Default)]
pub(crate) struct KeptSet {
    held: Vec<Weak<KeptMemory>>,
    /// With the number of steps that each has waited.
    spares: Vec<(Arc<Owned>, u32)>,
}

impl std::fmt::Debug for KeptSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KeptSet").field("held", &self.held.len()).field("spares", &self.spares.len()).finish()
    }
}

impl KeptSet {
    /// A step begins: takes in what was dropped, and frees what waited for long.
    pub(crate) fn begin_step(&mut self, dropped: Vec<Arc<Owned>>) {
        for (_, steps) in &mut self.spares {
            *steps += 1;
        }
        self.spares.retain(|(_, steps)| *steps < SPARE_STEPS);
        self.spares.extend(dropped.into_iter().map(|owned| (owned, 0)));
        self.held.retain(|memory| memory.strong_count() > 0);
    }

    /// Frees what nobody holds.
    pub(crate) fn free_spares(&mut self) {
        self.spares.clear();
    }

    /// Bytes that kept values hold.
    pub(crate) fn held_bytes(&self) -> u64 {
        self.held.iter().filter_map(Weak::upgrade).map(|m| m.owned().memory.len()).sum()
    }

    /// Bytes that wait for the next kept value.
    pub(crate) fn spare_bytes(&self) -> u64 {
        self.spares.iter().map(|(owned, _)| owned.memory.len()).sum()
    }

    fn find(&self, id: u64) -> Option<Arc<KeptMemory>> {
        self.held.iter().filter_map(Weak::upgrade).find(|memory| memory.owned().id == id)
    }

    fn spare(&mut self, bytes: u64) -> Option<Arc<Owned>> {
        let at = self.spares.iter().position(|(owned, _)| owned.memory.len() == bytes)?;
        Some(self.spares.remove(at).0)
    }
}

impl Core {
    /// Gives every storage of a value memory that outlives the step.
    ///
    /// The caller has checked that it may look.
    pub(crate) fn keep(&mut self, entries: &[Entry], queues: &Queues<'_>) -> Result<Vec<Piece>> {
        self.check_outputs("keep", entries)?;
        let mut storages: Vec<Storage> = Vec::new();
        for entry in entries {
            if let Entry::Tensor(raw) = entry {
                self.add_storage(&mut storages, &self.unpadded(*raw));
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
                Entry::Size(dim) => Piece::Size(self.unpadded_size(*dim)),
                Entry::Tensor(raw) => {
                    let raw = self.unpadded(*raw);
                    let key = self.storage_key(&raw);
                    let found = storages.iter().find(|s| s.key == key);
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
    fn storage_key(&self, raw: &RawTensor) -> (u64, u32) {
        if raw.owned != 0 && self.is_stable(raw) { (raw.owned, 0) } else { (0, raw.slot) }
    }

    /// Whether its memory is a parameter's, or was kept before.
    fn is_stable(&self, raw: &RawTensor) -> bool {
        let Slot { home, made_by, .. } = &self.slots[raw.slot as usize];
        *home == Home::Owned && *made_by != crate::function::STATIC_INPUT
    }

    fn add_storage(&self, storages: &mut Vec<Storage>, raw: &RawTensor) {
        let key = self.storage_key(raw);
        let (start, end) = raw.view().range();
        let slot = &self.slots[raw.slot as usize];
        let held = (key.0 != 0).then(|| self.stable_memory(key.0)).flatten();
        let start = match held {
            Some(_) => slot.base,
            // Alignment within the storage stays: kernels choose by it.
            None => slot.base + (start - slot.base) / ALIGN * ALIGN,
        };
        match storages.iter_mut().find(|s| s.key == key) {
            Some(storage) => {
                storage.start = storage.start.min(start);
                storage.end = storage.end.max(end);
            }
            None => storages.push(Storage { key, start, end, memory: held }),
        }
    }

    /// Memory that can be shared instead of copied.
    fn stable_memory(&self, id: u64) -> Option<Arc<KeptMemory>> {
        self.kept.find(id).or_else(|| {
            let owned = self.owned_memory.iter().filter_map(Weak::upgrade).find(|owned| owned.id == id)?;
            Some(KeptMemory::new(owned, Weak::new()))
        })
    }

    fn copy_out(&mut self, start: u64, end: u64, queues: &Queues<'_>) -> Result<Arc<KeptMemory>> {
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
        let memory = KeptMemory::new(owned, Arc::downgrade(queues.spares));
        if bytes > 0 {
            let layout = Layout::contiguous(&[bytes as usize])?;
            let view = |addr| View { addr, dtype: DType::U8, layout };
            self.launch_now(Op::Copy, &[view(start)], &[view(to)])?;
            self.log.copied(CopySlot::Kept, bytes);
        }
        self.kept.held.push(Arc::downgrade(&memory));
        Ok(memory)
    }
}

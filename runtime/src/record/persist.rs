//! Values that leave their step: their storages are copied to memory that outlives it.

use std::{collections::hash_map, sync::Arc};

use rustc_hash::FxHashMap;

use super::{call::CallState, launch::Launcher};
use crate::{
    DType, Result,
    backend::View,
    memory::{
        COPY, Placement, Queues, SlotId,
        pool::{ALIGN, rounded},
    },
    observe::{event::CopySlot, occurrence::Occurrence},
    value::{
        entry::Entry,
        layout::Layout,
        owned::OwnerId,
        persistent::{PersistentMemory, Piece},
        raw::RawTensor,
    },
};

/// One storage to be persisted: the range that is viewed, and its destination.
struct Storage {
    start: u64,
    end: u64,
    memory: Option<Arc<PersistentMemory>>,
}

/// The common property of all views of one storage.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum StorageKey {
    /// The identity of owned memory that no call overwrites.
    Owned(OwnerId),
    Slot(SlotId),
}

impl Launcher<'_> {
    /// Copies every storage of a value to memory that outlives the step.
    ///
    /// The caller has checked that it may look.
    pub(crate) fn persist(
        &mut self,
        call: &CallState,
        entries: &[Entry],
        queues: &Queues<'_>,
    ) -> Result<Vec<Piece>> {
        self.recorder.check_outputs(self.memory, "keep", entries)?;
        // In the order of their first view, so that equal values get equal memory.
        let mut storages: Vec<Storage> = Vec::new();
        let mut index: FxHashMap<StorageKey, usize> = FxHashMap::default();
        for entry in entries {
            if let Entry::Tensor(raw) = entry {
                self.add_storage(&mut storages, &mut index, &call.unpadded(*raw));
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
                Entry::Size(dim) => Piece::Size(call.unpadded_size(*dim)?),
                Entry::Tensor(raw) => {
                    let raw = call.unpadded(*raw);
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

    fn storage_key(&self, raw: &RawTensor) -> StorageKey {
        match raw.owner {
            Some(owner) if self.is_stable(raw) => StorageKey::Owned(owner),
            _ => StorageKey::Slot(raw.slot),
        }
    }

    /// Returns whether its memory is a parameter's, or is already persistent.
    fn is_stable(&self, raw: &RawTensor) -> bool {
        self.memory.slot(raw.slot).placement() == Placement::Owned
    }

    fn add_storage(
        &self,
        storages: &mut Vec<Storage>,
        index: &mut FxHashMap<StorageKey, usize>,
        raw: &RawTensor,
    ) {
        let key = self.storage_key(raw);
        let (start, end) = raw.view().range();
        let slot = self.memory.slot(raw.slot);
        let held = match key {
            StorageKey::Owned(id) => self.stable_memory(id),
            StorageKey::Slot(_) => None,
        };
        let start = match held {
            Some(_) => slot.base(),
            // Alignment within the storage stays: kernels choose by it.
            None => slot.base() + (start - slot.base()) / ALIGN * ALIGN,
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
    fn stable_memory(&self, id: OwnerId) -> Option<Arc<PersistentMemory>> {
        let shared = || Some(PersistentMemory::shared(self.memory.owned().get(id)?));
        self.memory.persistent().find(id).or_else(shared)
    }

    fn copy_out(&mut self, start: u64, end: u64, queues: &Queues<'_>) -> Result<Arc<PersistentMemory>> {
        let bytes = end - start;
        // From here on, an error returns it to the cached memory.
        let memory = self.memory.persistent_mut().hold(self.stream.backend_mut(), rounded(bytes), queues)?;
        if bytes > 0 {
            let to = memory.owned().memory.addr();
            let layout = Layout::contiguous(&[bytes as usize])?;
            let view = |addr| View { addr, dtype: DType::U8, layout };
            self.launch(COPY, &[view(start)], &[view(to)])?;
            self.log.emit(Occurrence::Copied { slot: CopySlot::Kept, bytes });
        }
        Ok(memory)
    }
}

//! Placement of values that leave: results of the call, and results of eager regions.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::{body::BodyRunner, call::CallState, launch::Launcher};
use crate::{
    DType, Result,
    backend::View,
    base::plan::Site,
    memory::{BlockArena, COPY, Misplaced, NewTensor, Origin, Placement, SlotId, pool::Block},
    observe::{event::CopySlot, occurrence::Occurrence},
    tree::Tree,
    value::layout::{Layout, PaddedDims},
    value::{
        dim::DimKind,
        entry::{Entries, Entry},
        raw::RawTensor,
    },
};

/// The destination of a block.
pub(crate) struct Target {
    pub(crate) arena: BlockArena,
    /// A block that is there already.
    pub(crate) block: Option<Block>,
    /// The kind of copy as which it is counted, if it is.
    pub(crate) counted: Option<CopySlot>,
}

/// The copies of blocks, by the slots of the originals.
#[derive(Default)]
struct Copies {
    few: SmallVec<[(SlotId, RawTensor); 8]>,
    /// Once there are more than that.
    many: FxHashMap<SlotId, RawTensor>,
}

impl Copies {
    fn of(&self, slot: SlotId) -> Option<RawTensor> {
        let few = self.few.iter().find(|(of, _)| *of == slot).map(|(_, copy)| *copy);
        few.or_else(|| self.many.get(&slot).copied())
    }

    fn add(&mut self, slot: SlotId, copy: RawTensor) {
        if self.few.len() < self.few.inline_size() {
            self.few.push((slot, copy));
        } else {
            self.many.insert(slot, copy);
        }
    }
}

impl BodyRunner<'_> {
    /// Moves the outputs of the running call out of memory that the next call uses, and cuts off padding.
    ///
    /// # Errors
    /// Returns the errors of [`Launcher::finish_outputs`].
    pub(crate) fn finish_outputs(&mut self, outputs: &[Entry]) -> Result<Option<Entries>> {
        self.replayer.launcher.finish_outputs(self.call, self.replayer.tree, outputs)
    }
}

impl Launcher<'_> {
    /// Moves the call's outputs out of memory that the next call uses, and cuts off padding.
    ///
    /// Every tensor of the result has its own reference. Returns `None` if nothing had to change.
    ///
    /// # Errors
    /// Returns [`Error::NeverComputed`](crate::Error::NeverComputed) or
    /// [`Error::PaddedSize`](crate::Error::PaddedSize), and errors of copies.
    fn finish_outputs(
        &mut self,
        call: &CallState,
        tree: &mut Tree,
        outputs: &[Entry],
    ) -> Result<Option<Entries>> {
        self.recorder.check_outputs(self.memory, "an output of a call", outputs)?;
        for entry in outputs {
            if let Entry::Size(dim) = entry {
                call.unpadded_size(*dim)?;
            }
        }
        self.expect_results(outputs);
        // A static input is overwritten by the next call; parameters are not.
        let moves = |launcher: &Self, raw: &RawTensor| {
            let placement = launcher.memory.slot(raw.slot).placement();
            matches!(placement, Placement::Pool | Placement::StaticInput)
        };
        let changed = outputs.iter().any(|e| match e {
            Entry::Tensor(raw) => raw.marks.any() || moves(self, raw),
            Entry::Size(dim) => dim.kind != DimKind::Number,
            _ => false,
        });
        if !changed {
            return Ok(None);
        }
        let counted = (!call.has_warmed_up(self.log.stats().warmups)).then_some(CopySlot::Result);
        let mut entries = self.moved(outputs, moves, |launcher, slot| {
            launcher.plan_result(tree, slot);
            Target { arena: BlockArena::Results, block: None, counted }
        })?;
        for entry in entries.iter_mut() {
            match entry {
                Entry::Tensor(raw) => *raw = call.unpadded(*raw),
                Entry::Size(dim) => *dim = call.unpadded_size(*dim).unwrap_or(*dim),
                _ => {}
            }
        }
        Ok(Some(entries))
    }

    /// Returns the outputs, with those that `moves` selects in memory of their own: one copy per block, so
    /// that views of it keep their offsets. `place` returns the destination of a block. Every tensor of the
    /// result has one reference; after an error there is none.
    fn moved(
        &mut self,
        outputs: &[Entry],
        moves: impl Fn(&Self, &RawTensor) -> bool,
        mut place: impl FnMut(&mut Self, SlotId) -> Target,
    ) -> Result<Entries> {
        let mut copies = Copies::default();
        let mut entries = self.recorder.take_entries();
        for entry in outputs {
            let Entry::Tensor(raw) = entry else {
                entries.push(entry.clone());
                continue;
            };
            if !moves(self, raw) {
                self.memory.retain(raw.slot, raw.epoch);
                entries.push(entry.clone());
                continue;
            }
            let copy = match copies.of(raw.slot) {
                Some(copy) => {
                    self.memory.retain(copy.slot, copy.epoch);
                    copy
                }
                None => {
                    let target = place(self, raw.slot);
                    let copy = match self.copy_block(raw.slot, &target) {
                        Ok(copy) => copy,
                        Err(error) => {
                            self.release_all(&entries);
                            return Err(error);
                        }
                    };
                    if let Some(slot) = target.counted {
                        let bytes = self.memory.slot(copy.slot).bytes();
                        self.log.emit(Occurrence::Copied { slot, bytes });
                    }
                    copies.add(raw.slot, copy);
                    copy
                }
            };
            let addr = copy.addr + (raw.addr - self.memory.slot(raw.slot).base());
            entries.push(Entry::Tensor(RawTensor { slot: copy.slot, addr, owner: None, ..*raw }));
        }
        Ok(entries)
    }

    /// Next time, the allocation of this slot is placed in the results arena.
    fn plan_result(&mut self, tree: &mut Tree, slot: SlotId) {
        match self.memory.slot(slot).origin() {
            Origin::Segment { group, ordinal } if tree.knows_group(group) => {
                let results = &mut tree.group_mut(group).results;
                if let Err(at) = results.binary_search(&ordinal) {
                    results.insert(at, ordinal);
                    // Recordings that place it in the pool would always need the copy.
                    tree.evict_group(group, self.log);
                }
            }
            Origin::Result(result) => self.memory.learned_mut().leaves_the_call(result),
            Origin::Segment { .. } | Origin::Region { .. } | Origin::Padded { .. } | Origin::Other => {}
        }
    }

    /// Notes that results of regions leave the call from where they were made: next time they are placed with
    /// the other results.
    fn expect_results(&mut self, outputs: &[Entry]) {
        for entry in outputs {
            if let Entry::Tensor(raw) = entry
                && let slot = self.memory.slot(raw.slot)
                && slot.placement() == Placement::Eager
                && !slot.stands_for_block()
                && let Origin::Result(result) = slot.origin()
            {
                self.memory.learned_mut().leaves_the_call(result);
            }
        }
    }

    /// Copies the whole block of a slot, so that all views of it keep their offsets.
    fn copy_block(&mut self, id: SlotId, target: &Target) -> Result<RawTensor> {
        let slot = self.memory.slot(id);
        let (base, bytes, origin, producer) = (slot.base(), slot.bytes(), slot.origin(), slot.producer());
        let layout = Layout::contiguous(&[bytes as usize])?;
        let new = NewTensor { origin, producer, dtype: DType::U8, layout, marks: PaddedDims::NONE };
        let copy = match target.block {
            Some(block) => self.memory.tensor_in(target.arena, block, &new),
            None => self.new_tensor(target.arena, &new)?,
        };
        let from = View { addr: base, dtype: DType::U8, layout };
        if let Err(error) = self.launch(COPY, &[from], &[copy.view()]) {
            self.release(copy.slot, copy.epoch);
            return Err(error);
        }
        Ok(copy)
    }

    /// Opens an eager region: blocks of the pool are reserved for the results that are expected there.
    /// Regions do not nest, because one is the whole expression.
    pub(crate) fn begin_region(&mut self, call: &CallState, site: &'static Site) {
        let key = call.region_key(self.memory.call_number());
        for expected in self.memory.begin_region(site, key.as_ref()) {
            match self.place(BlockArena::Pool, expected.bytes) {
                Ok(block) => self.memory.reserve(expected, block),
                // The region continues without it; its own allocations report the reason.
                Err(_) => break,
            }
        }
        self.log.emit(Occurrence::RanEager { site });
    }

    /// Moves the results of an eager region to where the segments after it expect them. Returns `None` if
    /// they are already there.
    ///
    /// # Errors
    /// Returns [`Error::NeverComputed`](crate::Error::NeverComputed), and errors of copies.
    pub(crate) fn relocate_results(&mut self, outputs: &[Entry]) -> Result<Option<Entries>> {
        if self.recorder.is_running() {
            // In a captured whole call, it is a variable like any other: an unused one may have been freed.
            return Ok(None);
        }
        self.recorder.check_outputs(self.memory, "the result of an eager region", outputs)?;
        let tensors = outputs.iter().filter_map(|entry| match entry {
            Entry::Tensor(raw) => Some(raw.slot),
            _ => None,
        });
        let misplaced = self.memory.learn_results(tensors);
        if misplaced.is_empty() {
            return Ok(None);
        }
        let moves = |_: &Self, raw: &RawTensor| misplaced.iter().any(|m| m.slot == raw.slot);
        // A block that a tensor was made in goes with that, also on an error.
        let mut taken: SmallVec<[SlotId; 2]> = SmallVec::new();
        let place = |_: &mut Self, slot: SlotId| {
            taken.push(slot);
            let block = misplaced.iter().find(|m| m.slot == slot).and_then(|m| m.block);
            Target { arena: BlockArena::Pool, block, counted: Some(CopySlot::Eager) }
        };
        let moved = self.moved(outputs, moves, place);
        if moved.is_err() {
            let left = |m: &&Misplaced| !taken.contains(&m.slot);
            for block in misplaced.iter().filter(left).filter_map(|m| m.block) {
                self.memory.free(BlockArena::Pool, block.addr);
            }
        }
        moved.map(Some)
    }
}

//! Where values go when they leave: results of the call, results of eager regions.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::{Core, Origin, Placement, decide::Entries};
use crate::{
    DType, Error, Result,
    backend::{Op, View},
    base::plan::Site,
    memory::pool::Block,
    observe::event::CopySlot,
    tensor::{
        RawTensor,
        dim::{DimKind, RawDim},
        live_out::Entry,
    },
    value::layout::{Layout, Marks},
};

/// Where a block goes.
pub(crate) struct Target {
    pub(crate) home: Placement,
    /// A block that is there already.
    pub(crate) block: Option<Block>,
    /// As what the copy counts, if it does.
    pub(crate) counted: Option<CopySlot>,
}

/// The copies of blocks, by the slots of what they are copies of.
#[derive(Default)]
struct Copies {
    few: SmallVec<[(u32, RawTensor); 8]>,
    /// Once there are more than that.
    many: FxHashMap<u32, RawTensor>,
}

impl Copies {
    pub(crate) fn of(&self, slot: u32) -> Option<RawTensor> {
        let few = self.few.iter().find(|(of, _)| *of == slot).map(|(_, copy)| *copy);
        few.or_else(|| self.many.get(&slot).copied())
    }

    pub(crate) fn add(&mut self, slot: u32, copy: RawTensor) {
        if self.few.len() < self.few.inline_size() {
            self.few.push((slot, copy));
        } else {
            self.many.insert(slot, copy);
        }
    }
}

impl Core {
    /// Moves the call's outputs out of memory that the next call uses, and cuts padding off.
    ///
    /// Every tensor of the result has one count of its own. `None` when nothing had to change.
    pub(crate) fn finish_outputs(&mut self, outputs: &[Entry]) -> Result<Option<Entries>> {
        self.check_outputs("an output of a call", outputs)?;
        for entry in outputs {
            if let Entry::Size(dim) = entry {
                self.unpadded_size(*dim)?;
            }
        }
        let moves = |core: &Self, raw: &RawTensor| match core.slots[raw.slot as usize].home {
            Placement::Pool => true,
            // A static input is overwritten by the next call; parameters are not.
            Placement::StaticInput => true,
            _ => false,
        };
        self.expect_results(outputs);
        let changed = outputs.iter().any(|e| match e {
            Entry::Tensor(raw) => raw.marks.any() || moves(self, raw),
            Entry::Size(dim) => dim.kind != DimKind::Number,
            _ => false,
        });
        if !changed {
            return Ok(None);
        }
        let warm = self.call_warmed();
        let mut entries = self.moved(outputs, moves, |core, slot| {
            core.plan_result(slot);
            Target { home: Placement::Results, block: None, counted: (!warm).then_some(CopySlot::Result) }
        })?;
        for entry in &mut entries {
            match entry {
                Entry::Tensor(raw) => *raw = self.unpadded(*raw),
                Entry::Size(dim) => *dim = self.unpadded_size(*dim).unwrap_or(*dim),
                _ => {}
            }
        }
        Ok(Some(entries))
    }

    /// Whether something was warmed up in this call.
    pub(crate) fn call_warmed(&self) -> bool {
        self.frame.as_ref().is_some_and(|f| f.warmups_before != self.log.stats.warmups)
    }

    /// The outputs, those that `moves` picks in memory of their own: one copy a block, so that views of it
    /// keep their offsets. `place` says where a block goes. Every tensor of the result has one count; on an
    /// error there is none.
    pub(crate) fn moved(
        &mut self,
        outputs: &[Entry],
        moves: impl Fn(&Self, &RawTensor) -> bool,
        mut place: impl FnMut(&mut Self, u32) -> Target,
    ) -> Result<Entries> {
        let mut copies = Copies::default();
        let mut entries = self.spare_entries.pop().unwrap_or_default();
        for entry in outputs {
            let Entry::Tensor(raw) = entry else {
                entries.push(entry.clone());
                continue;
            };
            if !moves(self, raw) {
                self.retain(raw.slot, raw.epoch);
                entries.push(entry.clone());
                continue;
            }
            let copy = match copies.of(raw.slot) {
                Some(copy) => {
                    self.retain(copy.slot, copy.epoch);
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
                    if let Some(kind) = target.counted {
                        self.log.copied(kind, self.slots[copy.slot as usize].bytes);
                    }
                    copies.add(raw.slot, copy);
                    copy
                }
            };
            let addr = copy.addr + (raw.addr - self.slots[raw.slot as usize].base);
            entries.push(Entry::Tensor(RawTensor { slot: copy.slot, addr, owned: 0, ..*raw }));
        }
        Ok(entries)
    }

    /// Gives back one count of each tensor.
    pub(crate) fn release_all(&mut self, entries: &[Entry]) {
        for entry in entries {
            if let Entry::Tensor(raw) = entry {
                self.release(raw.slot, raw.epoch);
            }
        }
    }

    /// Refuses outputs whose memory is not theirs any more.
    pub(crate) fn check_outputs(&self, what: &'static str, outputs: &[Entry]) -> Result<()> {
        outputs.iter().try_for_each(|entry| match entry {
            Entry::Tensor(raw) => self.check_live(what, raw),
            _ => Ok(()),
        })
    }

    /// Next time, the allocation behind this slot is placed in the results arena.
    pub(crate) fn plan_result(&mut self, slot: u32) {
        match self.slots[slot as usize].origin {
            Origin::Segment { group, ordinal } if self.tree.knows_group(group) => {
                let results = &mut self.tree.group_mut(group).results;
                if ordinal != u32::MAX
                    && let Err(at) = results.binary_search(&ordinal)
                {
                    results.insert(at, ordinal);
                    // Recordings that place it in the pool would need the copy for ever.
                    let stale = self.tree.evict_group(group);
                    if stale > 0 {
                        self.log.evicted(stale);
                    }
                }
            }
            Origin::Result { profile, at } => self.regions.leaves_the_call(profile, at),
            Origin::Segment { .. } | Origin::Region { .. } | Origin::Padded { .. } | Origin::Other => {}
        }
    }

    /// Results of regions that leave the call from where they were made: next time they are made with the others.
    pub(crate) fn expect_results(&mut self, outputs: &[Entry]) {
        for entry in outputs {
            if let Entry::Tensor(raw) = entry
                && let slot = &self.slots[raw.slot as usize]
                && slot.home == Placement::Eager
                && slot.stands_for.is_none()
                && let Origin::Result { profile, at } = slot.origin
            {
                self.regions.leaves_the_call(profile, at);
            }
        }
    }

    /// Copies the whole block of a slot, so that all views of it keep their offsets.
    pub(crate) fn copy_block(&mut self, slot: u32, target: &Target) -> Result<RawTensor> {
        let s = &self.slots[slot as usize];
        let (base, bytes, origin, made_by) = (s.base, s.bytes, s.origin, s.made_by);
        let layout = Layout::contiguous(&[bytes as usize])?;
        let copy = match target.block {
            Some(block) => {
                self.tensor_in((target.home, block), origin, made_by, DType::U8, layout, Marks::NONE)
            }
            None => self.new_tensor(target.home, origin, made_by, DType::U8, layout, Marks::NONE)?,
        };
        let from = View { addr: base, dtype: DType::U8, layout };
        if let Err(error) = self.launch_now(Op::Copy, &[from], &[copy.view()]) {
            self.release(copy.slot, copy.epoch);
            return Err(error);
        }
        Ok(copy)
    }

    /// A layout without its padding.
    pub(crate) fn real_layout(&self, layout: Layout, marks: Marks) -> Layout {
        (0..layout.rank()).fold(layout, |real, axis| {
            match marks.get(axis).and_then(|symbol| self.real_size(symbol)) {
                Some(size) => real.with_dim(axis, size.min(layout.shape()[axis])),
                None => real,
            }
        })
    }

    /// A size without its padding.
    ///
    /// # Errors
    /// [`Error::PaddedSize`] for one that was computed from such a size: what it really is nobody knows where it was
    /// computed, and outside it would be no number for ever.
    pub(crate) fn unpadded_size(&self, dim: RawDim) -> Result<RawDim> {
        match dim.kind {
            DimKind::Padded(symbol) => Ok(RawDim::number(self.real_size(symbol).unwrap_or(dim.size))),
            DimKind::Computed(symbol) if self.frame.is_some() => {
                let symbol = self.padding_of(symbol).map_or("?", |(name, ..)| name).to_owned();
                Err(Error::PaddedSize { op: "a computed size that leaves", symbol, at: None })
            }
            _ => Ok(dim),
        }
    }

    /// The tensor without its padding: padded dimensions are narrowed to their real size.
    pub(crate) fn unpadded(&self, mut raw: RawTensor) -> RawTensor {
        if self.frame.is_some() {
            raw.layout = self.real_layout(raw.layout, raw.marks);
            raw.marks = Marks::NONE;
        }
        raw
    }

    /// A region gives host code a value: if the whole call is being captured, its graph would hold the value of
    /// this call for ever, so later calls go piece by piece.
    pub(crate) fn gives_host_value(&mut self, site: &'static Site) {
        if self.run.is_some()
            && let Some(frame) = &self.frame
        {
            self.host_values.entry(frame.function).or_insert(site);
        }
    }

    /// Where a region of the graph object gives host code a value.
    pub(crate) fn host_value(&self, function: u64) -> Option<&'static Site> {
        self.host_values.get(&function).copied()
    }
}

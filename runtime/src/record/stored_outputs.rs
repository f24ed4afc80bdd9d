//! The outputs of a recording, stored so that a replay can return them, and the owners of its blocks.

use std::collections::hash_map::Entry::Vacant;

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use super::{launch::unkeyed, recorder::Recorder, run::Run};
use crate::{
    Error, Result,
    memory::{Memory, Origin, Placement, SlotId},
    tree::{OutputBlock, Stored},
    value::{
        entry::{Encoder, Entry},
        key::KeyWriter,
        raw::RawTensor,
    },
};

/// The live-ins of which outputs may be views, by their memory. Views of one slot are distinguished, because
/// another call may have views that are farther apart, or of two slots.
#[derive(Default)]
struct LiveIns {
    exact: FxHashMap<(SlotId, u64, u64), LiveInIndex>,
    of_slot: FxHashMap<SlotId, SmallVec<[Shown; 1]>>,
}

/// The memory of a live-in: its start and end.
struct Shown {
    start: u64,
    end: u64,
    live_in: LiveInIndex,
}

/// The index among the tensors of the key, and that among those in arenas.
type LiveInIndex = (u32, Option<u32>);

impl LiveIns {
    fn of(key: &KeyWriter) -> Self {
        let mut all = Self::default();
        let mut places = 0..;
        for (index, (tensor, bytes)) in (0..).zip(key.tensors.iter().zip(&key.extents)) {
            let place = if key.owner(tensor).is_none() { places.next() } else { None };
            let start = key.addr(tensor.operand);
            let (end, found) = (start + bytes, (index, place));
            if let Vacant(entry) = all.exact.entry((tensor.slot, start, end)) {
                entry.insert(found);
                all.of_slot.entry(tensor.slot).or_default().push(Shown { start, end, live_in: found });
            }
        }
        all
    }

    /// The live-in that `raw` is, or is a part of. Of several that overlap any one: they move together.
    fn shown_by(&self, raw: &RawTensor) -> Option<LiveInIndex> {
        let (start, end) = raw.view().range();
        if let Some(&found) = self.exact.get(&(raw.slot, start, end)) {
            return Some(found);
        }
        let all = self.of_slot.get(&raw.slot)?;
        all.iter().find(|shown| shown.start <= start && end <= shown.end).map(|shown| shown.live_in)
    }
}

/// The blocks of a recording's outputs, and where each is by its address.
#[derive(Default)]
struct Blocks {
    list: Vec<OutputBlock>,
    index: FxHashMap<u64, usize>,
}

impl Recorder {
    /// Refuses outputs that are void, and blocks that the run made and that belong to none.
    ///
    /// # Errors
    /// Returns [`Error::UnownedAllocation`], and the errors of [`check_live`](Self::check_live).
    pub(crate) fn check_owners(&self, memory: &Memory, outputs: &Encoder) -> Result<()> {
        let Some(run) = self.run().filter(|run| !run.is_audit()) else { return Ok(()) };
        outputs.check("an output of a segment")?;
        self.check_outputs(memory, "an output of a segment", &outputs.entries)?;
        let shown: FxHashSet<u64> = outputs
            .entries
            .iter()
            .filter_map(|e| match e {
                Entry::Tensor(raw) => Some(memory.slot(raw.slot).base()),
                _ => None,
            })
            .collect();
        for &id in run.slots() {
            let slot = memory.slot(id);
            // One that was freed early is still held by somebody, too.
            let left = match slot.placement() {
                Placement::Freed => true,
                _ => run.owns_block(slot.base()) && !shown.contains(&slot.base()),
            };
            if slot.is_held() && left {
                return Err(Error::UnownedAllocation {
                    segment: run.site.to_string(),
                    op: slot.producer(),
                    bytes: slot.bytes(),
                });
            }
        }
        Ok(())
    }
}

impl<S> Run<S> {
    /// The outputs, so that a replay can return them, and the blocks that they are in.
    ///
    /// # Errors
    /// Returns [`Error::UnkeyedAddress`].
    pub(crate) fn store(
        &self,
        memory: &Memory,
        key: &KeyWriter,
        outputs: &Encoder,
    ) -> Result<(Vec<OutputBlock>, Vec<Stored>)> {
        let mut blocks = Blocks::default();
        let mut stored = Vec::with_capacity(outputs.entries.len());
        let live_ins = LiveIns::of(key);
        for entry in &outputs.entries {
            stored.push(match entry {
                Entry::Word(w) => Stored::Word(*w),
                Entry::Text(t) => Stored::Text(t.clone()),
                Entry::Size(dim) => Stored::Size(*dim),
                Entry::Tensor(raw) => self.store_tensor(memory, &live_ins, raw, &mut blocks)?,
            });
        }
        Ok((blocks.list, stored))
    }

    fn store_tensor(
        &self,
        memory: &Memory,
        live_ins: &LiveIns,
        raw: &RawTensor,
        blocks: &mut Blocks,
    ) -> Result<Stored> {
        let slot = memory.slot(raw.slot);
        let (base, placement) = (slot.base(), slot.placement());
        if self.owns_block(base) && matches!(placement, Placement::Pool | Placement::Results) {
            let Blocks { list, index } = blocks;
            let at = *index.entry(base).or_insert_with(|| {
                let ordinal = match slot.origin() {
                    Origin::Segment { ordinal, .. } => Some(ordinal),
                    _ => None,
                };
                let (bytes, producer) = (slot.bytes(), slot.producer());
                list.push(OutputBlock { addr: base, bytes, placement, ordinal, producer, refs: 0 });
                list.len() - 1
            });
            list[at].refs += 1;
            return Ok(Stored::Own(at as u32, *raw));
        }
        if let Some((index, place)) = live_ins.shown_by(raw) {
            return Ok(Stored::LiveIn(index, place, *raw));
        }
        match slot.owner() {
            Some(owner) if self.knows((base, slot.end())) => Ok(Stored::Owned(owner.clone(), *raw)),
            _ => Err(unkeyed(self, "an output", raw.addr)),
        }
    }
}

//! What a recording leaves: its outputs, so that a replay can give them back, and who owns the blocks.

use std::collections::hash_map::Entry::Vacant;

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use super::{Core, Placement, Run, RunKind};
use crate::{
    Error, Result,
    tensor::{
        RawTensor,
        live_out::{Encoder, Entry},
    },
    tree::{NodeBlock, Stored},
    value::live_in::KeyWriter,
};

/// The live-ins that outputs may be views of, by what they show. Views of one slot are told apart: another call may
/// bring views that are farther apart, or of two slots.
#[derive(Default)]
struct LiveIns {
    exact: FxHashMap<(u32, u64, u64), LiveInIndex>,
    of_slot: FxHashMap<u32, SmallVec<[(u64, u64, LiveInIndex); 1]>>,
}

/// The index among the tensors of the key, and that among those in arenas.
type LiveInIndex = (u32, Option<u32>);

impl LiveIns {
    fn of(key: &KeyWriter) -> Self {
        let mut all = Self::default();
        let mut places = 0..;
        for (index, (tensor, bytes)) in (0..).zip(key.tensors.iter().zip(&key.extents)) {
            let place = if tensor.owned == 0 { places.next() } else { None };
            let start = key.addrs[2 * tensor.operand as usize + 1];
            let (end, found) = (start + bytes, (index, place));
            if let Vacant(entry) = all.exact.entry((tensor.slot, start, end)) {
                entry.insert(found);
                all.of_slot.entry(tensor.slot).or_default().push((start, end, found));
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
        all.iter().find(|(from, to, _)| *from <= start && end <= *to).map(|(.., found)| *found)
    }
}

/// The blocks of a recording's outputs, and where each is by its address.
#[derive(Default)]
struct Blocks {
    list: Vec<NodeBlock>,
    index: FxHashMap<u64, usize>,
}

impl Core {
    /// Every block that the run made and that lives must belong to an output.
    pub(crate) fn check_owners(&self, outputs: &Encoder) -> Result<()> {
        let Some(run) = &self.run else { return Ok(()) };
        if run.kind == RunKind::Audit {
            return Ok(());
        }
        outputs.check("an output of a segment")?;
        self.check_outputs("an output of a segment", &outputs.entries)?;
        let shown: FxHashSet<u64> = outputs
            .entries
            .iter()
            .filter_map(|e| match e {
                Entry::Tensor(raw) => Some(self.slots[raw.slot as usize].base),
                _ => None,
            })
            .collect();
        for &slot in &run.slots {
            let s = &self.slots[slot as usize];
            // One that was given back early is still held by somebody, too.
            let left = match s.home {
                Placement::Freed => true,
                _ => run.own.contains_key(&s.base) && !shown.contains(&s.base),
            };
            if s.refs > 0 && left {
                return Err(Error::UnownedAllocation {
                    segment: run.site.to_string(),
                    op: s.made_by,
                    bytes: s.bytes,
                });
            }
        }
        Ok(())
    }

    /// The outputs, so that a replay can give them back.
    pub(crate) fn store(
        &self,
        run: &Run,
        key: &KeyWriter,
        outputs: &Encoder,
    ) -> Result<(Vec<NodeBlock>, Vec<Stored>)> {
        let mut blocks = Blocks::default();
        let mut stored = Vec::with_capacity(outputs.entries.len());
        let live_ins = LiveIns::of(key);
        for entry in &outputs.entries {
            stored.push(match entry {
                Entry::Word(w) => Stored::Word(*w),
                Entry::Text(t) => Stored::Text(t.clone()),
                Entry::Size(dim) => Stored::Size(*dim),
                Entry::Tensor(raw) => self.store_tensor(run, &live_ins, raw, &mut blocks)?,
            });
        }
        Ok((blocks.list, stored))
    }

    fn store_tensor(
        &self,
        run: &Run,
        live_ins: &LiveIns,
        raw: &RawTensor,
        blocks: &mut Blocks,
    ) -> Result<Stored> {
        let slot = &self.slots[raw.slot as usize];
        if run.own.contains_key(&slot.base) && matches!(slot.home, Placement::Pool | Placement::Results) {
            let Blocks { list, index } = blocks;
            let at = *index.entry(slot.base).or_insert_with(|| {
                let ordinal = match slot.origin {
                    super::Origin::Segment { ordinal, .. } => ordinal,
                    _ => u32::MAX,
                };
                list.push(NodeBlock {
                    addr: slot.base,
                    bytes: slot.bytes,
                    home: slot.home,
                    ordinal,
                    made_by: slot.made_by,
                    refs: 0,
                });
                list.len() - 1
            });
            list[at].refs += 1;
            return Ok(Stored::Own(at as u32, *raw));
        }
        if let Some((index, place)) = live_ins.shown_by(raw) {
            return Ok(Stored::LiveIn(index, place, *raw));
        }
        if let (Some(memory), true) = (&slot.owner, run.knows((slot.base, slot.base + slot.bytes))) {
            return Ok(Stored::Owned(memory.clone(), *raw));
        }
        Err(Error::UnkeyedAddress { segment: run.site.to_string(), op: "an output", addr: raw.addr })
    }
}

//! Memory of a recording is given back at its last use, although a variable still holds it.
//!
//! Warm-up sees which operation is the last to use each allocation. A recording does the same operations, or
//! it is refused; so what has had its last use can go, unless it leaves as an output. Using it all the same
//! is an error, never another's value: its slot says so.

use std::{cell::Cell, collections::BTreeMap};

use super::{Core, Origin, Placement, Run, RunKind};
use crate::{backend::View, tensor::live_out::Entry};

/// What a run does with its allocations, by ordinal.
#[derive(Debug, Default)]
pub(crate) struct Uses {
    /// Live blocks, by where they start.
    blocks: BTreeMap<u64, Live>,
    slots: Vec<Option<u32>>,
    last: Vec<Cell<Option<u32>>>,
    /// Bytes of the live blocks in the pool, now and at their most.
    bytes: u64,
    peak: u64,
}

#[derive(Debug)]
struct Live {
    end: u64,
    ordinal: u32,
    pooled: bool,
}

impl Uses {
    /// An allocation; `pooled` ones are in the pool, not among the results.
    pub(crate) fn made(&mut self, ordinal: u32, slot: u32, (start, end): (u64, u64), pooled: bool) {
        let at = ordinal as usize;
        self.slots.resize(at + 1, None);
        self.last.resize(at + 1, Cell::new(None));
        self.slots[at] = Some(slot);
        self.blocks.insert(start, Live { end, ordinal, pooled });
        if pooled {
            self.bytes += end - start;
            self.peak = self.peak.max(self.bytes);
        }
    }

    pub(crate) fn forget(&mut self, start: u64) {
        if let Some(Live { end, pooled: true, .. }) = self.blocks.remove(&start) {
            self.bytes -= end - start;
        }
    }

    /// An operation has this many bytes of scratch memory in the pool while it runs.
    pub(crate) fn scratch(&mut self, bytes: u64) {
        self.peak = self.peak.max(self.bytes + bytes);
    }

    /// Bytes of its blocks in the pool that were alive at once.
    pub(crate) fn peak(&self) -> u64 {
        self.peak
    }

    /// Operation `index` uses these; views count for the storage that they show.
    pub(crate) fn touch<'a>(&mut self, index: usize, views: impl Iterator<Item = &'a View>) {
        for view in views {
            if let Some((_, &Live { end, ordinal, .. })) = self.blocks.range(..=view.addr).next_back()
                && view.addr < end
            {
                self.last[ordinal as usize].set(Some(index as u32));
            }
        }
    }

    /// An operation with this index, or one before it that launches nothing, looked at a tensor.
    pub(crate) fn look(&self, index: usize, slot: u32, ordinal: u32) {
        let at = ordinal as usize;
        if self.slots.get(at) == Some(&Some(slot)) {
            self.last[at].set(Some(index as u32));
        }
    }

    /// What can go after which operation, but for the ordinals in `outputs`, which are sorted.
    pub(crate) fn releases(&self, outputs: &[u32]) -> Vec<(u32, u32)> {
        let mut all: Vec<(u32, u32)> = (0u32..)
            .zip(&self.last)
            .filter(|(ordinal, _)| outputs.binary_search(ordinal).is_err())
            .filter_map(|(ordinal, last)| Some((last.get()?, ordinal)))
            .collect();
        all.sort_unstable();
        all
    }
}

impl Core {
    /// What a warm-up learnt of its allocations.
    pub(crate) fn learn_releases(&self, run: &Run, outputs: &[Entry]) -> Vec<(u32, u32)> {
        let mut outputs: Vec<u32> = outputs
            .iter()
            .filter_map(|entry| match entry {
                Entry::Tensor(raw) => match self.slots[raw.slot as usize].origin {
                    Origin::Segment { group, ordinal } if group == run.group => Some(ordinal),
                    _ => None,
                },
                _ => None,
            })
            .collect();
        outputs.sort_unstable();
        run.uses.releases(&outputs)
    }

    /// A tensor was looked at. Not every operation that does so launches something: one without elements does not.
    pub(crate) fn looked_at(&self, slot: u32) {
        if let Some(run) = &self.run
            && run.kind == RunKind::Warm
            && let Origin::Segment { group, ordinal } = self.slots[slot as usize].origin
            && group == run.group
        {
            run.uses.look(run.trace.len(), slot, ordinal);
        }
    }

    /// After an operation of a recording: frees what it was the last to use.
    pub(crate) fn release_finished(&mut self) {
        let Some(run) = &self.run else { return };
        if run.kind != RunKind::Record || !self.free_at_last_use {
            return;
        }
        let Some(index) = run.trace.len().checked_sub(1) else { return };
        let (group, index) = (run.group, index as u32);
        let releases = &self.tree.group_mut(group).releases;
        let from = releases.partition_point(|&(at, _)| at < index);
        let finished: Vec<u32> =
            releases[from..].iter().take_while(|(at, _)| *at == index).map(|&(_, ordinal)| ordinal).collect();
        for ordinal in finished {
            self.release_early(group, ordinal);
        }
    }

    pub(crate) fn release_early(&mut self, group: usize, ordinal: u32) {
        let known = self.run.as_ref().and_then(|run| run.uses.slots.get(ordinal as usize).copied().flatten());
        let Some(slot) = known.and_then(|at| self.slots.get_mut(at as usize)) else { return };
        // A slot whose handle went before may be another tensor's by now.
        let same = slot.origin == Origin::Segment { group, ordinal };
        if !same || slot.refs == 0 || slot.home != Placement::Pool {
            return;
        }
        slot.home = Placement::Freed;
        let (base, bytes) = (slot.base, slot.bytes);
        self.free_block(Placement::Pool, base, bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DType, value::layout::Layout};

    pub(crate) fn view(addr: u64) -> View {
        View { addr, dtype: DType::F32, layout: Layout::contiguous(&[4]).unwrap() }
    }

    #[test]
    pub(crate) fn the_last_use_counts_by_storage() {
        let mut uses = Uses::default();
        uses.made(0, 7, (0, 256), true);
        uses.made(1, 8, (256, 512), true);
        uses.touch(0, [view(0), view(256)].iter());
        uses.touch(1, [view(128)].iter());
        uses.made(3, 9, (512, 768), false);
        uses.touch(2, [view(4096), view(300)].iter());
        assert_eq!(uses.releases(&[]), [(1, 0), (2, 1)]);
        assert_eq!(uses.releases(&[1]), [(1, 0)]);
        // A look counts for the next operation; one at another's slot does not count.
        uses.look(3, 8, 1);
        uses.look(3, 8, 0);
        assert_eq!(uses.releases(&[]), [(1, 0), (3, 1)]);
        // The same place, another allocation.
        uses.forget(0);
        uses.made(4, 7, (0, 256), true);
        uses.touch(3, [view(0)].iter());
        assert_eq!(uses.releases(&[]), [(1, 0), (3, 1), (3, 4)]);
        // Results do not count.
        assert_eq!(uses.peak(), 512);
        uses.scratch(256);
        assert_eq!(uses.peak(), 768);
    }
}

//! Memory of a recording is freed after its last use, even if a variable still holds it.
//!
//! Warm-up observes which operation is the last to use each allocation. A recording performs the same
//! operations, or it is rejected; so memory can be freed after its last use, unless it leaves as an output.
//! Using it later is an error, and never yields another tensor's value: its slot records that it was freed.

use std::{
    cell::{Cell, RefCell},
    collections::{BTreeMap, BTreeSet},
};

use super::{launch::Launcher, recorder::Recorder, run::Run};
use crate::{
    backend::View,
    memory::{BlockArena, Memory, Ordinal, Origin, SlotId},
    tree::{GroupId, Release, Tree},
    value::entry::Entry,
};

/// The uses of a run's allocations, by ordinal.
#[derive(Debug, Default)]
pub(crate) struct Uses {
    /// Live blocks, by where they start.
    blocks: BTreeMap<u64, Live>,
    slots: Vec<Option<SlotId>>,
    last: Vec<Cell<Option<u32>>>,
    /// The conditional nodes that are open, the innermost last.
    nodes: Vec<NodeUses>,
    /// Bytes of the live blocks in the pool, now and at their most.
    bytes: u64,
    peak: u64,
}

/// The uses of a conditional node.
#[derive(Debug, Default)]
struct NodeUses {
    /// The first allocation of the running body.
    first: Ordinal,
    /// Allocations from before that body which the node uses: another body, or the next round, may use them again,
    /// so the node as a whole is their last use.
    outer: RefCell<BTreeSet<Ordinal>>,
}

#[derive(Debug)]
struct Live {
    end: u64,
    ordinal: Ordinal,
    pooled: bool,
}

/// A block that a body allocated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Allocation {
    pub(crate) ordinal: Ordinal,
    pub(crate) slot: SlotId,
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// It is in the pool, not among the results.
    pub(crate) pooled: bool,
}

impl Uses {
    pub(crate) fn made(&mut self, allocation: Allocation) {
        let Allocation { ordinal, slot, start, end, pooled } = allocation;
        let at = ordinal.index();
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

    /// An operation has this many bytes of workspace in the pool while it runs.
    pub(crate) fn workspace(&mut self, bytes: u64) {
        self.peak = self.peak.max(self.bytes + bytes);
    }

    /// Returns the maximum size of its live blocks in the pool, in bytes.
    pub(crate) fn peak(&self) -> u64 {
        self.peak
    }

    /// Operation `index` uses these; views count for the storage that they show.
    pub(crate) fn touch<'a>(&mut self, index: usize, views: impl Iterator<Item = &'a View>) {
        for view in views {
            if let Some((_, &Live { end, ordinal, .. })) = self.blocks.range(..=view.addr).next_back()
                && view.addr < end
            {
                self.mark(index, ordinal);
            }
        }
    }

    /// Operation `index` uses an allocation.
    fn mark(&self, index: usize, ordinal: Ordinal) {
        match self.nodes.last() {
            Some(node) if ordinal < node.first => {
                node.outer.borrow_mut().insert(ordinal);
            }
            _ => self.last[ordinal.index()].set(Some(index as u32)),
        }
    }

    /// A conditional node begins.
    pub(super) fn open_node(&mut self) {
        self.nodes.push(NodeUses::default());
    }

    /// A body of the innermost node begins, whose first allocation will be that one.
    pub(super) fn begin_body(&mut self, first: Ordinal) {
        if let Some(node) = self.nodes.last_mut() {
            node.first = first;
        }
    }

    /// The innermost node ends, at that index of the trace; it also uses the allocations in `used`.
    pub(super) fn close_node(&mut self, index: usize, used: &[Ordinal]) {
        let Some(node) = self.nodes.pop() else { return };
        for ordinal in node.outer.into_inner().into_iter().chain(used.iter().copied()) {
            self.mark(index, ordinal);
        }
    }

    /// The innermost node is given up.
    pub(super) fn abort_node(&mut self) {
        self.nodes.pop();
    }

    /// An allocation is in another slot now.
    pub(super) fn moved(&mut self, ordinal: Ordinal, to: SlotId) {
        if let Some(slot) = self.slots.get_mut(ordinal.index()) {
            *slot = Some(to);
        }
    }

    /// An operation with this index, or one before it that launches nothing, looked at a tensor.
    pub(crate) fn note_use(&self, index: usize, slot: SlotId, ordinal: Ordinal) {
        let at = ordinal.index();
        if self.slots.get(at) == Some(&Some(slot)) {
            self.mark(index, ordinal);
        }
    }

    /// The slot of an allocation.
    fn slot(&self, ordinal: Ordinal) -> Option<SlotId> {
        self.slots.get(ordinal.index()).copied().flatten()
    }

    /// Returns what can be freed after which operation, except for the ordinals in `outputs`, which are
    /// sorted.
    pub(crate) fn releases(&self, outputs: &[Ordinal]) -> Vec<Release> {
        let last = self.last.iter().enumerate().map(|(at, last)| (Ordinal::at(at), last));
        let mut all: Vec<Release> = last
            .filter(|(ordinal, _)| outputs.binary_search(ordinal).is_err())
            .filter_map(|(ordinal, last)| Some(Release { after: last.get()?, ordinal }))
            .collect();
        all.sort_unstable();
        all
    }
}

impl Run {
    /// Returns what a warm-up learned about its allocations: what can be freed after which operation.
    pub(crate) fn releases(&self, memory: &Memory, outputs: &[Entry]) -> Vec<Release> {
        let mut outputs: Vec<Ordinal> = outputs
            .iter()
            .filter_map(|entry| match entry {
                Entry::Tensor(raw) => self.ordinal_of(memory.slot(raw.slot).origin()),
                _ => None,
            })
            .collect();
        outputs.sort_unstable();
        self.uses.releases(&outputs)
    }

    /// Returns the ordinal of an allocation.
    pub(super) fn ordinal_of(&self, origin: Origin) -> Option<Ordinal> {
        match origin {
            Origin::Segment { group, ordinal } if Some(group) == self.group => Some(ordinal),
            _ => None,
        }
    }
}

impl Recorder {
    /// A tensor was used. Not every operation that does so launches something: one without elements does not.
    pub(super) fn note_use(&self, id: SlotId, origin: Origin) {
        if let Some(run) = self.run().filter(|run| run.is_warm_up())
            && let Some(ordinal) = run.ordinal_of(origin)
        {
            run.uses.note_use(run.trace.len(), id, ordinal);
        }
    }

    /// Returns the allocations of the current recording that its last operation was the last to use.
    fn finished(&self, tree: &Tree) -> Option<(GroupId, Vec<(Ordinal, SlotId)>)> {
        let run = self.run().filter(|run| run.recording().is_some())?;
        let (group, index) = (run.group?, run.trace.len().checked_sub(1)? as u32);
        let releases = &tree.group_of(group).releases;
        let from = releases.partition_point(|release| release.after < index);
        let finished = releases[from..].iter().take_while(|release| release.after == index);
        let slot = |&Release { ordinal, .. }: &Release| Some((ordinal, run.uses.slot(ordinal)?));
        Some((group, finished.filter_map(slot).collect()))
    }
}

impl Launcher<'_> {
    /// After an operation of a recording, frees the allocations that it was the last to use.
    pub(crate) fn release_finished(&mut self, tree: &Tree) {
        let Some((group, finished)) = self.recorder.finished(tree) else { return };
        for (ordinal, id) in finished {
            if let Some((base, bytes)) = self.memory.free_early(id, Origin::Segment { group, ordinal }) {
                self.free_block(BlockArena::Pool, base, bytes);
            }
        }
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
        let releases = |uses: &Uses, outputs: &[usize]| {
            let outputs: Vec<Ordinal> = outputs.iter().copied().map(Ordinal::at).collect();
            uses.releases(&outputs).iter().map(|r| (r.after, r.ordinal.index())).collect::<Vec<_>>()
        };
        let block = |ordinal, slot, start, end, pooled| {
            let (ordinal, slot) = (Ordinal::at(ordinal), SlotId::at(slot));
            Allocation { ordinal, slot, start, end, pooled }
        };
        uses.made(block(0, 7, 0, 256, true));
        uses.made(block(1, 8, 256, 512, true));
        uses.touch(0, [view(0), view(256)].iter());
        uses.touch(1, [view(128)].iter());
        uses.made(block(3, 9, 512, 768, false));
        uses.touch(2, [view(4096), view(300)].iter());
        assert_eq!(releases(&uses, &[]), [(1, 0), (2, 1)]);
        assert_eq!(releases(&uses, &[1]), [(1, 0)]);
        // A look counts for the next operation; one at another's slot does not count.
        uses.note_use(3, SlotId::at(8), Ordinal::at(1));
        uses.note_use(3, SlotId::at(8), Ordinal::at(0));
        assert_eq!(releases(&uses, &[]), [(1, 0), (3, 1)]);
        // The same place, another allocation.
        uses.forget(0);
        uses.made(block(4, 7, 0, 256, true));
        uses.touch(3, [view(0)].iter());
        assert_eq!(releases(&uses, &[]), [(1, 0), (3, 1), (3, 4)]);
        // Results do not count.
        assert_eq!(uses.peak(), 512);
        uses.workspace(256);
        assert_eq!(uses.peak(), 768);
    }
}

//! An open fork: the memory that its branches used, and the blocks that they freed.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use crate::{
    Error, Result,
    backend::View,
    memory::{
        BlockArena,
        pool::{Block, rounded},
    },
};

/// One use of memory by an operation.
#[derive(Clone, Copy, Debug)]
struct Access {
    start: u64,
    end: u64,
    writes: bool,
    op: &'static str,
}

impl Access {
    fn of(op: &'static str, view: &View, writes: bool) -> Self {
        let (start, end) = view.range();
        Self { start, end, writes, op }
    }
}

/// Memory that was used, in pieces that do not overlap: by the start of each, its end and the operation that
/// used it first.
#[derive(Debug, Default)]
struct Pieces(BTreeMap<u64, (u64, &'static str)>);

impl Pieces {
    /// Returns the operation that used a part of the range.
    fn meets(&self, start: u64, end: u64) -> Option<&'static str> {
        // The last piece that starts below the end reaches farthest.
        let (_, &(reach, op)) = self.0.range(..end).next_back()?;
        (start < end && start < reach).then_some(op)
    }

    /// Adds the parts of the range that are missing.
    fn add(&mut self, start: u64, end: u64, op: &'static str) {
        let before = self.0.range(..=start).next_back().map(|(_, &(reach, _))| reach);
        let mut at = start.max(before.unwrap_or(start));
        while at < end {
            let next = self.0.range(at..end).next().map(|(&next, &(reach, _))| (next, reach));
            let (until, go_on) = next.unwrap_or((end, end));
            if at < until {
                self.0.insert(at, (until, op));
            }
            at = go_on;
        }
    }
}

/// The memory used by completed branches.
#[derive(Debug, Default)]
struct Used {
    reads: Pieces,
    writes: Pieces,
}

impl Used {
    fn add(&mut self, access: Access) {
        let pieces = if access.writes { &mut self.writes } else { &mut self.reads };
        pieces.add(access.start, access.end, access.op);
    }

    /// Returns an operation whose order relative to this one matters.
    fn meets(&self, access: &Access) -> Option<&'static str> {
        let of = |pieces: &Pieces| pieces.meets(access.start, access.end);
        of(&self.writes).or_else(|| if access.writes { of(&self.reads) } else { None })
    }

    fn into_accesses(self) -> impl Iterator<Item = Access> {
        let of = |pieces: Pieces, writes| {
            pieces.0.into_iter().map(move |(start, (end, op))| Access { start, end, writes, op })
        };
        of(self.reads, false).chain(of(self.writes, true))
    }
}

/// A block whose last handle was dropped.
#[derive(Clone, Copy, Debug)]
pub(super) struct Freed {
    pub(super) arena: BlockArena,
    pub(super) base: u64,
    pub(super) bytes: u64,
}

/// An open fork.
#[derive(Debug)]
pub(super) struct Fork {
    /// Set if the backend records branches.
    recorded: bool,
    /// The branch that is running.
    branch: usize,
    /// The memory used by completed branches, and so far by the running one.
    earlier: Used,
    running: Vec<Access>,
    /// Blocks placed since the fork, with their branch.
    made: FxHashMap<u64, usize>,
    /// Freed by the branch that made them: it may have them again, by their arena and size.
    free_list: FxHashMap<(BlockArena, u64), Vec<u64>>,
    /// Freed, but not before the join.
    held: Vec<Freed>,
}

impl Fork {
    pub(super) fn new(recorded: bool) -> Self {
        Self {
            recorded,
            branch: 0,
            earlier: Used::default(),
            running: Vec::new(),
            made: FxHashMap::default(),
            free_list: FxHashMap::default(),
            held: Vec::new(),
        }
    }

    /// The running branch made a block.
    pub(super) fn note_placed(&mut self, addr: u64) {
        self.made.insert(addr, self.branch);
    }

    /// Returns the addresses of the blocks that were placed since the fork.
    pub(super) fn take_made(&mut self) -> impl Iterator<Item = u64> + use<> {
        std::mem::take(&mut self.made).into_keys()
    }

    /// Adds the memory that a closed fork inside used.
    pub(super) fn add_uses_of(&mut self, inner: &mut Self) {
        self.running.extend(std::mem::take(&mut inner.earlier).into_accesses());
        self.running.append(&mut inner.running);
    }

    /// Starts a branch.
    pub(super) fn begin_branch(&mut self, index: usize) {
        self.branch = index;
        let earlier = &mut self.earlier;
        self.running.drain(..).for_each(|access| earlier.add(access));
        self.hold_free();
    }

    /// Rejects a use of memory that another branch writes, and a write of memory that another branch uses.
    ///
    /// # Errors
    /// Returns [`Error::BranchesShare`].
    pub(super) fn check(&self, op: &'static str, view: &View, writes: bool) -> Result<()> {
        match self.earlier.meets(&Access::of(op, view, writes)) {
            None => Ok(()),
            Some(other) => Err(Error::BranchesShare { op, other }),
        }
    }

    /// The running branch uses memory.
    pub(super) fn note_use(&mut self, op: &'static str, view: &View, writes: bool) {
        self.running.push(Access::of(op, view, writes));
    }

    /// Returns a block that the running branch made and freed. It must have the same size: the rest of a
    /// larger one would be lost until the join, and a block between guard pages ends where its bytes end.
    pub(super) fn reuse(&mut self, arena: BlockArena, bytes: u64) -> Option<Block> {
        let addr = self.free_list.get_mut(&(arena, bytes))?.pop()?;
        Some(Block { addr, len: rounded(bytes) })
    }

    /// Returns whether the backend records its branches.
    pub(super) fn is_recorded(&self) -> bool {
        self.recorded
    }

    /// Ends the fork. Returns the blocks that are freed with it, in the order of addresses: whatever frees them, recordings do
    /// it alike.
    pub(super) fn close(mut self) -> Vec<Freed> {
        self.hold_free();
        self.held.sort_unstable_by_key(|freed| freed.base);
        self.held
    }

    /// Makes the blocks of the free list unavailable until the join.
    fn hold_free(&mut self) {
        for ((arena, bytes), all) in self.free_list.drain() {
            self.held.extend(all.into_iter().map(|base| Freed { arena, base, bytes }));
        }
    }

    /// Keeps a block for later. Returns whether only the running branch has used it.
    pub(super) fn defer(&mut self, freed: Freed) -> bool {
        let own = self.made.get(&freed.base) == Some(&self.branch);
        match own {
            true => self.free_list.entry((freed.arena, freed.bytes)).or_default().push(freed.base),
            false => self.held.push(freed),
        }
        own
    }
}

#[cfg(test)]
mod tests {
    use rand::{Rng, SeedableRng, rngs::StdRng};

    use super::*;

    /// Pieces against a list of ranges.
    #[test]
    fn pieces_meet_what_ranges_meet() {
        let mut rng = StdRng::seed_from_u64(3);
        for _ in 0..200 {
            let (mut pieces, mut ranges) = (Pieces::default(), Vec::new());
            for _ in 0..60 {
                let start = rng.random_range(0..400u64);
                let end = start + rng.random_range(0..40);
                let met = ranges.iter().any(|&(s, e): &(u64, u64)| s.max(start) < e.min(end));
                assert_eq!(pieces.meets(start, end).is_some(), met, "{start}..{end} in {ranges:?}");
                if rng.random() {
                    pieces.add(start, end, "op");
                    ranges.push((start, end));
                    let ends: Vec<(u64, u64)> = pieces.0.iter().map(|(&s, &(e, _))| (s, e)).collect();
                    assert!(ends.windows(2).all(|w| w[0].1 <= w[1].0) && ends.iter().all(|(s, e)| s < e));
                }
            }
        }
    }
}

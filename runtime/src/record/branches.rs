//! Forks: branches of a segment, which a recording lets run side by side.
//!
//! While a fork is open, freed memory is not reused, except for blocks that the branch itself made: no branch
//! can then write where another still reads, and the blocks live at the join are the same whether the
//! branches ran one after the other (in warm-up) or in parallel (in a replay). Branches that share memory on
//! purpose, through state or a tensor passed in a cell, are rejected when the second one accesses it.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::{
    call::{CallState, Phase},
    launch::Launcher,
};
use crate::{
    Error, Result,
    backend::View,
    memory::{
        BlockArena,
        pool::{Block, rounded},
    },
    program::Command,
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
    fn new(recorded: bool) -> Self {
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
    fn begin_branch(&mut self, index: usize) {
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

impl Launcher<'_> {
    /// Opens a fork. Returns false where there is nothing to record or to check, between calls.
    ///
    /// # Errors
    /// Returns [`Error::OutsideSegment`], and errors of the device.
    pub(crate) fn begin_fork(&mut self, call: &CallState) -> Result<bool> {
        call.may_operate("join")?;
        if call.phase() == Phase::Idle {
            return Ok(false);
        }
        let recorded = self.recorder.is_recording();
        if recorded {
            let opened = self.issue(Command::Fork);
            self.note_failure(opened)?;
        }
        self.recorder.nesting.open_fork(Fork::new(recorded));
        Ok(true)
    }

    /// Starts branch `index` of the innermost fork.
    ///
    /// # Errors
    /// Returns errors of the device.
    pub(crate) fn begin_branch(&mut self, index: usize) -> Result<()> {
        let Some(fork) = self.recorder.nesting.top_fork() else { return Ok(()) };
        fork.begin_branch(index);
        if fork.recorded {
            let begun = self.issue(Command::Branch(index));
            self.note_failure(begun)?;
        }
        Ok(())
    }

    /// Closes the innermost fork, whether its branches went well or not.
    ///
    /// # Errors
    /// Returns errors of the device.
    pub(crate) fn end_fork(&mut self) -> Result<()> {
        let Some(mut fork) = self.recorder.nesting.close_fork() else { return Ok(()) };
        // This comes first: poisoning below happens after all branches.
        let joined = if fork.recorded { self.issue(Command::Join) } else { Ok(()) };
        fork.hold_free();
        let mut freed = fork.held;
        // In the order of addresses: whatever frees them, recordings do it alike.
        freed.sort_unstable_by_key(|f| f.base);
        for f in freed {
            self.free_block(f.arena, f.base, f.bytes);
        }
        self.note_failure(joined)
    }

    /// Refuses an operation that branches of an open fork may not order in two ways.
    ///
    /// # Errors
    /// Returns [`Error::BranchesShare`].
    pub(crate) fn check_branches(
        &mut self,
        op: &'static str,
        inputs: &[View],
        outputs: &[View],
    ) -> Result<()> {
        self.recorder.nesting.check(op, inputs, outputs)
    }

    /// A body may ignore the error; its recording must fail nevertheless.
    pub(super) fn note_failure(&mut self, result: Result<()>) -> Result<()> {
        if let (Err(error), Some(run)) = (&result, self.recorder.run_mut()) {
            run.fail(error);
        }
        result
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

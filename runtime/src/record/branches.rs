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
    command_log::Command,
    launch::Launcher,
};
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
struct Freed {
    arena: BlockArena,
    base: u64,
    bytes: u64,
}

#[derive(Debug)]
struct Fork {
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
    /// Returns a block that the running branch made and freed. It must have the same size: the rest of a
    /// larger one would be lost until the join, and a block between guard pages ends where its bytes end.
    fn reuse(&mut self, arena: BlockArena, bytes: u64) -> Option<Block> {
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
    fn defer(&mut self, freed: Freed) -> bool {
        let own = self.made.get(&freed.base) == Some(&self.branch);
        match own {
            true => self.free_list.entry((freed.arena, freed.bytes)).or_default().push(freed.base),
            false => self.held.push(freed),
        }
        own
    }
}

/// The forks that are open, the innermost last.
#[derive(Debug, Default)]
pub(super) struct Forks(Vec<Fork>);

impl Forks {
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// A block for the running branch, if a fork is open that has one.
    pub(super) fn reuse(&mut self, arena: BlockArena, bytes: u64) -> Option<Block> {
        self.0.last_mut()?.reuse(arena, bytes)
    }

    /// The running branch made a block.
    pub(super) fn note_placed(&mut self, block: Block) {
        if let Some(fork) = self.0.last_mut() {
            fork.made.insert(block.addr, fork.branch);
        }
    }

    /// Defers freeing a block while a fork is open. Returns `None` if none is open; otherwise, whether only
    /// the running branch has used the block.
    pub(super) fn defer_free(&mut self, arena: BlockArena, base: u64, bytes: u64) -> Option<bool> {
        Some(self.0.last_mut()?.defer(Freed { arena, base, bytes }))
    }

    fn open(&mut self, recorded: bool) {
        self.0.push(Fork {
            recorded,
            branch: 0,
            earlier: Used::default(),
            running: Vec::new(),
            made: FxHashMap::default(),
            free_list: FxHashMap::default(),
            held: Vec::new(),
        });
    }

    /// Starts a branch of the innermost fork. Returns whether the backend records it; `None` if no fork is
    /// open.
    fn begin_branch(&mut self, index: usize) -> Option<bool> {
        let fork = self.0.last_mut()?;
        fork.branch = index;
        fork.running.drain(..).for_each(|access| fork.earlier.add(access));
        fork.hold_free();
        Some(fork.recorded)
    }

    /// Adds the memory that a closed fork used and allocated to the fork around it.
    fn add_to_outer(&mut self, fork: &mut Fork) {
        if let Some(outer) = self.0.last_mut() {
            outer.running.extend(std::mem::take(&mut fork.earlier).into_accesses());
            outer.running.append(&mut fork.running);
            outer.made.extend(fork.made.drain().map(|(base, _)| (base, outer.branch)));
        }
    }

    /// Rejects an operation that uses memory that another branch writes, or writes memory that another branch
    /// uses.
    ///
    /// # Errors
    /// Returns [`Error::BranchesShare`].
    fn check(&mut self, op: &'static str, inputs: &[View], outputs: &[View]) -> Result<()> {
        let Some(innermost) = self.0.len().checked_sub(1) else { return Ok(()) };
        let reads = inputs.iter().map(|view| Access::of(op, view, false));
        for access in reads.chain(outputs.iter().map(|view| Access::of(op, view, true))) {
            if let Some(other) = self.0.iter().find_map(|fork| fork.earlier.meets(&access)) {
                return Err(Error::BranchesShare { op, other });
            }
            self.0[innermost].running.push(access);
        }
        Ok(())
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
        self.recorder.forks.open(recorded);
        Ok(true)
    }

    /// Starts branch `index` of the innermost fork.
    ///
    /// # Errors
    /// Returns errors of the device.
    pub(crate) fn begin_branch(&mut self, index: usize) -> Result<()> {
        if self.recorder.forks.begin_branch(index) == Some(true) {
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
        let Some(mut fork) = self.recorder.forks.0.pop() else { return Ok(()) };
        // This comes first: poisoning below happens after all branches.
        let joined = if fork.recorded { self.issue(Command::Join) } else { Ok(()) };
        fork.hold_free();
        self.recorder.forks.add_to_outer(&mut fork);
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
        self.recorder.forks.check(op, inputs, outputs)
    }

    /// A body may ignore the error; its recording must fail nevertheless.
    fn note_failure(&mut self, result: Result<()>) -> Result<()> {
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

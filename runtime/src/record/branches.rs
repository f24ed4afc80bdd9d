//! Forks: branches of a segment, which a recording lets run side by side.
//!
//! While a fork is open nothing that was freed is placed again, but for what a branch has made itself: no
//! branch can then write where another still reads, and what is left at the join is the same whether the
//! branches ran one after the other (in warm-up) or side by side (in a replay). Branches that share memory on
//! purpose, through state or a tensor handed over in a cell, are refused when the second one touches it.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::{Core, Phase, Placement, tape::Act};
use crate::{
    Error, Result,
    backend::View,
    memory::pool::{Block, rounded},
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

/// Memory that was used, in pieces that do not overlap: by where one starts, where it ends and which operation used it
/// first.
#[derive(Debug, Default)]
struct Pieces(BTreeMap<u64, (u64, &'static str)>);

impl Pieces {
    /// What used a part of the range.
    fn meets(&self, start: u64, end: u64) -> Option<&'static str> {
        // The last piece that starts below the end reaches farthest.
        let (_, &(reach, op)) = self.0.range(..end).next_back()?;
        (start < end && start < reach).then_some(op)
    }

    /// Adds what of the range is not there.
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

/// What branches that are over used.
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

    /// An operation whose order beside this one matters.
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

/// A block whose last handle is gone.
#[derive(Clone, Copy, Debug)]
struct Freed {
    home: Placement,
    base: u64,
    bytes: u64,
}

#[derive(Debug)]
pub(crate) struct Fork {
    /// Whether the backend records branches.
    recorded: bool,
    /// The branch that is running.
    branch: usize,
    /// What branches that are over used, and what the running one did so far.
    earlier: Used,
    running: Vec<Access>,
    /// Blocks placed since the fork, with their branch.
    made: FxHashMap<u64, usize>,
    /// Freed by the branch that made them: it may have them again, by their arena and size.
    spare: FxHashMap<(Placement, u64), Vec<u64>>,
    /// Freed, but not before the join.
    held: Vec<Freed>,
}

impl Fork {
    /// A block that the running branch made and freed. Only one of the same size: what is left of a larger
    /// one would be lost until the join, and a block between guard pages ends where its bytes end.
    fn reuse(&mut self, home: Placement, bytes: u64) -> Option<Block> {
        let addr = self.spare.get_mut(&(home, bytes))?.pop()?;
        Some(Block { addr, len: rounded(bytes) })
    }

    /// Nobody may have the spare blocks again before the join.
    fn hold_spare(&mut self) {
        for ((home, bytes), all) in self.spare.drain() {
            self.held.extend(all.into_iter().map(|base| Freed { home, base, bytes }));
        }
    }

    /// Keeps a block for later. Whether nobody but the running branch has used it.
    fn keep(&mut self, freed: Freed) -> bool {
        let own = self.made.get(&freed.base) == Some(&self.branch);
        match own {
            true => self.spare.entry((freed.home, freed.bytes)).or_default().push(freed.base),
            false => self.held.push(freed),
        }
        own
    }
}

impl Core {
    /// Opens a fork; `false` where there is nothing to record or to check, between calls.
    pub(crate) fn begin_fork(&mut self) -> Result<bool> {
        self.may_operate("join")?;
        if self.phase == Phase::Idle {
            return Ok(false);
        }
        let recorded = self.capturing();
        if recorded {
            let opened = self.put(Act::Fork);
            self.noted(opened)?;
        }
        self.forks.push(Fork {
            recorded,
            branch: 0,
            earlier: Used::default(),
            running: Vec::new(),
            made: FxHashMap::default(),
            spare: FxHashMap::default(),
            held: Vec::new(),
        });
        Ok(true)
    }

    /// Starts branch `index` of the innermost fork.
    pub(crate) fn begin_branch(&mut self, index: usize) -> Result<()> {
        let Some(fork) = self.forks.last_mut() else { return Ok(()) };
        fork.branch = index;
        fork.running.drain(..).for_each(|access| fork.earlier.add(access));
        fork.hold_spare();
        if fork.recorded {
            let begun = self.put(Act::Branch(index));
            self.noted(begun)?;
        }
        Ok(())
    }

    /// Closes the innermost fork, whether its branches went well or not.
    pub(crate) fn end_fork(&mut self) -> Result<()> {
        let Some(mut fork) = self.forks.pop() else { return Ok(()) };
        // First: what is poisoned below comes after all branches.
        let joined = if fork.recorded { self.put(Act::Join) } else { Ok(()) };
        fork.hold_spare();
        if let Some(outer) = self.forks.last_mut() {
            outer.running.extend(std::mem::take(&mut fork.earlier).into_accesses());
            outer.running.append(&mut fork.running);
            outer.made.extend(fork.made.into_keys().map(|base| (base, outer.branch)));
        }
        let mut freed = fork.held;
        // In the order of addresses: whatever frees them, recordings do it alike.
        freed.sort_unstable_by_key(|f| f.base);
        for f in freed {
            self.free_block(f.home, f.base, f.bytes);
        }
        self.noted(joined)
    }

    /// A body may swallow the error; its recording must fail all the same.
    fn noted(&mut self, result: Result<()>) -> Result<()> {
        if let (Err(error), Some(run)) = (&result, &mut self.run) {
            run.fail(error);
        }
        result
    }

    /// A block for the running branch, if a fork is open that has one.
    pub(crate) fn placed_again(&mut self, home: Placement, bytes: u64) -> Option<Block> {
        self.forks.last_mut()?.reuse(home, bytes)
    }

    /// The running branch made a block.
    pub(crate) fn placed_in_branch(&mut self, block: Block) {
        if let Some(fork) = self.forks.last_mut() {
            fork.made.insert(block.addr, fork.branch);
        }
    }

    /// Puts off freeing a block while a fork is open. `None`: none is; otherwise whether the block has no
    /// other user than the running branch.
    pub(crate) fn put_off(&mut self, home: Placement, base: u64, bytes: u64) -> Option<bool> {
        Some(self.forks.last_mut()?.keep(Freed { home, base, bytes }))
    }

    /// Refuses an operation that uses what another branch writes, or writes what another branch uses.
    pub(crate) fn check_branches(
        &mut self,
        op: &'static str,
        inputs: &[View],
        outputs: &[View],
    ) -> Result<()> {
        let Some(innermost) = self.forks.len().checked_sub(1) else { return Ok(()) };
        let reads = inputs.iter().map(|view| Access::of(op, view, false));
        for access in reads.chain(outputs.iter().map(|view| Access::of(op, view, true))) {
            if let Some(other) = self.forks.iter().find_map(|fork| fork.earlier.meets(&access)) {
                return Err(Error::BranchesShare { op, other });
            }
            self.forks[innermost].running.push(access);
        }
        Ok(())
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

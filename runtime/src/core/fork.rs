//! Forks: branches of a segment, which a recording lets run side by side.
//!
//! While a fork is open nothing that was freed is placed again, but for what a branch has made itself: no
//! branch can then write where another still reads, and what is left at the join is the same whether the
//! branches ran one after the other (in warm-up) or side by side (in a replay). Branches that share memory on
//! purpose, through state or a tensor handed over in a cell, are refused when the second one touches it.

use rustc_hash::FxHashMap;

use super::{Core, Home, Phase, tape::Act};
use crate::{
    Error, Result,
    backend::View,
    pool::{Block, rounded},
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

    /// Whether the order of the two matters.
    fn meets(&self, other: &Self) -> bool {
        (self.writes || other.writes) && self.start.max(other.start) < self.end.min(other.end)
    }
}

/// A block whose last handle is gone.
#[derive(Clone, Copy, Debug)]
struct Freed {
    home: Home,
    base: u64,
    bytes: u64,
}

#[derive(Debug)]
pub(super) struct Fork {
    /// Whether the backend records branches.
    recorded: bool,
    /// The branch that is running.
    branch: usize,
    /// What branches that are over used, and what the running one did so far.
    earlier: Vec<Access>,
    running: Vec<Access>,
    /// Blocks placed since the fork, with their branch.
    made: FxHashMap<u64, usize>,
    /// Freed by the branch that made them: it may have them again.
    spare: Vec<Freed>,
    /// Freed, but not before the join.
    held: Vec<Freed>,
}

impl Fork {
    /// A block that the running branch made and freed. Only one of the same size: what is left of a larger
    /// one would be lost until the join, and a block between guard pages ends where its bytes end.
    fn reuse(&mut self, home: Home, bytes: u64) -> Option<Block> {
        let at = self.spare.iter().rposition(|f| f.home == home && f.bytes == bytes)?;
        Some(Block { addr: self.spare.remove(at).base, len: rounded(bytes) })
    }

    /// Keeps a block for later. Whether nobody but the running branch has used it.
    fn keep(&mut self, freed: Freed) -> bool {
        let own = self.made.get(&freed.base) == Some(&self.branch);
        if own { &mut self.spare } else { &mut self.held }.push(freed);
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
            earlier: Vec::new(),
            running: Vec::new(),
            made: FxHashMap::default(),
            spare: Vec::new(),
            held: Vec::new(),
        });
        Ok(true)
    }

    /// Starts branch `index` of the innermost fork.
    pub(crate) fn begin_branch(&mut self, index: usize) -> Result<()> {
        let Some(fork) = self.forks.last_mut() else { return Ok(()) };
        fork.branch = index;
        fork.earlier.append(&mut fork.running);
        fork.held.append(&mut fork.spare);
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
        if let Some(outer) = self.forks.last_mut() {
            outer.running.append(&mut fork.earlier);
            outer.running.append(&mut fork.running);
            outer.made.extend(fork.made.into_keys().map(|base| (base, outer.branch)));
        }
        let mut freed = fork.held;
        freed.append(&mut fork.spare);
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
    pub(super) fn placed_again(&mut self, home: Home, bytes: u64) -> Option<Block> {
        self.forks.last_mut()?.reuse(home, bytes)
    }

    /// The running branch made a block.
    pub(super) fn placed_in_branch(&mut self, block: Block) {
        if let Some(fork) = self.forks.last_mut() {
            fork.made.insert(block.addr, fork.branch);
        }
    }

    /// Puts off freeing a block while a fork is open. `None`: none is; otherwise whether the block has no
    /// other user than the running branch.
    pub(super) fn put_off(&mut self, home: Home, base: u64, bytes: u64) -> Option<bool> {
        Some(self.forks.last_mut()?.keep(Freed { home, base, bytes }))
    }

    /// Refuses an operation that uses what another branch writes, or writes what another branch uses.
    pub(super) fn check_branches(
        &mut self,
        op: &'static str,
        inputs: &[View],
        outputs: &[View],
    ) -> Result<()> {
        let Some(innermost) = self.forks.len().checked_sub(1) else { return Ok(()) };
        let reads = inputs.iter().map(|view| Access::of(op, view, false));
        for access in reads.chain(outputs.iter().map(|view| Access::of(op, view, true))) {
            let mut earlier = self.forks.iter().flat_map(|fork| &fork.earlier);
            if let Some(other) = earlier.find(|other| other.meets(&access)) {
                return Err(Error::BranchesShare { op, other: other.op });
            }
            self.forks[innermost].running.push(access);
        }
        Ok(())
    }
}

//! The blocks that were freed since the last state, each once.

use rustc_hash::FxHashSet;

/// Up to this number of blocks, which is typical for frees between two segments, are compared one by one.
const FEW: usize = 16;

#[derive(Debug, Default)]
pub(super) struct Freed {
    addrs: Vec<u64>,
    /// The same blocks, once there are more.
    index: FxHashSet<u64>,
}

impl Freed {
    /// Adds a block. Returns false if it is already there: nothing can be freed twice.
    #[inline]
    pub(super) fn insert(&mut self, addr: u64) -> bool {
        if self.addrs.len() >= FEW {
            return self.insert_among_many(addr);
        }
        let new = !self.addrs.contains(&addr);
        if new {
            self.addrs.push(addr);
        }
        new
    }

    fn insert_among_many(&mut self, addr: u64) -> bool {
        if self.index.is_empty() {
            self.index.extend(&self.addrs);
        }
        let new = self.index.insert(addr);
        if new {
            self.addrs.push(addr);
        }
        new
    }

    pub(super) fn is_empty(&self) -> bool {
        self.addrs.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.addrs.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = u64> {
        self.addrs.iter().copied()
    }

    /// Returns all of them ordered by address, in whatever order they were freed.
    pub(super) fn sorted(&mut self) -> &[u64] {
        self.addrs.sort_unstable();
        &self.addrs
    }

    pub(super) fn clear(&mut self) {
        self.addrs.clear();
        self.index.clear();
    }
}

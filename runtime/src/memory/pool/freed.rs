//! The blocks that were freed since the last state, each once.

use rustc_hash::FxHashSet;

/// Up to this many are compared one by one, which is what a call frees between two segments.
const FEW: usize = 16;

#[derive(Debug, Default)]
pub(super) struct Freed {
    addrs: Vec<u64>,
    /// The same, once they are more than a few.
    index: FxHashSet<u64>,
}

impl Freed {
    /// Adds a block. Returns false if it is there already: nothing can be freed twice.
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

    /// All of them in the order of their addresses: whatever frees them, and in whatever order.
    pub(super) fn sorted(&mut self) -> &[u64] {
        self.addrs.sort_unstable();
        &self.addrs
    }

    pub(super) fn clear(&mut self) {
        self.addrs.clear();
        self.index.clear();
    }
}

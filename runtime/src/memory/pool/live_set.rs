//! Placement of blocks: a function of only the live set and the size.

use super::treap::{Treap, hash};

/// Blocks start at multiples of this many bytes.
pub(crate) const ALIGN: u64 = 256;

/// A live block: address and length, both multiples of [`ALIGN`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Block {
    pub(crate) addr: u64,
    pub(crate) len: u64,
}

impl Block {
    pub(crate) fn end(self) -> u64 {
        self.addr + self.len
    }
}

/// Up to this number of blocks are stored in a list, which is faster than a tree.
const FEW: usize = 64;

#[derive(Clone, Debug)]
enum Blocks {
    /// Sorted by address.
    Few(Vec<Block>),
    Many(Treap<()>),
}

/// The live blocks of one arena. Placement, insertion and removal take logarithmic time; a copy is small.
#[derive(Clone, Debug)]
pub(crate) struct LiveSet(Blocks);

impl Default for LiveSet {
    fn default() -> Self {
        Self(Blocks::Few(Vec::new()))
    }
}

impl PartialEq for LiveSet {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Blocks::Few(a), Blocks::Few(b)) => a == b,
            (Blocks::Many(a), Blocks::Many(b)) => a.same(b),
            _ => self.len() == other.len() && self.iter().eq(other.iter()),
        }
    }
}

/// Returns the size that a request takes in an arena. Empty requests take one unit, so that every block has
/// an address of its own.
pub(crate) fn rounded(bytes: u64) -> u64 {
    bytes.max(1).div_ceil(ALIGN) * ALIGN
}

/// Returns the size of a block that ends before its guard: as small as vector loads allow.
pub(crate) fn guarded(bytes: u64) -> u64 {
    bytes.max(1).next_multiple_of(16)
}

impl LiveSet {
    pub(crate) fn len(&self) -> usize {
        match &self.0 {
            Blocks::Few(list) => list.len(),
            Blocks::Many(tree) => tree.len(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the blocks by address.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Block> {
        let (list, tree) = match &self.0 {
            Blocks::Few(list) => (Some(list), None),
            Blocks::Many(tree) => (None, Some(tree)),
        };
        let trees = tree.into_iter().flat_map(|tree| tree.iter().map(|(block, ())| block));
        list.into_iter().flatten().copied().chain(trees)
    }

    /// Returns the total size of all blocks.
    pub(crate) fn bytes(&self) -> u64 {
        self.iter().map(|block| block.len).sum()
    }

    /// Returns the end of the last block.
    pub(crate) fn end(&self) -> Option<u64> {
        match &self.0 {
            Blocks::Few(list) => list.last().map(|block| block.end()),
            Blocks::Many(tree) => tree.end(),
        }
    }

    /// Returns a hash that is equal for equal sets.
    pub(super) fn hash(&self) -> u64 {
        match &self.0 {
            Blocks::Few(list) => list.iter().fold(0, |sum: u64, &block| sum.wrapping_add(hash(block))),
            Blocks::Many(tree) => tree.hash(),
        }
    }

    pub(crate) fn clear(&mut self) {
        match &mut self.0 {
            Blocks::Few(list) => list.clear(),
            Blocks::Many(_) => *self = Self::default(),
        }
    }

    /// Returns the lowest gap from `base` that holds `len` bytes (first fit).
    pub(crate) fn place(&self, base: u64, len: u64) -> u64 {
        let list = match &self.0 {
            Blocks::Few(list) => list,
            Blocks::Many(tree) => return tree.place(base, len),
        };
        let mut at = base;
        for block in list {
            if block.addr - at >= len {
                break;
            }
            at = block.end();
        }
        at
    }

    /// Like [`place`](Self::place), with an unmapped page between blocks: returns the lowest place whose last
    /// byte is the last of a page, and whose pages, and one more on each side, contain no block. For
    /// debugging: accesses beyond a block's end fault.
    pub(crate) fn place_guarded(&self, base: u64, bytes: u64, page: u64) -> u64 {
        let bytes = guarded(bytes);
        let pages = bytes.next_multiple_of(page);
        let fits = |at: u64, next: u64| next / page * page >= at + pages + page;
        let behind = |end: u64| end.next_multiple_of(page) + page;
        let mut at = base.next_multiple_of(page);
        match &self.0 {
            Blocks::Few(list) => {
                for block in list {
                    if fits(at, block.addr) {
                        break;
                    }
                    at = behind(block.end());
                }
            }
            Blocks::Many(tree) => {
                // A gap that is not wider by a page cannot hold it with its guards.
                let least = pages + 2 * page;
                let mut next = tree.first_from(0);
                while let Some(addr) = next.filter(|&addr| !fits(at, addr)) {
                    let gap = tree.gap(addr, least).or(tree.end());
                    let Some(end) = gap else { break };
                    at = behind(end);
                    next = tree.first_from(end);
                }
            }
        }
        at + pages - bytes
    }

    /// Adds a block that must not overlap any other.
    pub(crate) fn insert(&mut self, block: Block) {
        debug_assert!(self.is_free(block), "{block:?} overlaps a live block");
        match &mut self.0 {
            Blocks::Few(list) if list.len() < FEW => {
                let at = list.partition_point(|b| b.addr < block.addr);
                list.insert(at, block);
            }
            Blocks::Few(list) => {
                let mut tree = Treap::default();
                list.iter().for_each(|&b| tree.insert(b, ()));
                tree.insert(block, ());
                self.0 = Blocks::Many(tree);
            }
            Blocks::Many(tree) => tree.insert(block, ()),
        }
    }

    /// Removes the block at `addr`.
    pub(crate) fn remove(&mut self, addr: u64) -> Option<Block> {
        match &mut self.0 {
            Blocks::Few(list) => {
                let at = list.binary_search_by_key(&addr, |b| b.addr).ok()?;
                Some(list.remove(at))
            }
            Blocks::Many(tree) => {
                let removed = tree.remove(addr);
                // Well below the limit, so that a set at the limit does not alternate between list and tree.
                if tree.len() <= FEW / 2 {
                    self.0 = Blocks::Few(tree.iter().map(|(block, ())| block).collect());
                }
                removed
            }
        }
    }

    /// Returns whether a live block starts at `addr`.
    pub(super) fn has(&self, addr: u64) -> bool {
        match &self.0 {
            Blocks::Few(list) => list.binary_search_by_key(&addr, |b| b.addr).is_ok(),
            Blocks::Many(tree) => tree.at(addr).is_some(),
        }
    }

    /// Returns the live blocks that overlap the range, the last one first.
    pub(crate) fn overlapping(&self, range: Block) -> Vec<Block> {
        let before = |at: u64| match &self.0 {
            Blocks::Few(list) => list[..list.partition_point(|b| b.addr < at)].last().copied(),
            Blocks::Many(tree) => at.checked_sub(1).and_then(|at| tree.up_to(at)),
        };
        let mut found = Vec::new();
        let mut at = range.end();
        while let Some(block) = before(at).filter(|b| b.end() > range.addr) {
            found.push(block);
            at = block.addr;
        }
        found
    }

    /// Returns whether no live block overlaps the range.
    pub(crate) fn is_free(&self, range: Block) -> bool {
        match &self.0 {
            Blocks::Few(list) => {
                let at = list.partition_point(|b| b.end() <= range.addr);
                list.get(at).is_none_or(|b| b.addr >= range.end())
            }
            Blocks::Many(tree) => {
                tree.up_to(range.end().saturating_sub(1)).is_none_or(|b| b.end() <= range.addr)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use rand::{Rng, SeedableRng, rngs::StdRng};

    use super::*;

    #[test]
    fn what_touches_a_range() {
        for count in [5u64, 200] {
            let mut set = LiveSet::default();
            (0..count).for_each(|i| set.insert(Block { addr: 1024 * i, len: 512 }));
            let all: Vec<Block> = set.iter().collect();
            for (addr, len) in
                [(0, 4096), (512, 512), (256, 2048), (1535, 1), (1536, 1), (1024, 0), (0, 1 << 20)]
            {
                let range = Block { addr, len };
                let mut found = set.overlapping(range);
                found.reverse();
                let touches = |b: &&Block| b.addr < range.end() && range.addr < b.end();
                assert!(found.iter().eq(all.iter().filter(touches)), "{range:?}: {found:?}");
            }
        }
    }

    #[test]
    fn first_fit_fills_the_lowest_gap() {
        let mut s = LiveSet::default();
        for at in [0, 256, 768] {
            s.insert(Block { addr: 4096 + at, len: 256 });
        }
        assert_eq!(s.place(4096, 256), 4096 + 512);
        assert_eq!(s.place(4096, 512), 4096 + 1024);
        assert!(s.is_free(Block { addr: 4096 + 512, len: 256 }));
        assert!(!s.is_free(Block { addr: 4096 + 512, len: 512 }));
        assert!(!s.is_free(Block { addr: 4096, len: 256 }));
    }

    #[test]
    fn guarded_blocks_end_with_a_page_and_share_none() {
        const PAGE: u64 = 4096;
        let mut rng = StdRng::seed_from_u64(9);
        let mut set = LiveSet::default();
        for _ in 0..10_000 {
            if set.len() > 20 {
                let victim = set.iter().nth(rng.random_range(0..set.len())).unwrap().addr;
                set.remove(victim).unwrap();
            }
            let bytes = rng.random_range(0..20_000);
            let addr = set.place_guarded(0, bytes, PAGE);
            let (first, end) = (addr / PAGE, (addr + guarded(bytes)) / PAGE);
            assert_eq!((addr + guarded(bytes)) % PAGE, 0);
            for block in set.iter() {
                let (a, b) = (block.addr / PAGE, (block.addr + block.len).div_ceil(PAGE));
                assert!(end < a || b < first, "{block:?} and {addr} of {bytes}");
            }
            set.insert(Block { addr, len: rounded(bytes) });
        }
    }

    /// A tree finds the same place as examining every block.
    #[test]
    fn guarded_places_in_large_sets() {
        const PAGE: u64 = 4096;
        let mut rng = StdRng::seed_from_u64(10);
        let mut set = LiveSet::default();
        for _ in 0..20_000 {
            if rng.random_range(0..1200) < set.len() {
                let victim = set.iter().nth(rng.random_range(0..set.len())).unwrap().addr;
                set.remove(victim).unwrap();
                continue;
            }
            let bytes = rng.random_range(0..30_000);
            let list = LiveSet(Blocks::Few(set.iter().collect()));
            let addr = set.place_guarded(PAGE, bytes, PAGE);
            assert_eq!(addr, list.place_guarded(PAGE, bytes, PAGE), "{bytes} beside {}", set.len());
            set.insert(Block { addr, len: rounded(bytes) });
        }
        assert!(matches!(set.0, Blocks::Many(_)));
    }

    /// Random allocate, free, checkpoint and restore against a byte map, as a list and as a tree.
    #[test]
    fn model() {
        against_a_map(64, 100_000);
        against_a_map(400, 20_000);
    }

    /// Sets that were built in different ways are equal, in either representation, and so are their hashes.
    #[test]
    fn equal_sets() {
        let mut rng = StdRng::seed_from_u64(11);
        let all: Vec<Block> = (0..200).map(|i| Block { addr: 4096 + i * 512, len: 256 }).collect();
        for n in [0, 1, 20, 33, 63, 64, 65, 66, 100, 200] {
            let mut up = LiveSet::default();
            all[..n].iter().for_each(|&b| up.insert(b));
            let mut down = LiveSet::default();
            all.iter().rev().for_each(|&b| down.insert(b));
            let copy = down.clone();
            let mut order: Vec<usize> = (n..200).collect();
            for i in (1..order.len()).rev() {
                order.swap(i, rng.random_range(0..=i));
            }
            for &i in &order {
                assert_eq!(down.remove(all[i].addr), Some(all[i]));
                assert_eq!(down.remove(all[i].addr), None);
            }
            assert_eq!((&up, up.hash(), up.end()), (&down, down.hash(), down.end()), "{n} blocks");
            assert_eq!(copy.iter().collect::<Vec<_>>(), all, "a copy stays");
            if n > 0 {
                let gone = all[rng.random_range(0..n)];
                down.remove(gone.addr).unwrap();
                assert_ne!(up, down);
                down.insert(Block { len: 512, ..gone });
                assert_ne!(up, down, "another length");
            }
        }
    }

    /// Placement in a large set visits one path of its tree, as shown by the depth.
    #[test]
    fn large_sets_are_shallow() {
        let mut set = LiveSet::default();
        for _ in 0..100_000 {
            let addr = set.place(0, 256);
            set.insert(Block { addr, len: 256 });
        }
        let Blocks::Many(tree) = &set.0 else { panic!("a list of 100,000 blocks") };
        assert!(tree.depth() < 60, "{} levels", tree.depth());
    }

    fn against_a_map(most: usize, steps: usize) {
        let mut rng = StdRng::seed_from_u64(7);
        let (mut set, mut model) = (LiveSet::default(), BTreeMap::new());
        let mut saved: Vec<(LiveSet, BTreeMap<u64, u64>)> = Vec::new();
        for _ in 0..steps {
            match rng.random_range(0..10) {
                0..=4 if model.len() < most => {
                    let len = rounded(rng.random_range(0..3000));
                    let addr = set.place(0, len);
                    for (&a, &l) in &model {
                        assert!(addr + len <= a || a + l <= addr, "overlap");
                    }
                    // First fit: no lower aligned place is free. Of blocks that do not end before a place, the first decides.
                    let mut blocks = model.iter().peekable();
                    let lowest = (0..=addr / ALIGN).map(|i| i * ALIGN).find(|&at| {
                        while blocks.next_if(|&(&a, &l)| a + l <= at).is_some() {}
                        blocks.peek().is_none_or(|&(&a, _)| at + len <= a)
                    });
                    assert_eq!(lowest, Some(addr));
                    set.insert(Block { addr, len });
                    model.insert(addr, len);
                }
                5..=7 => {
                    let pick = model.keys().nth(rng.random_range(0..model.len().max(1))).copied();
                    if let Some(addr) = pick {
                        assert_eq!(set.remove(addr).map(|b| b.len), model.remove(&addr));
                    }
                }
                8 if saved.len() < 8 => saved.push((set.clone(), model.clone())),
                _ => {
                    if let Some((s, m)) = saved.pop() {
                        (set, model) = (s, m);
                    }
                }
            }
            let live: Vec<_> = model.iter().map(|(&addr, &len)| Block { addr, len }).collect();
            assert_eq!(set.iter().collect::<Vec<_>>(), live);
            assert_eq!(set.end(), live.last().map(|b| b.end()));
            let range =
                Block { addr: ALIGN * rng.random_range(0..300), len: ALIGN * rng.random_range(1..20) };
            let free = live.iter().all(|b| b.end() <= range.addr || range.end() <= b.addr);
            assert_eq!(set.is_free(range), free);
            assert_eq!(set.has(range.addr), live.iter().any(|b| b.addr == range.addr));
        }
    }
}

//! Placement of blocks: a function of the live set and the size, and of nothing else.

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

/// The live blocks of one arena, sorted by address.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct LiveSet {
    blocks: Vec<Block>,
}

/// The size that a request takes in an arena. Requests of nothing take one unit, so that every
/// block has an address of its own.
pub(crate) fn rounded(bytes: u64) -> u64 {
    bytes.max(1).div_ceil(ALIGN) * ALIGN
}

/// The bytes of a block that end before its guard: as few as vector loads allow.
pub(crate) fn guarded(bytes: u64) -> u64 {
    bytes.max(1).next_multiple_of(16)
}

impl LiveSet {
    pub(crate) fn from_blocks(blocks: &[Block]) -> Self {
        Self { blocks: blocks.to_vec() }
    }

    pub(crate) fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    pub(crate) fn clear(&mut self) {
        self.blocks.clear();
    }

    /// The lowest gap from `base` that holds `len` bytes (first fit).
    pub(crate) fn place(&self, base: u64, len: u64) -> u64 {
        let mut at = base;
        for block in &self.blocks {
            if block.addr - at >= len {
                break;
            }
            at = block.end();
        }
        at
    }

    /// As [`place`](Self::place), with an unmapped page between blocks: the lowest place whose last byte is
    /// the last of a page, and whose pages, and one more on each side, hold no block. For debugging: what
    /// runs past a block's end faults.
    pub(crate) fn place_guarded(&self, base: u64, bytes: u64, page: u64) -> u64 {
        let bytes = guarded(bytes);
        let pages = bytes.next_multiple_of(page);
        let mut at = base.next_multiple_of(page);
        for block in &self.blocks {
            if block.addr / page * page >= at + pages + page {
                break;
            }
            at = block.end().next_multiple_of(page) + page;
        }
        at + pages - bytes
    }

    /// Adds a block that overlaps none.
    pub(crate) fn insert(&mut self, block: Block) {
        let at = self.blocks.partition_point(|b| b.addr < block.addr);
        debug_assert!(at == 0 || self.blocks[at - 1].end() <= block.addr, "overlap below {block:?}");
        debug_assert!(
            at == self.blocks.len() || block.end() <= self.blocks[at].addr,
            "overlap above {block:?}"
        );
        self.blocks.insert(at, block);
    }

    /// Removes the block at `addr`.
    pub(crate) fn remove(&mut self, addr: u64) -> Option<Block> {
        let at = self.blocks.binary_search_by_key(&addr, |b| b.addr).ok()?;
        Some(self.blocks.remove(at))
    }

    /// Whether no live block touches the range.
    pub(crate) fn is_free(&self, block: Block) -> bool {
        let at = self.blocks.partition_point(|b| b.end() <= block.addr);
        self.blocks.get(at).is_none_or(|b| b.addr >= block.end())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use rand::{Rng, SeedableRng, rngs::StdRng};

    use super::*;

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
            if set.blocks().len() > 20 {
                let victim = set.blocks()[rng.random_range(0..set.blocks().len())].addr;
                set.remove(victim).unwrap();
            }
            let bytes = rng.random_range(0..20_000);
            let addr = set.place_guarded(0, bytes, PAGE);
            let (first, end) = (addr / PAGE, (addr + guarded(bytes)) / PAGE);
            assert_eq!((addr + guarded(bytes)) % PAGE, 0);
            for block in set.blocks() {
                let (a, b) = (block.addr / PAGE, (block.addr + block.len).div_ceil(PAGE));
                assert!(end < a || b < first, "{block:?} and {addr} of {bytes}");
            }
            set.insert(Block { addr, len: rounded(bytes) });
        }
    }

    /// Random allocate, free, checkpoint and restore against a byte map.
    #[test]
    fn model() {
        let mut rng = StdRng::seed_from_u64(7);
        let (mut set, mut model) = (LiveSet::default(), BTreeMap::new());
        let mut saved: Vec<(LiveSet, BTreeMap<u64, u64>)> = Vec::new();
        for _ in 0..100_000 {
            match rng.random_range(0..10) {
                0..=4 if model.len() < 64 => {
                    let len = rounded(rng.random_range(0..3000));
                    let addr = set.place(0, len);
                    for (&a, &l) in &model {
                        assert!(addr + len <= a || a + l <= addr, "overlap");
                    }
                    // First fit: no lower aligned place is free.
                    let lowest = (0..=addr / ALIGN)
                        .map(|i| i * ALIGN)
                        .find(|&at| model.iter().all(|(&a, &l)| at + len <= a || a + l <= at));
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
            assert_eq!(set.blocks(), live);
        }
    }
}

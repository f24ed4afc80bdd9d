//! Blocks that were freed a moment ago.

use smallvec::SmallVec;

use super::{Block, live_set::LiveSet};

/// Small blocks of a body that were freed a moment ago, which are not used again yet.
///
/// One kernel may do what several operations do (`program`), and then its blocks write results while others still read what the
/// first of the operations has read. So the result of a product, or of what follows it, should not lie where an input of what
/// precedes it was. Few small blocks cost next to nothing.
#[derive(Debug, Default)]
pub(super) struct Cooling {
    is_on: bool,
    /// With the number of placements that it still sits out.
    blocks: SmallVec<[(Block, u8); 8]>,
}

impl Cooling {
    /// The largest block, in bytes.
    const MOST: u64 = 512 << 10;
    /// The most blocks that cool at a time.
    const BLOCKS: usize = 8;
    /// Placements that a block sits out.
    const PLACEMENTS: u8 = 3;

    /// From here on, what is freed cools.
    pub(super) fn begin(&mut self) {
        self.is_on = true;
    }

    /// Notes a block that was freed.
    pub(super) fn freed(&mut self, block: Block) {
        if self.is_on && block.len <= Self::MOST {
            if self.blocks.len() == Self::BLOCKS {
                self.blocks.remove(0);
            }
            self.blocks.push((block, Self::PLACEMENTS));
        }
    }

    /// Places a block where no live one and no cooling one is.
    pub(super) fn place(&mut self, live: &mut LiveSet, place: impl FnOnce(&LiveSet) -> u64) -> u64 {
        self.blocks.iter().for_each(|(block, _)| live.insert(*block));
        let addr = place(live);
        for (block, left) in &mut self.blocks {
            live.remove(block.addr);
            *left -= 1;
        }
        self.blocks.retain(|(_, left)| *left > 0);
        addr
    }
}

#[cfg(test)]
mod tests {
    use super::{super::Pool, *};

    const BASE: u64 = 0x7000_0000;

    /// The places of blocks that are made and freed in turn.
    fn places(cools: bool, bytes: u64) -> Vec<u64> {
        let mut pool = Pool::new(BASE, 0);
        pool.begin_body();
        if cools {
            pool.cool_freed();
        }
        let next = |_| {
            let block = pool.place(bytes);
            assert!(pool.free(block.addr));
            (block.addr - BASE) / bytes
        };
        let places = (0..6).map(next).collect();
        pool.end_body();
        assert_eq!((pool.live_blocks(), pool.place(bytes).addr), (0, BASE), "nothing cools after the body");
        places
    }

    #[test]
    fn a_small_block_sits_out_three_placements() {
        assert_eq!(places(false, 256), [0; 6]);
        assert_eq!(places(true, 256), [0, 1, 2, 3, 0, 1]);
        assert_eq!(places(true, Cooling::MOST + 256), [0; 6]);
    }

    #[test]
    fn few_blocks_cool_at_a_time() {
        let mut pool = Pool::new(BASE, 0);
        pool.begin_body();
        pool.cool_freed();
        let all: Vec<u64> = (0..100).map(|_| pool.place(256).addr).collect();
        all.iter().for_each(|addr| assert!(pool.free(*addr)));
        assert_eq!(pool.place(256).addr, BASE);
    }
}

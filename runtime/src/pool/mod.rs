//! The segment pool: one arena whose state is a value.
//!
//! A state is the exact set of live blocks. States are interned, and the way from one to the next
//! (freeing a block, placing one) is remembered, so that a replay moves between states by index.
//! While a segment body runs, a working copy is changed instead, and interned at the end.

use rustc_hash::FxHashMap;

mod live_set;
#[cfg(test)]
mod model;

pub(crate) use live_set::{ALIGN, Block, LiveSet, guarded, rounded};

/// Index of an interned state. State 0 is the empty one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct StateId(u32);

impl StateId {
    pub(crate) const EMPTY: Self = Self(0);
}

#[derive(Debug)]
struct State {
    blocks: Box<[Block]>,
    frees: Vec<(u64, StateId)>,
    places: Vec<(u64, u64, StateId)>,
}

/// The pool. Addresses are absolute.
#[derive(Debug)]
pub(crate) struct Pool {
    base: u64,
    /// Bytes of a page between blocks; 0 where they lie side by side.
    page: u64,
    states: Vec<State>,
    interned: FxHashMap<Box<[Block]>, StateId>,
    current: StateId,
    working: Option<LiveSet>,
    high: u64,
    /// The same for the body that runs, or ran last.
    body_high: u64,
}

/// The lowest place for `bytes`; with a `page`, one that leaves a page free around it.
pub(crate) fn place(set: &LiveSet, base: u64, bytes: u64, page: u64) -> u64 {
    match page {
        0 => set.place(base, rounded(bytes)),
        page => set.place_guarded(base, bytes, page),
    }
}

impl Pool {
    pub(crate) fn new(base: u64, page: u64) -> Self {
        let empty: Box<[Block]> = Box::default();
        Self {
            base,
            page,
            states: vec![State { blocks: empty.clone(), frees: Vec::new(), places: Vec::new() }],
            interned: FxHashMap::from_iter([(empty, StateId::EMPTY)]),
            current: StateId::EMPTY,
            working: None,
            high: base,
            body_high: base,
        }
    }

    /// Bytes ever in use at once, from the arena's start.
    pub(crate) fn high_water(&self) -> u64 {
        self.high - self.base
    }

    /// Bytes, from the arena's start, that the last body and everything alive meanwhile needed.
    pub(crate) fn body_bytes(&self) -> u64 {
        self.body_high - self.base
    }

    /// The arena's first address.
    pub(crate) fn base(&self) -> u64 {
        self.base
    }

    /// The live blocks of a state, by address.
    pub(crate) fn blocks(&self, state: StateId) -> &[Block] {
        &self.states[state.0 as usize].blocks
    }

    /// Counts the high-water mark from what is alive now on.
    pub(crate) fn forget_high_water(&mut self) {
        self.high = self.live().last().map_or(self.base, |block| block.end());
    }

    /// The mark was at least this high before.
    pub(crate) fn raise_high_water(&mut self, bytes: u64) {
        self.high = self.high.max(self.base + bytes);
    }

    /// The state at a segment boundary.
    pub(crate) fn state(&self) -> StateId {
        debug_assert!(self.working.is_none(), "a body is running");
        self.current
    }

    /// The live blocks now.
    pub(crate) fn live(&self) -> &[Block] {
        match &self.working {
            Some(set) => set.blocks(),
            None => &self.states[self.current.0 as usize].blocks,
        }
    }

    /// Moves to a known state: what a replay leaves behind.
    pub(crate) fn restore(&mut self, state: StateId) {
        debug_assert!(self.working.is_none(), "a body is running");
        self.current = state;
    }

    /// Forgets every block; states stay known.
    pub(crate) fn reset(&mut self) {
        self.working = None;
        self.current = StateId::EMPTY;
    }

    /// Starts to change the state freely, without interning.
    pub(crate) fn begin_body(&mut self) {
        debug_assert!(self.working.is_none(), "bodies do not nest");
        let live = LiveSet::from_blocks(&self.states[self.current.0 as usize].blocks);
        self.body_high = live.blocks().last().map_or(self.base, |block| block.end());
        self.working = Some(live);
    }

    /// Interns what the body left.
    pub(crate) fn end_body(&mut self) -> StateId {
        if let Some(set) = self.working.take() {
            self.current = self.intern(set.blocks());
        }
        self.current
    }

    /// Where a block of `bytes` goes. The caller commits the arena up to its end.
    pub(crate) fn place(&mut self, bytes: u64) -> Block {
        let len = rounded(bytes);
        if let Some(set) = &mut self.working {
            let block = Block { addr: place(set, self.base, bytes, self.page), len };
            set.insert(block);
            self.high = self.high.max(block.end());
            self.body_high = self.body_high.max(block.end());
            return block;
        }
        let at = self.current.0 as usize;
        // With guards the address depends on more than the rounded length.
        let asked = if self.page > 0 { guarded(bytes) } else { len };
        if let Some(&(_, addr, next)) = self.states[at].places.iter().find(|(l, ..)| *l == asked) {
            self.current = next;
            return Block { addr, len };
        }
        let mut set = LiveSet::from_blocks(&self.states[at].blocks);
        let block = Block { addr: place(&set, self.base, bytes, self.page), len };
        set.insert(block);
        self.high = self.high.max(block.end());
        let next = self.intern(set.blocks());
        self.states[at].places.push((asked, block.addr, next));
        self.current = next;
        block
    }

    /// Frees the block at `addr`; `None` when none starts there.
    pub(crate) fn free(&mut self, addr: u64) -> Option<Block> {
        if let Some(set) = &mut self.working {
            return set.remove(addr);
        }
        let at = self.current.0 as usize;
        if let Some(&(_, next)) = self.states[at].frees.iter().find(|(a, _)| *a == addr) {
            self.current = next;
            return Some(Block { addr, len: 0 });
        }
        let mut set = LiveSet::from_blocks(&self.states[at].blocks);
        let block = set.remove(addr)?;
        let next = self.intern(set.blocks());
        self.states[at].frees.push((addr, next));
        self.current = next;
        Some(block)
    }

    fn intern(&mut self, blocks: &[Block]) -> StateId {
        if let Some(&id) = self.interned.get(blocks) {
            return id;
        }
        let id = StateId(self.states.len() as u32);
        let blocks: Box<[Block]> = blocks.into();
        self.states.push(State { blocks: blocks.clone(), frees: Vec::new(), places: Vec::new() });
        self.interned.insert(blocks, id);
        id
    }
}

#[cfg(test)]
mod tests {
    use rand::{Rng, SeedableRng, rngs::StdRng};

    use super::*;

    #[test]
    fn restoring_gives_the_same_addresses() {
        let mut pool = Pool::new(1 << 20, 0);
        let a = pool.place(1000);
        let saved = pool.state();
        let b = pool.place(64);
        let c = pool.place(5000);
        pool.restore(saved);
        assert_eq!((pool.place(64), pool.place(5000)), (b, c));
        pool.free(a.addr).unwrap();
        assert_eq!(pool.place(512).addr, a.addr);
    }

    #[test]
    fn equal_sets_are_one_state() {
        let mut pool = Pool::new(0, 0);
        let (a, b) = (pool.place(10), pool.place(10));
        pool.free(a.addr).unwrap();
        let one = pool.state();
        pool.free(b.addr).unwrap();
        assert_eq!(pool.state(), StateId::EMPTY);
        pool.begin_body();
        let a = pool.place(1);
        pool.place(1);
        pool.free(a.addr).unwrap();
        assert_eq!(pool.end_body(), one);
    }

    /// Interned steps and body steps agree, over random sequences with restores.
    #[test]
    fn both_ways_agree() {
        let mut rng = StdRng::seed_from_u64(3);
        let mut pool = Pool::new(4096, 0);
        let mut states = vec![StateId::EMPTY];
        for _ in 0..100_000 {
            if rng.random_range(0..50) == 0 {
                pool.restore(states[rng.random_range(0..states.len())]);
            }
            let before = pool.state();
            let live: Vec<Block> = pool.live().to_vec();
            let free_one = !live.is_empty() && (live.len() > 12 || rng.random());
            let bytes = [10, 300, 1024, 4000][rng.random_range(0..4)];
            let victim = live.get(rng.random_range(0..live.len().max(1))).copied();
            let act = |pool: &mut Pool| {
                if free_one {
                    pool.free(victim.unwrap().addr).map(|b| b.addr)
                } else {
                    Some(pool.place(bytes).addr)
                }
            };
            let first = act(&mut pool);
            let after = pool.state();
            pool.restore(before);
            pool.begin_body();
            assert_eq!(act(&mut pool), first);
            assert_eq!(pool.end_body(), after);
            if states.len() < 64 {
                states.push(after);
            }
        }
    }
}

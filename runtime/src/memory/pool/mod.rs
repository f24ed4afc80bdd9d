//! The segment pool: one arena whose state is a value.
//!
//! A state is the exact set of live blocks. A state is interned once when a segment needs it; the transition
//! from one to the next (freeing blocks, placing one) is remembered, so that a replay moves between states by
//! index. Between two segments, frees are only noted, however many there are. While a segment body runs, a
//! working copy is changed instead, and interned at the end. Sets that differ in a few blocks share the rest,
//! and states in which no recording begins or ends are occasionally forgotten.

use rustc_hash::FxHashMap;
use slab::Slab;
use smallvec::SmallVec;

mod cooling;
mod freed;
mod live_set;
#[cfg(test)]
mod model;
mod treap;

use cooling::Cooling;
use freed::Freed;
pub(crate) use live_set::{ALIGN, Block, LiveSet, guarded, rounded};
pub(crate) use treap::Treap;

/// The index of an interned state. State 0 is the empty one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct StateId(u32);

impl StateId {
    pub(crate) const EMPTY: Self = Self(0);

    fn index(self) -> usize {
        self.0 as usize
    }
}

/// The number of transitions of each kind that a state remembers.
const WAYS: usize = 32;
/// The number of states, in addition to those that recordings need, above which unused ones are searched for.
const UNUSED_STATES: usize = 1024;

/// The blocks that were freed before the next segment, by address, and the resulting state. There is usually
/// one block, which needs no separate allocation.
#[derive(Debug)]
struct Way {
    first: u64,
    rest: Box<[u64]>,
    to: StateId,
}

#[derive(Debug)]
struct State {
    set: LiveSet,
    frees: Vec<Way>,
    /// The requests, and the resulting addresses and states.
    places: Vec<(u64, u64, StateId)>,
}

impl State {
    fn new(set: LiveSet) -> Self {
        Self { set, frees: Vec::new(), places: Vec::new() }
    }
}

/// Remembers a transition; if there are too many, the oldest is dropped.
fn remember<W>(ways: &mut Vec<W>, way: W) {
    if ways.len() == WAYS {
        ways.remove(0);
    }
    ways.push(way);
}

/// The pool. Addresses are absolute.
#[derive(Debug)]
pub(crate) struct Pool {
    base: u64,
    /// The size of the page between blocks; 0 if they are adjacent.
    page: u64,
    states: Slab<State>,
    /// By the hash of the set.
    interned: FxHashMap<u64, SmallVec<[StateId; 1]>>,
    /// The number of states at which unused ones are forgotten.
    most: usize,
    current: StateId,
    /// The blocks freed since the current state, which nothing has queried yet.
    freed: Freed,
    working: Option<LiveSet>,
    cooling: Cooling,
    high: u64,
    /// The same for the current or last body.
    body_high: u64,
}

/// Returns the lowest place for `bytes`; with a `page`, one that leaves a page free around it.
pub(crate) fn place(set: &LiveSet, base: u64, bytes: u64, page: u64) -> u64 {
    match page {
        0 => set.place(base, rounded(bytes)),
        page => set.place_guarded(base, bytes, page),
    }
}

impl Pool {
    pub(crate) fn new(base: u64, page: u64) -> Self {
        let mut pool = Self {
            base,
            page,
            states: Slab::new(),
            interned: FxHashMap::default(),
            most: UNUSED_STATES,
            current: StateId::EMPTY,
            freed: Freed::default(),
            working: None,
            cooling: Cooling::default(),
            high: base,
            body_high: base,
        };
        pool.current = pool.intern(LiveSet::default());
        debug_assert_eq!(pool.current, StateId::EMPTY, "the first state is the empty one");
        pool
    }

    /// Returns the high-water mark of bytes in use, from the arena's start.
    pub(crate) fn high_water(&self) -> u64 {
        self.high - self.base
    }

    /// Returns the bytes, from the arena's start, that the last body and everything live meanwhile needed.
    pub(crate) fn body_bytes(&self) -> u64 {
        self.body_high - self.base
    }

    /// Returns the arena's first address.
    pub(crate) fn base(&self) -> u64 {
        self.base
    }

    /// Returns the live blocks of a state, by address.
    pub(crate) fn blocks(&self, state: StateId) -> impl Iterator<Item = Block> {
        self.states.get(state.index()).into_iter().flat_map(|state| state.set.iter())
    }

    /// Returns the number of known states.
    pub(crate) fn states(&self) -> usize {
        self.states.len()
    }

    /// Resets the high-water mark to the blocks that are live now.
    pub(crate) fn forget_high_water(&mut self) {
        self.high = self.live().end().unwrap_or(self.base);
    }

    /// Raises the high-water mark to at least this value.
    pub(crate) fn raise_high_water(&mut self, bytes: u64) {
        self.high = self.high.max(self.base + bytes);
    }

    /// Returns the state at a segment boundary, including all frees before it.
    #[inline]
    pub(crate) fn commit_frees(&mut self) -> StateId {
        debug_assert!(self.working.is_none(), "a body is running");
        if !self.freed.is_empty() {
            self.apply_frees();
        }
        self.current
    }

    /// Returns the state at a segment boundary, after [`commit_frees`](Self::commit_frees).
    pub(crate) fn state(&self) -> StateId {
        debug_assert!(self.working.is_none(), "a body is running");
        debug_assert!(self.freed.is_empty(), "something was freed since the state was asked for");
        self.current
    }

    fn apply_frees(&mut self) {
        let state = &self.states[self.current.index()];
        let Some((&first, rest)) = self.freed.sorted().split_first() else { return };
        // Most lists are empty. Comparing those takes a call, in which a profile of replays showed much of
        // their time.
        let is = |way: &&Way| {
            way.first == first && way.rest.len() == rest.len() && (rest.is_empty() || *way.rest == *rest)
        };
        if let Some(way) = state.frees.iter().find(is) {
            self.current = way.to;
            self.freed.clear();
            return;
        }
        let rest = rest.into();
        let set = self.live();
        self.freed.clear();
        let to = self.intern(set);
        remember(&mut self.states[self.current.index()].frees, Way { first, rest, to });
        self.current = to;
    }

    /// Returns the live blocks.
    pub(crate) fn live(&self) -> LiveSet {
        if let Some(set) = &self.working {
            return set.clone();
        }
        let mut set = self.states[self.current.index()].set.clone();
        for addr in self.freed.iter() {
            set.remove(addr);
        }
        set
    }

    /// Returns the number of live blocks.
    pub(crate) fn live_blocks(&self) -> usize {
        match &self.working {
            Some(set) => set.len(),
            None => self.states[self.current.index()].set.len() - self.freed.len(),
        }
    }

    /// Returns whether nothing is live.
    pub(crate) fn is_empty(&self) -> bool {
        self.live_blocks() == 0
    }

    /// Moves to a known state: the one after a replay.
    pub(crate) fn restore(&mut self, state: StateId) {
        debug_assert!(self.working.is_none(), "a body is running");
        self.freed.clear();
        self.current = state;
    }

    /// Forgets every block; states remain known.
    pub(crate) fn reset(&mut self) {
        self.working = None;
        self.cooling = Cooling::default();
        self.freed.clear();
        self.current = StateId::EMPTY;
    }

    /// Starts to change the state freely, without interning.
    pub(crate) fn begin_body(&mut self) {
        debug_assert!(self.working.is_none(), "bodies do not nest");
        self.commit_frees();
        let live = self.live();
        self.body_high = live.end().unwrap_or(self.base);
        self.working = Some(live);
    }

    /// Says that freed blocks of this body are to cool before they are used again: see [`Cooling`].
    pub(crate) fn cool_freed(&mut self) {
        self.cooling.begin();
    }

    /// Interns the state after the body.
    pub(crate) fn end_body(&mut self) -> StateId {
        self.cooling = Cooling::default();
        if let Some(set) = self.working.take() {
            self.current = self.intern(set);
        }
        self.current
    }

    /// Places a block of `bytes`. The caller commits the arena up to its end.
    pub(crate) fn place(&mut self, bytes: u64) -> Block {
        let len = rounded(bytes);
        if let Some(set) = &mut self.working {
            let place = |set: &LiveSet| place(set, self.base, bytes, self.page);
            let block = Block { addr: self.cooling.place(set, place), len };
            set.insert(block);
            self.high = self.high.max(block.end());
            self.body_high = self.body_high.max(block.end());
            return block;
        }
        let at = self.commit_frees().index();
        // With guards, the address depends on more than the rounded length.
        let asked = if self.page > 0 { guarded(bytes) } else { len };
        if let Some(&(_, addr, next)) = self.states[at].places.iter().find(|(l, ..)| *l == asked) {
            let block = Block { addr, len };
            self.high = self.high.max(block.end());
            self.current = next;
            return block;
        }
        let mut set = self.states[at].set.clone();
        let block = Block { addr: place(&set, self.base, bytes, self.page), len };
        set.insert(block);
        self.high = self.high.max(block.end());
        let next = self.intern(set);
        remember(&mut self.states[at].places, (asked, block.addr, next));
        self.current = next;
        block
    }

    /// Frees the block at `addr`. Returns whether one started there.
    pub(crate) fn free(&mut self, addr: u64) -> bool {
        if let Some(set) = &mut self.working {
            let freed = set.remove(addr);
            freed.into_iter().for_each(|block| self.cooling.freed(block));
            return freed.is_some();
        }
        self.states[self.current.index()].set.has(addr) && self.freed.insert(addr)
    }

    fn intern(&mut self, set: LiveSet) -> StateId {
        let hash = set.hash();
        let known = self.interned.entry(hash).or_default();
        if let Some(&id) = known.iter().find(|id| self.states[id.index()].set == set) {
            return id;
        }
        let id = StateId(self.states.insert(State::new(set)) as u32);
        known.push(id);
        id
    }

    /// Returns whether there are so many states that unused ones should be searched for.
    #[inline]
    pub(crate) fn has_too_many_states(&self) -> bool {
        self.states.len() >= self.most
    }

    /// Forgets all states except the current one and these, which belong to `recordings` recordings.
    pub(crate) fn forget_states_but(&mut self, used: impl Iterator<Item = StateId>, recordings: usize) {
        let mut kept = vec![false; self.states.capacity()];
        for state in used.chain([StateId::EMPTY, self.current]) {
            kept[state.index()] = true;
        }
        let is_kept = |id: &StateId| kept[id.index()];
        self.states.retain(|at, state| {
            state.frees.retain(|way| is_kept(&way.to));
            state.places.retain(|(.., next)| is_kept(next));
            kept[at]
        });
        self.states.shrink_to_fit();
        self.interned.retain(|_, ids| {
            ids.retain(|id| is_kept(id));
            !ids.is_empty()
        });
        self.interned.shrink_to_fit();
        // Examining all of them again is paid for by as many new ones.
        self.most = UNUSED_STATES + 2 * self.states.len() + recordings;
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
        let saved = pool.commit_frees();
        let b = pool.place(64);
        let c = pool.place(5000);
        pool.restore(saved);
        assert_eq!((pool.place(64), pool.place(5000)), (b, c));
        assert!(pool.free(a.addr));
        assert_eq!(pool.place(512).addr, a.addr);
    }

    #[test]
    fn equal_sets_are_one_state() {
        let mut pool = Pool::new(0, 0);
        let (a, b) = (pool.place(10), pool.place(10));
        assert!(pool.free(a.addr));
        let one = pool.commit_frees();
        assert!(pool.free(b.addr));
        assert_eq!(pool.commit_frees(), StateId::EMPTY);
        pool.begin_body();
        let a = pool.place(1);
        pool.place(1);
        assert!(pool.free(a.addr));
        assert_eq!(pool.end_body(), one);
    }

    /// Also between two segments, where frees are only noted.
    #[test]
    fn nothing_is_freed_twice() {
        for n in [1, 16, 17, 40] {
            let mut pool = Pool::new(0, 0);
            let blocks: Vec<u64> = (0..n).map(|_| pool.place(4).addr).collect();
            let full = pool.commit_frees();
            for round in 0..2 {
                assert!(blocks.iter().all(|&addr| pool.free(addr)), "{n} blocks, round {round}");
                assert!(blocks.iter().all(|&addr| !pool.free(addr)), "{n} blocks, round {round}");
                assert_eq!((pool.live_blocks(), pool.commit_frees()), (0, StateId::EMPTY));
                pool.restore(full);
            }
        }
    }

    /// Everything that host code drops between two segments is one transition, in whatever order, without
    /// intermediate states.
    #[test]
    fn many_frees_are_one_state() {
        const N: usize = 8000;
        let mut rng = StdRng::seed_from_u64(5);
        let mut pool = Pool::new(0, 0);
        pool.begin_body();
        let mut blocks: Vec<u64> = (0..N).map(|_| pool.place(4).addr).collect();
        let full = pool.end_body();
        let before = pool.states();
        for round in 0..20 {
            for i in (1..N).rev() {
                blocks.swap(i, rng.random_range(0..=i));
            }
            pool.restore(full);
            assert!(blocks[..N / 2].iter().all(|&addr| pool.free(addr)));
            let half = pool.commit_frees();
            assert_eq!(pool.states(), before + round + 1, "another half of them");
            assert!(blocks[N / 2..].iter().rev().all(|&addr| pool.free(addr)));
            assert_eq!(pool.commit_frees(), StateId::EMPTY);
            assert_ne!(half, StateId::EMPTY);
        }
        assert!(blocks.iter().all(|&addr| !pool.free(addr)));
    }

    /// A call that frees one block before each segment has as many states as segments; they share their
    /// blocks.
    #[test]
    fn states_that_nobody_needs_go() {
        let mut pool = Pool::new(0, 0);
        pool.begin_body();
        let blocks: Vec<u64> = (0..5000).map(|_| pool.place(4).addr).collect();
        let full = pool.end_body();
        let mut all = vec![full];
        for addr in &blocks {
            pool.free(*addr);
            all.push(pool.commit_frees());
        }
        assert_eq!(pool.states(), 5001);
        assert!(pool.has_too_many_states());
        let kept = [full, all[17], all[4000]];
        let sets = kept.map(|state| pool.blocks(state).collect::<Vec<_>>());
        pool.forget_states_but(kept.into_iter(), 3);
        assert_eq!(pool.states(), 4);
        assert!(!pool.has_too_many_states());
        assert_eq!(kept.map(|state| pool.blocks(state).collect::<Vec<_>>()), sets);
        // The transition through them is found again.
        pool.restore(full);
        for addr in &blocks[..17] {
            pool.free(*addr);
        }
        assert_eq!(pool.commit_frees(), all[17]);
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
            let before = pool.commit_frees();
            let live: Vec<Block> = pool.live().iter().collect();
            let free_one = !live.is_empty() && (live.len() > 12 || rng.random());
            let bytes = [10, 300, 1024, 4000][rng.random_range(0..4)];
            let victim = live.get(rng.random_range(0..live.len().max(1))).copied();
            let act = |pool: &mut Pool| {
                if free_one {
                    pool.free(victim.unwrap().addr).then_some(victim.unwrap().addr)
                } else {
                    Some(pool.place(bytes).addr)
                }
            };
            let first = act(&mut pool);
            let after = pool.commit_frees();
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

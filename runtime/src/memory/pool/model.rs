//! A test of the pool against a naive model, over long random sequences.
//!
//! The model is a map of addresses to lengths, and a table that states for every unit of the arena which
//! block contains it. It shares no code with the pool. `GRAPHABLE_POOL_STEPS=10000000` runs more steps than
//! the default; `GRAPHABLE_POOL_FROM=n` begins with the n-th episode.

use std::collections::{BTreeMap, HashMap};

use rand::{Rng, SeedableRng, rngs::StdRng};

use super::{Block, Pool, StateId};

const UNIT: u64 = 256;
const BASE: u64 = 0x7000_0000;
/// The default number of steps.
const STEPS: u64 = 100_000;
/// Occasionally, a fresh pool begins with other gaps.
const EPISODE: u64 = 20_000;
/// The maximum number of live blocks, so that gaps of every kind come and go; in every fourth episode it is
/// so large that the pool stores them as a tree.
const BLOCKS: [usize; 4] = [48, 48, 48, 200];

/// The expected live blocks, by block and by unit.
#[derive(Clone, Default)]
struct Model {
    live: BTreeMap<u64, u64>,
    /// The block that contains each unit of the arena; 0 for none.
    owner: Vec<u64>,
}

impl Model {
    fn units(block: (u64, u64)) -> std::ops::Range<usize> {
        let first = ((block.0 - BASE) / UNIT) as usize;
        first..first + (block.1 / UNIT) as usize
    }

    fn is_free(&self, at: usize, count: usize) -> bool {
        (at..at + count).all(|unit| self.owner.get(unit).is_none_or(|&owner| owner == 0))
    }

    /// Claims a block unit by unit: a unit that already has an owner is an overlap.
    fn claim(&mut self, block: Block) {
        let units = Self::units((block.addr, block.len));
        if self.owner.len() < units.end {
            self.owner.resize(units.end, 0);
        }
        for unit in units {
            assert_eq!(self.owner[unit], 0, "{block:?} overlaps a live block at unit {unit}");
            self.owner[unit] = block.addr;
        }
        assert!(self.live.insert(block.addr, block.len).is_none());
    }

    fn release(&mut self, addr: u64) -> u64 {
        let len = self.live.remove(&addr).unwrap();
        for unit in Self::units((addr, len)) {
            assert_eq!(self.owner[unit], addr, "unit {unit} of the block at {addr:#x} was lost");
            self.owner[unit] = 0;
        }
        len
    }

    /// First fit, by examining every unit.
    fn lowest(&self, len: u64) -> u64 {
        let count = (len / UNIT) as usize;
        let at = (0..).find(|&at| self.is_free(at, count)).unwrap();
        BASE + at as u64 * UNIT
    }

    fn bytes(&self) -> u64 {
        self.owner.iter().filter(|&&owner| owner != 0).count() as u64 * UNIT
    }

    fn end(&self) -> u64 {
        self.live.last_key_value().map_or(BASE, |(&addr, &len)| addr + len)
    }

    fn blocks(&self) -> Vec<Block> {
        self.live.iter().map(|(&addr, &len)| Block { addr, len }).collect()
    }
}

/// One request, so that it can be repeated after a restore.
#[derive(Clone, Copy)]
enum Request {
    Place { bytes: u64, got: u64 },
    Free { addr: u64 },
}

/// A state to return to, and the requests made from there on.
struct Checkpoint {
    state: StateId,
    model: Model,
    then: Vec<Request>,
}

#[derive(Default)]
struct Counts {
    places: u64,
    frees: u64,
    checkpoints: u64,
    restores: u64,
    repeated: u64,
    bodies: u64,
    resets: u64,
    sweeps: u64,
    most_bytes: u64,
    states: usize,
}

struct Walk {
    /// The most blocks.
    blocks: usize,
    rng: StdRng,
    pool: Pool,
    model: Model,
    /// The highest end of any block so far.
    high: u64,
    checkpoints: Vec<Checkpoint>,
    /// Set if the current requests follow the last checkpoint, without a restore in between.
    on_path: bool,
    /// All states seen so far, by their blocks: equal sets are one state, and one state is one set.
    ids: HashMap<Vec<Block>, StateId>,
    sets: HashMap<StateId, Vec<Block>>,
    in_body: bool,
}

impl Walk {
    fn new(seed: u64) -> Self {
        Self {
            blocks: BLOCKS[(seed % 4) as usize],
            rng: StdRng::seed_from_u64(seed),
            pool: Pool::new(BASE, 0),
            model: Model::default(),
            high: BASE,
            checkpoints: Vec::new(),
            on_path: false,
            ids: HashMap::new(),
            sets: HashMap::new(),
            in_body: false,
        }
    }

    fn place(&mut self, bytes: u64) -> u64 {
        let block = self.pool.place(bytes);
        assert_eq!(block.len, bytes.max(1).div_ceil(UNIT) * UNIT, "{bytes} bytes, rounded up to units");
        assert_eq!(block.addr, self.model.lowest(block.len), "the lowest place that holds {bytes} bytes");
        self.model.claim(block);
        self.high = self.high.max(block.addr + block.len);
        block.addr
    }

    fn free(&mut self, addr: u64) {
        assert!(self.pool.free(addr), "nothing at {addr:#x}");
        self.model.release(addr);
    }

    /// A block that does not exist cannot be freed, and trying changes nothing.
    fn free_nothing(&mut self) {
        let addr = BASE + UNIT * self.rng.random_range(0..4096);
        if !self.model.live.contains_key(&addr) {
            assert!(!self.pool.free(addr), "something at {addr:#x}");
        }
    }

    fn remember(&mut self, request: Request) {
        if let Some(last) = self.checkpoints.last_mut().filter(|_| self.on_path) {
            last.then.push(request);
        }
    }

    /// Places or frees one block.
    fn request(&mut self, counts: &mut Counts) {
        let live = self.model.live.len();
        if live > 0 && (live >= self.blocks || self.rng.random_range(0..5) < 2) {
            let addr = *self.model.live.keys().nth(self.rng.random_range(0..live)).unwrap();
            self.free(addr);
            self.remember(Request::Free { addr });
            counts.frees += 1;
        } else {
            // Many small ones and a few large ones, including sizes that are exact multiples of the unit.
            let bytes = match self.rng.random_range(0..4) {
                0 => self.rng.random_range(0..=UNIT),
                1 => UNIT * self.rng.random_range(1..8),
                2 => self.rng.random_range(1..3000),
                _ => self.rng.random_range(1..40_000),
            };
            let got = self.place(bytes);
            self.remember(Request::Place { bytes, got });
            counts.places += 1;
        }
        counts.most_bytes = counts.most_bytes.max(self.model.bytes());
    }

    fn checkpoint(&mut self) {
        let (state, model) = (self.pool.commit_frees(), self.model.clone());
        self.checkpoints.push(Checkpoint { state, model, then: Vec::new() });
        self.on_path = true;
        if self.checkpoints.len() > 12 {
            let gone = self.rng.random_range(0..12);
            self.checkpoints.remove(gone);
        }
    }

    /// Returns to a checkpoint, and sometimes repeats the requests from there: every address must be the
    /// same.
    fn restore(&mut self, counts: &mut Counts) {
        let at = self.rng.random_range(0..self.checkpoints.len());
        let (state, model) = (self.checkpoints[at].state, self.checkpoints[at].model.clone());
        self.pool.restore(state);
        self.model = model;
        if self.rng.random() {
            let then = self.checkpoints[at].then.clone();
            for request in then {
                match request {
                    Request::Place { bytes, got } => {
                        assert_eq!(self.place(bytes), got, "another address after a restore");
                    }
                    Request::Free { addr } => self.free(addr),
                }
                counts.repeated += 1;
            }
        }
        self.on_path = false;
        counts.restores += 1;
    }

    /// Forgets the states that no checkpoint needs.
    fn sweep(&mut self) {
        let current = self.pool.commit_frees();
        let used: Vec<StateId> = self.checkpoints.iter().map(|c| c.state).collect();
        self.pool.forget_states_but(used.iter().copied(), used.len());
        let kept = |id: &StateId| used.contains(id) || [current, StateId::EMPTY].contains(id);
        self.ids.retain(|_, id| kept(id));
        self.sets.retain(|id, _| kept(id));
        assert!(self.pool.states() <= used.len() + 2, "{} states are left", self.pool.states());
        for Checkpoint { state, model, .. } in &self.checkpoints {
            assert_eq!(
                self.pool.blocks(*state).collect::<Vec<_>>(),
                model.blocks(),
                "a state in use changed"
            );
        }
    }

    fn step(&mut self, counts: &mut Counts) {
        match self.rng.random_range(0..40) {
            0 if !self.in_body => {
                self.checkpoint();
                counts.checkpoints += 1;
            }
            1 if !self.in_body && !self.checkpoints.is_empty() => self.restore(counts),
            2 | 3 if !self.in_body => {
                self.pool.begin_body();
                self.in_body = true;
                counts.bodies += 1;
            }
            4..=7 if self.in_body => {
                let state = self.pool.end_body();
                assert_eq!(state, self.pool.commit_frees());
                self.in_body = false;
            }
            10 if !self.in_body => {
                self.sweep();
                counts.sweeps += 1;
            }
            8 => self.free_nothing(),
            9 if self.rng.random_range(0..100) == 0 => {
                self.pool.reset();
                assert_eq!(self.pool.commit_frees(), StateId::EMPTY);
                (self.model, self.in_body) = (Model::default(), false);
                self.checkpoints.clear();
                counts.resets += 1;
            }
            _ => self.request(counts),
        }
        self.check();
    }

    fn check(&mut self) {
        let blocks = self.model.blocks();
        let live = self.pool.live();
        assert_eq!(
            live.iter().collect::<Vec<_>>(),
            blocks,
            "the pool and the model disagree about what is live"
        );
        assert_eq!(live.bytes(), self.model.bytes(), "bytes were lost or counted twice");
        assert_eq!(self.pool.is_empty(), blocks.is_empty());
        assert!(self.model.end() <= self.high);
        assert_eq!(self.pool.high_water(), self.high - BASE);
        // Frees that have not been queried yet are part of the walk as well.
        if !self.in_body && self.rng.random() {
            let id = self.pool.commit_frees();
            assert_eq!(*self.ids.entry(blocks.clone()).or_insert(id), id, "one set, two states");
            assert_eq!(*self.sets.entry(id).or_insert(blocks), self.model.blocks(), "one state, two sets");
        }
    }
}

#[test]
fn random_walks() {
    let number = |name| std::env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
    let (steps, from) =
        (number("GRAPHABLE_POOL_STEPS").unwrap_or(STEPS), number("GRAPHABLE_POOL_FROM").unwrap_or(0));
    let mut counts = Counts::default();
    for episode in 0..steps.div_ceil(EPISODE) {
        let mut walk = Walk::new(from + episode);
        for _ in 0..EPISODE.min(steps - episode * EPISODE) {
            walk.step(&mut counts);
        }
        counts.states += walk.ids.len();
    }
    let Counts { places, frees, checkpoints, restores, repeated, bodies, resets, sweeps, most_bytes, states } =
        counts;
    println!(
        "{steps} steps without a mismatch: {places} blocks placed, {frees} freed, {checkpoints} checkpoints, \
         {restores} restores ({repeated} requests made again at the same addresses), {bodies} bodies, \
         {resets} resets, {sweeps} sweeps, {states} states, at most {most_bytes} bytes live"
    );
    // A walk that no longer covers everything would pass silently.
    if steps >= STEPS {
        for (what, count) in
            [("places", places), ("frees", frees), ("restores", restores), ("repeated", repeated)]
        {
            assert!(count > 1000, "only {count} {what}");
        }
        assert!(bodies > 1000 && resets > 10, "{bodies} bodies, {resets} resets");
        assert!(sweeps > 500, "{sweeps} sweeps");
    }
}

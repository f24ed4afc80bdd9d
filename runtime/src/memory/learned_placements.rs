//! Where the results of eager regions go.
//!
//! A result is what leaves a region at its end, whatever the region allocated before it. One whose size stays the same
//! from call to call gets a block of the pool, set apart before the region starts, so that its address depends on
//! nothing that the region does: on what lives there, and on the results before it. Which allocation it will be is a
//! guess from earlier calls, which saves a copy when it is right. One whose size changes lies outside the pool, whose
//! state is part of keys: what does not use it does not see it.

use std::hash::{Hash, Hasher};

use rustc_hash::{FxHashMap, FxHasher};
use smallvec::SmallVec;

use super::{Core, Origin, Placement, decide::Entries, finalize::Target};
use crate::{
    Result,
    base::plan::Site,
    memory::pool::{Block, rounded},
    observe::event::CopySlot,
    tensor::{RawTensor, live_out::Entry},
};

/// Sizes that the results of one site may have in the same call, in a loop over layers, say.
const SIZES: usize = 8;
/// How often another allocation than before may turn out to be the result, before there is no more guessing.
const CHANGES: u8 = 2;
/// Profiles that are kept for those that are not used any more.
const KEPT: usize = 4096;
/// Runs of a site in one call that are told apart.
const RUNS: u32 = 4096;

/// What is known of one result.
#[derive(Clone, Copy, Debug)]
struct Learnt {
    /// Which allocation of the region it was.
    ordinal: u32,
    len: u64,
    home: Placement,
    /// It has or had a block in the pool, which recordings expect.
    placed: bool,
    /// Its size changes: it lies outside.
    outside: bool,
    changes: u8,
}

/// What is known of a site: for a function, and for the sizes that its builder asks for.
#[derive(Debug)]
struct Profile {
    site: &'static Site,
    /// The call in which it ran last, and how often.
    call: u64,
    runs: u32,
    sizes: SmallVec<[u64; SIZES]>,
    /// By run in a call, and by result.
    learnt: Vec<SmallVec<[Learnt; 2]>>,
}

/// The profiles, by what they are for. Those that are not used are forgotten in time.
#[derive(Debug, Default)]
pub(crate) struct Regions {
    recent: FxHashMap<u64, Profile>,
    older: FxHashMap<u64, Profile>,
    serial: u64,
}

/// A block that is set apart for a result.
#[derive(Clone, Copy, Debug)]
struct Reserved {
    index: usize,
    block: Block,
    taken: bool,
}

/// A region that runs.
#[derive(Debug)]
pub(crate) struct RegionRun {
    site: &'static Site,
    serial: u64,
    /// The next allocation.
    ordinal: u32,
    /// The profile, and which run of the call it is; `None` where nothing is recorded.
    learning: Option<(u64, u32)>,
    reserved: SmallVec<[Reserved; 2]>,
}

impl RegionRun {
    /// The blocks that are still set apart.
    pub(crate) fn blocks(&self) -> impl Iterator<Item = Block> + '_ {
        self.reserved.iter().filter(|r| !r.taken).map(|r| r.block)
    }

    fn is_reserved_for(&self, index: usize, addr: u64) -> bool {
        self.reserved.iter().any(|r| r.index == index && r.block.addr == addr)
    }
}

/// Where a result is at the end of its region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WhereItIs {
    /// Where the segments expect it.
    Expected,
    /// In the block of another result, for which it was taken. It stays there in this call, since that block cannot be
    /// set apart any more; a guess was wrong.
    AnothersBlock,
    /// In memory of the region.
    Outside,
}

/// What is to be done with a result.
enum Verdict {
    Stay,
    /// It belongs in the block that is set apart for it.
    Move,
    /// It stays outside, and its block in the pool is kept free of others while it lives.
    Stand,
}

impl Regions {
    /// How many profiles there are.
    pub(crate) fn len(&self) -> usize {
        self.recent.len() + self.older.len()
    }

    fn profile(&mut self, key: u64, site: &'static Site) -> &mut Profile {
        if !self.recent.contains_key(&key) {
            if self.recent.len() == KEPT {
                self.older = std::mem::take(&mut self.recent);
            }
            let known = self.older.remove(&key);
            let new = || Profile { site, call: 0, runs: 0, sizes: SmallVec::new(), learnt: Vec::new() };
            let profile = known.unwrap_or_else(new);
            self.recent.insert(key, profile);
        }
        self.recent.entry(key).or_insert_with(|| unreachable!("it is there"))
    }

    fn learnt(&mut self, key: u64, run: u32) -> Option<&mut SmallVec<[Learnt; 2]>> {
        self.recent.get_mut(&key)?.learnt.get_mut(run as usize)
    }

    /// Where a profile stands in the source.
    pub(crate) fn site(&self, key: u64) -> Option<&'static Site> {
        self.recent.get(&key).or_else(|| self.older.get(&key)).map(|profile| profile.site)
    }

    /// From now on that result goes where the results of calls do.
    pub(crate) fn leaves_the_call(&mut self, key: u64, (run, index): (u32, u32)) {
        if let Some(learnt) = self.learnt(key, run).and_then(|all| all.get_mut(index as usize)) {
            (learnt.home, learnt.placed) = (Placement::Results, false);
        }
    }

    /// A region returned this result, which is `where_it_is`.
    fn judge(
        &mut self,
        (key, run): (u64, u32),
        index: usize,
        (ordinal, len): (u32, u64),
        where_it_is: WhereItIs,
    ) -> Verdict {
        let Some(profile) = self.recent.get_mut(&key) else { return Verdict::Stay };
        let Some(all) = profile.learnt.get_mut(run as usize) else { return Verdict::Stay };
        let Some(learnt) = all.get_mut(index) else {
            if !profile.sizes.contains(&len) && profile.sizes.len() < SIZES {
                profile.sizes.push(len);
            }
            let many = !profile.sizes.contains(&len);
            all.push(Learnt {
                ordinal,
                len,
                home: Placement::Pool,
                placed: false,
                outside: many,
                changes: 0,
            });
            return Verdict::Stay;
        };
        learnt.outside |= learnt.len != len;
        if learnt.outside {
            return if learnt.placed { Verdict::Stand } else { Verdict::Stay };
        }
        if where_it_is == WhereItIs::Expected {
            return Verdict::Stay;
        }
        if learnt.ordinal != ordinal {
            learnt.ordinal = ordinal;
            learnt.changes = learnt.changes.saturating_add(1);
        }
        if learnt.placed && where_it_is == WhereItIs::Outside { Verdict::Move } else { Verdict::Stay }
    }
}

/// Where an allocation goes, and the block that was set apart for it, if one was.
type Placed = (Placement, Option<Block>);

impl Core {
    /// Opens an eager region. Regions do not nest: one is the whole expression.
    pub(crate) fn begin_region(&mut self, site: &'static Site) {
        self.phase = super::Phase::Eager;
        if self.run.is_some() {
            return;
        }
        self.regions.serial = self.regions.serial.wrapping_add(1);
        let mut region = RegionRun {
            site,
            serial: self.regions.serial,
            ordinal: 0,
            learning: None,
            reserved: SmallVec::new(),
        };
        if self.graphs() {
            self.reserve_results(&mut region);
        }
        self.region = Some(region);
        self.log.ran_eager(site);
    }

    /// Sets blocks apart for the results that are expected in the pool.
    fn reserve_results(&mut self, region: &mut RegionRun) {
        let Some(frame) = &self.frame else { return };
        let mut hasher = FxHasher::default();
        (std::ptr::from_ref(region.site) as usize, frame.function, frame.asked_sizes()).hash(&mut hasher);
        let (key, call) = (hasher.finish(), self.calls);
        let profile = self.regions.profile(key, region.site);
        if profile.call != call {
            (profile.call, profile.runs) = (call, 0);
        }
        let run = profile.runs.min(RUNS - 1);
        profile.runs += 1;
        if profile.learnt.len() == run as usize {
            profile.learnt.push(SmallVec::new());
        }
        region.learning = Some((key, run));
        let expected: SmallVec<[(usize, u64); 2]> = profile.learnt[run as usize]
            .iter_mut()
            .enumerate()
            .filter(|(_, l)| l.home == Placement::Pool && (!l.outside || l.placed))
            .map(|(index, l)| {
                l.placed = true;
                (index, l.len)
            })
            .collect();
        for (index, len) in expected {
            match self.place(Placement::Pool, len) {
                Ok(block) => region.reserved.push(Reserved { index, block, taken: false }),
                // The region goes on without it; its own allocations say why.
                Err(_) => break,
            }
        }
    }

    /// What a region allocates now: where it goes, and what it will be known as.
    pub(crate) fn in_region(&mut self, bytes: u64) -> Option<(Origin, Option<Placed>)> {
        let region = self.region.as_mut()?;
        let ordinal = region.ordinal;
        region.ordinal = region.ordinal.saturating_add(1);
        let origin = Origin::Region { site: region.site, serial: region.serial, ordinal };
        let Some((key, run)) = region.learning else { return Some((origin, None)) };
        let len = rounded(bytes);
        let Some(all) = self.regions.learnt(key, run) else { return Some((origin, None)) };
        let fits = |l: &Learnt| (l.ordinal, l.len) == (ordinal, len) && !l.outside && l.changes <= CHANGES;
        let place = all.iter().position(fits).and_then(|index| match all[index].home {
            Placement::Results => Some((Placement::Results, None)),
            _ => region.reserved.iter_mut().find(|r| r.index == index && !r.taken).map(|r| {
                r.taken = true;
                (Placement::Pool, Some(r.block))
            }),
        });
        Some((origin, place))
    }

    pub(crate) fn end_region(&mut self) {
        if let Some(region) = self.region.take() {
            for block in region.blocks() {
                self.pool.free(block.addr);
            }
        }
        if self.phase == super::Phase::Eager {
            self.phase = super::Phase::Driver;
        }
    }

    /// Brings the results of an eager region to where the segments after it expect them. `None` when they are there.
    ///
    /// # Errors
    /// [`NeverComputed`](crate::Error::NeverComputed); what a copy says.
    pub(crate) fn settle_region(&mut self, outputs: &[Entry]) -> Result<Option<Entries>> {
        if self.run.is_some() {
            // Captured whole, where it is a variable like any other: one that nothing uses may be gone.
            return Ok(None);
        }
        self.check_outputs("the result of an eager region", outputs)?;
        let Some((serial, learning)) = self.region.as_ref().and_then(|r| Some((r.serial, r.learning?)))
        else {
            return Ok(None);
        };
        let mut results: SmallVec<[(u32, u32); 4]> = SmallVec::new();
        for entry in outputs {
            let Entry::Tensor(raw) = entry else { continue };
            if let Origin::Region { serial: made_in, ordinal, .. } = self.slots[raw.slot as usize].origin
                && made_in == serial
                && !results.iter().any(|(slot, _)| *slot == raw.slot)
            {
                results.push((raw.slot, ordinal));
            }
        }
        let mut moving: SmallVec<[(u32, Option<Block>); 2]> = SmallVec::new();
        for (index, (slot, ordinal)) in results.into_iter().enumerate() {
            let s = &self.slots[slot as usize];
            let len = rounded(s.bytes);
            let where_it_is = match (s.home, self.region.as_ref()) {
                (Placement::Eager, _) => WhereItIs::Outside,
                (Placement::Pool, Some(region)) if !region.is_reserved_for(index, s.base) => {
                    WhereItIs::AnothersBlock
                }
                _ => WhereItIs::Expected,
            };
            let verdict = self.regions.judge(learning, index, (ordinal, len), where_it_is);
            let (profile, run) = learning;
            self.slots[slot as usize].origin = Origin::Result { profile, at: (run, index as u32) };
            match verdict {
                Verdict::Stay => {}
                Verdict::Move => moving.push((slot, self.take_reserved(index))),
                Verdict::Stand => {
                    let block = self.take_reserved(index);
                    self.slots[slot as usize].stands_for = block.map(|block| block.addr);
                }
            }
        }
        if moving.is_empty() {
            return Ok(None);
        }
        let moves = |_: &Self, raw: &RawTensor| moving.iter().any(|(slot, _)| *slot == raw.slot);
        // A block that a tensor was made in goes with that, also on an error.
        let mut taken: SmallVec<[u32; 2]> = SmallVec::new();
        let place = |_: &mut Self, slot: u32| {
            taken.push(slot);
            let block = moving.iter().find(|(s, _)| *s == slot).and_then(|(_, block)| *block);
            Target { home: Placement::Pool, block, counted: Some(CopySlot::Eager) }
        };
        let moved = self.moved(outputs, moves, place);
        if moved.is_err() {
            let left = moving.iter().filter(|(slot, _)| !taken.contains(slot));
            for block in left.filter_map(|(_, block)| *block) {
                self.pool.free(block.addr);
            }
        }
        moved.map(Some)
    }

    /// The block that is set apart for a result, if it still is.
    fn take_reserved(&mut self, index: usize) -> Option<Block> {
        let region = self.region.as_mut()?;
        let reserved = region.reserved.iter_mut().find(|r| r.index == index && !r.taken)?;
        reserved.taken = true;
        Some(reserved.block)
    }
}

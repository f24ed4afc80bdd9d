//! Placement of the results of eager regions.
//!
//! A result is a value that leaves a region at its end, whatever the region allocated before it. A result
//! whose size stays the same between calls gets a block of the pool that is reserved before the region
//! starts, so that its address depends only on the live blocks of the pool and the preceding results, and not
//! on anything that the region does. Which allocation becomes the result is guessed from earlier calls; a
//! correct guess saves a copy. A result whose size changes is placed outside the pool, whose state is part of
//! keys, so that only segments that use it are affected.

use std::hash::{Hash, Hasher};

use rustc_hash::{FxHashMap, FxHasher};
use smallvec::SmallVec;

use super::{
    Memory, Origin, Placement, SlotId,
    placement::{Ordinal, ResultId},
    pool::{Block, rounded},
};
use crate::{base::plan::Site, value::owned::OwnerId};

/// The maximum number of different sizes for the results of one site in a call, for example in a loop over
/// layers.
const SIZES: usize = 8;
/// The number of calls in which a different allocation than before may turn out to be a result of a site, before
/// guessing ends there. It is one number for all runs of the site and all their results: if each could be wrong
/// as often, a loop over layers would disturb the pool, and what was recorded from it, once for each of them.
const CHANGES: u8 = 2;
/// The maximum number of unused profiles that are kept.
const KEPT: usize = 4096;
/// The maximum number of runs of a site in one call that are distinguished.
const RUNS: u32 = 4096;

/// The known facts about one result.
#[derive(Clone, Copy, Debug)]
struct Learnt {
    /// The ordinal of the region's allocation that became the result.
    ordinal: Ordinal,
    len: u64,
    placement: Placement,
    /// Set if it has or had a block in the pool, which recordings expect.
    placed: bool,
    /// Set if its size changes, so it is placed outside the pool.
    outside: bool,
}

/// The profile of a site, for a function and for the sizes that its builder specifies.
#[derive(Debug)]
struct Profile {
    site: &'static Site,
    /// The call in which it last ran, and the number of runs.
    call: u64,
    runs: u32,
    sizes: SmallVec<[u64; SIZES]>,
    wrong: WrongGuesses,
    /// By run in a call, and by result.
    learnt: Vec<SmallVec<[Learnt; 2]>>,
}

/// The wrong guesses of a site.
#[derive(Clone, Copy, Debug, Default)]
struct WrongGuesses {
    /// The number of calls in which there was one, and the last of these calls.
    calls: u8,
    last: u64,
}

impl WrongGuesses {
    /// Returns whether guesses are still made.
    fn are_few(self) -> bool {
        self.calls <= CHANGES
    }

    fn count(&mut self, call: u64) {
        if self.calls == 0 || self.last != call {
            (self.calls, self.last) = (self.calls.saturating_add(1), call);
        }
    }

    /// From now on, no guess is made.
    fn end(&mut self) {
        self.calls = CHANGES + 1;
    }
}

/// All profiles. Unused ones are eventually forgotten.
#[derive(Debug, Default)]
pub(crate) struct LearnedPlacements {
    recent: FxHashMap<u64, Profile>,
    older: FxHashMap<u64, Profile>,
    serial: u64,
    /// The running region.
    running: Option<RegionRun>,
}

/// A block that is reserved for a result.
#[derive(Clone, Copy, Debug)]
struct Reserved {
    index: usize,
    block: Block,
    taken: bool,
}

/// A running region.
#[derive(Debug)]
struct RegionRun {
    site: &'static Site,
    serial: u64,
    /// The ordinal of the next allocation.
    ordinal: Ordinal,
    /// `None` if nothing is recorded.
    learning: Option<Learning>,
    reserved: SmallVec<[Reserved; 2]>,
}

/// A run of a region that learns: its profile, and the index of the run in the call.
#[derive(Clone, Copy, Debug)]
struct Learning {
    profile: u64,
    run: u32,
}

impl RegionRun {
    /// Returns the blocks that are still reserved.
    fn blocks(&self) -> impl Iterator<Item = Block> + '_ {
        self.reserved.iter().filter(|r| !r.taken).map(|r| r.block)
    }

    fn is_reserved_for(&self, index: usize, addr: u64) -> bool {
        self.reserved.iter().any(|r| r.index == index && r.block.addr == addr)
    }
}

/// The location of a result at the end of its region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WhereItIs {
    /// In the block where the segments expect it.
    Expected,
    /// In the block that was reserved for another result, after a wrong guess. It remains there for this
    /// call, because moving it would not free the block in time.
    AnothersBlock,
    /// In memory of the region.
    Outside,
}

/// A result that a region returned.
#[derive(Clone, Copy, Debug)]
struct RegionResult {
    /// Among the results of the region.
    index: usize,
    /// The index of the allocation in the region.
    ordinal: Ordinal,
    len: u64,
    where_it_is: WhereItIs,
}

/// The part of a profile's key besides the site.
#[derive(Clone, Debug)]
pub(crate) struct RegionKey {
    /// The graph object.
    pub(crate) graph: OwnerId,
    /// The sizes that its builder specifies.
    pub(crate) sizes: Vec<usize>,
    /// The call in which it runs.
    pub(crate) call: u64,
}

/// A result that a region is expected to leave in the pool: a block is reserved for it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Expected {
    index: usize,
    pub(crate) bytes: u64,
}

/// An allocation of a region.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RegionAllocation {
    pub(crate) origin: Origin,
    pub(crate) target: RegionTarget,
}

/// The placement of an allocation in a region.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RegionTarget {
    /// Nothing is known about it.
    Anywhere,
    /// The results arena, because it leaves the call.
    Results,
    /// The block that was reserved for it.
    Reserved(Block),
}

/// A result that must be moved: to the block that was reserved for it, if there is one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Misplaced {
    pub(crate) slot: SlotId,
    pub(crate) block: Option<Block>,
}

/// The treatment of a result.
enum Judgement {
    Stay,
    /// Move it to the block that is reserved for it.
    Move,
    /// Leave it outside, and keep its block in the pool free while it lives.
    Stand,
}

impl LearnedPlacements {
    /// Returns the number of profiles.
    pub(crate) fn len(&self) -> usize {
        self.recent.len() + self.older.len()
    }

    fn profile(&mut self, key: u64, site: &'static Site) -> &mut Profile {
        if !self.recent.contains_key(&key) {
            if self.recent.len() == KEPT {
                self.older = std::mem::take(&mut self.recent);
            }
            let known = self.older.remove(&key);
            let new = || Profile {
                site,
                call: 0,
                runs: 0,
                sizes: SmallVec::new(),
                wrong: WrongGuesses::default(),
                learnt: Vec::new(),
            };
            let profile = known.unwrap_or_else(new);
            self.recent.insert(key, profile);
        }
        self.recent.entry(key).or_insert_with(|| unreachable!("it is there"))
    }

    fn learnt(&mut self, of: Learning) -> Option<&mut SmallVec<[Learnt; 2]>> {
        self.recent.get_mut(&of.profile)?.learnt.get_mut(of.run as usize)
    }

    /// Returns the position of the region of a result in the source.
    pub(crate) fn site(&self, result: ResultId) -> Option<&'static Site> {
        let key = &result.profile;
        self.recent.get(key).or_else(|| self.older.get(key)).map(|profile| profile.site)
    }

    /// From now on, places that result like the results of calls.
    pub(crate) fn leaves_the_call(&mut self, result: ResultId) {
        let ResultId { profile, run, index } = result;
        if let Some(learnt) =
            self.learnt(Learning { profile, run }).and_then(|all| all.get_mut(index as usize))
        {
            (learnt.placement, learnt.placed) = (Placement::Results, false);
        }
    }

    /// Returns the blocks that are reserved, and that no tensor uses yet.
    pub(super) fn reserved(&self) -> impl Iterator<Item = Block> + '_ {
        self.running.iter().flat_map(RegionRun::blocks)
    }

    /// Ends the region; its blocks were freed with all others of the pool.
    pub(super) fn forget_region(&mut self) {
        self.running = None;
    }

    /// Returns where a result of the running region is.
    fn where_it_is(&self, index: usize, placement: Placement, base: u64) -> WhereItIs {
        match (placement, &self.running) {
            // Memory of the user's is somewhere else each time.
            (Placement::Eager | Placement::Owned, _) => WhereItIs::Outside,
            (Placement::Pool, Some(region)) if !region.is_reserved_for(index, base) => {
                WhereItIs::AnothersBlock
            }
            _ => WhereItIs::Expected,
        }
    }

    /// Returns the block that is reserved for a result, if it still is, and ends the reservation.
    fn take_reserved(&mut self, index: usize) -> Option<Block> {
        let region = self.running.as_mut()?;
        let reserved = region.reserved.iter_mut().find(|r| r.index == index && !r.taken)?;
        reserved.taken = true;
        Some(reserved.block)
    }

    /// Finds the profile of a region's run, and the results that it is expected to leave in the pool.
    fn learn(&mut self, site: &'static Site, expecting: &RegionKey) -> (Learning, SmallVec<[Expected; 2]>) {
        let mut hasher = FxHasher::default();
        (std::ptr::from_ref(site) as usize, expecting.graph, &expecting.sizes).hash(&mut hasher);
        let key = hasher.finish();
        let profile = self.profile(key, site);
        if profile.call != expecting.call {
            (profile.call, profile.runs) = (expecting.call, 0);
        }
        let run = profile.runs.min(RUNS - 1);
        profile.runs += 1;
        if profile.learnt.len() == run as usize {
            profile.learnt.push(SmallVec::new());
        }
        let expected = profile.learnt[run as usize]
            .iter_mut()
            .enumerate()
            .filter(|(_, l)| l.placement == Placement::Pool && (!l.outside || l.placed))
            .map(|(index, l)| {
                l.placed = true;
                Expected { index, bytes: l.len }
            })
            .collect();
        (Learning { profile: key, run }, expected)
    }

    /// Returns the role of memory of the user's that the running region makes a tensor of.
    #[cfg(any(feature = "cuda", test))]
    pub(super) fn adopted(&mut self) -> Option<Origin> {
        let region = self.running.as_mut()?;
        let ordinal = region.ordinal;
        region.ordinal = ordinal.next();
        Some(Origin::Region { site: region.site, serial: region.serial, ordinal })
    }

    /// Returns the role of the running region's next allocation, and its placement.
    fn allocation(&mut self, bytes: u64) -> Option<RegionAllocation> {
        let region = self.running.as_mut()?;
        let ordinal = region.ordinal;
        region.ordinal = ordinal.next();
        let origin = Origin::Region { site: region.site, serial: region.serial, ordinal };
        let unplanned = RegionAllocation { origin, target: RegionTarget::Anywhere };
        let Some(learning) = region.learning else { return Some(unplanned) };
        let len = rounded(bytes);
        let profile = self.recent.get(&learning.profile).filter(|profile| profile.wrong.are_few());
        let Some(all) = profile.and_then(|p| p.learnt.get(learning.run as usize)) else {
            return Some(unplanned);
        };
        let fits = |l: &Learnt| (l.ordinal, l.len) == (ordinal, len) && !l.outside;
        let Some(index) = all.iter().position(fits) else { return Some(unplanned) };
        let target = match all[index].placement {
            Placement::Results => RegionTarget::Results,
            _ => match region.reserved.iter_mut().find(|r| r.index == index && !r.taken) {
                Some(reserved) => {
                    reserved.taken = true;
                    RegionTarget::Reserved(reserved.block)
                }
                None => RegionTarget::Anywhere,
            },
        };
        Some(RegionAllocation { origin, target })
    }

    /// Learns from a result that a region returned, the allocation with that ordinal and length, which is at
    /// `where_it_is`.
    fn judge(&mut self, of: Learning, result: RegionResult) -> Judgement {
        let RegionResult { index, ordinal, len, where_it_is } = result;
        let Some(profile) = self.recent.get_mut(&of.profile) else { return Judgement::Stay };
        let Some(all) = profile.learnt.get_mut(of.run as usize) else { return Judgement::Stay };
        let Some(learnt) = all.get_mut(index) else {
            if !profile.sizes.contains(&len) && profile.sizes.len() < SIZES {
                profile.sizes.push(len);
            }
            let many = !profile.sizes.contains(&len);
            all.push(Learnt { ordinal, len, placement: Placement::Pool, placed: false, outside: many });
            return Judgement::Stay;
        };
        learnt.outside |= learnt.len != len;
        if learnt.outside {
            return if learnt.placed { Judgement::Stand } else { Judgement::Stay };
        }
        match where_it_is {
            WhereItIs::Expected => return Judgement::Stay,
            WhereItIs::AnothersBlock => {
                // A guess that takes the place of another result is worse than a copy, so there are no more
                // guesses.
                profile.wrong.end();
                return Judgement::Stay;
            }
            WhereItIs::Outside => {}
        }
        if learnt.ordinal != ordinal {
            learnt.ordinal = ordinal;
            profile.wrong.count(profile.call);
        }
        if learnt.placed { Judgement::Move } else { Judgement::Stay }
    }
}

impl Memory {
    /// Opens an eager region; `key` is `None` if nothing is recorded. Returns the results for which blocks
    /// are to be [reserved](Self::reserve).
    pub(crate) fn begin_region(
        &mut self,
        site: &'static Site,
        key: Option<&RegionKey>,
    ) -> SmallVec<[Expected; 2]> {
        let learned = &mut self.learned;
        learned.serial = learned.serial.wrapping_add(1);
        let found = key.map(|key| learned.learn(site, key));
        let (learning, expected) =
            found.map_or((None, SmallVec::new()), |(learning, expected)| (Some(learning), expected));
        let serial = learned.serial;
        learned.running = Some(RegionRun {
            site,
            serial,
            ordinal: Ordinal::default(),
            learning,
            reserved: SmallVec::new(),
        });
        expected
    }

    /// Reserves a block of the pool for a result of the running region.
    pub(crate) fn reserve(&mut self, expected: Expected, block: Block) {
        if let Some(region) = &mut self.learned.running {
            region.reserved.push(Reserved { index: expected.index, block, taken: false });
        }
    }

    /// Returns the role and placement of the running region's next allocation.
    pub(crate) fn region_allocation(&mut self, bytes: u64) -> Option<RegionAllocation> {
        self.learned.allocation(bytes)
    }

    /// Closes the region; unused reserved blocks become free.
    pub(crate) fn end_region(&mut self) {
        if let Some(region) = self.learned.running.take() {
            for block in region.blocks() {
                self.pool.free(block.addr);
            }
        }
    }

    /// Learns from the tensors that leave the running region. Returns those that must be moved; the caller
    /// owns the blocks in the list.
    pub(crate) fn learn_results(
        &mut self,
        leaving: impl Iterator<Item = SlotId>,
    ) -> SmallVec<[Misplaced; 2]> {
        let mut misplaced = SmallVec::new();
        let Some((serial, learning)) =
            self.learned.running.as_ref().and_then(|r| Some((r.serial, r.learning?)))
        else {
            return misplaced;
        };
        let mut results: SmallVec<[(SlotId, Ordinal); 4]> = SmallVec::new();
        for id in leaving {
            if let Origin::Region { serial: made_in, ordinal, .. } = self.slots.get(id).origin
                && made_in == serial
                && !results.iter().any(|(slot, _)| *slot == id)
            {
                results.push((id, ordinal));
            }
        }
        // If an optional result is missing, those after it do not have their usual index.
        let complete = self.learned.learnt(learning).is_none_or(|all| all.len() <= results.len());
        for (index, (id, ordinal)) in results.into_iter().enumerate() {
            let slot = self.slots.get_mut(id);
            let len = rounded(slot.bytes());
            let where_it_is = match self.learned.where_it_is(index, slot.placement, slot.base()) {
                WhereItIs::AnothersBlock if !complete => WhereItIs::Expected,
                known => known,
            };
            let Learning { profile, run } = learning;
            slot.origin = Origin::Result(ResultId { profile, run, index: index as u32 });
            match self.learned.judge(learning, RegionResult { index, ordinal, len, where_it_is }) {
                Judgement::Stay => {}
                Judgement::Move => {
                    misplaced.push(Misplaced { slot: id, block: self.learned.take_reserved(index) })
                }
                Judgement::Stand => {
                    let block = self.learned.take_reserved(index);
                    self.slots.get_mut(id).stands_for = block.map(|block| block.addr);
                }
            }
        }
        misplaced
    }
}

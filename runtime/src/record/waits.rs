//! Segments that are not recorded yet, and the reasons.
//!
//! The rule applies to a group and a call. A group that is warmed up in a call is not recorded later in that
//! call: the layers before it have no recordings yet, so the pool is in a state that only warm-ups leave, and
//! a recording from there would not be found again. Two things end the wait. The next call starts from the
//! empty pool, where this no longer matters. And a key that occurs for the second time in the same call,
//! including pool state and addresses, has been found again: a loop that reached the same state is recorded
//! from there on.

use rustc_hash::FxHashSet;

use crate::{
    base::plan::Site,
    memory::pool::StateId,
    observe::{
        log::Log,
        occurrence::{Occurrence, Wait},
    },
    tree::{GroupId, Tree, Waiting},
};

/// Keys of one call for which memory stays with the runtime.
const KEPT: usize = 4096;

/// The warm-ups of the running call.
#[derive(Debug, Default)]
pub(crate) struct CallWarmUps {
    first: Option<&'static Site>,
    /// Hashes of the keys that no recording matched. Two keys with the same hash cost a recording that is not
    /// found again.
    met: FxHashSet<u64>,
}

impl CallWarmUps {
    pub(crate) fn clear(&mut self) {
        self.first = None;
        if self.met.capacity() > KEPT {
            self.met = FxHashSet::default();
        } else if !self.met.is_empty() {
            self.met.clear();
        }
    }
}

/// A segment that no recording fits, in the running call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate {
    pub(crate) group: GroupId,
    /// Hash of all that a recording is found by.
    pub(crate) key: u64,
    /// The state of the pool that it would start from.
    pub(crate) entry: StateId,
    /// The number of the call.
    pub(crate) call: u64,
}

/// A segment that runs in warm-up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WarmUp {
    pub(crate) site: &'static Site,
    pub(crate) group: GroupId,
    pub(crate) wait: Wait,
}

impl CallWarmUps {
    /// Returns the reason why the segment runs in warm-up; `None` if it is recorded.
    pub(crate) fn must_wait(&mut self, tree: &mut Tree, candidate: Candidate) -> Option<Wait> {
        let Candidate { group, key, entry, call } = candidate;
        let again = !self.met.insert(key);
        let group = tree.group_mut(group);
        if !group.warmed {
            return Some(Wait::NotWarm);
        }
        if again {
            return None;
        }
        if group.completed_warm_up_in(call) {
            return Some(Wait::SameCall);
        }
        let first = self.first.filter(|_| entry != StateId::EMPTY)?;
        // After a warm-up, the future recordings will probably not leave this state: it waits for one call,
        // and in the next one is recorded from whatever state it encounters.
        let waits = group.waited.is_none_or(|waited| {
            group.recorded.is_some_and(|recorded| recorded > waited && recorded != call)
        });
        waits.then(|| {
            group.waited = Some(call);
            Wait::Behind(first)
        })
    }

    /// A segment of `function` runs in warm-up.
    pub(crate) fn count(&mut self, tree: &mut Tree, log: &mut Log, function: &'static str, warm_up: WarmUp) {
        let WarmUp { site, group, wait } = warm_up;
        self.first.get_or_insert(site);
        let waiting = &mut tree.group_mut(group).waiting;
        let runs = waiting.map_or(0, |w| w.runs) + 1;
        *waiting = Some(Waiting { function, wait, runs });
        if wait != Wait::NotWarm {
            log.emit(Occurrence::Waited { function, site, wait });
        }
        log.emit(Occurrence::Warmed { site });
    }
}

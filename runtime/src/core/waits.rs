//! What is not recorded yet, and why.
//!
//! The rule belongs to a group and a call. A group that is warmed up in a call is not recorded later in that call: what
//! ran before it has no recordings yet, so the pool is in a state that only warm-ups leave, and a recording from there
//! would not be found again. Two things end the wait. The next call starts from the empty pool, where nothing of that is
//! left. And a key that comes a second time in the same call, pool state and addresses included, has been found again:
//! a loop that has come round is recorded from there on.

use rustc_hash::FxHashSet;

use super::Core;
use crate::{
    base::plan::Site,
    memory::pool::StateId,
    observe::log::Wait,
    tree::{Identity, groups::Waiting},
    value::live_in::KeyWriter,
};

/// Keys of one call for which memory stays with the runtime.
const KEPT: usize = 4096;

/// The warm-ups of the running call.
#[derive(Debug, Default)]
pub(crate) struct CallWarmUps {
    first: Option<&'static Site>,
    /// Hashes of the keys that no recording fitted. Two keys of one hash cost a recording that is not found again.
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

impl Core {
    /// Whether a recording of that group can be made now, as far as the group knows.
    pub(crate) fn is_warm(&self, group: usize) -> bool {
        let group = self.tree.group_of(group);
        group.warmed && group.tried.0 != self.calls
    }

    /// Why the segment runs in warm-up; `None` when it is recorded.
    pub(crate) fn must_wait(
        &mut self,
        group: usize,
        identity: Identity,
        entry: StateId,
        key: &KeyWriter,
    ) -> Option<Wait> {
        let hash = self.tree.hash_of_key(identity, entry, &key.shape, &key.addrs);
        let again = !self.call_warm_ups.met.insert(hash);
        let (call, first) = (self.calls, self.call_warm_ups.first);
        let group = self.tree.group_mut(group);
        if !group.warmed {
            return Some(Wait::NotWarm);
        }
        if again {
            return None;
        }
        if group.tried.0 == call {
            return Some(Wait::SameCall);
        }
        let first = first.filter(|_| entry != StateId::EMPTY)?;
        // Behind a warm-up the recordings to come will probably not leave this state: it waits for one call, and is
        // recorded in the next one from whatever state it meets.
        let waits = group.waited == 0 || group.recorded > group.waited && group.recorded != call;
        waits.then(|| {
            group.waited = call;
            Wait::Behind(first)
        })
    }

    /// A segment runs in warm-up.
    pub(crate) fn count_warm_up(&mut self, site: &'static Site, group: usize, wait: Wait) {
        self.call_warm_ups.first.get_or_insert(site);
        let function = self.function_name();
        let waiting = &mut self.tree.group_mut(group).waiting;
        let runs = waiting.map_or(0, |w| w.runs) + 1;
        *waiting = Some(Waiting { function, wait, runs });
        if wait != Wait::NotWarm {
            self.log.waited(function, site, wait);
        }
        self.log.warmed(site);
    }
}

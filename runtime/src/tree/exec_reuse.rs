//! Recordings that share executables: who may, and who does.

use std::{collections::BTreeMap, sync::Arc};

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::{Identity, Recording, Tree};
use crate::{
    backend::{CapturedGraph, GraphExec, Signature},
    base::recording_id::RecordingId,
    observe::event::UnsharedReason,
};

/// Steps for which an executable waits that no recording runs by any more.
const CACHED_STEPS: u64 = 4;

/// A place in the calls of one graph object. A call comes by it once, so the recordings that were made there,
/// for other sizes, keys or addresses, are made for different calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct CallSite {
    pub(crate) identity: Identity,
    /// Id of the graph object.
    pub(crate) caller: u64,
    /// How many segments of that identity the call ran before it: the layers of a loop have places of their own.
    pub(crate) ordinal: u32,
}

/// What a recording needs to share its executable.
#[derive(Debug)]
pub(crate) struct ExecReuse {
    pub(crate) call_site: CallSite,
    pub(crate) graph: Arc<dyn CapturedGraph>,
    /// Updates for it in a row that were over the budget.
    pub(crate) slow: u8,
    /// Why it shares no more from its next update on.
    pub(crate) parting: Option<UnsharedReason>,
}

/// An executable whose recordings are gone: one that is made soon in its place can have it.
#[derive(Debug)]
struct CachedExec {
    call_site: CallSite,
    signature: Signature,
    exec: Arc<dyn GraphExec>,
    since: u64,
}

/// An executable that recordings run by, and those.
#[derive(Debug, Default)]
struct Users {
    /// By their ids.
    recordings: BTreeMap<RecordingId, u32>,
    bytes: u64,
    /// The step in which one of them ran last, its id, and the same for the last one before it that was another.
    ran: [(u64, RecordingId); 2],
}

/// The recordings of each place, the executables without one, and the number of the step.
#[derive(Debug, Default)]
pub(super) struct Shares {
    /// The executables of each place, in the order of their making: by the id of their first recording.
    places: FxHashMap<CallSite, BTreeMap<RecordingId, usize>>,
    /// By the address of the executable, which is there as long as one of its users.
    users: FxHashMap<usize, Users>,
    /// Number and bytes of the executables of all recordings, and what they would take besides unshared.
    sums: (usize, u64, u64),
    cached: Vec<CachedExec>,
    step: u64,
}

fn address(exec: &Arc<dyn GraphExec>) -> usize {
    Arc::as_ptr(exec).cast::<()>().addr()
}

impl Shares {
    /// As before anything was recorded, in the same step.
    pub(super) fn emptied(&self) -> Self {
        Self { step: self.step, ..Self::default() }
    }

    /// A recording is made, or has another executable.
    pub(super) fn add(&mut self, at: usize, recording: &mut Recording) {
        let Some(exec) = &recording.exec else { return };
        let Some(sharing) = &recording.sharing else {
            recording.links.exec_bytes = exec.bytes();
            self.sums = (self.sums.0 + 1, self.sums.1 + recording.links.exec_bytes, self.sums.2);
            return;
        };
        let (key, id) = (address(exec), recording.links.id);
        let users = self.users.entry(key).or_default();
        if users.recordings.is_empty() {
            users.bytes = exec.bytes();
            self.sums = (self.sums.0 + 1, self.sums.1 + users.bytes, self.sums.2);
            self.places.entry(sharing.call_site).or_default().insert(id, key);
        } else {
            self.sums.2 += users.bytes;
        }
        users.recordings.insert(id, at as u32);
    }

    /// A recording is gone.
    pub(super) fn remove(&mut self, mut recording: Recording) {
        self.leave(&mut recording);
        let (Some(sharing), Some(exec)) = (recording.sharing, recording.exec) else { return };
        if let (1, Ok(signature)) = (Arc::strong_count(&exec), sharing.graph.signature()) {
            let signature = signature.clone();
            self.cached.push(CachedExec { call_site: sharing.call_site, signature, exec, since: self.step });
        }
    }

    /// A recording does not run by its executable any more.
    fn leave(&mut self, recording: &mut Recording) {
        let Some(exec) = &recording.exec else { return };
        let Some(sharing) = &recording.sharing else {
            self.sums = (self.sums.0 - 1, self.sums.1 - recording.links.exec_bytes, self.sums.2);
            return;
        };
        let (key, id) = (address(exec), recording.links.id);
        let Some(users) = self.users.get_mut(&key) else { return };
        let was_first = users.recordings.first_key_value().is_some_and(|(&first, _)| first == id);
        users.recordings.remove(&id);
        let next = users.recordings.first_key_value().map(|(&first, _)| first);
        if next.is_some() {
            self.sums.2 -= users.bytes;
        } else {
            self.sums = (self.sums.0 - 1, self.sums.1 - users.bytes, self.sums.2);
            self.users.remove(&key);
        }
        if was_first && let Some(list) = self.places.get_mut(&sharing.call_site) {
            list.remove(&id);
            list.extend(next.map(|first| (first, key)));
            if list.is_empty() {
                self.places.remove(&sharing.call_site);
            }
        }
    }

    /// Whether an executable waits that belonged to something that is gone.
    pub(super) fn has_cached(&self) -> bool {
        !self.cached.is_empty()
    }
}

/// What the tree has for a new recording.
pub(crate) enum ReuseCandidate {
    /// No recording was made in its place.
    None,
    /// The executable that this recording runs by.
    Of(usize),
    /// Nothing that it can have.
    Nothing(UnsharedReason),
}

impl Tree {
    /// A step begins; gives up cached executables that waited too long.
    pub(crate) fn begin_step(&mut self) {
        self.shares.step += 1;
        self.groups.begin_step();
        let now = self.shares.step;
        self.shares.cached.retain(|s| now - s.since <= CACHED_STEPS);
    }

    /// The id that the next recording gets.
    pub(crate) fn next_id(&self) -> RecordingId {
        self.next_id
    }

    /// A recording that may share its executable, and that.
    pub(crate) fn sharing(&self, at: usize) -> Option<(&ExecReuse, &Arc<dyn GraphExec>)> {
        let recording = self.recording(at)?;
        Some((recording.sharing.as_ref()?, recording.exec.as_ref()?))
    }

    pub(crate) fn sharing_mut(&mut self, at: usize) -> Option<&mut ExecReuse> {
        self.recordings.get_mut(at)?.as_mut()?.sharing.as_mut()
    }

    /// A recording runs in this step.
    pub(crate) fn runs_now(&mut self, at: usize) {
        let step = self.shares.step;
        let Some(Some(recording)) = self.recordings.get(at) else { return };
        let (Some(_), Some(exec)) = (&recording.sharing, &recording.exec) else { return };
        let Some(users) = self.shares.users.get_mut(&address(exec)) else { return };
        if users.ran[0].1 != recording.id() {
            users.ran[1] = users.ran[0];
        }
        users.ran[0] = (step, recording.id());
    }

    /// The recordings that run by the executable of this one, itself left out, in order.
    pub(crate) fn sharers(&self, at: usize) -> SmallVec<[usize; 4]> {
        let users = self.users(at).into_iter().flat_map(|users| users.recordings.values());
        users.map(|&user| user as usize).filter(|&other| other != at).collect()
    }

    fn users(&self, at: usize) -> Option<&Users> {
        let (_, exec) = self.sharing(at)?;
        self.shares.users.get(&address(exec))
    }

    /// Whether another recording of the same executable ran in this step.
    pub(crate) fn met(&self, at: usize) -> bool {
        let Some(users) = self.users(at) else { return false };
        let last = users.ran[usize::from(users.ran[0].1 == self.id(at))];
        last.0 == self.shares.step
    }

    /// A cached executable for a recording; it is the caller's.
    pub(crate) fn take_cached(
        &mut self,
        call_site: &CallSite,
        signature: &Signature,
    ) -> Option<Arc<dyn GraphExec>> {
        let cached = &mut self.shares.cached;
        let at = cached.iter().position(|s| s.call_site == *call_site && s.signature == *signature)?;
        Some(cached.swap_remove(at).exec)
    }

    /// Gives up the cached executables of these graph objects.
    pub(crate) fn forget_cached(&mut self, of: impl Fn(u64) -> bool) {
        self.shares.cached.retain(|s| !of(s.call_site.caller));
    }

    /// The executable of the first recording that one with this signature can share with.
    pub(crate) fn reuse_candidate(&self, call_site: &CallSite, signature: &Signature) -> ReuseCandidate {
        let Some(list) = self.shares.places.get(call_site) else { return ReuseCandidate::None };
        let mut met = false;
        for users in list.values().filter_map(|key| self.shares.users.get(key)) {
            let like = |&&at: &&u32| {
                self.sharing(at as usize).is_some_and(|(s, _)| s.graph.signature() == Ok(signature))
            };
            // All that run by one executable have one signature.
            if users.recordings.values().next().filter(like).is_none() {
                continue;
            }
            let stays = |&&at: &&u32| self.sharing(at as usize).is_some_and(|(s, _)| s.parting.is_none());
            let ran = users.ran[0].0 == self.shares.step;
            match users.recordings.values().find(stays) {
                Some(&at) if !ran => return ReuseCandidate::Of(at as usize),
                _ => met = true,
            }
        }
        ReuseCandidate::Nothing(if met { UnsharedReason::SameStep } else { UnsharedReason::OtherTopology })
    }

    /// A recording has an executable of its own from now on.
    pub(crate) fn split_off(&mut self, at: usize, exec: Arc<dyn GraphExec>) {
        let Some(Some(recording)) = self.recordings.get_mut(at) else { return };
        self.shares.leave(recording);
        recording.exec = Some(exec);
        if let Some(sharing) = &mut recording.sharing {
            (sharing.parting, sharing.slow) = (None, 0);
        }
        self.shares.add(at, recording);
    }

    /// The first recording that runs by the executable of this one; each executable counts as its first's.
    pub(crate) fn first_of(&self, at: usize) -> usize {
        let first = self.users(at).and_then(|users| users.recordings.first_key_value());
        first.map_or(at, |(_, &first)| first as usize)
    }

    /// Number of executables, cached ones included, their bytes, and the bytes that they would take besides if each
    /// recording had its own.
    pub(crate) fn executables(&self) -> (usize, u64, u64) {
        let Shares { cached, sums, .. } = &self.shares;
        let waiting: u64 = cached.iter().map(|s| s.exec.bytes()).sum();
        (sums.0 + cached.len(), sums.1 + waiting, sums.2)
    }
}

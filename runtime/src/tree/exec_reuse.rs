//! Recordings that share executables: which may, and which do.

use std::{collections::BTreeMap, sync::Arc};

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::{Identity, Recording, RecordingIndex, Tree};
use crate::{
    backend::{CapturedGraph, GraphExec, Signature},
    base::recording_id::RecordingId,
    observe::event::UnsharedReason,
    value::owned::OwnerId,
};

/// The number of steps for which an executable without recordings is cached.
const CACHED_STEPS: u64 = 4;

/// A place in the calls of one graph object. A call reaches it once, so the recordings made there, for
/// different sizes, keys or addresses, belong to different calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct CallSite {
    pub(crate) identity: Identity,
    /// The id of the graph object.
    pub(crate) graph: OwnerId,
    /// The number of segments of that identity that the call ran before it: the layers of a loop have places
    /// of their own.
    pub(crate) ordinal: u32,
}

/// The data that a recording needs to share its executable.
#[derive(Debug)]
pub(crate) struct ExecReuse {
    pub(crate) call_site: CallSite,
    pub(crate) graph: Arc<dyn CapturedGraph>,
    /// The number of consecutive updates for it that were over the budget.
    pub(crate) slow: u8,
    /// The reason why it will stop sharing at its next update.
    pub(crate) parting: Option<UnsharedReason>,
}

/// An executable whose recordings were evicted: one that is made soon at its place can reuse it.
#[derive(Debug)]
struct CachedExec {
    call_site: CallSite,
    signature: Signature,
    exec: Arc<dyn GraphExec>,
    since: u64,
}

/// An executable, and the recordings that run through it.
#[derive(Debug, Default)]
struct Users {
    /// By their ids.
    recordings: BTreeMap<RecordingId, RecordingIndex>,
    bytes: u64,
    /// The one that ran last.
    last: Option<LastRun>,
    /// The other one that ran last before that.
    before: Option<LastRun>,
}

/// The last run of a recording.
#[derive(Clone, Copy, Debug)]
struct LastRun {
    recording: RecordingId,
    step: u64,
}

/// Sums over executables.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ExecTotals {
    pub(crate) count: usize,
    pub(crate) bytes: u64,
    /// The bytes that they would need in addition if each recording had its own.
    pub(crate) shared_bytes: u64,
}

impl ExecTotals {
    fn add(&mut self, bytes: u64) {
        self.count += 1;
        self.bytes += bytes;
    }

    fn remove(&mut self, bytes: u64) {
        self.count -= 1;
        self.bytes -= bytes;
    }
}

/// The recordings of each place, the cached executables, and the number of the step.
#[derive(Debug, Default)]
pub(super) struct Shares {
    /// The executables of each place, in the order of creation: by the id of their first recording.
    places: FxHashMap<CallSite, BTreeMap<RecordingId, usize>>,
    /// By the address of the executable, which lives as long as one of its users.
    users: FxHashMap<usize, Users>,
    /// Of the executables of all recordings.
    totals: ExecTotals,
    cached: Vec<CachedExec>,
    step: u64,
}

fn address(exec: &Arc<dyn GraphExec>) -> usize {
    Arc::as_ptr(exec).cast::<()>().addr()
}

impl Shares {
    /// Returns the state before anything was recorded, in the same step.
    pub(super) fn emptied(&self) -> Self {
        Self { step: self.step, ..Self::default() }
    }

    /// Adds a recording that was made, or that has a different executable.
    pub(super) fn add(&mut self, at: RecordingIndex, recording: &mut Recording) {
        let Some(exec) = &recording.exec else { return };
        let Some(sharing) = &recording.sharing else {
            recording.links.exec_bytes = exec.bytes();
            self.totals.add(recording.links.exec_bytes);
            return;
        };
        let (key, id) = (address(exec), recording.links.id);
        let users = self.users.entry(key).or_default();
        if users.recordings.is_empty() {
            users.bytes = exec.bytes();
            self.totals.add(users.bytes);
            self.places.entry(sharing.call_site).or_default().insert(id, key);
        } else {
            self.totals.shared_bytes += users.bytes;
        }
        users.recordings.insert(id, at);
    }

    /// Removes a recording.
    pub(super) fn remove(&mut self, mut recording: Recording) {
        self.leave(&mut recording);
        let (Some(sharing), Some(exec)) = (recording.sharing, recording.exec) else { return };
        if let (1, Ok(signature)) = (Arc::strong_count(&exec), sharing.graph.signature()) {
            let signature = signature.clone();
            self.cached.push(CachedExec { call_site: sharing.call_site, signature, exec, since: self.step });
        }
    }

    /// Removes a recording from the users of its executable.
    fn leave(&mut self, recording: &mut Recording) {
        let Some(exec) = &recording.exec else { return };
        let Some(sharing) = &recording.sharing else {
            self.totals.remove(recording.links.exec_bytes);
            return;
        };
        let (key, id) = (address(exec), recording.links.id);
        let Some(users) = self.users.get_mut(&key) else { return };
        let was_first = users.recordings.first_key_value().is_some_and(|(&first, _)| first == id);
        users.recordings.remove(&id);
        let next = users.recordings.first_key_value().map(|(&first, _)| first);
        if next.is_some() {
            self.totals.shared_bytes -= users.bytes;
        } else {
            self.totals.remove(users.bytes);
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

    /// Returns whether an executable of an evicted recording is cached.
    pub(super) fn has_cached(&self) -> bool {
        !self.cached.is_empty()
    }
}

/// The executable that the tree offers to a new recording.
pub(crate) enum ReuseCandidate {
    /// No recording was made at its place.
    None,
    /// The executable of this recording.
    Of(RecordingIndex),
    /// No executable that it can use.
    Nothing(UnsharedReason),
}

impl Tree {
    /// Begins a step; drops executables that were cached for too long.
    pub(crate) fn begin_step(&mut self) {
        self.shares.step += 1;
        self.groups.begin_step();
        let now = self.shares.step;
        self.shares.cached.retain(|s| now - s.since <= CACHED_STEPS);
    }

    /// Returns the id of the next recording.
    pub(crate) fn next_id(&self) -> RecordingId {
        self.next_id
    }

    /// Returns the data and executable of a recording that may share it.
    pub(crate) fn sharing(&self, at: RecordingIndex) -> Option<(&ExecReuse, &Arc<dyn GraphExec>)> {
        let recording = self.recording(at)?;
        Some((recording.sharing.as_ref()?, recording.exec.as_ref()?))
    }

    pub(crate) fn sharing_mut(&mut self, at: RecordingIndex) -> Option<&mut ExecReuse> {
        self.recordings.get_mut(at)?.sharing.as_mut()
    }

    /// Notes that a recording runs in this step.
    pub(crate) fn runs_now(&mut self, at: RecordingIndex) {
        let step = self.shares.step;
        let Some(recording) = self.recordings.get(at) else { return };
        let (Some(_), Some(exec)) = (&recording.sharing, &recording.exec) else { return };
        let Some(users) = self.shares.users.get_mut(&address(exec)) else { return };
        let now = LastRun { recording: recording.id(), step };
        if users.last.is_some_and(|last| last.recording != now.recording) {
            users.before = users.last;
        }
        users.last = Some(now);
    }

    /// Returns the other recordings that run through the executable of this one, in order.
    pub(crate) fn sharers(&self, at: RecordingIndex) -> SmallVec<[RecordingIndex; 4]> {
        let users = self.users(at).into_iter().flat_map(|users| users.recordings.values());
        users.copied().filter(|&other| other != at).collect()
    }

    fn users(&self, at: RecordingIndex) -> Option<&Users> {
        let (_, exec) = self.sharing(at)?;
        self.shares.users.get(&address(exec))
    }

    /// Returns whether another recording of the same executable ran in this step.
    pub(crate) fn met(&self, at: RecordingIndex) -> bool {
        let Some(users) = self.users(at) else { return false };
        let id = self.id(at);
        let other = users.last.filter(|last| last.recording != id).or(users.before);
        other.is_some_and(|other| other.step == self.shares.step)
    }

    /// Returns a cached executable for a recording, which the caller then owns.
    pub(crate) fn take_cached(
        &mut self,
        call_site: &CallSite,
        signature: &Signature,
    ) -> Option<Arc<dyn GraphExec>> {
        let cached = &mut self.shares.cached;
        let at = cached.iter().position(|s| s.call_site == *call_site && s.signature == *signature)?;
        Some(cached.swap_remove(at).exec)
    }

    /// Drops the cached executables of these graph objects.
    pub(crate) fn forget_cached(&mut self, of: impl Fn(OwnerId) -> bool) {
        self.shares.cached.retain(|s| !of(s.call_site.graph));
    }

    /// Returns the executable of the first recording with which one with this signature can share.
    pub(crate) fn reuse_candidate(&self, call_site: &CallSite, signature: &Signature) -> ReuseCandidate {
        let Some(list) = self.shares.places.get(call_site) else { return ReuseCandidate::None };
        let mut met = false;
        for users in list.values().filter_map(|key| self.shares.users.get(key)) {
            let like = |&&at: &&RecordingIndex| {
                self.sharing(at).is_some_and(|(s, _)| s.graph.signature() == Ok(signature))
            };
            // All recordings that run through one executable have the same signature.
            if users.recordings.values().next().filter(like).is_none() {
                continue;
            }
            let stays = |&&at: &&RecordingIndex| self.sharing(at).is_some_and(|(s, _)| s.parting.is_none());
            let ran = users.last.is_some_and(|last| last.step == self.shares.step);
            match users.recordings.values().find(stays) {
                Some(&at) if !ran => return ReuseCandidate::Of(at),
                _ => met = true,
            }
        }
        ReuseCandidate::Nothing(if met { UnsharedReason::SameStep } else { UnsharedReason::OtherTopology })
    }

    /// Gives a recording an executable of its own.
    pub(crate) fn split_off(&mut self, at: RecordingIndex, exec: Arc<dyn GraphExec>) {
        let Some(recording) = self.recordings.get_mut(at) else { return };
        self.shares.leave(recording);
        recording.exec = Some(exec);
        if let Some(sharing) = &mut recording.sharing {
            (sharing.parting, sharing.slow) = (None, 0);
        }
        self.shares.add(at, recording);
    }

    /// Returns the first recording that runs through the executable of this one; each executable counts as
    /// its first recording's.
    pub(crate) fn first_of(&self, at: RecordingIndex) -> RecordingIndex {
        let first = self.users(at).and_then(|users| users.recordings.first_key_value());
        first.map_or(at, |(_, &first)| first)
    }

    /// Returns the totals of all executables, including cached ones.
    pub(crate) fn executables(&self) -> ExecTotals {
        let mut totals = self.shares.totals;
        self.shares.cached.iter().for_each(|cached| totals.add(cached.exec.bytes()));
        totals
    }
}

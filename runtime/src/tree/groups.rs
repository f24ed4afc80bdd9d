//! Groups: the common part of all recordings of one identity and one set of shapes, and how long it is
//! remembered.

use std::{
    collections::{BTreeMap, BTreeSet},
    hash::{Hash, Hasher},
    ops::{Index, IndexMut},
};

use rustc_hash::{FxHashMap, FxHasher};
use smallvec::SmallVec;

use super::{Alias, CopiedInput, Identity, Positions, RecordingIndex, TraceOp, Tree, edge::EdgeIndex};
use crate::{
    base::plan::Site,
    memory::{GroupId, Ordinal},
    observe::occurrence::Wait,
};

/// The number of groups without a recording that are remembered, the most recently used ones: a shape that
/// recurs after that many others is warmed up again.
const IDLE: usize = 4096;
/// Groups used in the last steps are remembered as well, up to a limit: they were warmed up to be recorded
/// next.
const IDLE_STEPS: u64 = 8;
const IDLE_IN_STEPS: usize = 4 * IDLE;
/// Groups used in the last calls are remembered in any case, because a program may have only one step.
const IDLE_CALLS: u64 = 8;

/// An allocation that is freed after the operation that is the last to use it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Release {
    /// Index of the operation.
    pub(crate) after: u32,
    pub(crate) ordinal: Ordinal,
}

/// The warm-ups of a group since its last recording.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiting {
    pub(crate) function: &'static str,
    pub(crate) wait: Wait,
    /// The number of warm-ups.
    pub(crate) runs: u64,
}

/// The calls in which a warm-up of a group completed.
#[derive(Clone, Copy, Debug)]
struct CompletedWarmUps {
    last_call: u64,
    calls: u32,
}

/// The key by which a group is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct GroupKey<'k> {
    pub(crate) identity: Identity,
    pub(crate) shape: &'k [u64],
    /// What selects a group of its own: that owned live-ins are one, or, if the body asks for addresses, that the live-ins overlap otherwise
    /// than those of its first warm-up.
    pub(crate) aliases: Option<&'k [Alias]>,
}

impl GroupKey<'_> {
    fn hash(&self) -> u64 {
        let mut h = FxHasher::default();
        Hash::hash(self, &mut h);
        h.finish()
    }
}

/// The part that all recordings of one identity and one set of shapes share.
#[derive(Debug)]
pub(crate) struct Group {
    identity: Identity,
    shape: Box<[u64]>,
    /// As in its key.
    selected_by: Option<Box<[Alias]>>,
    pub(crate) warmed: bool,
    pub(crate) trace: Vec<TraceOp>,
    /// The position of the body, once it ran.
    pub(crate) site: Option<&'static Site>,
    /// Blocks that recordings free before their handles are dropped: the index of an operation, and the
    /// ordinal of an allocation that it is the last to use. Sorted.
    pub(crate) releases: Vec<Release>,
    /// The allocations that leave the call, sorted: they are placed in the results arena.
    pub(crate) results: SmallVec<[Ordinal; 4]>,
    /// Set if it counts among the shapes of a function.
    pub(crate) counted: bool,
    /// How its live-ins overlapped during warm-up, if its body asked whether tensors refer to the same memory.
    pub(crate) aliases: Option<Box<[Alias]>>,
    completed: Option<CompletedWarmUps>,
    /// The last call in which it waited for another group's warm-up, and the last one in which it was
    /// recorded.
    pub(crate) waited: Option<u64>,
    pub(crate) recorded: Option<u64>,
    /// The reason why it is not recorded yet, if it was warmed up.
    pub(crate) waiting: Option<Waiting>,
    /// The sets of live-ins that its recordings copy, each with the number of those recordings.
    pub(super) copied: SmallVec<[(Positions, u32); 1]>,
    /// Its recordings, and the edges that lead to it.
    recordings: BTreeSet<RecordingIndex>,
    pub(super) edges: BTreeSet<EdgeIndex>,
    /// If it has no recording, when it was last used.
    idle: u64,
}

impl Group {
    /// Returns whether its body has conditional nodes, according to its warm-up.
    pub(crate) fn has_conditionals(&self) -> bool {
        self.warmed && self.trace.iter().any(|op| op.mark.is_some())
    }

    fn key(&self) -> GroupKey<'_> {
        let Self { identity, shape, selected_by, .. } = self;
        GroupKey { identity: *identity, shape, aliases: selected_by.as_deref() }
    }

    /// Notes that a recording of it was made in that call.
    pub(crate) fn recorded_in(&mut self, call: u64) {
        self.recorded = Some(call);
        self.waiting = None;
    }

    /// Notes that a warm-up of it completed in that call. Returns the number of calls in which one did.
    pub(crate) fn warm_up_completed_in(&mut self, call: u64) -> u32 {
        let before = self.completed.map_or(0, |completed| completed.calls);
        let calls = before + u32::from(!self.completed_warm_up_in(call));
        self.completed = Some(CompletedWarmUps { last_call: call, calls });
        calls
    }

    /// Returns whether that call is the last one in which a warm-up of it completed.
    pub(crate) fn completed_warm_up_in(&self, call: u64) -> bool {
        self.completed.is_some_and(|completed| completed.last_call == call)
    }

    /// Returns whether a recording of it can be made in that call, as far as it knows.
    pub(crate) fn is_warm_for(&self, call: u64) -> bool {
        self.warmed && !self.completed_warm_up_in(call)
    }

    pub(crate) fn is_whole_call(&self) -> bool {
        matches!(self.identity, Identity::Full(_))
    }
}

/// All groups, by numbers that are never reused.
#[derive(Debug, Default)]
pub(super) struct Groups {
    all: FxHashMap<GroupId, Group>,
    index: FxHashMap<u64, SmallVec<[GroupId; 1]>>,
    next: GroupId,
    /// Those without a recording, the least recently used one first.
    idle: BTreeMap<u64, Idle>,
    clock: u64,
    step: u64,
    call: u64,
}

/// A group without a recording, and the step and the call in which it was last used.
#[derive(Clone, Copy, Debug)]
struct Idle {
    group: GroupId,
    step: u64,
    call: u64,
}

impl Index<GroupId> for Groups {
    type Output = Group;

    fn index(&self, group: GroupId) -> &Group {
        &self.all[&group]
    }
}

impl IndexMut<GroupId> for Groups {
    fn index_mut(&mut self, group: GroupId) -> &mut Group {
        self.all
            .get_mut(&group)
            .unwrap_or_else(|| unreachable!("the group of a run or of a recording is known"))
    }
}

fn positions(copied: &[CopiedInput]) -> Positions {
    copied.iter().map(|c| c.position).collect()
}

impl Groups {
    /// Returns the number of sets of copied live-ins in all groups.
    pub(super) fn copied_sets(&self) -> usize {
        self.all.values().map(|group| group.copied.len()).sum()
    }

    pub(super) fn begin_step(&mut self) {
        self.step += 1;
    }

    pub(super) fn begin_call(&mut self) {
        self.call += 1;
    }

    /// Returns a group without a recording that was not used for long, if there are too many of them.
    fn forgotten(&self) -> Option<GroupId> {
        let (_, oldest) = self.idle.first_key_value().filter(|_| self.idle.len() > IDLE)?;
        let (steps, calls) = (self.step - oldest.step, self.call - oldest.call);
        let long = steps > IDLE_STEPS || self.idle.len() > IDLE_IN_STEPS;
        (long && calls > IDLE_CALLS).then_some(oldest.group)
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    pub(super) fn get(&self, group: GroupId) -> Option<&Group> {
        self.all.get(&group)
    }

    pub(super) fn find(&self, key: GroupKey<'_>) -> Option<GroupId> {
        let candidates = self.index.get(&key.hash())?;
        candidates.iter().copied().find(|group| self.all[group].key() == key)
    }

    /// Adds a new group without a recording.
    fn add(&mut self, key: GroupKey<'_>) -> GroupId {
        let group = self.next;
        self.next = group.next();
        self.index.entry(key.hash()).or_default().push(group);
        let new = Group {
            identity: key.identity,
            shape: key.shape.into(),
            selected_by: key.aliases.map(Into::into),
            warmed: false,
            trace: Vec::new(),
            site: None,
            releases: Vec::new(),
            results: SmallVec::new(),
            counted: false,
            aliases: None,
            completed: None,
            waited: None,
            recorded: None,
            waiting: None,
            copied: SmallVec::new(),
            recordings: BTreeSet::new(),
            edges: BTreeSet::new(),
            idle: 0,
        };
        self.all.insert(group, new);
        self.rest(group);
        group
    }

    /// Notes that a group without a recording is used now.
    fn rest(&mut self, group: GroupId) {
        let Some(met) = self.all.get_mut(&group) else { return };
        self.idle.remove(&met.idle);
        self.clock += 1;
        met.idle = self.clock;
        self.idle.insert(self.clock, Idle { group, step: self.step, call: self.call });
    }

    /// Adds a recording of a group, which copies these live-ins.
    pub(super) fn hang(&mut self, group: GroupId, at: RecordingIndex, copied: &[CopiedInput]) {
        let Some(met) = self.all.get_mut(&group) else { return };
        met.recordings.insert(at);
        if !copied.is_empty() {
            let positions = positions(copied);
            match met.copied.iter_mut().find(|(set, _)| *set == positions) {
                Some((_, count)) => *count += 1,
                None => met.copied.push((positions, 1)),
            }
        }
        self.idle.remove(&met.idle);
    }

    /// Removes a recording of a group.
    pub(super) fn unhang(&mut self, group: GroupId, at: RecordingIndex, copied: &[CopiedInput]) {
        let Some(left) = self.all.get_mut(&group) else { return };
        left.recordings.remove(&at);
        if !copied.is_empty() {
            let positions = positions(copied);
            left.copied.retain(|(set, count)| {
                *count -= u32::from(*set == positions);
                *count > 0
            });
        }
        if left.recordings.is_empty() {
            self.rest(group);
        }
    }

    /// Returns the recordings of a group.
    pub(super) fn recordings(&self, group: GroupId) -> Vec<RecordingIndex> {
        self.get(group).map(|g| g.recordings.iter().copied().collect()).unwrap_or_default()
    }

    fn remove(&mut self, group: GroupId) -> Option<Group> {
        let gone = self.all.remove(&group)?;
        self.idle.remove(&gone.idle);
        let hash = gone.key().hash();
        if let Some(list) = self.index.get_mut(&hash) {
            list.retain(|&mut known| known != group);
            if list.is_empty() {
                self.index.remove(&hash);
            }
        }
        Some(gone)
    }
}

impl Tree {
    /// Returns the group of these shapes, which counts as a use. Others that were not used for long may be
    /// forgotten.
    pub(crate) fn group(&mut self, key: GroupKey<'_>) -> GroupId {
        if let Some(known) = self.known_group(key) {
            if self.groups[known].recordings.is_empty() {
                self.groups.rest(known);
            }
            return known;
        }
        let group = self.groups.add(key);
        if let Identity::Full(function) = key.identity {
            self.holders.entry(function).or_default().groups.insert(group);
        }
        while let Some(forgotten) = self.groups.forgotten() {
            self.remove_group(forgotten);
        }
        group
    }

    pub(crate) fn known_group(&self, key: GroupKey<'_>) -> Option<GroupId> {
        self.groups.find(key)
    }

    /// Returns whether the group is still remembered: an allocation may be older than that.
    pub(crate) fn knows_group(&self, group: GroupId) -> bool {
        self.groups.get(group).is_some()
    }

    pub(crate) fn group_of(&self, group: GroupId) -> &Group {
        &self.groups[group]
    }

    pub(crate) fn group_mut(&mut self, group: GroupId) -> &mut Group {
        &mut self.groups[group]
    }

    /// Returns the groups that were warmed up but not recorded yet, in the order of their first use.
    pub(crate) fn waiting(&self) -> Vec<&Group> {
        let waits = |idle: &Idle| Some((idle.group, self.groups.get(idle.group)?));
        let mut all: Vec<_> = self
            .groups
            .idle
            .values()
            .filter_map(waits)
            .filter(|(_, group)| group.waiting.is_some())
            .collect();
        all.sort_unstable_by_key(|(number, _)| *number);
        all.into_iter().map(|(_, group)| group).collect()
    }

    /// Returns the number of operations in the group's warm-up; `None` before it.
    pub(crate) fn trace_len(&self, group: GroupId) -> Option<usize> {
        let group = &self.groups[group];
        let operations = || group.trace.iter().filter(|op| op.mark.is_none()).count();
        group.warmed.then(operations)
    }

    /// Returns the position of a group's body.
    pub(crate) fn site(&self, group: GroupId) -> Option<&'static Site> {
        self.groups.get(group)?.site
    }

    /// Returns whether the group counts among the shapes of a function.
    pub(crate) fn is_counted(&self, group: GroupId) -> bool {
        self.groups[group].counted
    }

    /// Returns whether that allocation of the group leaves the call.
    pub(crate) fn is_result(&self, group: GroupId, ordinal: Ordinal) -> bool {
        self.groups.get(group).is_some_and(|g| g.results.binary_search(&ordinal).is_ok())
    }

    /// Removes a group without recordings, and its counts.
    pub(super) fn remove_group(&mut self, group: GroupId) {
        let Some(gone) = self.groups.remove(group) else { return };
        for edge in gone.edges {
            self.remove_edge(edge);
        }
        if let Identity::Full(function) = gone.identity {
            self.release_owner(function, |holders| holders.groups.remove(&group));
        }
    }
}

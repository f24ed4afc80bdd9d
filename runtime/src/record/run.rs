//! One execution of a body: in warm-up, while recording, or for an audit.

use std::{
    cell::Cell,
    collections::{BTreeMap, BTreeSet},
    ops::{Deref, DerefMut},
    time::Instant,
};

use super::{
    call::Phase,
    command_log::CommandLog,
    copied_inputs::InputBindings,
    last_use::{Allocation, Uses},
};
use crate::{
    Error, Result,
    backend::SharedMemory,
    base::plan::Site,
    memory::{Alive, Memory, Ordinal, Origin, Placement, SlotId, pool::StateId},
    tree::{GroupId, Identity, LiveInPlace, TraceOp},
    value::{key::KeyWriter, owned::OwnerId, raw::RawTensor},
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RunKind {
    /// Eagerly, in the pool.
    Warm,
    /// Eagerly, in the pool, where nothing is to be learnt: it gets no graph.
    Eager,
    /// Into a capture.
    Record,
    /// Eagerly, outside the pool, to compare with a replay.
    Audit,
}

/// The treatment of the body's operations, with the data that only a run of that kind has.
///
/// A runtime without a run is idle. From there, a run begins in one of these states and never changes to
/// another: a capture that another thread invalidates remains a recording, as its [`CommandLog`] states.
#[derive(Debug)]
pub(crate) enum RunState {
    /// Runs them, and learns about them.
    WarmingUp,
    /// Runs them.
    Eager,
    /// Writes them down, and captures them as long as the capture is good.
    Recording(Box<RecordingRun>),
    /// Runs them, outside the pool.
    Auditing(Auditing),
}

/// The data that only a current recording has.
#[derive(Debug)]
pub(crate) struct RecordingRun {
    pub(super) group: GroupId,
    /// All that it launches, and the state of its capture.
    pub(super) log: CommandLog,
    /// The live-ins that it reads from buffers of its own.
    pub(super) bindings: InputBindings,
    /// The time at which the capture began.
    pub(super) begun: Instant,
    /// The blocks that were live in the pool at its start.
    pub(super) alive: Alive,
    /// Addresses that it writes.
    pub(super) writes: BTreeSet<u64>,
    /// Something was used after its last use: the body does something else than in warm-up.
    pub(super) late_use: Cell<bool>,
}

/// The data that only the run of an audited body has.
#[derive(Debug, Default)]
pub(crate) struct Auditing {
    /// The live-ins that it reads from the buffers of the recording.
    pub(super) bindings: InputBindings,
    /// State as it was before the body wrote it, with the copy's tensor.
    pub(super) undo: Vec<(SharedMemory, RawTensor)>,
}

/// An execution of a body; `S` is what only a run of its kind has.
#[derive(Debug)]
pub(crate) struct Run<S = RunState> {
    pub(super) state: S,
    /// The part that every run has; it is reached through the run.
    common: Common,
}

/// The data of a run of any kind.
#[derive(Debug)]
pub(crate) struct Common {
    pub(super) site: &'static Site,
    pub(super) identity: Identity,
    /// `None` for a run without a graph whose shape is unknown.
    pub(super) group: Option<GroupId>,
    pub(super) trace: Vec<TraceOp>,
    /// The state of the pool at its start.
    pub(super) entry: StateId,
    /// The phase of host code before the run.
    before: Phase,
    ordinal: Ordinal,
    /// The memory of live-ins: ranges to which a recording may refer.
    known: Known,
    /// The run's own blocks that are alive: start, end.
    own: BTreeMap<u64, u64>,
    slots: Vec<SlotId>,
    /// The uses of allocations by operations.
    pub(super) uses: Uses,
    /// The body asked whether tensors show the same memory.
    pub(super) asked: Cell<bool>,
    pub(super) owned: Vec<(OwnerId, SharedMemory)>,
    failure: Option<Failure>,
}

impl<S> Deref for Run<S> {
    type Target = Common;

    fn deref(&self) -> &Common {
        &self.common
    }
}

impl<S> DerefMut for Run<S> {
    fn deref_mut(&mut self) -> &mut Common {
        &mut self.common
    }
}

/// A recording whose body has ended.
pub(super) type EndedRecording = Run<Box<RecordingRun>>;

/// A run whose body has ended, by what is left to do.
#[derive(Debug)]
pub(super) enum EndedRun {
    /// A recording, with its state.
    Recording(EndedRecording),
    /// Any other run, unchanged.
    Other(Run),
}

/// The initial data of a run.
#[derive(Debug)]
pub(super) struct Start {
    pub(super) state: RunState,
    pub(super) site: &'static Site,
    pub(super) identity: Identity,
    pub(super) group: Option<GroupId>,
    pub(super) entry: StateId,
    pub(super) before: Phase,
    /// Ranges to which a recording may refer.
    pub(super) known: Vec<(u64, u64)>,
    pub(super) owned: Vec<(OwnerId, SharedMemory)>,
}

/// The first error of a run that its body may have swallowed.
#[derive(Clone, Debug)]
enum Failure {
    /// The device is lost: whatever the body does with the error, the caller must know.
    Lost {
        device: String,
        reason: String,
    },
    Other(String),
}

impl Run {
    pub(super) fn new(start: Start) -> Self {
        let Start { state, site, identity, group, entry, before, known, owned } = start;
        let common = Common {
            site,
            identity,
            group,
            trace: Vec::new(),
            entry,
            before,
            ordinal: Ordinal::default(),
            known: Known::new(known),
            own: BTreeMap::new(),
            slots: Vec::new(),
            uses: Uses::default(),
            asked: Cell::new(false),
            owned,
            failure: None,
        };
        Self { state, common }
    }

    pub(crate) fn is_audit(&self) -> bool {
        matches!(self.state, RunState::Auditing(_))
    }

    pub(crate) fn is_warm_up(&self) -> bool {
        matches!(self.state, RunState::WarmingUp)
    }

    pub(super) fn recording(&self) -> Option<&RecordingRun> {
        match &self.state {
            RunState::Recording(recording) => Some(recording),
            _ => None,
        }
    }

    pub(super) fn recording_mut(&mut self) -> Option<&mut RecordingRun> {
        match &mut self.state {
            RunState::Recording(recording) => Some(recording),
            _ => None,
        }
    }

    /// Tells a recording from other runs.
    pub(super) fn ended(self) -> EndedRun {
        let Self { state, common } = self;
        match state {
            RunState::Recording(state) => EndedRun::Recording(Run { state, common }),
            state => EndedRun::Other(Run { state, common }),
        }
    }

    /// The live-ins that it reads from buffers.
    pub(super) fn bindings_mut(&mut self) -> Option<&mut InputBindings> {
        match &mut self.state {
            RunState::Recording(recording) => Some(&mut recording.bindings),
            RunState::Auditing(audit) => Some(&mut audit.bindings),
            RunState::WarmingUp | RunState::Eager => None,
        }
    }
}

impl Common {
    pub(crate) fn group(&self) -> Option<GroupId> {
        self.group
    }

    /// Returns the phase of host code before the run.
    pub(crate) fn phase_before(&self) -> Phase {
        self.before
    }

    pub(crate) fn next_ordinal(&mut self) -> Ordinal {
        let next = self.ordinal.next();
        std::mem::replace(&mut self.ordinal, next)
    }

    /// Returns the ordinal of the next allocation.
    pub(super) fn coming_ordinal(&self) -> Ordinal {
        self.ordinal
    }

    /// A tensor of the body is in another slot now.
    pub(super) fn moved(&mut self, id: SlotId, origin: Origin) {
        self.slots.push(id);
        if let Origin::Segment { group, ordinal } = origin
            && Some(group) == self.group
        {
            self.uses.moved(ordinal, id);
        }
    }

    /// The body made a tensor.
    pub(crate) fn made(&mut self, ordinal: Ordinal, id: SlotId, memory: &Memory) {
        let slot = memory.slot(id);
        let (base, end) = (slot.base(), slot.base() + crate::memory::pool::rounded(slot.bytes()));
        self.own.insert(base, end);
        let pooled = slot.placement() == Placement::Pool;
        self.uses.made(Allocation { ordinal, slot: id, start: base, end, pooled });
        self.slots.push(id);
    }

    /// A block was freed; its memory may be used again by this run, not by accident.
    pub(super) fn forget(&mut self, base: u64) {
        self.own.remove(&base);
        self.uses.forget(base);
    }

    /// Returns whether the block that begins there is live and belongs to the run.
    pub(super) fn owns_block(&self, base: u64) -> bool {
        self.own.contains_key(&base)
    }

    /// Returns whether one of its own blocks contains the range.
    pub(super) fn owns(&self, range: (u64, u64)) -> bool {
        holds(&self.own, range)
    }

    /// Every slot that it made.
    pub(super) fn slots(&self) -> &[SlotId] {
        &self.slots
    }

    /// Returns whether a recording may refer to the range.
    pub(super) fn knows(&self, range: (u64, u64)) -> bool {
        self.known.holds(range) || self.owns(range)
    }

    /// An operation failed, which the body may swallow.
    pub(crate) fn fail(&mut self, error: &Error) {
        self.failure.get_or_insert_with(|| match error {
            Error::ContextLost { device, reason } => {
                Failure::Lost { device: device.clone(), reason: reason.clone() }
            }
            other => Failure::Other(other.to_string()),
        });
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.failure.is_some()
    }

    /// Rejects a recording, or an audit, of a body that ignored an error: it would be of different work.
    ///
    /// # Errors
    /// Returns [`Error::ContextLost`], [`Error::Device`].
    pub(crate) fn check_went_well(&self, device: &str) -> Result<()> {
        match self.failure.clone() {
            None => Ok(()),
            Some(Failure::Lost { device, reason }) => Err(Error::ContextLost { device, reason }),
            Some(Failure::Other(reason)) => Err(Error::Device {
                device: device.to_owned(),
                call: "capture",
                reason: format!("{}: an operation failed and the body went on: {reason}", self.site),
            }),
        }
    }
}

impl EndedRecording {
    /// State that it writes, of the owned memory that it may use: each once, though it may be passed for several parameters.
    pub(super) fn written(&self) -> Vec<(OwnerId, SharedMemory)> {
        let is_written = |memory: &SharedMemory| {
            self.state.writes.range(memory.addr()..memory.addr() + memory.len()).next().is_some()
        };
        let mut seen = BTreeSet::new();
        let all = self.owned.iter().filter(|(_, memory)| is_written(memory));
        all.filter(|(_, memory)| seen.insert(memory.addr())).cloned().collect()
    }

    /// Returns the ids of everything that the recording is evicted with.
    pub(super) fn owners(&self) -> Vec<OwnerId> {
        let of_call = match self.identity {
            Identity::Full(graph) => Some(graph),
            Identity::Segment(_) => None,
        };
        self.owned.iter().map(|&(owner, _)| owner).chain(of_call).collect()
    }
}

/// Returns the current addresses of the live-ins in arenas.
pub(super) fn places(key: &KeyWriter) -> Box<[LiveInPlace]> {
    let tensors = (0u32..).zip(&key.tensors).zip(&key.extents);
    let arenas = tensors.filter(|((_, t), _)| key.owner(t).is_none());
    arenas
        .map(|((tensor, t), &bytes)| LiveInPlace {
            tensor,
            operand: t.operand,
            addr: key.addr(t.operand),
            bytes,
        })
        .collect()
}

/// Returns whether one of these blocks, which do not overlap, contains the range.
fn holds(blocks: &BTreeMap<u64, u64>, (start, end): (u64, u64)) -> bool {
    blocks.range(..=start).next_back().is_some_and(|(_, &block_end)| end <= block_end)
}

/// Ranges of memory, any of which may overlap.
#[derive(Debug)]
struct Known(Vec<(u64, u64)>);

impl Known {
    fn new(mut ranges: Vec<(u64, u64)>) -> Self {
        ranges.sort_unstable();
        // Each with the farthest end of those that start no later.
        let mut farthest = 0;
        for (_, end) in &mut ranges {
            farthest = farthest.max(*end);
            *end = farthest;
        }
        Self(ranges)
    }

    /// Returns whether one of them contains the range.
    fn holds(&self, (start, end): (u64, u64)) -> bool {
        let after = self.0.partition_point(|&(s, _)| s <= start);
        after > 0 && end <= self.0[after - 1].1
    }
}

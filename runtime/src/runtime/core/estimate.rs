//! Estimates of the memory that a plan of captures needs: some of them are made in a state that is discarded.

use std::{fmt, sync::Arc};

use crate::{
    Error, Result,
    memory::{ArenaBytes, Extent, Memory, MemoryAside, OwnedBytes},
    observe::{log::Log, memory::CaptureMemory},
    record::{CallHistory, CallState},
    tree::Tree,
    value::owned::{Owned, OwnerId},
};

/// The state that a dry run of captures must not change.
struct DryRun {
    tree: Tree,
    memory: MemoryAside,
    log: Log,
    history: CallHistory,
    before: Measure,
    /// Ids of owned memory that was dropped meanwhile: the recordings that were set aside must be evicted
    /// with it.
    retired: Vec<OwnerId>,
    /// The memory of captures that would be made, but were not.
    more: CaptureMemory,
    held: Vec<Arc<Owned>>,
}

/// The state at the start of a measurement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measure {
    marks: ArenaBytes,
    committed: ArenaBytes,
    owned: OwnedBytes,
    recordings: u64,
    executable_bytes: u64,
}

impl Measure {
    /// Starts a measurement; the high-water marks are reset.
    pub(crate) fn begin(memory: &mut Memory, tree: &Tree) -> Self {
        let marks = memory.high_water();
        memory.forget_high_water();
        let (committed, owned) = (memory.committed(), memory.owned_bytes());
        let (recordings, executable_bytes) = tree.recorded();
        Self { marks, committed, owned, recordings, executable_bytes }
    }

    /// Restores the overall high-water marks.
    pub(crate) fn end(&self, memory: &mut Memory) {
        memory.raise_high_water(self.marks);
    }

    /// Returns the memory that was needed since then.
    pub(crate) fn taken(&self, memory: &Memory, tree: &Tree) -> CaptureMemory {
        let (recordings, executable_bytes) = tree.recorded();
        let (marks, owned) = (memory.high_water(), memory.owned_bytes());
        CaptureMemory {
            recordings: recordings.saturating_sub(self.recordings),
            pool_bytes: marks.pool,
            result_bytes: marks.results,
            eager_bytes: marks.eager,
            static_bytes: owned.of_graphs.saturating_sub(self.owned.of_graphs),
            owned_bytes: owned.of_user.saturating_sub(self.owned.of_user),
            executable_bytes: executable_bytes.saturating_sub(self.executable_bytes),
        }
    }
}

/// The current dry run of a plan, and the result of the last one.
#[derive(Default)]
pub(crate) struct Estimate {
    dry: Option<DryRun>,
    /// The last estimate, until it is compared.
    expected: Option<CaptureMemory>,
}

impl fmt::Debug for Estimate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Estimate")
            .field("dry", &self.dry.is_some())
            .field("expected", &self.expected)
            .finish()
    }
}

impl Estimate {
    /// Sets aside everything that a capture changes. Called between steps.
    pub(crate) fn begin(
        &mut self,
        memory: &mut Memory,
        tree: &mut Tree,
        log: &mut Log,
        call: &mut CallState,
    ) {
        let before = Measure::begin(memory, tree);
        self.dry = Some(DryRun {
            tree: std::mem::take(tree),
            memory: memory.set_aside(),
            log: std::mem::take(log),
            history: std::mem::take(call.history_mut()),
            before: Measure { recordings: 0, executable_bytes: 0, ..before },
            retired: Vec::new(),
            more: CaptureMemory::default(),
            held: Vec::new(),
        });
    }

    /// Restores everything, and discards what was captured since. Returns the previous sizes of the arenas,
    /// and the ids of objects dropped meanwhile.
    pub(crate) fn end(
        &mut self,
        memory: &mut Memory,
        tree: &mut Tree,
        log: &mut Log,
        call: &mut CallState,
    ) -> Option<(ArenaBytes, Vec<OwnerId>)> {
        let dry = self.dry.take()?;
        (*tree, *log) = (dry.tree, dry.log);
        *call.history_mut() = dry.history;
        memory.put_back(dry.memory, dry.before.marks);
        Some((dry.before.committed, dry.retired))
    }

    /// Rejects operations that an estimate must not perform: the recordings that it set aside need their
    /// memory afterwards, and only one state can be set aside.
    ///
    /// # Errors
    /// Returns [`Error::InsideEstimate`].
    pub(crate) fn refuse(&self, call: &'static str) -> Result<()> {
        if self.is_dry_run() { Err(Error::InsideEstimate { call }) } else { Ok(()) }
    }

    /// Returns whether captures are discarded.
    pub(crate) fn is_dry_run(&self) -> bool {
        self.dry.is_some()
    }

    /// Returns the memory that the recordings set aside need.
    pub(crate) fn extent_aside(&self) -> Extent {
        self.dry.as_ref().map_or(Extent::default(), |dry| dry.tree.extent())
    }

    /// Returns whether the state that was set aside refers to a graph object or memory.
    pub(crate) fn knows(&self, id: OwnerId) -> bool {
        self.dry.as_ref().is_some_and(|dry| dry.tree.holds(id) || dry.history.knows(id))
    }

    /// Notes that memory was dropped to which the state that was set aside may refer.
    pub(crate) fn retire(&mut self, ids: &[OwnerId]) {
        if let Some(dry) = &mut self.dry {
            dry.retired.extend_from_slice(ids);
        }
    }

    /// Adds the captures that a dry `capture_all` omits.
    pub(crate) fn expect_more(&mut self, recordings: u64, executable_bytes: u64) {
        if let Some(dry) = &mut self.dry {
            dry.more.recordings += recordings;
            dry.more.executable_bytes += executable_bytes;
        }
    }

    /// Frees these buffers at the end of the dry run: before that, the recordings made with them would be
    /// evicted.
    pub(crate) fn hold_to_the_end(&mut self, buffers: Vec<Arc<Owned>>) {
        if let Some(dry) = &mut self.dry {
            dry.held.extend(buffers);
        }
    }

    /// Returns the memory that the plan is expected to need.
    pub(crate) fn estimated(&self, memory: &Memory, tree: &Tree) -> CaptureMemory {
        let Some(dry) = &self.dry else { return CaptureMemory::default() };
        let mut sum = dry.before.taken(memory, tree);
        sum.recordings += dry.more.recordings;
        sum.executable_bytes += dry.more.executable_bytes;
        sum
    }

    /// Stores an estimate, to be compared.
    pub(crate) fn expect(&mut self, memory: CaptureMemory) {
        self.expected = Some(memory);
    }

    /// Returns the last estimate, if it was not compared yet.
    pub(crate) fn take_expected(&mut self) -> Option<CaptureMemory> {
        self.expected.take()
    }
}

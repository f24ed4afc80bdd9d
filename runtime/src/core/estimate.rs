//! What a plan of captures will take: some of it is captured in a state that is thrown away.

use std::{fmt, sync::Arc};

use crate::{
    Error, Result,
    memory::{Extent, HighWater, Memory, MemoryAside},
    observe::{log::Log, memory::CaptureMemory},
    record::{CallHistory, CallState},
    tree::Tree,
    value::owned::Owned,
};

/// What a dry run of captures must not touch.
struct DryRun {
    tree: Tree,
    memory: MemoryAside,
    log: Log,
    history: CallHistory,
    before: Measure,
    /// Ids of owned memory that was dropped meanwhile: the recordings set aside must be evicted with it.
    retired: Vec<u64>,
    /// What was not captured, but would be.
    more: CaptureMemory,
    held: Vec<Arc<Owned>>,
}

/// Where a measurement started.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measure {
    marks: HighWater,
    committed: HighWater,
    static_bytes: u64,
    recordings: u64,
    executable_bytes: u64,
}

impl Measure {
    /// Starts to measure; the high-water marks start again.
    pub(crate) fn begin(memory: &mut Memory, tree: &Tree) -> Self {
        let marks = memory.high_water();
        memory.forget_high_water();
        let (committed, static_bytes) = (memory.committed(), memory.static_bytes());
        let (recordings, executable_bytes) = tree.recorded();
        Self { marks, committed, static_bytes, recordings, executable_bytes }
    }

    /// The marks are those of all time again.
    pub(crate) fn end(&self, memory: &mut Memory) {
        memory.raise_high_water(self.marks);
    }

    /// What was taken since then.
    pub(crate) fn taken(&self, memory: &Memory, tree: &Tree) -> CaptureMemory {
        let (recordings, executable_bytes) = tree.recorded();
        let marks = memory.high_water();
        CaptureMemory {
            nodes: recordings.saturating_sub(self.recordings),
            pool_bytes: marks.pool,
            result_bytes: marks.results,
            eager_bytes: marks.eager,
            static_bytes: memory.static_bytes().saturating_sub(self.static_bytes),
            executable_bytes: executable_bytes.saturating_sub(self.executable_bytes),
        }
    }
}

/// The dry run of a plan that is under way, and what the last one expected.
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
    /// Sets everything aside that a capture changes. Between steps.
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

    /// Puts everything back, and throws away what was captured since. Returns what the arenas had before, and the ids of
    /// what was dropped meanwhile.
    pub(crate) fn end(
        &mut self,
        memory: &mut Memory,
        tree: &mut Tree,
        log: &mut Log,
        call: &mut CallState,
    ) -> Option<(HighWater, Vec<u64>)> {
        let dry = self.dry.take()?;
        (*tree, *log) = (dry.tree, dry.log);
        *call.history_mut() = dry.history;
        memory.put_back(dry.memory, dry.before.marks);
        Some((dry.before.committed, dry.retired))
    }

    /// Refuses what an estimate must not do: the recordings that it set aside need their memory afterwards, and
    /// there is one place to set them aside.
    ///
    /// # Errors
    /// [`Error::InsideEstimate`].
    pub(crate) fn refuse(&self, call: &'static str) -> Result<()> {
        if self.is_dry() { Err(Error::InsideEstimate { call }) } else { Ok(()) }
    }

    /// Whether captures are thrown away.
    pub(crate) fn is_dry(&self) -> bool {
        self.dry.is_some()
    }

    /// What the recordings that are set aside need.
    pub(crate) fn extent_aside(&self) -> Extent {
        self.dry.as_ref().map_or(Extent::default(), |dry| dry.tree.extent())
    }

    /// Whether what is set aside knows of a graph object or memory.
    pub(crate) fn knows(&self, id: u64) -> bool {
        self.dry.as_ref().is_some_and(|dry| dry.tree.holds(id) || dry.history.knows(id))
    }

    /// Memory was dropped that what is set aside may know.
    pub(crate) fn retire(&mut self, ids: &[u64]) {
        if let Some(dry) = &mut self.dry {
            dry.retired.extend_from_slice(ids);
        }
    }

    /// Adds what a dry `capture_all` leaves out.
    pub(crate) fn expect_more(&mut self, recordings: u64, executable_bytes: u64) {
        if let Some(dry) = &mut self.dry {
            dry.more.nodes += recordings;
            dry.more.executable_bytes += executable_bytes;
        }
    }

    /// Frees these when the dry run is over: before, what was recorded with them would be evicted.
    pub(crate) fn hold_to_the_end(&mut self, buffers: Vec<Arc<Owned>>) {
        if let Some(dry) = &mut self.dry {
            dry.held.extend(buffers);
        }
    }

    /// What the plan is expected to take.
    pub(crate) fn estimated(&self, memory: &Memory, tree: &Tree) -> CaptureMemory {
        let Some(dry) = &self.dry else { return CaptureMemory::default() };
        let mut sum = dry.before.taken(memory, tree);
        sum.nodes += dry.more.nodes;
        sum.executable_bytes += dry.more.executable_bytes;
        sum
    }

    /// Keeps an estimate, to be compared.
    pub(crate) fn expect(&mut self, memory: CaptureMemory) {
        self.expected = Some(memory);
    }

    /// The last estimate, if it was not compared yet.
    pub(crate) fn take_expected(&mut self) -> Option<CaptureMemory> {
        self.expected.take()
    }
}

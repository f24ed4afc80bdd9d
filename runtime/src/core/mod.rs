//! The state of a runtime. Everything that a handle, a driver or a capability does ends here.
//!
//! No user code runs while the core is borrowed: keys are written before, outputs decoded after.

use crate::{
    Error, Result,
    backend::{Backend, HostBlock, Launch, SharedMemory},
    layout::Layout,
    log::Log,
    plan::Site,
    pool::{LiveSet, Pool, Treap},
    tensor::RawTensor,
    tree::Tree,
};

mod aliases;
mod alive;
mod apart;
mod audit;
mod check;
mod copied;
mod decide;
mod estimate;
mod finalize;
mod fork;
mod frame;
mod keep;
mod last_use;
mod launch;
mod live;
mod miss;
mod owned;
mod regions;
mod run;
mod save;
mod scratch;
mod share;
mod slots;
mod store;
mod tape;
#[cfg(test)]
mod tests;
mod tree_view;
mod upkeep;
mod usage;
mod waits;
mod zone;

pub(crate) use alive::{Alive, EntryBlock};
pub(crate) use decide::Decision;
pub(crate) use estimate::Measure;
pub(crate) use frame::{FrameState, Symbol};
pub(crate) use keep::Queues;
pub use live::{Live, Tables};
use run::Run;
pub(crate) use run::RunKind;
pub(crate) use waits::{Wait, Waiting};
use zone::Zone;

/// Where a tensor's memory lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Home {
    /// The segment pool.
    Pool,
    /// The results arena.
    Results,
    /// The eager arena.
    Eager,
    /// The pool, borrowed while it is idle.
    Scratch,
    /// Memory with an owner: a parameter, a static input.
    Owned,
    /// Nowhere: its capture was abandoned, or its call left it behind.
    Gone,
    /// Nowhere: a recording gave it back at its last use.
    Released,
}

/// Which allocation made a block: lets the runtime place it better next time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    Segment {
        group: usize,
        ordinal: u32,
    },
    /// Of the region with that number; one that is no result of it.
    Region {
        site: &'static Site,
        serial: u64,
        ordinal: u32,
    },
    /// A result of a region: its profile, the run of the call, and which result.
    Result {
        profile: u64,
        at: (u32, u32),
    },
    /// A static buffer that holds a device input with padding: of the tensor in that slot, which begins there.
    Padded {
        of: u32,
        from: u64,
    },
    Other,
}

impl PartialEq for Site {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}
impl Eq for Site {}

#[derive(Debug)]
pub(crate) struct Slot {
    /// How many handles show it. Of 64 bits, so that forgetting clones cannot make it wrap: not in centuries.
    refs: u64,
    home: Home,
    base: u64,
    bytes: u64,
    owner: Option<SharedMemory>,
    origin: Origin,
    made_by: &'static str,
    /// A block of the pool that is kept free of others while this lives: recordings expect it there.
    stands_for: Option<u64>,
    /// The call in which it was made; see [`Core::check_live`].
    call: u64,
}

/// What the host code may do now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Between calls: everything.
    Idle,
    /// In a driver: no device operations.
    Driver,
    /// In an eager region: everything.
    Eager,
    /// In a segment: operations, no capabilities.
    Segment(&'static Site),
}

#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) backend: Box<dyn Backend>,
    pub(crate) log: Log,
    pub(crate) tree: Tree,
    pub(crate) phase: Phase,
    pub(crate) frame: Option<FrameState>,
    pub(crate) pending: Option<HostBlock>,
    /// Why host bytes of this call did not arrive: what reads them would read an earlier call's.
    lost_inputs: Option<String>,
    pub(crate) closed: bool,
    /// Whether recordings free memory at its last use; else when its handle goes.
    pub(crate) free_at_last_use: bool,
    /// What an update of a shared executable may take; `None` where new recordings share none.
    pub(crate) sharing: Option<std::time::Duration>,
    /// What graphs may take; see [`Runtime::limit_graph_memory`](crate::Runtime::limit_graph_memory).
    pub(crate) graph_memory_limit: Option<u64>,
    occurrences: share::Occurrences,
    pool: Pool,
    pool_zone: Zone,
    results: Zone,
    eager: Zone,
    /// Blocks in the idle pool, while it is borrowed.
    scratch: Option<LiveSet>,
    scratch_high: u64,
    slots: Vec<Slot>,
    free_slots: Vec<u32>,
    /// The operation that was launched last.
    description: Box<Launch>,
    /// Lists that were decoded, for the next outputs.
    spare_entries: Vec<decide::Entries>,
    epoch: u64,
    run: Option<Run>,
    /// Forks that are open, the innermost last.
    forks: Vec<fork::Fork>,
    region: Option<regions::RegionRun>,
    regions: regions::Regions,
    /// Counts where calls begin and end, so that what lies between them has a number.
    calls: u64,
    call_warm_ups: waits::CallWarmUps,
    saver: Option<save::Saver>,
    deferred: Option<Error>,
    /// By graph object.
    shapes: rustc_hash::FxHashMap<u64, miss::Shapes>,
    /// By graph object: where a region gives host code a value, so that the whole call is no graph.
    host_values: rustc_hash::FxHashMap<u64, &'static Site>,
    pub(crate) owned_memory: owned::OwnedTable,
    /// What the last recording found alive in the pool, if that was much.
    last_alive: Treap<EntryBlock>,
    /// Ids of what was dropped and has something to evict.
    retired: Vec<u64>,
    pub(crate) kept: keep::KeptSet,
    /// While a plan of captures is tried out.
    dry: Option<estimate::Dry>,
    /// The last estimate, until it is compared.
    pub(crate) expected: Option<crate::memory::CaptureMemory>,
}

impl Core {
    pub(crate) fn new(mut backend: Box<dyn Backend>) -> Result<Self> {
        let pool_zone = Zone::new(&mut *backend)?;
        let results = Zone::new(&mut *backend)?;
        let eager = Zone::new(&mut *backend)?;
        Ok(Self {
            pool: Pool::new(pool_zone.base(), pool_zone.page),
            pool_zone,
            results,
            eager,
            scratch: None,
            scratch_high: 0,
            backend,
            log: Log::default(),
            tree: Tree::default(),
            phase: Phase::Idle,
            frame: None,
            pending: None,
            lost_inputs: None,
            closed: false,
            free_at_last_use: true,
            sharing: None,
            graph_memory_limit: None,
            occurrences: share::Occurrences::default(),
            slots: Vec::new(),
            free_slots: Vec::new(),
            description: Box::new(Launch::empty()),
            spare_entries: Vec::new(),
            epoch: 0,
            run: None,
            forks: Vec::new(),
            region: None,
            regions: regions::Regions::default(),
            calls: 0,
            call_warm_ups: waits::CallWarmUps::default(),
            saver: None,
            deferred: None,
            shapes: Default::default(),
            host_values: Default::default(),
            owned_memory: owned::OwnedTable::default(),
            last_alive: Treap::default(),
            retired: Vec::new(),
            kept: keep::KeptSet::default(),
            dry: None,
            expected: None,
        })
    }

    /// Starts a generation: nothing of the last one is reachable any more, whatever was forgotten.
    pub(crate) fn begin_step(&mut self, retired: &[u64]) -> Result<()> {
        self.forks.clear();
        self.abort_run();
        self.epoch += 1;
        self.slots.clear();
        self.free_slots.clear();
        self.pool.reset();
        self.results.live.clear();
        self.eager.live.clear();
        self.scratch = None;
        self.phase = Phase::Idle;
        self.frame = None;
        self.pending = None;
        self.region = None;
        self.forget_states();
        self.note_retired(retired);
        let retired = std::mem::take(&mut self.retired);
        self.evict_retired(&retired);
        match self.deferred.take() {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    /// Keeps an error that nobody can be told of now for the next call that can. One that waits already stays.
    pub(crate) fn report_later(&mut self, error: Error) {
        self.deferred.get_or_insert(error);
    }

    /// Sizes that the counters do not hold.
    pub(crate) fn stats(&self) -> crate::Stats {
        let mut stats = self.log.stats.clone();
        stats.nodes = self.tree.len();
        stats.copied_slots = self.tree.copied_live_ins();
        stats.pool_bytes = self.pool.high_water();
        stats.result_bytes = self.results.high;
        stats.eager_bytes = self.eager.high;
        stats.staging_waits = self.backend.staging_waits();
        stats.kept_bytes = self.kept.held_bytes();
        stats.spare_bytes = self.kept.spare_bytes();
        (stats.executables, stats.executable_bytes, stats.shared_bytes) = self.tree.executables();
        stats
    }

    /// Whether an operation would be recorded now.
    pub(crate) fn capturing(&self) -> bool {
        self.run.as_ref().is_some_and(|r| r.kind == RunKind::Record)
    }

    /// Refuses operations where nothing would record or order them.
    pub(crate) fn may_operate(&self, op: &'static str) -> Result<()> {
        match self.phase {
            Phase::Driver => {
                Err(Error::OutsideSegment { op, function: self.frame.as_ref().map_or("?", |f| f.name) })
            }
            _ => Ok(()),
        }
    }

    /// Refuses capabilities inside a segment, in every mode.
    pub(crate) fn may_look(&self, call: &'static str) -> Result<()> {
        match self.phase {
            Phase::Segment(site) => Err(Error::CapabilityInSegment { call, segment: site.to_string() }),
            Phase::Driver => {
                Err(Error::OutsideSegment { op: call, function: self.frame.as_ref().map_or("?", |f| f.name) })
            }
            Phase::Eager if self.run.is_some() => {
                Err(Error::CapabilityInSegment { call, segment: "a region that full mode captures".into() })
            }
            _ => Ok(()),
        }
    }

    /// Sends host bytes that wait for the next replay. In a capture they wait for its first replay.
    pub(crate) fn flush(&mut self) -> Result<()> {
        self.check_inputs()?;
        if self.pending.is_none() || self.capturing() {
            return Ok(());
        }
        match self.pending.take() {
            Some(block) => {
                let written = self.backend.host_write(block);
                self.unless_lost(true, written)
            }
            None => Ok(()),
        }
    }

    /// Host bytes went with this, if there were any: after an error the call goes no further.
    fn unless_lost(&mut self, any: bool, result: Result<()>) -> Result<()> {
        result.inspect_err(|error| {
            if any {
                self.lost_inputs.get_or_insert_with(|| error.to_string());
            }
        })
    }

    /// Refuses to go on with a call whose host inputs did not arrive.
    pub(crate) fn check_inputs(&self) -> Result<()> {
        match &self.lost_inputs {
            None => Ok(()),
            Some(why) => Err(Error::Device {
                device: self.backend.name(),
                call: "host_write",
                why: format!("the inputs of this call went with an earlier error of it: {why}"),
            }),
        }
    }

    /// Reads a tensor's elements, row-major, as bytes.
    ///
    /// The caller has checked that it may look, and that the tensor is [live](Self::check_live).
    pub(crate) fn read(&mut self, raw: RawTensor) -> Result<Box<dyn crate::backend::PendingBytes>> {
        self.flush()?;
        let layout = raw.layout;
        let bytes = (layout.count() * raw.dtype.size()) as u64;
        if layout.is_contiguous() {
            return self.backend.read(raw.addr, bytes);
        }
        let packed = self.eager_tensor("read", raw.dtype, Layout::contiguous(layout.shape())?)?;
        let pending = self
            .launch_now(crate::backend::Op::Copy, &[raw.view()], &[packed.view()])
            .and_then(|()| self.backend.read(packed.addr, bytes));
        self.release(packed.slot, packed.epoch);
        pending
    }
}

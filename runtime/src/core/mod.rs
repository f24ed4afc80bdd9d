//! The state of a runtime. Everything that a handle, a driver or a capability does ends here.
//!
//! No user code runs while the core is borrowed: keys are written before, outputs decoded after.

use crate::{
    Error, Result,
    backend::{Backend, HostBlock, Launch, SharedMemory},
    base::plan::Site,
    memory::pool::{LiveSet, Pool, Treap},
    observe::log::Log,
    tensor::RawTensor,
    tree::Tree,
    value::layout::Layout,
};

mod call;
pub(crate) mod decide;
mod estimate;
pub(crate) mod miss;
#[cfg(test)]
mod tests;
mod tree_view;
mod usage;
pub(crate) mod waits;

pub(crate) use crate::record::RunKind;
use crate::{
    memory::{
        EntryBlock, Origin, Placement, arena::ArenaAllocator, learned_placements as regions, owned,
        persist as keep,
    },
    record::{branches as fork, exec_reuse as share, run::Run, state_snapshot as save},
};
pub(crate) use call::{FrameState, Symbol};
pub(crate) use decide::Decision;
pub(crate) use estimate::Measure;

#[derive(Debug)]
pub(crate) struct Slot {
    /// How many handles show it. Of 64 bits, so that forgetting clones cannot make it wrap: not in centuries.
    pub(crate) refs: u64,
    pub(crate) home: Placement,
    pub(crate) base: u64,
    pub(crate) bytes: u64,
    pub(crate) owner: Option<SharedMemory>,
    pub(crate) origin: Origin,
    pub(crate) made_by: &'static str,
    /// A block of the pool that is kept free of others while this lives: recordings expect it there.
    pub(crate) stands_for: Option<u64>,
    /// The call in which it was made; see [`Core::check_live`].
    pub(crate) call: u64,
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
    pub(crate) lost_inputs: Option<String>,
    pub(crate) closed: bool,
    /// Whether recordings free memory at its last use; else when its handle goes.
    pub(crate) free_at_last_use: bool,
    /// What an update of a shared executable may take; `None` where new recordings share none.
    pub(crate) sharing: Option<std::time::Duration>,
    /// What graphs may take; see [`Runtime::limit_graph_memory`](crate::Runtime::limit_graph_memory).
    pub(crate) graph_memory_limit: Option<u64>,
    pub(crate) occurrences: share::Occurrences,
    pub(crate) pool: Pool,
    pub(crate) pool_zone: ArenaAllocator,
    pub(crate) results: ArenaAllocator,
    pub(crate) eager: ArenaAllocator,
    /// Blocks in the idle pool, while it is borrowed.
    pub(crate) scratch: Option<LiveSet>,
    pub(crate) scratch_high: u64,
    pub(crate) slots: Vec<Slot>,
    pub(crate) free_slots: Vec<u32>,
    /// The operation that was launched last.
    pub(crate) description: Box<Launch>,
    /// Lists that were decoded, for the next outputs.
    pub(crate) spare_entries: Vec<decide::Entries>,
    pub(crate) epoch: u64,
    pub(crate) run: Option<Run>,
    /// Forks that are open, the innermost last.
    pub(crate) forks: Vec<fork::Fork>,
    pub(crate) region: Option<regions::RegionRun>,
    pub(crate) regions: regions::Regions,
    /// Counts where calls begin and end, so that what lies between them has a number.
    pub(crate) calls: u64,
    pub(crate) call_warm_ups: waits::CallWarmUps,
    pub(crate) saver: Option<save::Saver>,
    pub(crate) deferred: Option<Error>,
    /// By graph object.
    pub(crate) shapes: rustc_hash::FxHashMap<u64, miss::Shapes>,
    /// By graph object: where a region gives host code a value, so that the whole call is no graph.
    pub(crate) host_values: rustc_hash::FxHashMap<u64, &'static Site>,
    pub(crate) owned_memory: owned::OwnedTable,
    /// What the last recording found alive in the pool, if that was much.
    pub(crate) last_alive: Treap<EntryBlock>,
    /// Ids of what was dropped and has something to evict.
    pub(crate) retired: Vec<u64>,
    pub(crate) kept: keep::KeptSet,
    /// While a plan of captures is tried out.
    pub(crate) dry: Option<estimate::Dry>,
    /// The last estimate, until it is compared.
    pub(crate) expected: Option<crate::memory::CaptureMemory>,
}

impl Core {
    pub(crate) fn new(mut backend: Box<dyn Backend>) -> Result<Self> {
        let pool_zone = ArenaAllocator::new(&mut *backend)?;
        let results = ArenaAllocator::new(&mut *backend)?;
        let eager = ArenaAllocator::new(&mut *backend)?;
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
    pub(crate) fn unless_lost(&mut self, any: bool, result: Result<()>) -> Result<()> {
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

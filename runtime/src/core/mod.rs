//! The state of a runtime. Everything that a handle, a driver or a capability does ends here.
//!
//! No user code runs while the core is borrowed: keys are written before, outputs decoded after.

use crate::{
    DType, Error, Result,
    backend::{Backend, HostBlock, Launch, SharedMemory},
    layout::{Layout, Marks},
    log::Log,
    plan::Site,
    pool::{Block, LiveSet, Pool, Treap, guarded, rounded},
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
mod tape;
#[cfg(test)]
mod tests;
mod tree_view;
mod upkeep;
mod usage;
mod waits;
mod zone;

use tape::Act;

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

    // ---- slots

    fn new_slot(&mut self, slot: Slot) -> u32 {
        match self.free_slots.pop() {
            Some(at) => {
                self.slots[at as usize] = slot;
                at
            }
            None => {
                self.slots.push(slot);
                (self.slots.len() - 1) as u32
            }
        }
    }

    /// Takes back a list of outputs that was decoded.
    pub(crate) fn recycle(&mut self, mut entries: decide::Entries) {
        /// More than are on their way at once, unless calls are nested.
        const SPARE: usize = 8;
        entries.clear();
        if self.spare_entries.len() < SPARE {
            self.spare_entries.push(entries);
        }
    }

    pub(crate) fn retain(&mut self, slot: u32, epoch: u64) {
        if epoch == self.epoch {
            self.slots[slot as usize].refs += 1;
        }
    }

    /// Gives back one count; a late one, from an earlier generation, is ignored.
    pub(crate) fn release(&mut self, slot: u32, epoch: u64) {
        if epoch != self.epoch {
            return;
        }
        let s = &mut self.slots[slot as usize];
        s.refs -= 1;
        if s.refs > 0 {
            return;
        }
        let (home, base, bytes, stands_for) = (s.home, s.base, s.bytes, s.stands_for.take());
        s.owner = None;
        self.free_slots.push(slot);
        self.free_block(home, base, bytes);
        if let Some(block) = stands_for {
            self.pool.free(block);
        }
    }

    fn free_block(&mut self, home: Home, base: u64, bytes: u64) {
        if matches!(home, Home::Owned | Home::Gone | Home::Released) {
            return;
        }
        let freed = match (self.put_off(home, base, bytes), home) {
            (Some(false), _) => return,
            // From here on the branch that made it may have it again.
            (Some(true), _) => true,
            (None, Home::Pool) => self.pool.free(base),
            (None, Home::Results) => self.results.live.remove(base).is_some(),
            (None, Home::Scratch) => self.scratch.as_mut().is_some_and(|live| live.remove(base).is_some()),
            (None, _) => self.eager.live.remove(base).is_some(),
        };
        debug_assert!(freed, "a block that was not live was freed");
        if let Some(run) = &mut self.run {
            run.forget(base);
        }
        if self.backend.wants_poison()
            && let Err(error) = self.put(Act::Poison { addr: base, bytes: self.own_bytes(bytes) })
        {
            match &mut self.run {
                // The capture is spoilt, which its end will say.
                Some(run) if run.kind == RunKind::Record => run.fail(&error),
                // Dropping cannot fail: the next call that can reports it.
                _ => drop(self.deferred.get_or_insert(error)),
            }
        }
    }

    /// The bytes from a block's address that belong to it alone.
    fn own_bytes(&self, bytes: u64) -> u64 {
        if self.pool_zone.page > 0 { guarded(bytes) } else { rounded(bytes) }
    }

    /// A tensor of owned memory, with one count.
    pub(crate) fn adopt(
        &mut self,
        id: u64,
        memory: &SharedMemory,
        dtype: DType,
        layout: Layout,
        marks: Marks,
    ) -> RawTensor {
        let slot = self.new_slot(Slot {
            refs: 1,
            home: Home::Owned,
            base: memory.addr(),
            bytes: memory.len(),
            owner: Some(memory.clone()),
            origin: Origin::Other,
            made_by: "owned memory",
            stands_for: None,
            call: self.calls,
        });
        RawTensor { slot, epoch: self.epoch, dtype, marks, addr: memory.addr(), owned: id, layout }
    }

    pub(crate) fn adopt_static(
        &mut self,
        id: u64,
        memory: &SharedMemory,
        dtype: DType,
        layout: Layout,
        marks: Marks,
    ) -> RawTensor {
        let raw = self.adopt(id, memory, dtype, layout, marks);
        self.slots[raw.slot as usize].made_by = crate::function::STATIC_INPUT;
        raw
    }

    /// A static input holds that tensor, with padding.
    pub(crate) fn stands_for(&mut self, input: &RawTensor, given: &RawTensor) {
        self.slots[input.slot as usize].origin = Origin::Padded { of: given.slot, from: given.addr };
    }

    fn place(&mut self, home: Home, bytes: u64) -> Result<Block> {
        if let Some(block) = self.placed_again(home, bytes) {
            return Ok(block);
        }
        let block = match home {
            Home::Pool => {
                let block = self.pool.place(bytes);
                if let Err(error) = self.pool_zone.commit(&mut *self.backend, block, bytes) {
                    self.pool.free(block.addr);
                    return Err(error);
                }
                block
            }
            Home::Results => self.results.place(&mut *self.backend, bytes)?,
            Home::Scratch => self.place_scratch(bytes)?,
            _ => self.eager.place(&mut *self.backend, bytes)?,
        };
        self.placed_in_branch(block);
        Ok(block)
    }

    fn new_tensor(
        &mut self,
        home: Home,
        origin: Origin,
        op: &'static str,
        dtype: DType,
        layout: Layout,
        marks: Marks,
    ) -> Result<RawTensor> {
        let bytes = (layout.count() * dtype.size()) as u64;
        let block = self.place(home, bytes)?;
        Ok(self.tensor_in((home, block), origin, op, dtype, layout, marks))
    }

    /// A tensor in a block that is its own.
    fn tensor_in(
        &mut self,
        (home, block): (Home, Block),
        origin: Origin,
        op: &'static str,
        dtype: DType,
        layout: Layout,
        marks: Marks,
    ) -> RawTensor {
        let slot = self.new_slot(Slot {
            refs: 1,
            home,
            base: block.addr,
            bytes: (layout.count() * dtype.size()) as u64,
            owner: None,
            origin,
            made_by: op,
            stands_for: None,
            call: self.calls,
        });
        RawTensor { slot, epoch: self.epoch, dtype, marks, addr: block.addr, owned: 0, layout }
    }

    /// A tensor in the eager arena, whatever runs.
    pub(crate) fn eager_tensor(
        &mut self,
        op: &'static str,
        dtype: DType,
        layout: Layout,
    ) -> Result<RawTensor> {
        let home = self.eager_home((layout.count() * dtype.size()) as u64);
        self.new_tensor(home, Origin::Other, op, dtype, layout, Marks::NONE)
    }

    /// The output of an operation: where it goes depends on what runs.
    pub(crate) fn allocate_output(
        &mut self,
        op: &'static str,
        dtype: DType,
        layout: Layout,
        marks: Marks,
    ) -> Result<RawTensor> {
        self.may_operate(op)?;
        if let Some(run) = &mut self.run
            && run.kind != RunKind::Audit
        {
            let (group, ordinal) = (run.group, run.next_ordinal());
            let home = if self.tree.is_result(group, ordinal) { Home::Results } else { Home::Pool };
            let origin = match group {
                run::NO_GROUP => Origin::Other,
                _ => Origin::Segment { group, ordinal },
            };
            let raw = self.new_tensor(home, origin, op, dtype, layout, marks)?;
            if let Some(run) = &mut self.run {
                let slot = &self.slots[raw.slot as usize];
                run.made(ordinal, raw.slot, slot.base, rounded(slot.bytes), home);
            }
            return Ok(raw);
        }
        let bytes = (layout.count() * dtype.size()) as u64;
        let home = self.eager_home(bytes);
        match self.in_region(bytes) {
            None => self.new_tensor(home, Origin::Other, op, dtype, layout, marks),
            Some((origin, Some((home, Some(block))))) => {
                Ok(self.tensor_in((home, block), origin, op, dtype, layout, marks))
            }
            Some((origin, place)) => {
                self.new_tensor(place.map_or(home, |(home, _)| home), origin, op, dtype, layout, marks)
            }
        }
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
    /// Refuses a tensor whose memory may be another's by now. Its padding is that of its call, too: the
    /// symbols that it names mean something else in the next one.
    pub(crate) fn check_live(&self, op: &'static str, raw: &RawTensor) -> Result<()> {
        if raw.epoch == self.epoch && self.slot_is_live(raw.slot, raw.marks.any()) {
            self.looked_at(raw.slot);
            return Ok(());
        }
        let slot = self.slots.get(raw.slot as usize).filter(|_| raw.epoch == self.epoch);
        match slot {
            Some(&Slot { home: Home::Released, made_by, .. }) => {
                if let Some(run) = &self.run {
                    run.late_use.set(true);
                }
                Err(Error::UsedAfterLastUse { op, made_by })
            }
            _ => Err(Error::NeverComputed { op }),
        }
    }

    fn slot_is_live(&self, slot: u32, padded: bool) -> bool {
        let slot = &self.slots[slot as usize];
        !matches!(slot.home, Home::Gone | Home::Released) && (!padded || slot.call == self.calls)
    }
}

//! The runtime: one device, one stream, its memory and its recordings.

mod begin_step;
mod caches;
pub(crate) mod core;
pub(crate) mod device;
mod device_timeline;
mod graph_memory;
mod hooks;
mod leaks;
mod memory;
mod numerics;
mod passes;
pub(crate) mod refused_sizes;
pub(crate) mod scopes;
pub(crate) mod sleep;
#[cfg_attr(
    not(any(feature = "cuda", test)),
    expect(dead_code, reason = "only views for CUDA libraries are opened")
)]
mod views;

use std::{
    any::Any,
    borrow::Cow,
    cell::{Cell, RefCell},
    fmt, iter,
    ops::Range,
    sync::Arc,
    time::Duration,
};

use crate::{
    CopiedSlot, DType, Device, Event, RecordingId, Result, Stats,
    backend::{Backend, HostLog, HostMemory, Op, View, cpu::MappedFile},
    memory::{NewTensor, OwnedView, Queues},
    observe::{
        hooks::Hooks,
        inspect::{GraphTree, Topology},
    },
    value::{
        entry::Entry,
        key::KeyWriter,
        layout::{Layout, PaddedDims},
        memory::SharedMemory,
        owned::{Caller, Owned, OwnerId, next_id},
        persistent::{DroppedMemory, Piece},
        raw::{RawTensor, SlotId},
        retire::RetireQueue,
    },
};

use self::core::{Core, report, tree_view};
use device_timeline::DeviceTimeline;
use refused_sizes::RefusedSizes;
use scopes::{Batches, Switches};
use views::OpenViews;

/// Owns a device's stream, the memory pool and the graph tree.
///
/// `Send`, but not `Sync`: it can move to another thread, with everything that was recorded. Several runtimes
/// can exist at the same time; operations reject the tensors of other runtimes.
pub struct Runtime {
    id: u64,
    pub(crate) core: RefCell<Core>,
    pub(crate) retire: Arc<RetireQueue<OwnerId>>,
    pub(crate) dropped: Arc<DroppedMemory>,
    /// A key writer is taken from here while user code writes a key, and returned afterwards.
    #[allow(clippy::vec_box, reason = "one passes through many hands on each call")]
    writers: RefCell<Vec<Box<KeyWriter>>>,
    /// Set if segments currently go through the tree.
    pub(crate) graphs: Cell<bool>,
    /// Scopes that switch graphs on or off.
    pub(crate) switches: RefCell<Switches>,
    /// Scopes that describe the batch.
    pub(crate) batches: RefCell<Batches>,
    pub(crate) hooks: Hooks,
    pub(crate) device_timeline: DeviceTimeline,
    /// Comparisons of padded sizes, to be reported by the segment or call that they end.
    pub(crate) refused_sizes: RefusedSizes,
    /// The views of state that eager code holds.
    pub(crate) views: OpenViews,
}

impl Runtime {
    /// Creates a runtime on `device`.
    ///
    /// # Errors
    /// Returns [`Error::NoDevice`](crate::Error::NoDevice) or
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory).
    pub fn new(device: Device) -> Result<Self> {
        Self::with_backend(device.open()?)
    }

    /// Creates a runtime on a custom backend, such as the [`faulty`](crate::backend::faulty) one.
    ///
    /// # Errors
    /// Returns the backend's error if it cannot reserve memory, and [`Error::Config`](crate::Error::Config)
    /// for an environment variable with an invalid value.
    pub fn with_backend(backend: Box<dyn Backend>) -> Result<Self> {
        let id = next_id();
        let mut core = Core::new(backend)?;
        core.settings.limit_graph_memory(graph_memory::of_environment()?);
        Ok(Self {
            id,
            core: RefCell::new(core),
            retire: Arc::default(),
            dropped: Arc::default(),
            writers: RefCell::default(),
            graphs: Cell::new(false),
            switches: RefCell::default(),
            batches: RefCell::default(),
            hooks: Hooks::default(),
            device_timeline: DeviceTimeline::default(),
            refused_sizes: RefusedSizes::default(),
            views: OpenViews::default(),
        })
    }

    /// Returns the name of the device, such as `cpu`.
    pub fn device(&self) -> String {
        self.core.borrow().stream.backend().name()
    }

    /// Returns counts of what has happened so far. Bytes are in [`memory`](Self::memory).
    pub fn stats(&self) -> Stats {
        let core = self.core.borrow();
        report::stats(&core.log, &core.tree, &core.stream)
    }

    /// Returns the live-ins of the existing recordings that are copied because their address kept changing.
    pub fn copied_slots(&self) -> Vec<CopiedSlot> {
        self.core.borrow().tree.copied_slots()
    }

    /// Enables or disables the list of [`Event`]s. Off by default; counters are always on.
    pub fn keep_events(&self, on: bool) {
        self.core.borrow_mut().log.keep(on);
    }

    /// Returns the events since the last call, oldest first; the list holds at most 65536.
    pub fn take_events(&self) -> Vec<Event> {
        self.core.borrow_mut().log.take()
    }

    /// Closes capture: from now on, a call that would have to record something returns an error, so nothing is captured while
    /// serving. A device input at a different address than when it was captured, or an output that is still
    /// held when the next one is produced, costs a counted copy.
    pub fn close_capture(&self) {
        self.core.borrow_mut().settings.close_capture(true);
    }

    /// Undoes [`close_capture`](Self::close_capture).
    pub fn open_capture(&self) {
        self.core.borrow_mut().settings.close_capture(false);
    }

    /// Returns the current recordings: their followers, the values alive at each, how often each was
    /// replayed, and the memory it uses.
    pub fn tree(&self) -> GraphTree {
        let core = self.core.borrow();
        tree_view(&core.tree, &core.memory, core.stream.backend().name())
    }

    /// Returns a recording as the device sees it: kernels, copies, fills, and their dependencies. `id` is its
    /// id in [`tree`](Self::tree). Returns `None` if there is no such recording, or if it was evicted.
    ///
    /// On the CPU, these are the recorded commands. On a GPU, they are read from the driver's graph during
    /// capture, so [`keep_topology`](Self::keep_topology) must have been enabled by then.
    ///
    /// # Errors
    /// Returns [`Error::Config`](crate::Error::Config) if it was not.
    pub fn topology(&self, id: impl Into<RecordingId>) -> Option<Result<Topology>> {
        self.core.borrow().tree.topology(id.into())
    }

    /// Sets whether recordings made from now on keep the data that [`topology`](Self::topology) returns, on
    /// devices where this has a cost. Off by default.
    pub fn keep_topology(&self, on: bool) {
        self.core.borrow_mut().stream.backend_mut().keep_topology(on);
    }

    /// Sets whether recordings made from now on free pool memory after its last use (the default), even while a
    /// variable still holds it; otherwise when its last handle is dropped. Values are the same in both cases.
    pub fn free_at_last_use(&self, on: bool) {
        self.core.borrow_mut().settings.free_at_last_use(on);
    }

    /// Sets whether recordings made from now on may share executables, and how long an update may take.
    /// Default: `None`, recordings do not share. Values are the same in both cases.
    ///
    /// An executable uses device memory and takes milliseconds to create. With sharing, recordings of one
    /// place in a graph object's calls, made for different bucket sizes, keys or addresses, share one
    /// executable if they have the same nodes (as many kernels, copies and fills, in the same order; not necessarily the same
    /// kernels) and edges; it is updated in place when a different one of them is to run. A call reaches a place once, so the
    /// layers of a loop do not share with each other. If two recordings that share do run in one step, their results are
    /// correct, but slower to compute, and they stop sharing. Sharing keeps graphs in host memory.
    ///
    /// On a GPU, the first segment of a call uploads host values with a kernel, in size classes from 256
    /// bytes to 32 KB, or has no such kernel if an input had to be padded in the call that recorded it.
    /// Recordings that differ in this do not share.
    ///
    /// An update takes host time, roughly in proportion to the number of kernels, in every replay that
    /// follows a replay of another sharer. It is measured: a recording whose updates take longer than
    /// `budget` has, or is given, its own executable. `Duration::MAX` means no limit; the average is
    /// [`Stats::update_time`] divided by [`Stats::updates`]. The events are [`Shared`](Event::Shared),
    /// [`Updated`](Event::Updated) and [`Unshared`](Event::Unshared), each with its counter.
    ///
    /// ```
    /// # fn main() -> graphable::Result<()> {
    /// use std::time::Duration;
    /// let rt = graphable::Runtime::new(graphable::Device::cpu())?;
    /// rt.share_executables(Some(Duration::from_micros(200)));
    /// # Ok(())
    /// # }
    /// ```
    pub fn share_executables(&self, budget: Option<Duration>) {
        self.core.borrow_mut().settings.share_executables(budget);
    }

    /// Compares the live memory of every arena with the tensors in it, block by block; they must be equal.
    /// This is for tests; its cost grows with the number of tensors.
    ///
    /// # Errors
    /// Returns [`Error::MemoryAccounting`](crate::Error::MemoryAccounting) with the operation and site of a
    /// surplus or missing block.
    pub fn check_memory(&self) -> Result<()> {
        let core = self.core.borrow();
        core.memory.check(&|group| core.tree.site(group).map(ToString::to_string))
    }

    /// Waits until the device has finished all work.
    ///
    /// # Errors
    /// Returns the first failure on the stream since the last wait.
    pub fn synchronize(&self) -> Result<()> {
        self.core.borrow_mut().stream.backend_mut().synchronize()
    }

    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    pub(crate) fn take_writer(&self) -> Box<KeyWriter> {
        let cached = self.writers.borrow_mut().pop();
        cached.unwrap_or_else(|| Box::new(KeyWriter::of_runtime(self.id)))
    }

    pub(crate) fn put_writer(&self, mut writer: Box<KeyWriter>) {
        writer.clear();
        writer.collect = false;
        self.writers.borrow_mut().push(writer);
    }

    pub(crate) fn retain(&self, slot: SlotId, epoch: u64) {
        self.core.borrow_mut().memory.retain(slot, epoch);
    }

    pub(crate) fn release(&self, slot: SlotId, epoch: u64) {
        self.core.borrow_mut().launcher().release(slot, epoch);
    }

    pub(crate) fn adopt(&self, owned: &Arc<Owned>, dtype: DType, layout: Layout) -> RawTensor {
        self.core.borrow_mut().memory.adopt(OwnedView {
            owner: Some(owned.id),
            memory: &owned.memory,
            dtype,
            layout,
            marks: PaddedDims::NONE,
        })
    }

    /// Like [`adopt`](Self::adopt), for a static input, which the next call overwrites.
    pub(crate) fn adopt_static(
        &self,
        owned: &Arc<Owned>,
        dtype: DType,
        layout: Layout,
        marks: PaddedDims,
    ) -> RawTensor {
        self.core.borrow_mut().memory.adopt_static(OwnedView {
            owner: Some(owned.id),
            memory: &owned.memory,
            dtype,
            layout,
            marks,
        })
    }

    pub(crate) fn allocate_output(
        &self,
        op: &'static str,
        dtype: DType,
        layout: Layout,
        marks: PaddedDims,
    ) -> Result<RawTensor> {
        let mut new = NewTensor { marks, ..NewTensor::of(op, dtype, layout) };
        self.core.borrow_mut().allocate_output(&mut new)
    }

    pub(crate) fn launch(&self, op: Op, inputs: &[View], outputs: &[View]) -> Result<()> {
        if op.operation().writes_in_place() {
            // After a comparison without an answer the body continues, and its writes would persist.
            self.refused_sizes.check()?;
        }
        self.views.check_launch(op.name(), inputs, outputs)?;
        self.core.borrow_mut().launch(op, inputs, outputs)
    }

    pub(crate) fn check_live(&self, op: &'static str, raw: &RawTensor) -> Result<()> {
        self.core.borrow().check_live(op, raw)
    }

    pub(crate) fn symbol_name(&self, symbol: u8) -> String {
        self.core.borrow().call.symbol_name(symbol)
    }

    pub(crate) fn symbol_count(&self, symbol: u8) -> Option<View> {
        self.core.borrow().call.symbol_count(symbol)
    }

    /// Allocates memory that outlives the step for the tensors among `entries`.
    pub(crate) fn keep(&self, entries: &[Entry]) -> Result<Vec<Piece>> {
        let queues = Queues { runtime: self.id, retire: &self.retire, dropped: &self.dropped };
        let mut core = self.core.borrow_mut();
        let (mut launcher, call) = core.in_call();
        launcher.persist(call, entries, &queues)
    }

    /// Allocates owned memory, zeroed or filled with `init`.
    pub(crate) fn allocate_owned(&self, bytes: u64, init: Option<Cow<'_, [u8]>>) -> Result<Arc<Owned>> {
        let init = init.map(iter::once);
        self.allocate(bytes, init, |memory, retire| Owned::new(self.id, memory, None, retire))
    }

    /// Allocates memory that no operation writes, zeroed or filled with `init`.
    pub(crate) fn allocate_constant(&self, bytes: u64, init: Option<Cow<'_, [u8]>>) -> Result<Arc<Owned>> {
        self.allocate_constant_of(bytes, init.map(iter::once))
    }

    /// Allocates memory that no operation writes, zeroed or filled with pieces that follow each other and are as long as it: each is made
    /// when the one before it has been written.
    pub(crate) fn allocate_constant_of<'a>(
        &self,
        bytes: u64,
        init: Option<impl Iterator<Item = Cow<'a, [u8]>>>,
    ) -> Result<Arc<Owned>> {
        let placed = |core: &mut Core| core.memory.place_weight(core.stream.backend_mut(), bytes);
        self.allocate_in(bytes, init, placed, |memory, retire| Owned::constant(self.id, memory, retire))
    }

    /// Returns whether the device can run an operation.
    pub(crate) fn supports(&self, op: &Op) -> Result<bool> {
        self.core.borrow_mut().stream.backend_mut().supports(op)
    }

    /// Returns whether operations find weights in blocks in tiles (`quantized/tiles.rs`).
    pub(crate) fn blocks_in_tiles(&self) -> bool {
        self.core.borrow().stream.backend().blocks_in_tiles()
    }

    /// Returns bytes of a mapped file as memory that no operation writes: where they are, if the device can use them there, and
    /// otherwise copied. Bytes that are in use already are the same memory.
    pub(crate) fn map_constant(&self, file: &Arc<MappedFile>, range: Range<usize>) -> Result<Arc<Owned>> {
        let bytes = &file.bytes()[range.clone()];
        let mapped = if bytes.is_empty() { None } else { self.map(file, range)? };
        match mapped {
            Some(owned) => Ok(owned),
            None => self.allocate_constant(bytes.len() as u64, Some(bytes.into())),
        }
    }

    /// As [`map_constant`](Self::map_constant); `None` if they must be copied: the device cannot use them where they are, or other
    /// memory begins at the first of them, too.
    fn map(&self, file: &Arc<MappedFile>, range: Range<usize>) -> Result<Option<Arc<Owned>>> {
        let mut core = self.core.borrow_mut();
        core.call.may_look("an allocation of parameters or state")?;
        // What was dropped is not there any more.
        core.note_dropped(&self.retire.take());
        let len = range.len() as u64;
        // The device says where the bytes are: an address of the host may be that of other memory on the device.
        let Some(memory) = core.stream.backend_mut().map_file(file, range)? else { return Ok(None) };
        if let Some(known) = core.memory.owned().beginning(memory.addr()) {
            return Ok(Some(known).filter(|known| known.memory.len() == len));
        }
        let owned = Owned::mapped(self.id, memory, Arc::clone(&self.retire));
        core.own(&owned, &self.retire.take());
        Ok(Some(owned))
    }

    /// Allocates zeroed memory for a graph object, with its id and name.
    pub(crate) fn allocate_static(&self, bytes: u64, graph: Caller) -> Result<Arc<Owned>> {
        let zeroed = None::<iter::Empty<_>>;
        self.allocate(bytes, zeroed, |memory, retire| Owned::new(self.id, memory, Some(graph), retire))
    }

    /// Gives an identity to a value that recordings are to keep, and to be evicted with.
    pub(crate) fn identify(&self, value: Box<dyn Any + Send + Sync>) -> Arc<Owned> {
        let memory = self.core.borrow_mut().stream.backend_mut().keep(value);
        Owned::new(self.id, memory, None, Arc::clone(&self.retire))
    }

    /// Allocates host memory that the device copies from and to.
    pub(crate) fn host_memory(&self, bytes: usize) -> Result<Box<dyn HostMemory>> {
        let mut core = self.core.borrow_mut();
        core.call.may_look("an allocation of pinned memory")?;
        core.stream.backend_mut().host_memory(bytes)
    }

    /// Allocates a log in host memory.
    pub(crate) fn host_log(&self, words: usize) -> Result<Arc<dyn HostLog>> {
        let mut core = self.core.borrow_mut();
        core.call.may_look("an allocation of pinned memory")?;
        core.stream.backend_mut().host_log(words)
    }

    fn allocate<'a>(
        &self,
        bytes: u64,
        init: Option<impl Iterator<Item = Cow<'a, [u8]>>>,
        owned: impl FnOnce(SharedMemory, Arc<RetireQueue<OwnerId>>) -> Arc<Owned>,
    ) -> Result<Arc<Owned>> {
        self.allocate_in(bytes, init, |_| Ok(None), owned)
    }

    /// Allocates memory that `place` returns, or else of its own.
    fn allocate_in<'a>(
        &self,
        bytes: u64,
        init: Option<impl Iterator<Item = Cow<'a, [u8]>>>,
        place: impl FnOnce(&mut Core) -> Result<Option<SharedMemory>>,
        owned: impl FnOnce(SharedMemory, Arc<RetireQueue<OwnerId>>) -> Arc<Owned>,
    ) -> Result<Arc<Owned>> {
        let mut core = self.core.borrow_mut();
        core.call.may_look("an allocation of parameters or state")?;
        let memory = match place(&mut core)? {
            Some(placed) => {
                if init.is_none() {
                    core.stream.fill_with_zeros(placed.addr(), placed.len())?;
                }
                placed
            }
            None => core.stream.backend_mut().alloc(bytes.max(1))?,
        };
        let mut at = memory.addr();
        for piece in init.into_iter().flatten() {
            let len = piece.len() as u64;
            core.stream.write_bytes(at, piece)?;
            at += len;
        }
        let owned = owned(memory, Arc::clone(&self.retire));
        // Taken after the allocation: earlier owners of these addresses are in the queue by then.
        core.own(&owned, &self.retire.take());
        Ok(owned)
    }
}

impl fmt::Debug for Runtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runtime")
            .field("device", &self.device())
            .field("numerics", &format_args!("{}", self.numerics()))
            .finish_non_exhaustive()
    }
}

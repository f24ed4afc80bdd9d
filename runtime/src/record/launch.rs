//! Launching operations, and the run-time checks on a recording: its trace and its addresses.

use std::hash::{Hash, Hasher};

use rustc_hash::FxHasher;

use super::{
    fork::Freed,
    recorder::Recorder,
    run::{Run, RunState},
    stream::Stream,
};
use crate::{
    DType, Error, Result,
    backend::{HostMemory, Launch, Op, PendingBytes, View},
    base::plan::Site,
    memory::{
        BlockArena, COPY, LastRelease, Memory, NewTensor, SlotId,
        pool::{Block, rounded},
    },
    observe::log::Log,
    program::Command,
    tree::{TraceOp, Tree},
    value::{entry::Entry, layout::Layout, raw::RawTensor},
};

/// Returns a description of an operation without its addresses.
fn trace_op(op: &Op, inputs: &[View], outputs: &[View]) -> TraceOp {
    let mut h = FxHasher::default();
    op.hash(&mut h);
    for view in inputs.iter().chain(outputs) {
        view.dtype.hash(&mut h);
        view.layout.shape().hash(&mut h);
        // As in keys: recordings of one key may differ in strides that mean nothing.
        view.layout.meaning().for_each(|n| h.write_usize(n));
    }
    TraceOp { name: op.name(), fingerprint: h.finish(), mark: None }
}

/// The components that an operation needs on its way to the device, or into a capture.
#[derive(Debug)]
pub(crate) struct Launcher<'c> {
    pub(crate) memory: &'c mut Memory,
    pub(crate) stream: &'c mut Stream,
    pub(crate) recorder: &'c mut Recorder,
    pub(crate) log: &'c mut Log,
}

impl Launcher<'_> {
    /// Sends host bytes that wait for the next replay. In a capture they wait for its first replay.
    ///
    /// # Errors
    /// Returns the errors of [`Stream::flush`].
    pub(crate) fn flush(&mut self) -> Result<()> {
        self.stream.flush(self.recorder.is_recording())
    }

    /// Launches an operation of the runtime itself: not traced, and not checked but for weights that sleep.
    ///
    /// # Errors
    /// Returns [`Error::Asleep`] and [`Error::Discarded`], and errors of the device.
    pub(crate) fn launch(&mut self, op: Op, inputs: &[View], outputs: &[View]) -> Result<()> {
        if self.memory.has_unusable_weights() {
            let check = |view: &View| self.memory.check_weight(op.name(), view.addr);
            inputs.iter().chain(outputs).try_for_each(check)?;
        }
        self.flush()?;
        // The launches of a recording are repeated exactly: nothing is chosen again meanwhile.
        let measure = !self.recorder.is_recording();
        let bytes = self.stream.backend_mut().workspace(&op, inputs, outputs, measure)?;
        if bytes == 0 {
            return self.launch_at(op, inputs, outputs, Block { addr: 0, len: 0 });
        }
        // In a body it comes from the pool, as ordinary memory of the operation: branches that run side
        // by side share none, and the next operation may have it.
        let pooled = self.recorder.is_pooled();
        let arena = if pooled { BlockArena::Pool } else { self.memory.eager_arena(bytes) };
        // Whole units: a workspace is aligned to one, also where blocks end at guards.
        let bytes = rounded(bytes);
        let block = self.place(arena, bytes)?;
        if let (Some(run), true) = (self.recorder.run_mut(), pooled) {
            run.uses.workspace(block.len);
        }
        let launched = self.launch_at(op, inputs, outputs, block);
        self.free_block(arena, block.addr, bytes);
        launched
    }

    /// Passes an operation to the backend, or to the current recording.
    fn launch_at(&mut self, op: Op, inputs: &[View], outputs: &[View], workspace: Block) -> Result<()> {
        if self.recorder.is_recording() || self.recorder.is_describing() {
            let launch = self.stream.description(op, inputs, outputs, workspace.addr);
            if launch.op.operation().may_fuse(&launch) {
                // What lies around it may become one kernel with it.
                self.memory.cool_freed();
                self.note_constants(&launch);
            }
            return self.issue(Command::Launch { launch, workspace: workspace.len });
        }
        self.stream.launch(op, inputs, outputs, workspace.addr)
    }

    /// Tells the program which inputs are memory that no operation writes.
    fn note_constants(&mut self, launch: &Launch) {
        let Some(recording) = self.recorder.run_mut().and_then(Run::recording_mut) else { return };
        for view in &launch.inputs {
            let owned = self.memory.owned().holding(view.addr).filter(|owned| owned.is_constant);
            let memory = owned.map(|owned| owned.memory.addr()..owned.memory.addr() + owned.memory.len());
            if let Some(memory) = memory.filter(|memory| view.range().1 <= memory.end) {
                recording.log.note_constant(memory);
            }
        }
    }

    /// Places a block, in a branch as the fork allows.
    ///
    /// # Errors
    /// Returns [`Error::OutOfMemory`].
    pub(crate) fn place(&mut self, arena: BlockArena, bytes: u64) -> Result<Block> {
        if let Some(block) = self.recorder.nesting_mut().reuse(arena, bytes) {
            return Ok(block);
        }
        let block = self.memory.place(self.stream.backend_mut(), arena, bytes)?;
        self.recorder.nesting_mut().note_placed(block.addr);
        Ok(block)
    }

    /// Creates a tensor, in a block of its own.
    ///
    /// # Errors
    /// See [`place`](Self::place).
    pub(crate) fn new_tensor(&mut self, arena: BlockArena, new: &NewTensor) -> Result<RawTensor> {
        let block = self.place(arena, new.bytes())?;
        Ok(self.memory.tensor_in(arena, block, new))
    }

    /// Makes a tensor in the eager arena, whatever runs.
    ///
    /// # Errors
    /// See [`place`](Self::place).
    pub(crate) fn eager_tensor(
        &mut self,
        op: &'static str,
        dtype: DType,
        layout: Layout,
    ) -> Result<RawTensor> {
        let new = NewTensor::of(op, dtype, layout);
        let arena = self.memory.eager_arena(new.bytes());
        self.new_tensor(arena, &new)
    }

    /// Frees a block, or defers that to the join of the open fork, or to the end of the conditional node.
    pub(crate) fn free_block(&mut self, arena: BlockArena, base: u64, bytes: u64) {
        let freed = match self.recorder.nesting_mut().defer_free(Freed { arena, base, bytes }) {
            Some(false) => return,
            // From here on the branch that made it may have it again.
            Some(true) => true,
            None => self.memory.free(arena, base),
        };
        debug_assert!(freed, "a block that was not live was freed");
        if let Some(run) = self.recorder.run_mut() {
            run.forget(base);
        }
        let bytes = self.memory.own_bytes(bytes);
        if let Some(recording) = self.recorder.run_mut().and_then(Run::recording_mut) {
            recording.log.push(Command::Free { addr: base, bytes });
        }
        if !self.stream.backend().wants_poison() {
            return;
        }
        if let Err(error) = self.issue(Command::Poison { addr: base, bytes }) {
            // Dropping cannot fail: the next call that can reports it.
            self.stream.defer(error);
        }
    }

    /// Releases one reference to a slot; a late one, from an earlier generation, is ignored.
    pub(crate) fn release(&mut self, id: SlotId, epoch: u64) {
        let Some(LastRelease { placement, base, bytes, stands_for }) = self.memory.release(id, epoch) else {
            return;
        };
        if let Some(arena) = placement.block_arena() {
            self.free_block(arena, base, bytes);
        }
        if let Some(block) = stands_for {
            self.memory.free(BlockArena::Pool, block);
        }
    }

    /// Releases one reference to each tensor.
    pub(crate) fn release_all(&mut self, entries: &[Entry]) {
        for entry in entries {
            if let Entry::Tensor(raw) = entry {
                self.release(raw.slot, raw.epoch);
            }
        }
    }

    /// Reads a tensor's elements, row-major, as bytes.
    ///
    /// The caller has checked that it may look, and that the tensor is live.
    ///
    /// # Errors
    /// Returns errors of the device.
    pub(crate) fn read(&mut self, raw: RawTensor) -> Result<Box<dyn PendingBytes>> {
        let bytes = self.packed("read", raw, |stream, addr, bytes| stream.read(addr, bytes))?;
        Ok(if self.recorder.has_snapshot() { Box::new(OfZeros(bytes)) } else { bytes })
    }

    /// Reads a tensor's elements, as [`read`](Self::read) does, to host memory.
    ///
    /// # Errors
    /// Returns errors of the device.
    pub(crate) fn read_into(&mut self, raw: RawTensor, to: &mut dyn HostMemory) -> Result<()> {
        self.packed("read_into", raw, |stream, addr, bytes| stream.read_into(addr, bytes, to))
    }

    /// Does something with the address of a tensor's elements, row-major, and the number of their bytes.
    pub(super) fn packed<R>(
        &mut self,
        call: &'static str,
        raw: RawTensor,
        read: impl FnOnce(&mut Stream, u64, u64) -> Result<R>,
    ) -> Result<R> {
        self.flush()?;
        let layout = raw.layout;
        let bytes = (layout.count() * raw.dtype.size()) as u64;
        if layout.is_contiguous() {
            return read(self.stream, raw.addr, bytes);
        }
        let packed = self.eager_tensor(call, raw.dtype, Layout::contiguous(layout.shape())?)?;
        let done = self
            .launch(COPY, &[raw.view()], &[packed.view()])
            .and_then(|()| read(self.stream, packed.addr, bytes));
        self.release(packed.slot, packed.epoch);
        done
    }
}

impl Recorder {
    /// Compares an operation of the running body with the warm-up's, and its addresses with the memory to
    /// which the recording may refer.
    ///
    /// # Errors
    /// Returns [`Error::TraceMismatch`], [`Error::AuditMismatch`], [`Error::UnkeyedAddress`].
    pub(crate) fn check_operation(
        &mut self,
        tree: &mut Tree,
        op: &Op,
        inputs: &[View],
        outputs: &[View],
    ) -> Result<()> {
        let Some((run, index)) = self.check_traced(tree, || trace_op(op, inputs, outputs))? else {
            return Ok(());
        };
        let views = || inputs.iter().chain(outputs);
        if run.is_warm_up() {
            run.uses.touch(index, views());
            return Ok(());
        }
        if run.is_audit() {
            return Ok(());
        }
        if let Some(view) = views().find(|view| !run.knows(view.range())) {
            return Err(unkeyed(run, op.name(), view.addr));
        }
        if let Some(recording) = run.recording_mut() {
            recording.writes.extend(outputs.iter().map(|view| view.addr));
        }
        Ok(())
    }

    /// Adds an operation, or a mark of control flow, to the trace of the running body, and compares it with the
    /// warm-up's. Returns the run and the index in its trace, if it has one.
    ///
    /// # Errors
    /// Returns [`Error::TraceMismatch`], [`Error::AuditMismatch`].
    pub(super) fn check_traced(
        &mut self,
        tree: &mut Tree,
        traced: impl FnOnce() -> TraceOp,
    ) -> Result<Option<(&mut Run, usize)>> {
        let Some((run, group)) = self.run_mut().and_then(|run| run.group.map(|group| (run, group))) else {
            return Ok(None);
        };
        if matches!(run.state, RunState::Eager) {
            return Ok(None);
        }
        let traced = traced();
        let index = run.trace.len();
        run.trace.push(traced);
        if run.is_warm_up() {
            return Ok(Some((run, index)));
        }
        let expected = tree.group_of(group).trace.get(index).copied();
        if run.is_audit() {
            same_operation(run.site, index, expected, Some(traced))?;
        } else if expected != Some(traced) {
            // The change may have been the last one: the next step warms up again, and compares with that.
            tree.group_mut(group).warmed = false;
            return Err(Error::TraceMismatch {
                segment: run.site.to_string(),
                index,
                warm: describe(expected, Some(traced)),
                recorded: describe(Some(traced), expected),
            });
        }
        Ok(Some((run, index)))
    }
}

/// An address that no live-in has.
pub(super) fn unkeyed<S>(run: &Run<S>, op: &'static str, addr: u64) -> Error {
    Error::UnkeyedAddress { segment: run.site.to_string(), op, addr }
}

/// An operation of an audited body against the recording's.
pub(crate) fn same_operation(
    site: &'static Site,
    index: usize,
    recorded: Option<TraceOp>,
    body: Option<TraceOp>,
) -> Result<()> {
    if recorded == body {
        return Ok(());
    }
    Err(Error::AuditMismatch {
        segment: site.to_string(),
        what: format!("operation {index}"),
        detail: format!(
            "the recording has {}, the body {}",
            describe(recorded, body),
            describe(body, recorded)
        ),
    })
}

/// Names an operation, if there is one; two of one name differ in shapes or arguments.
fn describe(op: Option<TraceOp>, other: Option<TraceOp>) -> String {
    match (op, other) {
        (None, _) => "nothing".into(),
        (Some(op), Some(other)) if op.name == other.name => {
            format!("`{}` (other shapes or arguments)", op.name)
        }
        (Some(op), _) => format!("`{}`", op.name),
    }
}

/// A read in a call of `capture_all`: with its zeros, kernels may report what they do not with real inputs.
struct OfZeros(Box<dyn PendingBytes>);

impl PendingBytes for OfZeros {
    fn wait(self: Box<Self>) -> Result<Vec<u8>> {
        self.0.wait_without_faults()
    }

    fn wait_without_faults(self: Box<Self>) -> Result<Vec<u8>> {
        self.0.wait_without_faults()
    }

    fn is_ready(&self) -> bool {
        self.0.is_ready()
    }
}

//! Running a body: how a run begins, is aborted, and ends.

use std::{cell::Cell, collections::BTreeSet, time::Instant};

use super::{
    aliasing::Overlaps,
    audit::Audit,
    call::CallState,
    command_log::CommandLog,
    copied_inputs::bind_inputs,
    finish::RecordingInProgress,
    replay::Replayer,
    run::{Auditing, EndedRecording, EndedRun, RecordingRun, Run, RunKind, RunState, Start},
};
use crate::{
    Result,
    backend::SharedMemory,
    base::{plan::Site, reason::FallbackReason},
    memory::pool::StateId,
    observe::occurrence::Occurrence,
    tree::{GroupId, Identity, RecordingIndex, Release, TraceOp},
    value::{
        entry::{Encoder, Entry},
        key::KeyWriter,
        owned::OwnerId,
    },
};

/// A body that is to run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewRun {
    pub(crate) kind: RunKind,
    pub(crate) site: &'static Site,
    pub(crate) identity: Identity,
}

/// The components that running a body touches.
#[derive(Debug)]
pub(crate) struct BodyRunner<'c> {
    pub(crate) replayer: Replayer<'c>,
    pub(crate) call: &'c mut CallState,
}

/// Memory that a run may use.
struct Reach {
    known: Vec<(u64, u64)>,
    owned: Vec<(OwnerId, SharedMemory)>,
}

impl BodyRunner<'_> {
    /// Starts to run a body. `key` was written with `collect`.
    ///
    /// # Errors
    /// Returns errors of the device; no run is then active.
    pub(crate) fn begin(&mut self, body: NewRun, key: &KeyWriter) -> Result<()> {
        let NewRun { kind, site, identity } = body;
        let tree = &mut *self.replayer.tree;
        let overlaps = Overlaps { memory: &*self.replayer.launcher.memory, call: &*self.call };
        match kind {
            RunKind::Eager => {
                let group = overlaps.known_group(tree, identity, key);
                self.start(body, group, key, |_, _| Ok(RunState::Eager))
            }
            RunKind::Warm => {
                let group = overlaps.group(tree, identity, key);
                self.start(body, Some(group), key, |_, _| Ok(RunState::WarmingUp))
            }
            RunKind::Audit => {
                let group = overlaps.group(tree, identity, key);
                self.start(body, Some(group), key, |_, _| Ok(RunState::Auditing(Auditing::default())))
            }
            RunKind::Record => {
                let group = overlaps.group(tree, identity, key);
                self.start(body, Some(group), key, |runner, known| {
                    let recording = runner.begin_recording(site, group, key, known)?;
                    Ok(RunState::Recording(Box::new(recording)))
                })
            }
        }
    }

    /// Starts a run, in the state that `state` returns, which may add to the ranges that a recording may bake.
    fn start(
        &mut self,
        body: NewRun,
        group: Option<GroupId>,
        key: &KeyWriter,
        state: impl FnOnce(&mut Self, &mut Vec<(u64, u64)>) -> Result<RunState>,
    ) -> Result<()> {
        let NewRun { kind, site, identity } = body;
        if let Some(group) = group {
            self.replayer.tree.group_mut(group).site = Some(site);
        }
        let Reach { mut known, owned } = self.reach(kind, identity, key);
        let memory = &mut *self.replayer.launcher.memory;
        let entry = if kind == RunKind::Audit { StateId::EMPTY } else { memory.commit_frees() };
        let state = state(self, &mut known)?;
        if kind != RunKind::Audit {
            self.replayer.launcher.memory.begin_body();
        }
        let before = self.call.enter_segment(site);
        self.replayer.launcher.recorder.begin(Run::new(Start {
            state,
            site,
            identity,
            group,
            entry,
            before,
            known,
            owned,
        }));
        Ok(())
    }

    /// Returns the memory of live-ins, except for those in arenas if the run is a recording, and that of the
    /// call.
    fn reach(&self, kind: RunKind, identity: Identity, key: &KeyWriter) -> Reach {
        let memory = &self.replayer.launcher.memory;
        let (mut known, mut owned) = (Vec::new(), key.owned.clone());
        for tensor in key.tensors.iter().filter(|t| kind != RunKind::Record || key.owner(t).is_some()) {
            let slot = memory.slot(tensor.slot);
            known.push((slot.base(), slot.end()));
            if let (Some(memory), Some(owner)) = (slot.owner(), key.owner(tensor)) {
                owned.push((owner, memory.clone()));
            }
        }
        let range = |memory: &SharedMemory| (memory.addr(), memory.addr() + memory.len());
        known.extend(owned.iter().map(|(_, memory)| range(memory)));
        if let Some(call) = self.call.active() {
            // The recording is evicted with the graph object. The counts of padded dimensions are in its
            // block, which a body without padding in its key must not read, because it would not know to
            // which call they belong; see `CallState::write_key`.
            if key.has_padding() || matches!(identity, Identity::Full(_)) {
                known.push(range(&call.block));
            }
            owned.push((call.block_id, call.block.clone()));
        }
        Reach { known, owned }
    }

    /// Starts a capture. Adds the live-ins in arenas to the memory to which the recording may refer.
    fn begin_recording(
        &mut self,
        site: &'static Site,
        group: GroupId,
        key: &KeyWriter,
        known: &mut Vec<(u64, u64)>,
    ) -> Result<RecordingRun> {
        let begun = Instant::now();
        let Replayer { tree, launcher, .. } = &mut self.replayer;
        let bindings = bind_inputs(tree, launcher.memory, launcher.stream, group, key)?;
        for tensor in key.tensors.iter().filter(|t| key.owner(t).is_none()) {
            // Of a copied live-in, only its own bytes are rebound to the buffer: the rest of its block is
            // unknown.
            let slot = launcher.memory.slot(tensor.slot);
            let copied = bindings.of(tensor.operand);
            known.push((copied.map_or(slot.base(), |b| b.from()), slot.end()));
        }
        let log = CommandLog::begin(launcher.stream, launcher.log, site, bindings.all())?;
        let alive = launcher.memory.alive_in_pool();
        Ok(RecordingRun {
            group,
            log,
            bindings,
            begun,
            alive,
            writes: BTreeSet::new(),
            late_use: Cell::new(false),
        })
    }

    /// Abandons the run, if there is one: the body failed, or panicked. Stream and pool are as before it.
    pub(crate) fn abort(&mut self) {
        if let Some(run) = self.replayer.launcher.recorder.take_run() {
            self.abort_run(run);
        }
    }

    fn abort_run(&mut self, run: Run) {
        match run.ended() {
            EndedRun::Recording(recording) => self.abort_recording(&recording),
            EndedRun::Other(run) if run.is_audit() => {
                self.call.restore(run.phase_before());
                if let Err(error) = self.replayer.launcher.undo_writes(run) {
                    // The caller already has an error of its own; this one is equally serious, and must not be
                    // lost.
                    self.replayer.launcher.stream.defer(error);
                }
            }
            EndedRun::Other(run) => self.abandon(&run),
        }
    }

    pub(super) fn abort_recording(&mut self, run: &EndedRecording) {
        let Replayer { tree, launcher, .. } = &mut self.replayer;
        if run.state.log.is_capturing() {
            launcher.stream.backend_mut().abort_capture();
            launcher.log.emit(Occurrence::Aborted { site: run.site });
        }
        if run.state.late_use.get() {
            // The change may have been the last one: warm up again, as after another trace.
            tree.group_mut(run.state.group).warmed = false;
        }
        self.abandon(run);
    }

    /// Restores the pool and the phase to their state before the run.
    fn abandon<S>(&mut self, run: &Run<S>) {
        self.call.restore(run.phase_before());
        let Replayer { tree, launcher, .. } = &mut self.replayer;
        // Tensors that the error value, or a leak, still holds were never computed.
        launcher.memory.abandon(run.slots(), |base| run.owns_block(base));
        launcher.memory.end_body();
        tree.leave_path();
    }

    /// Ends a run whose body succeeded; a recording enters the tree and runs for the first time.
    ///
    /// # Errors
    /// Returns the reason why it cannot be a recording, and errors of the device. The run has then ended, as
    /// after [`abort`](Self::abort).
    pub(crate) fn finish(&mut self, key: &KeyWriter, outputs: &Encoder) -> Result<()> {
        if let Err(error) = self.check_finished(outputs) {
            self.abort();
            return Err(error);
        }
        let Some(run) = self.replayer.launcher.recorder.take_run() else { return Ok(()) };
        match run.ended() {
            EndedRun::Recording(recording) => RecordingInProgress::new(self, recording).finish(key, outputs),
            EndedRun::Other(run) if run.is_audit() => {
                self.call.restore(run.phase_before());
                Ok(())
            }
            EndedRun::Other(run) => {
                self.end_without_recording(&run);
                if run.is_warm_up() { self.warmed(run, key, &outputs.entries) } else { Ok(()) }
            }
        }
    }

    fn check_finished(&self, outputs: &Encoder) -> Result<()> {
        let launcher = &self.replayer.launcher;
        if let Some(run) = launcher.recorder.run().filter(|run| run.recording().is_some()) {
            run.check_went_well(&launcher.stream.backend().name())?;
        }
        launcher.recorder.check_owners(launcher.memory, outputs)
    }

    /// A body ran, and its results are where the next segment finds them.
    pub(super) fn end_without_recording<S>(&mut self, run: &Run<S>) {
        self.call.restore(run.phase_before());
        self.replayer.launcher.memory.end_body();
        self.replayer.tree.leave_path();
    }

    /// Learns whether the body asks for addresses.
    pub(super) fn learn_aliases<S>(&mut self, run: &Run<S>, key: &KeyWriter) {
        if let (true, Some(group)) = (run.asked.get(), run.group) {
            let overlaps = Overlaps { memory: &*self.replayer.launcher.memory, call: &*self.call };
            let aliases = overlaps.of_asking_group(key);
            let known = &mut self.replayer.tree.group_mut(group).aliases;
            known.get_or_insert_with(|| aliases.as_slice().into());
        }
    }

    /// A warm-up ran to its end.
    ///
    /// # Errors
    /// Returns [`Error::FallbackForbidden`](crate::Error::FallbackForbidden) if nothing was learned from it,
    /// nor from an earlier one.
    fn warmed(&mut self, mut run: Run, key: &KeyWriter, outputs: &[Entry]) -> Result<()> {
        self.learn_aliases(&run, key);
        let Some(at) = run.group else { return Ok(()) };
        let Replayer { tree, launcher, .. } = &mut self.replayer;
        let call = launcher.memory.call_number();
        let group = tree.group_mut(at);
        let calls = group.warm_up_completed_in(call);
        if group.warmed {
            return Ok(());
        }
        if !run.has_failed() {
            let releases = run.releases(launcher.memory, outputs);
            self.learn_trace(at, std::mem::take(&mut run.trace), releases);
            return Ok(());
        }
        // After a failed operation, the body may have taken a different path than usual.
        if calls <= 1 {
            return Ok(());
        }
        let reason = FallbackReason::NeverWarm { segment: run.site.to_string() };
        self.call.may_fall_back(&reason)?;
        let function = self.call.function_name();
        launcher.log.emit(Occurrence::FellBack { function, reason: &reason });
        Ok(())
    }

    /// A group has its trace, which all its recordings share.
    fn learn_trace(&mut self, at: GroupId, trace: Vec<TraceOp>, releases: Vec<Release>) {
        let Replayer { tree, launcher, .. } = &mut self.replayer;
        let group = tree.group_mut(at);
        group.warmed = true;
        group.releases = releases;
        if group.trace != trace {
            group.trace = trace;
            // The body behaves differently now, so its earlier recordings are wrong.
            tree.evict_group(at, launcher.log);
        }
    }

    /// Opens the run of a body that is to be compared with a replay, and saves the state that the recording
    /// writes.
    ///
    /// # Errors
    /// Returns errors of the device; no run is then active.
    pub(crate) fn begin_audit(
        &mut self,
        at: RecordingIndex,
        site: &'static Site,
        identity: Identity,
        key: &KeyWriter,
    ) -> Result<Audit> {
        let bindings = self.replayer.audited_bindings(at, key);
        self.replayer.launcher.flush()?;
        self.begin(NewRun { kind: RunKind::Audit, site, identity }, key)?;
        let Replayer { tree, launcher, .. } = &mut self.replayer;
        if let Some(bound) = launcher.recorder.run_mut().and_then(Run::bindings_mut) {
            *bound = bindings;
        }
        let writes = tree.recording(at).map(|recording| recording.writes.clone()).unwrap_or_default();
        if let Err(error) = writes.iter().try_for_each(|(_, memory)| launcher.save_audited(memory)) {
            self.abort();
            return Err(error);
        }
        Ok(Audit::of(writes.len()))
    }

    /// Checks the operations of the body, reads its results and restores the state.
    ///
    /// # Errors
    /// Returns [`Error::AuditMismatch`](crate::Error::AuditMismatch), and errors of the device.
    pub(crate) fn end_audit(&mut self, audit: &mut Audit, outputs: &Encoder) -> Result<()> {
        let Replayer { tree, launcher, .. } = &mut self.replayer;
        let Some(run) = launcher.recorder.take_run() else { return Ok(()) };
        self.call.restore(run.phase_before());
        let device = launcher.stream.backend().name();
        // The state is restored whatever the body did, and whether or not everything could be read.
        let checked = run
            .check_audited(tree, audit)
            .and_then(|()| run.check_went_well(&device))
            .and_then(|()| launcher.read_audited(audit, outputs, &run));
        let undone = launcher.undo_writes(run);
        match (checked, undone) {
            (Err(error), Err(lost)) => {
                // As in `abort_run`: one error is returned now, the other must not get lost.
                launcher.stream.defer(lost);
                Err(error)
            }
            (checked, undone) => checked.and(undone),
        }
    }
}

//! A recording whose body has ended: it enters the tree and runs for the first time, or is aborted.

use std::sync::Arc;

use super::{
    aliasing::Overlaps,
    body::BodyRunner,
    copied_inputs::{InputBinding, stage_first_copies},
    exec_reuse::Captured,
    replay::Replayer,
    run::{EndedRecording, places},
};
use crate::{
    Error, Result,
    backend::SharedMemory,
    memory::Extent,
    observe::occurrence::{ExecutableRef, Occurrence},
    program::Dependents,
    tree::{
        Alias, CopiedInput, Links, OutputBlock, Positions, Recording, ResultBounds, Stored, Tree, Usage,
        recorded,
    },
    value::{
        entry::{Encoder, Entry},
        key::KeyWriter,
        owned::OwnerId,
    },
};

/// A recording whose body has ended. It is aborted when this is dropped, also by a panic, unless it came to its end.
pub(super) struct RecordingInProgress<'r, 'c> {
    runner: &'r mut BodyRunner<'c>,
    run: EndedRecording,
    /// Set once nothing of it is to be undone.
    is_over: bool,
}

impl Drop for RecordingInProgress<'_, '_> {
    fn drop(&mut self) {
        if !self.is_over {
            self.runner.abort_recording(&self.run);
        }
    }
}

/// The results of a recording.
struct Made {
    blocks: Vec<OutputBlock>,
    outputs: Vec<Stored>,
    copied: Vec<CopiedInput>,
    /// State that it writes.
    writes: Vec<(OwnerId, SharedMemory)>,
    captured: Captured,
    /// The largest difference that passes may have caused between the results and those of the body.
    bounds: Option<Arc<ResultBounds>>,
}

impl<'r, 'c> RecordingInProgress<'r, 'c> {
    pub(super) fn new(runner: &'r mut BodyRunner<'c>, run: EndedRecording) -> Self {
        Self { runner, run, is_over: false }
    }

    /// Adds the recording to the tree, or runs its commands directly if its captures were invalidated too
    /// often.
    ///
    /// # Errors
    /// Returns the reason why it cannot be a recording, and errors of the device.
    pub(super) fn finish(mut self, key: &KeyWriter, outputs: &Encoder) -> Result<()> {
        let made = self.end_capture(key, outputs)?;
        self.is_over = true;
        match made {
            Some(made) => self.insert(key, made),
            None => self.runner.end_without_recording(&self.run),
        }
        Ok(())
    }

    /// Ends the capture, and runs the recording for the first time. Returns `None` if the capture was invalidated too
    /// often; its commands have run then.
    ///
    /// # Errors
    /// See [`finish`](Self::finish).
    fn end_capture(&mut self, key: &KeyWriter, outputs: &Encoder) -> Result<Option<Made>> {
        let Self { runner: BodyRunner { replayer, call }, run, .. } = self;
        check_length(replayer.tree, run)?;
        let (blocks, stored) = run.store(replayer.launcher.memory, key, outputs)?;
        let mut copied: Vec<CopiedInput> =
            run.state.bindings.all().iter().map(InputBinding::recorded).collect();
        let mut retain: Vec<SharedMemory> = run.owned.iter().map(|(_, m)| m.clone()).collect();
        retain.extend(copied.iter().map(|c| c.memory.clone()));
        let Some(captured) = replayer.end_capture(call, run, &retain)? else { return Ok(None) };
        let writes = run.written();
        let bounds = bounds(&run.state.log.rewritten.dependents, outputs, &writes);
        if let Some(exec) = &captured.exec {
            let Replayer { tree, launcher, .. } = replayer;
            stage_first_copies(launcher.stream, launcher.log, &mut copied, key);
            let saved = writes.iter().try_for_each(|(_, state)| launcher.save_state(state));
            if let Err(error) = saved.and_then(|()| launcher.stream.replay(exec)) {
                let executable = match captured.with {
                    Some(with) => ExecutableRef::Shared { with },
                    None => ExecutableRef::own(&**exec),
                };
                let recording = tree.refuse_recording(run.site);
                launcher.log.emit(Occurrence::NeverRan { recording, executable, error: &error });
                return Err(error);
            }
        }
        Ok(Some(Made { blocks, outputs: stored, copied, writes, captured, bounds }))
    }

    /// Hangs the recording, which has run, into the tree.
    fn insert(&mut self, key: &KeyWriter, made: Made) {
        self.runner.call.restore(self.run.phase_before());
        let exit = self.runner.replayer.launcher.memory.end_body();
        self.runner.learn_aliases(&self.run, key);
        let aliases = self.aliases(key, !made.copied.is_empty());
        let Self { runner: BodyRunner { replayer: Replayer { tree, launcher, .. }, call }, run, .. } = self;
        let group = run.state.group;
        tree.group_mut(group).recorded_in(launcher.memory.call_number());
        let positions: Positions = made.copied.iter().map(|c| c.position).collect();
        let symbols = call.active().into_iter().flat_map(|call| &call.symbols);
        let blocks = made.blocks.iter().map(|b| (b.placement, b.addr, b.bytes));
        let extent = Extent {
            pool: launcher.memory.pool().body_bytes(),
            results: launcher.memory.result_extent(blocks),
        };
        let Captured { exec, reuse, with, unshared } = made.captured;
        let at = tree.insert(Recording {
            site: run.site,
            identity: run.identity,
            caller: tree.caller(),
            numerics: call.active().map(|call| call.numerics).unwrap_or_default(),
            sizes: symbols.map(|s| (s.name, s.padded)).collect(),
            group,
            parent: tree.cursor(),
            entry: run.entry,
            exit,
            shape: key.shape.as_slice().into(),
            operands: recorded(&key.operands, &positions).collect(),
            copied: made.copied.into(),
            places: places(key),
            aliases,
            exec,
            sharing: reuse,
            blocks: made.blocks,
            outputs: made.outputs,
            owned: run.owners(),
            writes: made.writes,
            alive: std::mem::take(&mut run.state.alive),
            passes: std::mem::take(&mut run.state.log.rewritten.reports),
            bounds: made.bounds,
            usage: Usage { pool_peak: run.uses.peak(), extent },
            hits: 0,
            likely: None,
            links: Links::default(),
            held: None,
            after_eager: false,
        });
        tree.runs_now(at);
        tree.follow(at);
        let (executable, capture) = (tree.executable(at), run.state.begun.elapsed());
        let Some(recording) = tree.recording(at).map(Recording::as_recorded) else { return };
        launcher.log.emit(Occurrence::Recorded { recording, executable, capture });
        if let Some(with) = with {
            launcher.log.emit(Occurrence::Shared { recording, with });
        }
        if let Some(reason) = &unshared {
            launcher.log.emit(Occurrence::Unshared { recording, reason });
        }
    }

    /// Returns how the live-ins overlap, if the recording depends on it: if the body queried it, or if
    /// `copies` of them may be read for each other.
    fn aliases(&self, key: &KeyWriter, copies: bool) -> Option<Box<[Alias]>> {
        let asked = self.run.asked.get();
        if !asked && !copies {
            return None;
        }
        let overlaps = Overlaps { memory: &*self.runner.replayer.launcher.memory, call: &*self.runner.call };
        let all = overlaps.of(key);
        (asked || !all.is_empty()).then(|| all.as_slice().into())
    }
}

/// Returns how far the results may be from those of the body; `None` if no bit differs.
fn bounds(
    dependents: &[Dependents],
    outputs: &Encoder,
    writes: &[(OwnerId, SharedMemory)],
) -> Option<Arc<ResultBounds>> {
    if dependents.is_empty() {
        return None;
    }
    let of_output = |entry: &Entry| match entry {
        Entry::Tensor(raw) => Dependents::bound_of(dependents, raw.view().range()),
        _ => None,
    };
    let of_state = |(_, memory): &(OwnerId, SharedMemory)| {
        Dependents::parts_of(dependents, (memory.addr(), memory.addr() + memory.len()))
    };
    Some(Arc::new(ResultBounds {
        outputs: outputs.entries.iter().map(of_output).collect(),
        states: writes.iter().map(of_state).collect(),
    }))
}

/// Refuses a recording that did less than the warm-up.
///
/// # Errors
/// Returns [`Error::TraceMismatch`].
fn check_length(tree: &mut Tree, run: &EndedRecording) -> Result<()> {
    let group = tree.group_mut(run.state.group);
    let Some(missing) = group.trace.get(run.trace.len()) else { return Ok(()) };
    let error = Error::TraceMismatch {
        segment: run.site.to_string(),
        index: run.trace.len(),
        warm: format!("`{}`", missing.name),
        recorded: "nothing".into(),
    };
    group.warmed = false;
    Err(error)
}

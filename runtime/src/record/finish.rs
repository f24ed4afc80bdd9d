//! A recording whose body has ended: it enters the tree and runs for the first time, or is aborted.

use super::{
    aliasing::Overlaps,
    body::BodyRunner,
    copied_inputs::{InputBinding, stage_first_copies},
    exec_reuse::Captured,
    replay::Replayer,
    run::{Run, places},
};
use crate::{
    Error, Result,
    backend::SharedMemory,
    memory::Extent,
    observe::occurrence::{ExecutableRef, Occurrence},
    tree::{
        Alias, CopiedInput, GroupId, Links, OutputBlock, Positions, Recording, Stored, Tree, Usage, recorded,
    },
    value::{entry::Encoder, key::KeyWriter, owned::OwnerId},
};

/// A recording whose body has ended. It is aborted when this is dropped, unless it was [committed](Self::commit).
pub(super) struct RecordingInProgress<'r, 'c> {
    runner: &'r mut BodyRunner<'c>,
    /// `None` once it is over.
    run: Option<Run>,
}

impl Drop for RecordingInProgress<'_, '_> {
    fn drop(&mut self) {
        if let Some(run) = self.run.take() {
            self.runner.abort_run(run);
        }
    }
}

/// The results of a recording.
struct Made {
    group: GroupId,
    blocks: Vec<OutputBlock>,
    outputs: Vec<Stored>,
    copied: Vec<CopiedInput>,
    /// State that it writes.
    writes: Vec<(OwnerId, SharedMemory)>,
    captured: Captured,
}

impl<'r, 'c> RecordingInProgress<'r, 'c> {
    pub(super) fn new(runner: &'r mut BodyRunner<'c>, run: Run) -> Self {
        Self { runner, run: Some(run) }
    }

    /// The recording is over, and nothing of it is to be undone.
    fn commit(&mut self) -> Option<Run> {
        self.run.take()
    }

    /// Adds the recording to the tree, or runs its commands directly if its captures were invalidated too
    /// often.
    ///
    /// # Errors
    /// Returns the reason why it cannot be a recording, and errors of the device.
    pub(super) fn finish(mut self, key: &KeyWriter, outputs: &Encoder) -> Result<()> {
        let BodyRunner { replayer, call } = &mut *self.runner;
        let over = || Error::NeverComputed { op: "a recording" };
        let run = self.run.as_mut().ok_or_else(over)?;
        let group = run.group.ok_or_else(over)?;
        check_length(replayer.tree, run, group)?;
        let (blocks, outputs) = run.store(replayer.launcher.memory, key, outputs)?;
        let bindings = run.recording().map_or(&[][..], |recording| recording.bindings.all());
        let mut copied: Vec<CopiedInput> = bindings.iter().map(InputBinding::recorded).collect();
        let mut retain: Vec<SharedMemory> = run.owned.iter().map(|(_, m)| m.clone()).collect();
        retain.extend(copied.iter().map(|c| c.memory.clone()));
        let Some(captured) = replayer.end_capture(call, run, &retain)? else {
            if let Some(run) = self.commit() {
                self.runner.end_without_recording(&run);
            }
            return Ok(());
        };
        let writes = run.written();
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
        self.insert(key, Made { group, blocks, outputs, copied, writes, captured });
        Ok(())
    }

    /// Commits the recording, which has run, and hangs it into the tree.
    fn insert(&mut self, key: &KeyWriter, made: Made) {
        let Some(run) = self.commit() else { return };
        self.runner.call.restore(run.phase_before());
        let exit = self.runner.replayer.launcher.memory.end_body();
        self.runner.learn_aliases(&run, key);
        let aliases = self.aliases(&run, key, !made.copied.is_empty());
        let BodyRunner { replayer: Replayer { tree, launcher, .. }, call } = &mut *self.runner;
        tree.group_mut(made.group).recorded_in(launcher.memory.call_number());
        let positions: Positions = made.copied.iter().map(|c| c.position).collect();
        let symbols = call.active().into_iter().flat_map(|call| &call.symbols);
        let (site, entry, pool_peak) = (run.site, run.entry, run.uses.peak());
        let identity = run.identity;
        let (owned, recording) = run.into_baked();
        let Some(recording) = recording else { return };
        let blocks = made.blocks.iter().map(|b| (b.placement, b.addr, b.bytes));
        let extent = Extent {
            pool: launcher.memory.pool().body_bytes(),
            results: launcher.memory.result_extent(blocks),
        };
        let Captured { exec, reuse, with, unshared } = made.captured;
        let at = tree.insert(Recording {
            site,
            identity,
            caller: tree.caller(),
            sizes: symbols.map(|s| (s.name, s.padded)).collect(),
            group: made.group,
            parent: tree.cursor(),
            entry,
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
            owned,
            writes: made.writes,
            alive: recording.alive,
            usage: Usage { pool_peak, extent },
            hits: 0,
            likely: None,
            links: Links::default(),
            crowded: None,
            handed: None,
            after_eager: false,
        });
        tree.runs_now(at);
        tree.follow(at);
        let (executable, capture) = (tree.executable(at), recording.begun.elapsed());
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
    fn aliases(&self, run: &Run, key: &KeyWriter, copies: bool) -> Option<Box<[Alias]>> {
        let asked = run.asked.get();
        if !asked && !copies {
            return None;
        }
        let overlaps = Overlaps { memory: &*self.runner.replayer.launcher.memory, call: &*self.runner.call };
        let all = overlaps.of(key);
        (asked || !all.is_empty()).then(|| all.as_slice().into())
    }
}

/// Refuses a recording that did less than the warm-up.
///
/// # Errors
/// Returns [`Error::TraceMismatch`].
fn check_length(tree: &mut Tree, run: &Run, group: GroupId) -> Result<()> {
    let group = tree.group_mut(group);
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

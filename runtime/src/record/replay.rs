//! Replaying a recording, and returning its outputs.

use std::time::Duration;

use smallvec::SmallVec;

use super::launch::Launcher;
use crate::{
    Error, Result,
    memory::{
        Memory, Origin, OwnedView, Placement, RecordedBlock, SlotId,
        pool::{Block, rounded},
    },
    observe::occurrence::Occurrence,
    tree::{Recording, RecordingIndex, Stored, Tree},
    value::{
        entry::{Entries, Entry},
        key::KeyWriter,
        raw::RawTensor,
    },
};

/// The components that a replay touches.
#[derive(Debug)]
pub(crate) struct Replayer<'c> {
    pub(crate) tree: &'c mut Tree,
    pub(crate) launcher: Launcher<'c>,
    /// The time that an update of a shared executable may take; `None` if new recordings do not share.
    pub(crate) reuse_budget: Option<Duration>,
}

/// Returns whether the blocks in which a recording leaves its results are not held.
#[inline]
pub(crate) fn results_are_free(recording: &Recording, memory: &Memory) -> bool {
    recording.blocks.iter().all(|b| {
        b.placement != Placement::Results
            || memory.is_free_result(Block { addr: b.addr, len: rounded(b.bytes) })
    })
}

/// Returns the distance of a live-in from its recorded address.
#[inline]
fn shift(recording: &Recording, key: &KeyWriter, place: Option<u32>) -> u64 {
    let place = place.and_then(|at| recording.places.get(at as usize));
    place.map_or(0, |p| key.addr(p.operand).wrapping_sub(p.addr))
}

impl Replayer<'_> {
    /// Runs a recording. The pool is in its exit state afterwards.
    ///
    /// # Errors
    /// Returns errors of the device, and [`Error::Uncommitted`].
    pub(crate) fn replay(&mut self, at: RecordingIndex, key: &KeyWriter) -> Result<Entries> {
        if self.tree.recording(at).is_some_and(|recording| recording.held.is_some()) {
            return self.replay_relocated(at, key);
        }
        self.run_recording(at)?;
        self.hand_over(at, key, &[])
    }

    /// Launches a recording. Afterwards, the pool is in its exit state.
    pub(super) fn run_recording(&mut self, at: RecordingIndex) -> Result<()> {
        self.check_committed(at)?;
        if self.launcher.recorder.has_snapshot() {
            let writes =
                self.tree.recording(at).map(|recording| recording.writes.clone()).unwrap_or_default();
            writes.iter().try_for_each(|(_, state)| self.launcher.save_state(state))?;
        }
        self.make_current(at).map_err(|error| self.failed(at, error))?;
        let Some(recording) = self.tree.recording(at) else {
            return Err(Error::NeverComputed { op: "a replay" });
        };
        if let Some(exec) = &recording.exec
            && let Err(error) = self.launcher.stream.replay(exec)
        {
            return Err(self.failed(at, error));
        }
        self.launcher.memory.restore(recording.exit);
        Ok(())
    }

    /// A recording failed to run; returns why.
    #[cold]
    fn failed(&mut self, at: RecordingIndex, error: Error) -> Error {
        if let Some(recording) = self.tree.recording(at) {
            let recording = recording.in_call_of(self.tree.caller());
            self.launcher.log.emit(Occurrence::ReplayFailed { recording, error: &error });
        }
        error
    }

    /// Rejects a launch that would access uncommitted memory.
    ///
    /// # Errors
    /// Returns [`Error::Uncommitted`].
    #[inline]
    fn check_committed(&self, at: RecordingIndex) -> Result<()> {
        let Some(recording) = self.tree.recording(at) else { return Ok(()) };
        if self.launcher.memory.has_committed(recording.usage.extent) {
            return Ok(());
        }
        let short = self.launcher.memory.shortage(recording.usage.extent);
        Err(Error::Uncommitted {
            segment: recording.site.to_string(),
            arena: short.arena,
            needed: short.needed,
            committed: short.committed,
        })
    }

    /// Returns the outputs of a recording that runs. `bases` contains the new addresses of its blocks that
    /// were moved.
    pub(super) fn hand_over(
        &mut self,
        at: RecordingIndex,
        key: &KeyWriter,
        bases: &[Option<u64>],
    ) -> Result<Entries> {
        let Some(recording) = self.tree.recording(at) else {
            return Err(Error::NeverComputed { op: "a replay" });
        };
        let replayed = recording.in_call_of(self.tree.caller());
        let Launcher { memory, recorder, log, .. } = &mut self.launcher;
        let slots = output_slots(recording, memory, bases);
        let epoch = memory.epoch();
        let mut entries = recorder.take_entries();
        for stored in &recording.outputs {
            entries.push(match stored {
                Stored::Own(block, raw) => {
                    let mut raw = *raw;
                    if let Some(base) = bases.get(*block as usize).copied().flatten() {
                        raw.addr = base + (raw.addr - recording.blocks[*block as usize].addr);
                    }
                    (raw.slot, raw.epoch) = (slots[*block as usize], epoch);
                    Entry::Tensor(raw)
                }
                Stored::LiveIn(live_in, place, raw) => {
                    let mut raw = *raw;
                    raw.addr = raw.addr.wrapping_add(shift(recording, key, *place));
                    (raw.slot, raw.epoch) = (key.tensors[*live_in as usize].slot, epoch);
                    memory.share(raw.slot);
                    Entry::Tensor(raw)
                }
                Stored::Owned(owner, raw) => {
                    let RawTensor { owner: of, dtype, layout, marks, .. } = *raw;
                    let base = memory.adopt(OwnedView { owner: of, memory: owner, dtype, layout, marks });
                    Entry::Tensor(RawTensor { slot: base.slot, epoch: base.epoch, ..*raw })
                }
                Stored::Word(w) => Entry::Word(*w),
                Stored::Text(t) => Entry::Text(t.clone()),
                Stored::Size(dim) => Entry::Size(*dim),
            });
        }
        self.tree.follow(at);
        log.emit(Occurrence::Replayed { recording: replayed });
        Ok(entries)
    }
}

/// Slots for the blocks of a recording, which live from here on.
#[inline]
fn output_slots(recording: &Recording, memory: &mut Memory, bases: &[Option<u64>]) -> SmallVec<[SlotId; 4]> {
    let mut slots = SmallVec::new();
    for (index, b) in recording.blocks.iter().enumerate() {
        let moved = bases.get(index).copied().flatten();
        if b.placement == Placement::Results && moved.is_none() {
            memory.take_result(Block { addr: b.addr, len: rounded(b.bytes) });
        }
        let block = RecordedBlock {
            base: moved.unwrap_or(b.addr),
            bytes: b.bytes,
            refs: b.refs,
            producer: b.producer,
        };
        let group = recording.group;
        let origin = b.ordinal.map_or(Origin::Other, |ordinal| Origin::Segment { group, ordinal });
        slots.push(memory.output_slot(b.placement, block, origin));
    }
    slots
}

//! Audits: a replay is compared with an eager run of its body.

use super::{
    launch::{Launcher, same_operation},
    replay::Replayer,
    run::{Run, RunState},
    state_snapshot::bytes_of,
};
use crate::{
    DType, Error, Result,
    backend::SharedMemory,
    base::{
        bound::{Bound, BoundedPart},
        plan::Site,
    },
    memory::COPY,
    observe::occurrence::Occurrence,
    tree::{RecordingIndex, ResultBounds, Tree},
    value::{
        entry::{Encoder, Entries, Entry},
        key::KeyWriter,
        raw::RawTensor,
    },
};

/// The results of the body, read back.
#[derive(Debug, Default)]
pub(crate) struct Audit {
    outputs: Vec<Entry>,
    values: Vec<Vec<u8>>,
    states: Vec<Vec<u8>>,
    /// The number of states that the recording writes: the first of those that are saved.
    recorded_writes: usize,
}

impl Audit {
    /// An audit of a recording that writes so many states.
    pub(crate) fn of(recorded_writes: usize) -> Self {
        Self { recorded_writes, ..Self::default() }
    }
}

impl Run {
    /// Refuses an audited body that does something else than the recording, or writes other state.
    ///
    /// # Errors
    /// Returns [`Error::AuditMismatch`].
    pub(crate) fn check_audited(&self, tree: &Tree, audit: &Audit) -> Result<()> {
        let recorded = self.group.map_or(&[][..], |group| &tree.group_of(group).trace);
        for index in 0..recorded.len().max(self.trace.len()) {
            same_operation(self.site, index, recorded.get(index).copied(), self.trace.get(index).copied())?;
        }
        if self.undo().len() > audit.recorded_writes {
            return Err(Error::AuditMismatch {
                segment: self.site.to_string(),
                what: "the state that is written".into(),
                detail: "the body writes one that the recording does not".into(),
            });
        }
        Ok(())
    }

    /// Returns the state that the audited body wrote, or may have written, with the tensors that contain its
    /// previous values.
    fn undo(&self) -> &[(SharedMemory, RawTensor)] {
        match &self.state {
            RunState::Auditing(audit) => &audit.undo,
            _ => &[],
        }
    }
}

impl Launcher<'_> {
    /// Before the audited body writes `memory`, or may.
    ///
    /// # Errors
    /// Returns errors of the device.
    pub(crate) fn save_audited(&mut self, memory: &SharedMemory) -> Result<()> {
        let is_saved = |run: &Run| run.undo().iter().any(|(m, _)| m.addr() == memory.addr());
        if self.recorder.run().is_none_or(is_saved) {
            return Ok(());
        }
        let view = bytes_of(memory)?;
        let copy = self.eager_tensor("audit", DType::U8, view.layout)?;
        if let Err(error) = self.launch(COPY, &[view], &[copy.view()]) {
            self.release(copy.slot, copy.epoch);
            return Err(error);
        }
        if let Some(Run { state: RunState::Auditing(audit), .. }) = self.recorder.run_mut() {
            audit.undo.push((memory.clone(), copy));
        }
        Ok(())
    }

    /// Before a body of a conditional node in the audited body writes `memory`, or may: all that the recording writes
    /// was saved when the audit began, and it is too late to save anything else.
    ///
    /// # Errors
    /// Returns [`Error::AuditMismatch`].
    pub(super) fn check_audited_write(&self, memory: &SharedMemory) -> Result<()> {
        match self.recorder.run() {
            Some(run) if run.undo().iter().all(|(m, _)| m.addr() != memory.addr()) => {
                Err(Error::AuditMismatch {
                    segment: run.site.to_string(),
                    what: "the state that is written".into(),
                    detail: "the body writes one that the recording does not".into(),
                })
            }
            _ => Ok(()),
        }
    }

    /// Reads the results of an audited body, and the state that it wrote. What its kernels report is for the next read, as
    /// without an audit.
    ///
    /// # Errors
    /// Returns errors of the device.
    pub(crate) fn read_audited(&mut self, audit: &mut Audit, outputs: &Encoder, run: &Run) -> Result<()> {
        outputs.check("an output of an audited segment")?;
        for entry in &outputs.entries {
            if let Entry::Tensor(raw) = entry {
                self.recorder.check_live(self.memory, "an output of an audited segment", raw)?;
                audit.values.push(self.read(*raw)?.wait_without_faults()?);
            }
        }
        audit.outputs = outputs.entries.to_vec();
        for (memory, _) in run.undo() {
            audit.states.push(self.stream.read(memory.addr(), memory.len())?.wait_without_faults()?);
        }
        Ok(())
    }

    /// Puts state back that an audited body wrote.
    ///
    /// # Errors
    /// Returns errors of the device.
    pub(crate) fn undo_writes(&mut self, run: Run) -> Result<()> {
        let RunState::Auditing(audit) = run.state else { return Ok(()) };
        let mut outcome = Ok(());
        for (memory, copy) in audit.undo {
            let back = bytes_of(&memory).and_then(|to| self.launch(COPY, &[copy.view()], &[to]));
            self.release(copy.slot, copy.epoch);
            outcome = outcome.and(back);
        }
        outcome
    }

    /// Compares the outputs of a replay with those of the body: bit by bit, or within the bounds that passes have declared.
    fn compare(
        &mut self,
        site: &'static Site,
        entries: &[Entry],
        audit: &Audit,
        bounds: Option<&ResultBounds>,
    ) -> Result<()> {
        if entries.len() != audit.outputs.len() {
            return Err(Error::AuditMismatch {
                segment: site.to_string(),
                what: "the number of outputs".into(),
                detail: format!("the replay gave {}, the body {}", entries.len(), audit.outputs.len()),
            });
        }
        let mut values = audit.values.iter();
        for (index, (got, expected)) in entries.iter().zip(&audit.outputs).enumerate() {
            let what = format!("output {index}");
            match (got, expected) {
                (Entry::Tensor(got), Entry::Tensor(expected)) if alike(got, expected) => {
                    let bytes = self.read(*got)?.wait_without_faults()?;
                    let expected = values.next().map_or(&[][..], Vec::as_slice);
                    match bounds.and_then(|bounds| *bounds.outputs.get(index)?) {
                        None => same_bytes(site, &what, expected, &bytes)?,
                        Some(bound) => within(site, &what, got.dtype, bound, expected, &bytes)?,
                    }
                }
                (Entry::Word(a), Entry::Word(b)) if a == b => {}
                (Entry::Text(a), Entry::Text(b)) if a == b => {}
                (Entry::Size(a), Entry::Size(b)) if a == b => {}
                _ => {
                    return Err(Error::AuditMismatch {
                        segment: site.to_string(),
                        what,
                        detail: format!("the replay gave {got:?}, the body {expected:?}"),
                    });
                }
            }
        }
        Ok(())
    }
}

impl Replayer<'_> {
    /// Replays and compares.
    ///
    /// # Errors
    /// Returns [`Error::AuditMismatch`], and errors of the device.
    pub(crate) fn audited_replay(
        &mut self,
        at: RecordingIndex,
        site: &'static Site,
        key: &KeyWriter,
        audit: &Audit,
    ) -> Result<Entries> {
        let recording = self.tree.recording(at);
        let bounds = recording.and_then(|recording| recording.bounds.clone());
        let writes = recording.map(|recording| recording.writes.clone()).unwrap_or_default();
        self.stage_copies(at, key);
        let entries = self.replay_relocated(at, key)?;
        let outcome = self.launcher.compare(site, &entries, audit, bounds.as_deref()).and_then(|()| {
            self.compare_copies(at, site, key)?;
            for (index, ((_, memory), expected)) in writes.iter().zip(&audit.states).enumerate() {
                let got = self.launcher.stream.read(memory.addr(), memory.len())?.wait_without_faults()?;
                let parts = bounds.as_ref().and_then(|bounds| bounds.states.get(index));
                let what = format!("state {index}");
                let parts = parts.map_or(&[][..], Vec::as_slice);
                same_state(site, &what, memory.addr(), parts, expected, &got)?;
            }
            Ok(())
        });
        if let Err(error) = outcome {
            self.launcher.release_all(&entries);
            return Err(error);
        }
        self.launcher.log.emit(Occurrence::Audited { site });
        Ok(entries)
    }

    /// Checks that the bytes that a replay copied of its live-ins are equal to theirs.
    fn compare_copies(&mut self, at: RecordingIndex, site: &'static Site, key: &KeyWriter) -> Result<()> {
        let Some(recording) = self.tree.recording(at) else { return Ok(()) };
        let stream = &mut *self.launcher.stream;
        for c in recording.copied.iter().filter(|c| c.bytes > 0) {
            let from = key.addr(c.position);
            let expected = stream.read(from + c.start, c.bytes)?.wait_without_faults()?;
            let got = stream.read(c.memory.addr() + c.start, c.bytes)?.wait_without_faults()?;
            same_bytes(site, &format!("the copy of operand {}", c.position), &expected, &got)?;
        }
        Ok(())
    }
}

/// Returns whether two tensors have the same properties, apart from their contents.
fn alike(a: &RawTensor, b: &RawTensor) -> bool {
    a.dtype == b.dtype && a.marks.word() == b.marks.word() && a.layout.shape() == b.layout.shape()
}

/// Compares state that begins at `addr`: some parts within bounds, and everything else bit by bit.
fn same_state(
    site: &'static Site,
    what: &str,
    addr: u64,
    parts: &[BoundedPart],
    expected: &[u8],
    got: &[u8],
) -> Result<()> {
    let mut from = 0;
    for part in parts {
        let [start, end] = [part.range.0, part.range.1].map(|at| (at - addr) as usize);
        let of = |from: usize| format!("{what}, from byte {from} on");
        same_bytes(site, &of(from), &expected[from..start], &got[from..start])?;
        within(site, &of(start), part.dtype, part.bound, &expected[start..end], &got[start..end])?;
        from = end;
    }
    same_bytes(site, what, &expected[from..], &got[from..])
}

/// Compares elements of a type within a bound.
fn within(
    site: &'static Site,
    what: &str,
    dtype: DType,
    bound: Bound,
    expected: &[u8],
    got: &[u8],
) -> Result<()> {
    if expected.len() != got.len() {
        return same_bytes(site, what, expected, got);
    }
    let Some((index, expected, got)) = bound.first_outside(dtype, expected, got) else { return Ok(()) };
    Err(Error::AuditMismatch {
        segment: site.to_string(),
        what: what.to_owned(),
        detail: format!("element {index}: the replay gave {got}, the body {expected}, beyond {bound}"),
    })
}

fn same_bytes(site: &'static Site, what: &str, expected: &[u8], got: &[u8]) -> Result<()> {
    if expected == got {
        return Ok(());
    }
    let at = expected.iter().zip(got).position(|(a, b)| a != b).unwrap_or(expected.len().min(got.len()));
    Err(Error::AuditMismatch {
        segment: site.to_string(),
        what: what.to_owned(),
        detail: format!("first at byte {at} of {}", got.len()),
    })
}

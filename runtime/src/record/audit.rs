//! The last net: a replay against its body.

use super::{Core, Run, RunKind, decide::Entries, launch::same_operation, save::bytes_of};
use crate::{
    DType, Error, Result,
    backend::{Op, SharedMemory},
    base::plan::Site,
    tensor::{
        RawTensor,
        live_out::{Encoder, Entry},
    },
    tree::Identity,
    value::live_in::KeyWriter,
};

/// What the body gave, read back.
#[derive(Debug, Default)]
pub(crate) struct Audit {
    outputs: Vec<Entry>,
    values: Vec<Vec<u8>>,
    states: Vec<Vec<u8>>,
    /// How many states the recording writes: the first of those that are saved.
    recorded_writes: usize,
}

impl Core {
    /// Saves the state that the node writes, and opens the body's run.
    pub(crate) fn begin_audit(
        &mut self,
        at: usize,
        site: &'static Site,
        identity: Identity,
        key: &KeyWriter,
    ) -> Result<Audit> {
        let redirects = self.audited_copies(at, key);
        self.flush()?;
        self.begin_run(RunKind::Audit, site, identity, key)?;
        if let Some(run) = &mut self.run {
            run.redirects = redirects;
        }
        let writes = self.tree.node(at).map(|n| n.writes.clone()).unwrap_or_default();
        if let Err(error) = writes.iter().try_for_each(|(_, memory)| self.save_audited(memory)) {
            self.abort_run();
            return Err(error);
        }
        Ok(Audit { recorded_writes: writes.len(), ..Audit::default() })
    }

    /// Before the audited body writes `memory`, or may.
    pub(crate) fn save_audited(&mut self, memory: &SharedMemory) -> Result<()> {
        let saved = |run: &Run| run.undo.iter().any(|(m, _)| m.addr() == memory.addr());
        if self.run.as_ref().is_none_or(saved) {
            return Ok(());
        }
        let view = bytes_of(memory)?;
        let copy = self.eager_tensor("audit", DType::U8, view.layout)?;
        if let Err(error) = self.launch_now(Op::Copy, &[view], &[copy.view()]) {
            self.release(copy.slot, copy.epoch);
            return Err(error);
        }
        if let Some(run) = &mut self.run {
            run.undo.push((memory.clone(), copy));
        }
        Ok(())
    }

    /// Checks what the body did, reads what it gave and puts the state back.
    pub(crate) fn end_audit_body(&mut self, audit: &mut Audit, outputs: &Encoder) -> Result<()> {
        let Some(run) = self.run.take() else { return Ok(()) };
        self.phase = run.phase_before();
        // The state is put back whatever the body did, and whether or not everything could be read.
        let checked =
            self.check_audited(&run, audit).and_then(|()| self.read_audited(audit, outputs, &run.undo));
        let undone = self.undo_writes(run.undo);
        match (checked, undone) {
            (Err(error), Err(lost)) => {
                // As in `abort_run`: one error is given now, the other must not get lost.
                self.deferred.get_or_insert(lost);
                Err(error)
            }
            (checked, undone) => checked.and(undone),
        }
    }

    /// The body must do what the recording does, to the same state.
    fn check_audited(&mut self, run: &Run, audit: &Audit) -> Result<()> {
        let recorded = &self.tree.group_mut(run.group).trace;
        for index in 0..recorded.len().max(run.trace.len()) {
            same_operation(run.site, index, recorded.get(index).copied(), run.trace.get(index).copied())?;
        }
        if run.undo.len() > audit.recorded_writes {
            return Err(Error::AuditMismatch {
                segment: run.site.to_string(),
                what: "the state that is written".into(),
                detail: "the body writes one that the recording does not".into(),
            });
        }
        self.check_went_well(run)
    }

    fn read_audited(
        &mut self,
        audit: &mut Audit,
        outputs: &Encoder,
        states: &[(SharedMemory, RawTensor)],
    ) -> Result<()> {
        outputs.check("an output of an audited segment")?;
        for entry in &outputs.entries {
            if let Entry::Tensor(raw) = entry {
                audit.values.push({
                    self.check_live("an output of an audited segment", raw)?;
                    self.read(*raw)?.wait()?
                });
            }
        }
        audit.outputs = outputs.entries.to_vec();
        for (memory, _) in states {
            audit.states.push(self.backend.read(memory.addr(), memory.len())?.wait()?);
        }
        Ok(())
    }

    /// Puts state back that an audited body wrote.
    pub(crate) fn undo_writes(&mut self, undo: Vec<(SharedMemory, RawTensor)>) -> Result<()> {
        let mut outcome = Ok(());
        for (memory, copy) in undo {
            let back = bytes_of(&memory).and_then(|to| self.launch_now(Op::Copy, &[copy.view()], &[to]));
            self.release(copy.slot, copy.epoch);
            outcome = outcome.and(back);
        }
        outcome
    }

    /// Replays and compares, bit by bit.
    pub(crate) fn audited_replay(
        &mut self,
        at: usize,
        site: &'static Site,
        key: &KeyWriter,
        audit: &Audit,
    ) -> Result<Entries> {
        let writes = self.tree.node(at).map(|n| n.writes.clone()).unwrap_or_default();
        self.stage_copies(at, key);
        let entries = self.replay_apart(at, key)?;
        let outcome = self.compare(site, &entries, audit).and_then(|()| {
            self.compare_copies(at, site, key)?;
            for (index, ((_, memory), expected)) in writes.iter().zip(&audit.states).enumerate() {
                let got = self.backend.read(memory.addr(), memory.len())?.wait()?;
                same_bytes(site, &format!("state {index}"), expected, &got)?;
            }
            Ok(())
        });
        if let Err(error) = outcome {
            self.release_all(&entries);
            return Err(error);
        }
        self.log.audited(site);
        Ok(entries)
    }

    /// What a replay brought of its copied live-ins is what they hold.
    fn compare_copies(&mut self, at: usize, site: &'static Site, key: &KeyWriter) -> Result<()> {
        let Some(node) = self.tree.node(at) else { return Ok(()) };
        for c in node.copied.iter().filter(|c| c.bytes > 0) {
            let from = key.addrs[2 * c.position as usize + 1];
            let expected = self.backend.read(from + c.start, c.bytes)?.wait()?;
            let got = self.backend.read(c.memory.addr() + c.start, c.bytes)?.wait()?;
            same_bytes(site, &format!("the copy of operand {}", c.position), &expected, &got)?;
        }
        Ok(())
    }

    fn compare(&mut self, site: &'static Site, entries: &[Entry], audit: &Audit) -> Result<()> {
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
                    let bytes = self.read(*got)?.wait()?;
                    same_bytes(site, &what, values.next().map_or(&[], Vec::as_slice), &bytes)?;
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

/// Whether two tensors look the same from outside, whatever they hold.
fn alike(a: &RawTensor, b: &RawTensor) -> bool {
    a.dtype == b.dtype && a.marks.word() == b.marks.word() && a.layout.shape() == b.layout.shape()
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

//! The last net: a replay against its body.

use super::{Core, RunKind, decide::Entries, save::bytes_of};
use crate::{
    DType, Error, Result,
    backend::{Op, SharedMemory},
    key::KeyWriter,
    output::{Encoder, Entry},
    plan::Site,
    tensor::RawTensor,
    tree::Identity,
};

/// What the body gave, read back.
#[derive(Debug, Default)]
pub(crate) struct Audit {
    outputs: Vec<Entry>,
    values: Vec<Vec<u8>>,
    states: Vec<Vec<u8>>,
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
        self.flush()?;
        let mut undo = Vec::new();
        for (_, memory) in self.tree.node(at).map(|n| n.writes.clone()).unwrap_or_default() {
            let view = bytes_of(&memory)?;
            let copy = self.eager_tensor("audit", DType::U8, view.layout)?;
            self.launch_now(Op::Copy, &[view], &[copy.view()])?;
            undo.push((memory, copy));
        }
        self.begin_run(RunKind::Audit, site, identity, key)?;
        if let Some(run) = &mut self.run {
            run.undo = undo;
        }
        Ok(Audit::default())
    }

    /// Reads what the body gave and puts the state back.
    pub(crate) fn end_audit_body(&mut self, audit: &mut Audit, outputs: &Encoder) -> Result<()> {
        let Some(run) = self.run.take() else { return Ok(()) };
        self.phase = run.phase_before();
        // The state is put back whether or not everything could be read.
        let read = self.read_audited(audit, outputs, &run.undo);
        let undone = self.undo_writes(run.undo);
        read.and(undone)
    }

    fn read_audited(
        &mut self,
        audit: &mut Audit,
        outputs: &Encoder,
        states: &[(SharedMemory, RawTensor)],
    ) -> Result<()> {
        for entry in &outputs.entries {
            if let Entry::Tensor(raw) = entry {
                audit.values.push({
                    self.check_live("an output of an audited segment", raw)?;
                    self.read(*raw)?.wait()?
                });
            }
        }
        audit.outputs = outputs.entries.clone();
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
        let entries = self.replay(at, key)?;
        let outcome = self.compare(site, &entries, audit).and_then(|()| {
            for (index, ((_, memory), expected)) in writes.iter().zip(&audit.states).enumerate() {
                let got = self.backend.read(memory.addr(), memory.len())?.wait()?;
                same_bytes(site, &format!("state {index}"), expected, &got)?;
            }
            Ok(())
        });
        if let Err(error) = outcome {
            for entry in &entries {
                if let Entry::Tensor(raw) = entry {
                    self.release(raw.slot, raw.epoch);
                }
            }
            return Err(error);
        }
        self.log.audited(site);
        Ok(entries)
    }

    fn compare(&mut self, site: &'static Site, entries: &Entries, audit: &Audit) -> Result<()> {
        let mut values = audit.values.iter();
        for (index, (got, expected)) in entries.iter().zip(&audit.outputs).enumerate() {
            let what = format!("output {index}");
            match (got, expected) {
                (Entry::Tensor(got), Entry::Tensor(_)) => {
                    let bytes = self.read(*got)?.wait()?;
                    same_bytes(site, &what, values.next().map_or(&[], Vec::as_slice), &bytes)?;
                }
                (Entry::Word(a), Entry::Word(b)) if a == b => {}
                (Entry::Text(a), Entry::Text(b)) if a == b => {}
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

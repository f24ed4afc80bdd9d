//! The decision about a segment: replays are decided here, everything else in `warm_up_or_record.rs`.

use super::Core;
use crate::{
    Error, Result,
    base::plan::Site,
    record::{CallState, RunKind},
    tree::{Identity, LookupKey, Recording, RecordingIndex, Tree},
    value::{entry::Entries, key::KeyWriter},
};

pub(crate) enum Decision {
    /// The recording runs; these are its outputs, with one reference to each tensor.
    Replayed(Entries),
    /// The body must run.
    Run(RunKind),
    /// The recording with that index must be compared with its body, then run.
    Audit(RecordingIndex),
}

impl Core {
    /// Replays a recording that matches the key, or returns what else to do.
    ///
    /// # Errors
    /// Returns an error for a live-in that cannot be used, an error that no earlier call could report, and
    /// errors of the device.
    pub(crate) fn decide(
        &mut self,
        site: &'static Site,
        identity: Identity,
        key: &KeyWriter,
    ) -> Result<Decision> {
        self.stream.report_deferred()?;
        self.stream.check_upload()?;
        if key.foreign {
            return Err(Error::DifferentRuntimes { op: "a live-in of a segment" });
        }
        if !key.tensors.iter().all(|t| self.memory.is_live(t.slot, t.padded)) {
            return Err(Error::NeverComputed { op: "a live-in of a segment" });
        }
        if self.memory.has_unusable_weights() {
            let check = |addr| self.memory.check_weight("a live-in of a segment", addr);
            key.operands.iter().try_for_each(|operand| check(operand.addr))?;
        }
        if self.settings.reuse_budget().is_some() {
            self.call.ordinals_mut().count(identity);
        }
        let entry = self.memory.commit_frees();
        let overlaps = self.overlaps();
        let can_run = |recording: &Recording| overlaps.allow(recording, key);
        match self.tree.find(LookupKey::new(identity, entry, key), can_run) {
            Some(at) if audit_is_due(&self.tree, &self.call, at) => Ok(Decision::Audit(at)),
            Some(at) => self.replayer().replay(at, key).map(Decision::Replayed),
            None => self.decide_missed(site, identity, key, entry),
        }
    }
}

/// Returns whether the next replay of a recording is to be compared with its body.
#[inline]
pub(super) fn audit_is_due(tree: &Tree, call: &CallState, at: RecordingIndex) -> bool {
    tree.recording(at).is_some_and(|recording| call.audit_is_due(recording.hits))
}

//! The beginning and end of steps, calls and regions, and the state that is forgotten there.

use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::Core;
use crate::{
    Error, Result,
    base::plan::Site,
    memory::Memory,
    record::ActiveCall,
    tree::Tree,
    value::{
        owned::{Owned, OwnerId},
        raw::RawTensor,
    },
};

impl Core {
    /// Starts a generation: tensors of the previous one can no longer be reached, even through forgotten
    /// handles.
    ///
    /// # Errors
    /// Returns an error that no earlier call could report.
    pub(crate) fn begin_step(&mut self, retired: &[OwnerId]) -> Result<()> {
        self.recorder.begin_step();
        self.body_runner().abort();
        self.memory.begin_step();
        self.call.begin_step();
        self.stream.begin_step();
        forget_states(&mut self.memory, &self.tree);
        self.note_dropped(retired);
        let retired = self.memory.owned_mut().take_retired();
        self.evict_retired(&retired);
        self.stream.report_deferred()
    }

    /// Starts a call.
    pub(crate) fn begin_call(&mut self, call: ActiveCall) {
        self.memory.begin_call();
        self.stream.begin_call();
        forget_states(&mut self.memory, &self.tree);
        self.call.begin(call);
    }

    /// Releases the reference that a call holds to one of its inputs. Static inputs are invalid from here on,
    /// because the next call overwrites them.
    pub(crate) fn end_input(&mut self, raw: &RawTensor) {
        self.memory.end_input(raw);
        self.launcher().release(raw.slot, raw.epoch);
    }

    /// Ends the call. Returns the size and the producer of a tensor that it left in the pool, if any: tensors
    /// there are invalid, since the next call uses their memory.
    pub(crate) fn end_call(&mut self) -> Option<(u64, &'static str)> {
        self.stream.end_call();
        self.call.end();
        self.memory.end_call()
    }

    /// Opens an eager region. Returns the graph object of the running call if that is captured as a whole.
    pub(crate) fn begin_region(&mut self, site: &'static Site) -> Option<OwnerId> {
        let captured = self.recorder.is_running();
        let captured_by = self.call.enter_region(captured);
        if !captured {
            let (mut launcher, call) = self.in_call();
            launcher.begin_region(call, site);
        }
        captured_by
    }

    /// Closes an eager region.
    pub(crate) fn end_region(&mut self) {
        self.memory.end_region();
        self.call.leave_region();
    }

    /// Lends the idle pool.
    ///
    /// # Errors
    /// Returns an error if the pool is in use.
    pub(crate) fn begin_lending(&mut self) -> Result<()> {
        const CALL: &str = "a borrow of the pool";
        self.call.may_look(CALL)?;
        if let Some(call) = self.call.active() {
            return Err(Error::NestedCall { outer: call.name, inner: CALL });
        }
        self.memory.begin_lending();
        Ok(())
    }

    /// Registers new owned memory; `dropped` are the ids of objects dropped before it was allocated.
    pub(crate) fn own(&mut self, owned: &Arc<Owned>, dropped: &[OwnerId]) {
        self.note_dropped(dropped);
        self.memory.owned_mut().insert(owned);
    }

    /// Notes that owned memory and graph objects were dropped: the recordings made with them are evicted when
    /// the next step begins.
    pub(crate) fn note_dropped(&mut self, dropped: &[OwnerId]) {
        for &id in dropped {
            // A view of this step keeps it usable, so it may still be recorded.
            let viewed = self.memory.owned_mut().remove(id);
            if viewed || self.estimate.knows(id) || self.call.history().knows(id) || self.tree.holds(id) {
                self.memory.owned_mut().retire(id);
            }
        }
    }

    /// Evicts the recordings made with memory that was dropped.
    fn evict_retired(&mut self, retired: &[OwnerId]) {
        if retired.is_empty() {
            return;
        }
        self.estimate.retire(retired);
        for &id in retired {
            self.call.history_mut().forget(id);
        }
        self.tree.retire(retired, &mut self.log);
        let ids: FxHashSet<OwnerId> = retired.iter().copied().collect();
        self.tree.forget_cached(|caller| ids.contains(&caller));
    }

    /// Releases memory that no recording needs, including those that an estimate set aside. Called between
    /// steps.
    ///
    /// # Errors
    /// Returns errors of the device.
    pub(crate) fn trim(&mut self) -> Result<u64> {
        self.memory.persistent_mut().free_cached();
        self.tree.forget_cached(|_| true);
        let needed = self.tree.extent().max(self.estimate.extent_aside());
        let backend = self.stream.backend_mut();
        backend.release()?;
        self.memory.trim(backend, needed)
    }

    /// Forgets everything that was recorded and learned. Called between steps.
    pub(crate) fn forget_recordings(&mut self) {
        self.tree.clear(&mut self.log);
        self.memory.forget_recordings();
        *self.call.history_mut() = Default::default();
    }

    /// Sets aside everything that a capture changes. Called between steps.
    pub(crate) fn begin_dry_run(&mut self) {
        let Self { estimate, memory, tree, log, call, .. } = self;
        estimate.begin(memory, tree, log, call);
    }

    /// Discards what was captured since, and restores everything.
    pub(crate) fn end_dry_run(&mut self) {
        let begun = self.begin_step(&[]);
        let Self { estimate, memory, tree, log, call, stream, .. } = self;
        let Some((committed, retired)) = estimate.end(memory, tree, log, call) else { return };
        // The earlier ones are restored when they are used.
        let released = stream.backend_mut().release();
        let trimmed = memory.trim_to(stream.backend_mut(), committed);
        self.evict_retired(&retired);
        // No call can report it here; the next step does.
        if let Err(error) = begun.and(released).and(trimmed) {
            self.stream.defer(error);
        }
    }
}

/// Occasionally forgets states of the pool in which no recording begins or ends.
#[inline]
fn forget_states(memory: &mut Memory, tree: &Tree) {
    memory.forget_states(
        || tree.recordings().flat_map(|recording| [recording.entry, recording.exit]),
        tree.len(),
    );
}

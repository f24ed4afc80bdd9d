//! State that `capture_all` would modify is saved before its first write, and restored at the end.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use rustc_hash::FxHashMap;

use super::{launch::Launcher, recorder::Recorder, run::Run};
use crate::{
    DType, Result,
    backend::{SharedMemory, View},
    memory::COPY,
    value::layout::Layout,
};

/// State as it was before `capture_all` wrote it.
#[derive(Debug, Default)]
pub(super) struct StateSnapshot {
    /// By the address of the state's memory: the state, and a copy of its previous contents.
    saved: FxHashMap<u64, (SharedMemory, SharedMemory)>,
}

/// All of owned memory, as bytes.
pub(super) fn bytes_of(memory: &SharedMemory) -> Result<View> {
    Ok(View { addr: memory.addr(), dtype: DType::U8, layout: Layout::contiguous(&[memory.len() as usize])? })
}

impl Recorder {
    /// From here on, state is saved before it is written.
    pub(crate) fn begin_snapshot(&mut self) {
        self.snapshot = Some(StateSnapshot::default());
        self.captures_ahead.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the number of times that state began to be saved, which goes on counting.
    pub(crate) fn captures_ahead(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.captures_ahead)
    }

    /// Returns whether state is saved before it is written.
    #[inline]
    pub(crate) fn has_snapshot(&self) -> bool {
        self.snapshot.is_some()
    }
}

impl Launcher<'_> {
    /// Puts back everything that was saved.
    ///
    /// # Errors
    /// Returns errors of the device.
    pub(crate) fn restore_snapshot(&mut self) -> Result<()> {
        let Some(snapshot) = self.recorder.snapshot.take() else { return Ok(()) };
        let mut outcome = Ok(());
        for (state, copy) in snapshot.saved.values() {
            // A state that cannot be restored must not prevent restoring the others.
            let back = bytes_of(copy)
                .and_then(|from| bytes_of(state).and_then(|to| self.launch(COPY, &[from], &[to])));
            outcome = outcome.and(back);
        }
        // The copies are freed in stream order, like any owned memory.
        outcome
    }

    /// Like [`restore_snapshot`](Self::restore_snapshot), where no call can report a failure: the next one
    /// that can does.
    pub(crate) fn restore_snapshot_later(&mut self) {
        if let Err(error) = self.restore_snapshot() {
            self.stream.defer(error);
        }
    }

    /// Before an eager operation writes.
    ///
    /// # Errors
    /// Returns errors of the device.
    pub(crate) fn save_before_write(&mut self, outputs: &[View]) -> Result<()> {
        let audited = self.recorder.run().is_some_and(Run::is_audit);
        // A recording writes nothing yet; its first replay saves.
        if self.recorder.is_recording() || !self.recorder.has_snapshot() && !audited {
            return Ok(());
        }
        // What is only described now is run later, and saves then.
        let described = self.recorder.described.is_some();
        for memory in self.state_memory(outputs) {
            if described {
                if audited {
                    self.check_audited_write(&memory)?;
                }
                continue;
            }
            if audited {
                self.save_audited(&memory)?;
            }
            self.save_state(&memory)?;
        }
        Ok(())
    }

    fn state_memory(&self, outputs: &[View]) -> Vec<SharedMemory> {
        let mut found: Vec<SharedMemory> = Vec::new();
        for owned in outputs.iter().filter_map(|view| self.memory.owned().holding(view.addr)) {
            if found.iter().all(|memory| memory.addr() != owned.memory.addr()) {
                found.push(SharedMemory::clone(&owned.memory));
            }
        }
        found
    }

    /// Saves state before its first write, while `capture_all` runs.
    ///
    /// # Errors
    /// Returns errors of the device.
    pub(crate) fn save_state(&mut self, state: &SharedMemory) -> Result<()> {
        if self.recorder.snapshot.as_ref().is_none_or(|s| s.saved.contains_key(&state.addr())) {
            return Ok(());
        }
        let copy = self.stream.alloc(state.len())?;
        self.launch(COPY, &[bytes_of(state)?], &[bytes_of(&copy)?])?;
        if let Some(snapshot) = &mut self.recorder.snapshot {
            snapshot.saved.insert(state.addr(), (state.clone(), copy));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::{Device, Runtime, State, ops};

    #[test]
    fn a_step_does_not_go_on_saving() {
        let mut rt = Runtime::new(Device::cpu()).unwrap();
        let state = State::new(&rt, &[1], &[1.0f32]).unwrap();
        rt.core.get_mut().recorder.begin_snapshot();
        for written in [2.0, 3.0] {
            let step = rt.saving_step().unwrap();
            ops::store(&state, &step.tensor(&[1], &[written]).unwrap()).unwrap();
        }
        let step = rt.step().unwrap();
        assert_eq!(step.item(&ops::load(step.scope(), &state).unwrap()).unwrap(), 1.0, "put back");
        ops::store(&state, &step.tensor(&[1], &[4.0]).unwrap()).unwrap();
        let step = rt.step().unwrap();
        assert_eq!(step.item(&ops::load(step.scope(), &state).unwrap()).unwrap(), 4.0, "and not again");
    }
}

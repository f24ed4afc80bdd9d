//! State that `capture_all` would modify is saved before its first write, and restored at the end.

use super::{launch::Launcher, run::Run};
use crate::{
    DType, Result,
    backend::{SharedMemory, View},
    memory::COPY,
    value::layout::Layout,
};

/// All of owned memory, as bytes.
pub(super) fn bytes_of(memory: &SharedMemory) -> Result<View> {
    Ok(View { addr: memory.addr(), dtype: DType::U8, layout: Layout::contiguous(&[memory.len() as usize])? })
}

impl Launcher<'_> {
    /// Puts back everything that was saved.
    ///
    /// # Errors
    /// Returns errors of the device.
    pub(crate) fn restore_snapshot(&mut self) -> Result<()> {
        let mut outcome = Ok(());
        for (state, copy) in &self.recorder.end_snapshot() {
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
        let described = self.recorder.is_describing();
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
        if !self.recorder.is_unsaved(state) {
            return Ok(());
        }
        let copy = self.stream.alloc(state.len())?;
        self.launch(COPY, &[bytes_of(state)?], &[bytes_of(&copy)?])?;
        self.recorder.saved(state, copy);
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

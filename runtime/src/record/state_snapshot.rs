//! State that `capture_all` would change is saved before its first write, and put back at the end.

use rustc_hash::FxHashMap;

use super::{Core, RunKind};
use crate::{
    DType, Result,
    backend::{Op, SharedMemory, View},
    value::layout::Layout,
};

#[derive(Debug, Default)]
pub(crate) struct Saver {
    /// By address of the state's memory: the state, and the copy of what it held.
    saved: FxHashMap<u64, (SharedMemory, SharedMemory)>,
}

/// All of owned memory, as bytes.
pub(crate) fn bytes_of(memory: &SharedMemory) -> Result<View> {
    Ok(View { addr: memory.addr(), dtype: DType::U8, layout: Layout::contiguous(&[memory.len() as usize])? })
}

impl Core {
    /// From here on, state is saved before it is written.
    pub(crate) fn begin_saving(&mut self) {
        self.saver = Some(Saver::default());
    }

    /// Puts back everything that was saved.
    pub(crate) fn end_saving(&mut self) -> Result<()> {
        let Some(saver) = self.saver.take() else { return Ok(()) };
        let mut outcome = Ok(());
        for (state, copy) in saver.saved.values() {
            // One that cannot be put back must not keep the others from it.
            let back = bytes_of(copy)
                .and_then(|from| bytes_of(state).and_then(|to| self.launch_now(Op::Copy, &[from], &[to])));
            outcome = outcome.and(back);
        }
        // The copies are freed behind the stream, like any owned memory.
        outcome
    }

    /// As [`end_saving`](Self::end_saving), where nobody can be told of a failure: the next call that can
    /// be told is.
    pub(crate) fn end_saving_later(&mut self) {
        if let Err(error) = self.end_saving() {
            self.deferred.get_or_insert(error);
        }
    }

    /// Before an eager operation writes.
    pub(crate) fn save_before_write(&mut self, outputs: &[View]) -> Result<()> {
        let kind = self.run.as_ref().map(|r| r.kind);
        let audited = kind == Some(RunKind::Audit);
        // A recording writes nothing yet; its first replay saves.
        if kind == Some(RunKind::Record) || self.saver.is_none() && !audited {
            return Ok(());
        }
        for memory in self.state_memory(outputs) {
            if audited {
                self.save_audited(&memory)?;
            }
            self.save_memory(&[(0, memory)])?;
        }
        Ok(())
    }

    fn state_memory(&self, outputs: &[View]) -> Vec<SharedMemory> {
        let mut found: Vec<SharedMemory> = Vec::new();
        for owned in outputs.iter().filter_map(|view| self.owned_memory.holding(view.addr)) {
            if found.iter().all(|memory| memory.addr() != owned.memory.addr()) {
                found.push(SharedMemory::clone(&owned.memory));
            }
        }
        found
    }

    pub(crate) fn save_memory(&mut self, memory: &[(u64, SharedMemory)]) -> Result<()> {
        for (_, state) in memory {
            if self.saver.as_ref().is_none_or(|s| s.saved.contains_key(&state.addr())) {
                continue;
            }
            let copy = self.backend.alloc(state.len())?;
            self.launch_now(Op::Copy, &[bytes_of(state)?], &[bytes_of(&copy)?])?;
            if let Some(saver) = &mut self.saver {
                saver.saved.insert(state.addr(), (state.clone(), copy));
            }
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
        rt.core.get_mut().begin_saving();
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

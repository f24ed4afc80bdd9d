//! The state of a runtime: eight components, and the choreography between them.
//!
//! A component has private fields and does not depend on [`Core`]; it gets other components as parameters.
//! Code that needs several of them is a method of a type that borrows exactly those: [`Launcher`],
//! [`Replayer`], [`BodyRunner`].
//!
//! No user code runs while the core is borrowed: keys are written before, and outputs decoded after.

mod decide;
mod estimate;
mod lifecycle;
pub(crate) mod report;
mod settings;
#[cfg(test)]
mod tests;
mod tree_view;
mod warm_up_or_record;

use crate::{
    Error, Result,
    backend::{Backend, Op, View},
    memory::{BlockArena, Memory, NewTensor, Origin, RegionTarget},
    observe::log::Log,
    record::{BodyRunner, CallState, Launcher, Overlaps, Recorder, Replayer, Stream},
    tree::Tree,
    value::raw::RawTensor,
};

pub(crate) use decide::Decision;
pub(crate) use estimate::{Estimate, Measure};
pub(crate) use settings::Settings;
pub(crate) use tree_view::tree_view;

#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) memory: Memory,
    pub(crate) stream: Stream,
    pub(crate) recorder: Recorder,
    pub(crate) call: CallState,
    pub(crate) tree: Tree,
    pub(crate) log: Log,
    pub(crate) settings: Settings,
    pub(crate) estimate: Estimate,
}

impl Core {
    pub(crate) fn new(mut backend: Box<dyn Backend>) -> Result<Self> {
        Ok(Self {
            memory: Memory::new(&mut *backend)?,
            stream: Stream::new(backend),
            recorder: Recorder::default(),
            call: CallState::default(),
            tree: Tree::default(),
            log: Log::default(),
            settings: Settings::default(),
            estimate: Estimate::default(),
        })
    }

    /// Borrows the components that an operation needs.
    #[inline]
    pub(crate) fn launcher(&mut self) -> Launcher<'_> {
        let Self { memory, stream, recorder, log, .. } = self;
        Launcher { memory, stream, recorder, log }
    }

    /// Borrows the components that a replay needs.
    #[inline]
    pub(crate) fn replayer(&mut self) -> Replayer<'_> {
        let Self { memory, stream, recorder, log, tree, settings, .. } = self;
        let launcher = Launcher { memory, stream, recorder, log };
        Replayer { tree, launcher, reuse_budget: settings.reuse_budget() }
    }

    /// Borrows the components that running a body needs.
    pub(crate) fn body_runner(&mut self) -> BodyRunner<'_> {
        let Self { memory, stream, recorder, log, tree, settings, call, .. } = self;
        let launcher = Launcher { memory, stream, recorder, log };
        BodyRunner { replayer: Replayer { tree, launcher, reuse_budget: settings.reuse_budget() }, call }
    }

    /// Borrows the components that an operation of the running call needs, and that call.
    pub(crate) fn in_call(&mut self) -> (Launcher<'_>, &CallState) {
        let Self { memory, stream, recorder, log, call, .. } = self;
        (Launcher { memory, stream, recorder, log }, call)
    }

    /// Returns the overlaps of a function's live-ins as its caller sees them.
    #[inline]
    pub(crate) fn overlaps(&self) -> Overlaps<'_> {
        Overlaps { memory: &self.memory, call: &self.call }
    }

    /// Rejects a tensor whose memory may have been reused.
    ///
    /// # Errors
    /// Returns [`Error::NeverComputed`](crate::Error::NeverComputed) or
    /// [`Error::UsedAfterLastUse`](crate::Error::UsedAfterLastUse).
    pub(crate) fn check_live(&self, op: &'static str, raw: &RawTensor) -> Result<()> {
        self.recorder.check_live(&self.memory, op, raw)
    }

    /// Launches an operation of user code.
    ///
    /// # Errors
    /// Returns an error where operations are not allowed, and errors of the device.
    pub(crate) fn launch(&mut self, op: Op, inputs: &[View], outputs: &[View]) -> Result<()> {
        self.call.may_operate(op.name())?;
        let result = self.launch_checked(op, inputs, outputs);
        // Whatever failed, a body that ignores the error may take a different path than usual.
        if let (Err(error), Some(run)) = (&result, self.recorder.run_mut()) {
            run.fail(error);
        }
        result
    }

    fn launch_checked(&mut self, op: Op, inputs: &[View], outputs: &[View]) -> Result<()> {
        self.stream.report_deferred()?;
        if !op.operation().may_be_captured() {
            self.call.may_not_capture(op.name())?;
        }
        let numerics = self.call.numerics_or(self.settings.numerics());
        if numerics.deterministic && !op.operation().is_deterministic() {
            return Err(Error::NotDeterministic { op: op.name() });
        }
        if op.operation().writes_in_place() {
            check_state(op.name(), inputs, outputs)?;
        }
        self.recorder.check_operation(&mut self.tree, &op, inputs, outputs)?;
        let Self { memory, stream, recorder, log, tree, settings, .. } = self;
        let mut launcher = Launcher { memory, stream, recorder, log };
        launcher.check_branches(op.name(), inputs, outputs)?;
        if op.operation().writes_in_place() {
            launcher.save_before_write(outputs)?;
        }
        // A copied live-in is read from the recording's own buffer.
        let rebound = launcher.recorder.run_mut().and_then(|run| run.rebound(inputs));
        launcher.launch(op, rebound.as_deref().unwrap_or(inputs), outputs)?;
        if settings.frees_at_last_use() {
            launcher.release_finished(tree);
        }
        Ok(())
    }

    /// Allocates the output of an operation of user code; its placement depends on what is running.
    ///
    /// # Errors
    /// Returns [`Error::OutsideSegment`](crate::Error::OutsideSegment) or
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory).
    pub(crate) fn allocate_output(&mut self, new: &mut NewTensor) -> Result<RawTensor> {
        self.call.may_operate(new.producer)?;
        let Self { memory, stream, recorder, log, tree, .. } = self;
        let mut launcher = Launcher { memory, stream, recorder, log };
        let raw = allocate(&mut launcher, tree, new)?;
        launcher.recorder.note_made(raw.slot);
        Ok(raw)
    }
}

/// Allocates an output where what is running expects it.
fn allocate(launcher: &mut Launcher<'_>, tree: &Tree, new: &mut NewTensor) -> Result<RawTensor> {
    if let Some(run) = launcher.recorder.run_mut().filter(|run| !run.is_audit()) {
        let (group, ordinal) = (run.group(), run.next_ordinal());
        let is_result = group.is_some_and(|group| tree.is_result(group, ordinal));
        let arena = if is_result { BlockArena::Results } else { BlockArena::Pool };
        new.origin = group.map_or(Origin::Other, |group| Origin::Segment { group, ordinal });
        let raw = launcher.new_tensor(arena, new)?;
        if let Some(run) = launcher.recorder.run_mut() {
            run.made(ordinal, raw.slot, launcher.memory);
        }
        return Ok(raw);
    }
    let arena = launcher.memory.eager_arena(new.bytes());
    let Some(allocation) = launcher.memory.region_allocation(new.bytes()) else {
        return launcher.new_tensor(arena, new);
    };
    new.origin = allocation.origin;
    match allocation.target {
        RegionTarget::Anywhere => launcher.new_tensor(arena, new),
        RegionTarget::Results => launcher.new_tensor(BlockArena::Results, new),
        RegionTarget::Reserved(block) => Ok(launcher.memory.tensor_in(BlockArena::Pool, block, new)),
    }
}

/// Refuses state that an operation writes while it is another operand of it: which of its values were read would depend on the
/// device.
fn check_state(op: &'static str, inputs: &[View], outputs: &[View]) -> Result<()> {
    let refused = |reason: &str| Err(Error::Argument { op, reason: reason.into() });
    for (index, state) in outputs.iter().enumerate() {
        if inputs.iter().any(|input| input.overlaps(state)) {
            return refused(
                "an input overlaps the state that it writes; pass a copy (`ops::load`), or the state alone",
            );
        }
        if outputs[..index].iter().any(|other| other.overlaps(state)) {
            return refused(
                "it is passed the same state twice, to write; pass it once, and a copy as an input (`ops::load`)",
            );
        }
    }
    Ok(())
}

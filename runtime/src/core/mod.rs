//! The state of a runtime: eight components, and the choreography between them.
//!
//! A component keeps its fields to itself and does not know of [`Core`]; what it needs of another one it is handed. What
//! several of them do together is a method of what borrows just those: [`Launcher`], [`Replayer`], [`BodyRunner`].
//!
//! No user code runs while the core is borrowed: keys are written before, outputs decoded after.

mod decide;
mod estimate;
mod lifecycle;
mod miss;
pub(crate) mod report;
mod settings;
#[cfg(test)]
mod tests;
mod tree_view;

use crate::{
    Result,
    backend::{Backend, Op, View},
    memory::{Memory, NewTensor, Origin, Placement, RegionTarget},
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

    /// What an operation touches.
    #[inline]
    pub(crate) fn launcher(&mut self) -> Launcher<'_> {
        let Self { memory, stream, recorder, log, .. } = self;
        Launcher { memory, stream, recorder, log }
    }

    /// What a replay touches.
    #[inline]
    pub(crate) fn replayer(&mut self) -> Replayer<'_> {
        let Self { memory, stream, recorder, log, tree, settings, .. } = self;
        let launcher = Launcher { memory, stream, recorder, log };
        Replayer { tree, launcher, reuse_budget: settings.reuse_budget() }
    }

    /// What running a body touches.
    pub(crate) fn body_runner(&mut self) -> BodyRunner<'_> {
        let Self { memory, stream, recorder, log, tree, settings, call, .. } = self;
        let launcher = Launcher { memory, stream, recorder, log };
        BodyRunner { replayer: Replayer { tree, launcher, reuse_budget: settings.reuse_budget() }, call }
    }

    /// What an operation of the running call touches, and that call.
    pub(crate) fn in_call(&mut self) -> (Launcher<'_>, &CallState) {
        let Self { memory, stream, recorder, log, call, .. } = self;
        (Launcher { memory, stream, recorder, log }, call)
    }

    /// What the caller of a function sees of its live-ins.
    #[inline]
    pub(crate) fn overlaps(&self) -> Overlaps<'_> {
        Overlaps { memory: &self.memory, call: &self.call }
    }

    /// Refuses a tensor whose memory may be another's by now.
    ///
    /// # Errors
    /// [`Error::NeverComputed`](crate::Error::NeverComputed),
    /// [`Error::UsedAfterLastUse`](crate::Error::UsedAfterLastUse).
    pub(crate) fn check_live(&self, op: &'static str, raw: &RawTensor) -> Result<()> {
        self.recorder.check_live(&self.memory, op, raw)
    }

    /// Launches an operation of user code.
    ///
    /// # Errors
    /// Where operations are refused, and what the device reports.
    pub(crate) fn launch(&mut self, op: Op, inputs: &[View], outputs: &[View]) -> Result<()> {
        self.call.may_operate(op.name())?;
        let result = self.launch_checked(op, inputs, outputs);
        // Whatever failed, a body that swallows it may go another way than it usually does.
        if let (Err(error), Some(run)) = (&result, self.recorder.run_mut()) {
            run.fail(error);
        }
        result
    }

    fn launch_checked(&mut self, op: Op, inputs: &[View], outputs: &[View]) -> Result<()> {
        self.stream.report_deferred()?;
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

    /// Makes the output of an operation of user code: where it goes depends on what runs.
    ///
    /// # Errors
    /// [`Error::OutsideSegment`](crate::Error::OutsideSegment), [`Error::OutOfMemory`](crate::Error::OutOfMemory).
    pub(crate) fn allocate_output(&mut self, mut new: NewTensor) -> Result<RawTensor> {
        self.call.may_operate(new.producer)?;
        let Self { memory, stream, recorder, log, tree, .. } = self;
        let mut launcher = Launcher { memory, stream, recorder, log };
        if let Some(run) = launcher.recorder.run_mut().filter(|run| !run.is_audit()) {
            let (group, ordinal) = (run.group(), run.next_ordinal());
            let is_result = group.is_some_and(|group| tree.is_result(group, ordinal));
            let placement = if is_result { Placement::Results } else { Placement::Pool };
            new.origin = group.map_or(Origin::Other, |group| Origin::Segment { group, ordinal });
            let raw = launcher.new_tensor(placement, &new)?;
            if let Some(run) = launcher.recorder.run_mut() {
                run.made(ordinal, raw.slot, launcher.memory);
            }
            return Ok(raw);
        }
        let placement = launcher.memory.eager_placement(new.bytes());
        let Some(allocation) = launcher.memory.region_allocation(new.bytes()) else {
            return launcher.new_tensor(placement, &new);
        };
        new.origin = allocation.origin;
        match allocation.target {
            RegionTarget::Anywhere => launcher.new_tensor(placement, &new),
            RegionTarget::Results => launcher.new_tensor(Placement::Results, &new),
            RegionTarget::Reserved(block) => Ok(launcher.memory.tensor_in(Placement::Pool, block, &new)),
        }
    }
}

//! Conditional nodes: parts of a segment that run depending on a value on the device.
//!
//! The code of a body runs once, whatever the value is, and describes what the body does. In a recording, its
//! commands go into the body of a node of the capture. Everywhere else they are written down until the outermost
//! node ends; then they are run, with the host deciding what runs (`run_commands`).
//!
//! A body starts from the memory that is free before its node (`nesting`), and all that it makes is gone at its
//! end, except for the results that leave the node. Those get slots of their own, so that no handle that was kept
//! back can show the memory of a body that did not run.

use std::hash::{Hash, Hasher};

use rustc_hash::FxHasher;

use super::{
    body::BodyRunner, call::CallState, launch::Launcher, recorder::Recorder, replay::Replayer, run::Run,
};
use crate::{
    Error, Result,
    backend::Conditional,
    program::Command,
    tree::{ControlMark, TraceOp, Tree},
    value::raw::RawTensor,
};

/// The state before a conditional node, to which a node that fails goes back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NodeStart {
    depth: usize,
    /// The number of commands that were described, if any were.
    described: Option<usize>,
}

impl Recorder {
    /// Adds a place of a node to the trace. Returns the run and the index, if it has a trace.
    ///
    /// # Errors
    /// See [`check_traced`](Self::check_traced).
    fn mark(
        &mut self,
        tree: &mut Tree,
        node: &Conditional,
        mark: ControlMark,
    ) -> Result<Option<(&mut Run, usize)>> {
        self.check_traced(tree, || {
            let mut h = FxHasher::default();
            (node.name, node.bodies, node.repeats).hash(&mut h);
            let name = match mark {
                ControlMark::Begin => node.name,
                ControlMark::Body => "body",
                ControlMark::End => "end",
            };
            TraceOp { name, fingerprint: h.finish(), mark: Some(mark) }
        })
    }

    /// Returns whether a conditional node is open.
    pub(crate) fn is_in_body(&self) -> bool {
        self.nesting().has_bodies()
    }
}

impl Launcher<'_> {
    fn open_node(&mut self, call: &CallState, tree: &mut Tree, node: Conditional) -> Result<()> {
        call.may_operate(node.name)?;
        self.stream.report_deferred()?;
        if let Some((run, _)) = self.recorder.mark(tree, &node, ControlMark::Begin)? {
            run.uses.open_node();
        }
        self.check_branches(node.name, &[node.selector], &[])?;
        self.recorder.describe();
        self.issue(Command::Conditional(node))
    }

    /// Invalidates the tensors that the running body made and that are still held, and frees their memory.
    fn end_running_body(&mut self) {
        let Some(bodies) = self.recorder.nesting_mut().bodies() else { return };
        for id in bodies.end() {
            let slot = self.memory.slot(id);
            let (base, bytes) = (slot.base(), slot.bytes());
            if slot.is_held()
                && let Some(arena) = slot.placement().block_arena()
            {
                self.memory.invalidate_slot(id);
                self.free_block(arena, base, bytes);
            }
        }
    }
}

impl BodyRunner<'_> {
    /// Opens a conditional node. Its bodies follow.
    ///
    /// # Errors
    /// Returns [`Error::OutsideSegment`], and errors of the device; no node is then open.
    pub(crate) fn begin_conditional(&mut self, node: Conditional) -> Result<NodeStart> {
        let Replayer { tree, launcher, .. } = &mut self.replayer;
        let start = NodeStart {
            depth: launcher.recorder.nesting().depth(),
            described: launcher.recorder.described_len(),
        };
        let opened = launcher.open_node(self.call, tree, node);
        if opened.is_err() && start.described.is_none() {
            launcher.recorder.undo_description(None);
        }
        launcher.note_failure(opened)?;
        launcher.recorder.nesting_mut().open_bodies();
        self.call.enter_body();
        Ok(start)
    }

    /// Starts body `index` of the innermost node.
    ///
    /// # Errors
    /// Returns errors of the device.
    pub(crate) fn begin_body(&mut self, node: &Conditional, index: usize) -> Result<()> {
        let Replayer { tree, launcher, .. } = &mut self.replayer;
        let marked = launcher.recorder.mark(tree, node, ControlMark::Body).map(|place| {
            if let Some((run, _)) = place {
                let first = run.coming_ordinal();
                run.uses.begin_body(first);
            }
        });
        let begun = marked.and_then(|()| launcher.issue(Command::Body(index)));
        launcher.note_failure(begun)
    }

    /// Ends the running body. What it made, and what did not [leave](Self::take_out) it, is gone.
    pub(crate) fn end_body(&mut self) {
        self.replayer.launcher.end_running_body();
    }

    /// Returns whether a tensor is all of a block that the running body made, so that it can leave it as it is.
    pub(crate) fn can_take_out(&mut self, raw: &RawTensor) -> bool {
        let launcher = &mut self.replayer.launcher;
        let slot = launcher.memory.slot(raw.slot);
        let is_all = raw.addr == slot.base()
            && raw.layout.is_contiguous()
            && (raw.layout.count() * raw.dtype.size()) as u64 == slot.bytes();
        is_all && slot.placement().block_arena().is_some() && launcher.recorder.nesting_mut().made(raw.slot)
    }

    /// Moves a tensor out of the running body: it gets a slot of its own, with one reference. The handles that it
    /// had are invalid.
    pub(crate) fn take_out(&mut self, raw: RawTensor) -> RawTensor {
        let moved = self.move_slot(raw);
        let launcher = &mut self.replayer.launcher;
        let base = launcher.memory.slot(moved.slot).base();
        launcher.recorder.nesting_mut().leaves_body(moved.slot, base);
        moved
    }

    /// Returns a tensor as it is after a loop: in a slot of its own, with one reference. The handles that the loop
    /// had are invalid.
    pub(crate) fn after_loop(&mut self, raw: RawTensor) -> RawTensor {
        let moved = self.move_slot(raw);
        self.replayer.launcher.recorder.nesting_mut().note_made(moved.slot);
        moved
    }

    fn move_slot(&mut self, raw: RawTensor) -> RawTensor {
        let launcher = &mut self.replayer.launcher;
        let slot = launcher.memory.move_slot(raw.slot);
        let origin = launcher.memory.slot(slot).origin();
        if let Some(run) = launcher.recorder.run_mut().filter(|run| !run.is_audit()) {
            run.moved(slot, origin);
        }
        RawTensor { slot, owner: None, ..raw }
    }

    /// Ends the innermost node: later work waits for it. `used` are tensors that its bodies use up to its end.
    /// Outside a recording, what it described is run, if it is the outermost node.
    ///
    /// # Errors
    /// Returns errors of the device. The node has
    /// ended nevertheless.
    pub(crate) fn end_conditional(
        &mut self,
        node: &Conditional,
        used: &[RawTensor],
        frees_at_last_use: bool,
    ) -> Result<()> {
        let Replayer { tree, launcher, .. } = &mut self.replayer;
        let memory = &*launcher.memory;
        let marked = launcher.recorder.mark(tree, node, ControlMark::End).map(|place| {
            if let Some((run, index)) = place.filter(|(run, _)| run.is_warm_up()) {
                let used = used.iter().filter_map(|raw| run.ordinal_of(memory.slot(raw.slot).origin()));
                let used: Vec<_> = used.collect();
                run.uses.close_node(index, &used);
            }
        });
        let ended = launcher.issue(Command::EndConditional);
        let bodies = launcher.recorder.nesting_mut().close_bodies();
        self.call.leave_body();
        let mut result = marked.and(ended);
        if !launcher.recorder.is_in_body()
            && let Some(commands) = launcher.recorder.take_description()
        {
            result = result.and_then(|()| launcher.run_commands(&commands));
        }
        // After what runs: freed memory may be overwritten at once.
        for freed in bodies.into_iter().flat_map(super::nesting::Bodies::close) {
            launcher.free_block(freed.arena, freed.base, freed.bytes);
        }
        launcher.note_failure(result)?;
        if frees_at_last_use {
            launcher.release_finished(tree);
        }
        Ok(())
    }

    /// Gives up the innermost node, one of whose bodies failed. Nothing of it runs.
    pub(crate) fn abort_conditional(&mut self, start: NodeStart) {
        let Replayer { launcher, .. } = &mut self.replayer;
        if let Some(run) = launcher.recorder.run_mut() {
            run.uses.abort_node();
            let reason = "a body of a conditional node failed".into();
            run.fail(&Error::Argument { op: "control", reason });
        }
        launcher.recorder.undo_description(start.described);
        while launcher.recorder.nesting().depth() > start.depth {
            if launcher.recorder.nesting_mut().top_fork().is_some() {
                // A failure is noted in the run.
                drop(launcher.end_fork());
                continue;
            }
            launcher.end_running_body();
            let bodies = launcher.recorder.nesting_mut().close_bodies();
            self.call.leave_body();
            for freed in bodies.into_iter().flat_map(super::nesting::Bodies::close) {
                launcher.free_block(freed.arena, freed.base, freed.bytes);
            }
        }
    }
}

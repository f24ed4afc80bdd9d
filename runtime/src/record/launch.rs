//! Launching operations, and the nets under a recording: its trace and its addresses.

use std::hash::{Hash, Hasher};

use rustc_hash::FxHasher;

use super::{Core, Placement, RunKind, tape::Act};
use crate::{
    Error, Result,
    backend::{Op, View},
    base::plan::Site,
    tree::TraceOp,
};

/// What an operation was, without its addresses.
fn trace_op(op: &Op, inputs: &[View], outputs: &[View]) -> TraceOp {
    let mut h = FxHasher::default();
    // Operations are plain values: their debug form names every argument, floats to the last bit.
    h.write(format!("{op:?}").as_bytes());
    for view in inputs.iter().chain(outputs) {
        view.dtype.hash(&mut h);
        view.layout.shape().hash(&mut h);
        // As in keys: recordings of one key may differ in strides that mean nothing.
        view.layout.meaning().for_each(|n| h.write_usize(n));
    }
    TraceOp { name: op.name(), fingerprint: h.finish() }
}

impl Core {
    /// An operation of user code.
    pub(crate) fn launch(&mut self, op: Op, inputs: &[View], outputs: &[View]) -> Result<()> {
        self.may_operate(op.name())?;
        let result = self.launch_checked(op, inputs, outputs);
        // Whatever failed, a body that swallows it may go another way than it usually does.
        if let (Err(error), Some(run)) = (&result, &mut self.run) {
            run.fail(error);
        }
        result
    }

    pub(crate) fn launch_checked(&mut self, op: Op, inputs: &[View], outputs: &[View]) -> Result<()> {
        if let Some(error) = self.deferred.take() {
            return Err(error);
        }
        if self.run.is_some() {
            self.check_run(&op, inputs, outputs)?;
        }
        self.check_branches(op.name(), inputs, outputs)?;
        if op.writes_in_place() {
            self.save_before_write(outputs)?;
        }
        // A copied live-in is read from the recording's own buffer.
        let redirected =
            self.run.as_mut().filter(|run| !run.redirects.is_empty()).map(|run| run.redirected(inputs));
        self.launch_now(op, redirected.as_deref().unwrap_or(inputs), outputs)?;
        self.release_finished();
        Ok(())
    }

    /// An operation of the runtime itself: no checks, not traced.
    pub(crate) fn launch_now(&mut self, op: Op, inputs: &[View], outputs: &[View]) -> Result<()> {
        self.flush()?;
        // What a recording has is launched again as it was: nothing is chosen anew meanwhile.
        let measure = !self.capturing();
        let bytes = self.backend.workspace(&op, inputs, outputs, measure)?;
        if bytes == 0 {
            return self.launch_at(op, inputs, outputs, 0);
        }
        // In a body it comes from the pool, as ordinary memory of the operation: branches that run side
        // by side share none, and the next operation may have it.
        let pooled = self.run.as_ref().is_some_and(|run| run.kind != RunKind::Audit);
        let home = if pooled { Placement::Pool } else { self.eager_home(bytes) };
        // Whole units: scratch is aligned to one, also where blocks end at guards.
        let bytes = crate::memory::pool::rounded(bytes);
        let block = self.place(home, bytes)?;
        if let (Some(run), true) = (&mut self.run, pooled) {
            run.uses.scratch(block.len);
        }
        let launched = self.launch_at(op, inputs, outputs, block.addr);
        self.free_block(home, block.addr, bytes);
        launched
    }

    /// Hands an operation to the backend, in a description that is used again: it is large, and most of it
    /// empty.
    pub(crate) fn launch_at(
        &mut self,
        op: Op,
        inputs: &[View],
        outputs: &[View],
        scratch: u64,
    ) -> Result<()> {
        let launch = &mut *self.description;
        (launch.op, launch.workspace) = (op, scratch);
        launch.inputs.clear();
        launch.inputs.extend_from_slice(inputs);
        launch.outputs.clear();
        launch.outputs.extend_from_slice(outputs);
        if self.capturing() {
            let launch = Box::new((*self.description).clone());
            return self.put(Act::Launch(launch));
        }
        self.backend.launch(&self.description)
    }

    pub(crate) fn check_run(&mut self, op: &Op, inputs: &[View], outputs: &[View]) -> Result<()> {
        let Some(run) = &mut self.run else { return Ok(()) };
        if run.kind == RunKind::Eager {
            return Ok(());
        }
        let traced = trace_op(op, inputs, outputs);
        let index = run.trace.len();
        run.trace.push(traced);
        if run.kind == RunKind::Warm {
            run.uses.touch(index, inputs.iter().chain(outputs));
            return Ok(());
        }
        let expected = self.tree.group_mut(run.group).trace.get(index).copied();
        if run.kind == RunKind::Audit {
            return same_operation(run.site, index, expected, Some(traced));
        }
        if expected != Some(traced) {
            let error = Error::TraceMismatch {
                segment: run.site.to_string(),
                index,
                warm: describe(expected, Some(traced)),
                recorded: describe(Some(traced), expected),
            };
            // The change may have been the last one: the next step warms up again, and compares with that.
            self.tree.group_mut(run.group).warmed = false;
            return Err(error);
        }
        for view in inputs.iter().chain(outputs) {
            if !run.knows(view.range()) {
                return Err(Error::UnkeyedAddress {
                    segment: run.site.to_string(),
                    op: op.name(),
                    addr: view.addr,
                });
            }
        }
        for view in outputs {
            run.wrote(view.addr);
        }
        Ok(())
    }
}

/// An operation of an audited body against the recording's.
pub(crate) fn same_operation(
    site: &'static Site,
    index: usize,
    recorded: Option<TraceOp>,
    body: Option<TraceOp>,
) -> Result<()> {
    if recorded == body {
        return Ok(());
    }
    Err(Error::AuditMismatch {
        segment: site.to_string(),
        what: format!("operation {index}"),
        detail: format!(
            "the recording has {}, the body {}",
            describe(recorded, body),
            describe(body, recorded)
        ),
    })
}

/// Names an operation, if there is one; two of one name differ in shapes or arguments.
fn describe(op: Option<TraceOp>, other: Option<TraceOp>) -> String {
    match (op, other) {
        (None, _) => "nothing".into(),
        (Some(op), Some(other)) if op.name == other.name => {
            format!("`{}` (other shapes or arguments)", op.name)
        }
        (Some(op), _) => format!("`{}`", op.name),
    }
}

//! The code of a segment as its body has it: live-ins by the names that they have there, and control flow of the device as
//! data.

use syn::{Expr, Local, Stmt, visit_mut::VisitMut};

use super::{Analysis, field_paths::Replace};
use crate::{
    device_flow::{Flows, Known, Later},
    model::{Closure, Ending, Guard, LiveOut, Segment, Step},
    parse::attributes,
};

impl Analysis<'_, '_> {
    /// Puts the code of a segment into that form.
    pub(super) fn put_in_form(&self, segment: &mut Segment) {
        if self.misplaced {
            return;
        }
        let known = segment.live_ins.iter().filter_map(Known::live_in);
        let mut code =
            SegmentCode { replace: Replace::of(&segment.live_ins), flows: Flows::of(self.header.ret, known) };
        let Segment { closures, steps, ending, live_outs, .. } = segment;
        for closure in closures {
            // Only `self`: the captures of a closure enter as whole values.
            code.local(closure, || named_by(steps, ending, live_outs));
        }
        for at in 0..steps.len() {
            let (done, rest) = steps.split_at_mut(at + 1);
            match &mut done[at] {
                Step::Statement(stmt) | Step::Borrow(stmt) | Step::Probed { call: stmt, .. } => {
                    code.stmt(stmt, || named_by(rest, ending, live_outs));
                }
                Step::Keep { .. } | Step::StillUsed { .. } | Step::AskEnd(_) => {}
            }
        }
        match ending {
            Ending::Outputs => {}
            Ending::Result(expr) | Ending::Value { expr, .. } => code.value(expr, || left(live_outs)),
        }
        segment.flows = code.flows.found;
    }

    /// Returns a closure of host code.
    pub(super) fn host_closure(&self, mut local: Local) -> Closure {
        let mut flows = Flows::of_closure();
        if !self.misplaced {
            flows.visit_local_mut(&mut local);
        }
        Closure { local, flows: flows.found }
    }
}

struct SegmentCode {
    replace: Replace,
    flows: Flows,
}

impl SegmentCode {
    /// A statement, whose names are in scope afterwards. `later` follows it.
    fn stmt(&mut self, stmt: &mut Stmt, later: impl FnOnce() -> Later) {
        self.replace.visit_stmt_mut(stmt);
        attributes::Keys.visit_stmt_mut(stmt);
        self.flows.statement(stmt, later);
    }

    fn local(&mut self, local: &mut Local, later: impl FnOnce() -> Later) {
        let mut stmt = Stmt::Local(local.clone());
        self.stmt(&mut stmt, later);
        if let Stmt::Local(changed) = stmt {
            *local = changed;
        }
    }

    /// The value at the end of the segment.
    fn value(&mut self, expr: &mut Expr, later: impl FnOnce() -> Later) {
        self.replace.visit_expr_mut(expr);
        attributes::Keys.visit_expr_mut(expr);
        self.flows.value(expr, later);
    }
}

/// Returns the variables that the steps of a segment, its end and its live-outs name.
fn named_by(steps: &[Step], ending: &Ending, live_outs: &[LiveOut]) -> Later {
    let mut later = Later::default();
    for step in steps {
        match step {
            Step::Statement(stmt) | Step::Borrow(stmt) | Step::Probed { call: stmt, .. } => later.stmt(stmt),
            Step::Keep { ident, .. } | Step::StillUsed { ident, .. } | Step::AskEnd(Guard { ident, .. }) => {
                later.name(&ident.to_string());
            }
        }
    }
    match ending {
        Ending::Outputs => {}
        Ending::Result(expr) | Ending::Value { expr, .. } => later.stmt(&Stmt::Expr(expr.clone(), None)),
    }
    live_outs.iter().for_each(|out| later.name(&out.ident().to_string()));
    later
}

/// Returns the variables that leave a segment. One that the run binds may have been an earlier variable of that name.
fn left(live_outs: &[LiveOut]) -> Later {
    let mut later = Later::default();
    live_outs.iter().for_each(|out| later.name(&out.ident().to_string()));
    later
}

//! A value that a run creates and no later code uses ends with its segment. If its block continues after a
//! boundary, that is earlier than in the source, which makes no difference unless dropping the value has an
//! effect: it is a guard. Only types can decide this, so generated code asks them (`boundary/ends.rs` of the
//! runtime).
//!
//! A value that is moved into another variable, or into a part of one, is asked for where that one ends. A
//! pattern may leave a part of a value where it was: the question is about that part. One that is moved on some ways only is
//! asked for before.

use std::collections::HashSet;

use syn::{Expr, Local, LocalInit, Stmt};

use super::{Analysis, liveness::LiveOuts};
use crate::{
    facts::{classify, statement::Statement, uses::Uses},
    model::{Guard, Step},
    parse::syntax,
};

mod asking;
mod assigned;
mod closures;
mod lent;
mod literals;
mod made_again;
mod parts;
mod temporaries;
#[cfg(test)]
mod tests;

use asking::Asking;
pub(super) use made_again::{is_made_by_each, of_made_before};
pub(super) use temporaries::Held;

/// The questions about the values of a run.
#[derive(Default)]
pub(super) struct Questions {
    /// Each has the statement of the run before which it is asked.
    pub(super) asked: Vec<(usize, Step)>,
    /// Values that a pattern borrows from, which get names.
    pub(super) held: Vec<Held>,
    /// The statements in which a value got a name where it is made, as they are then.
    pub(super) lending: Vec<(usize, Stmt)>,
    /// The questions about these values.
    pub(super) lent: Vec<Guard>,
}

impl Analysis<'_, '_> {
    /// Returns the questions about values that end with the run, other than those of `unused` statements. The outer variables
    /// `changed` live on.
    pub(super) fn guards(
        &self,
        run: &[Statement],
        rest: &[Statement],
        live_outs: &LiveOuts,
        unused: &HashSet<usize>,
        changed: &[String],
    ) -> Questions {
        let mut asking = Asking::new(run, live_outs, unused);
        if rest.iter().all(is_inert_tail) {
            return Questions::default();
        }
        for (at, statement) in run.iter().enumerate() {
            let again = live_outs.rematerialised.iter().any(|(i, _)| *i == at);
            if unused.contains(&at) {
                asking.forget(&statement.binds);
                continue;
            }
            match &statement.stmt {
                // Host code has it, to the end of the block. One that is written out is made twice.
                Stmt::Local(Local { init: Some(init), .. }) if again && !literals::is_asked(&init.expr) => {}
                Stmt::Local(local) => {
                    let is_asked = |_: &&LocalInit| statement.made.is_none() || is_made_by_each(statement);
                    if let Some(init) = local.init.as_ref().filter(is_asked) {
                        asking.local(at, local, &init.expr);
                        continue;
                    } else if let Some(init) = &local.init {
                        let is_move = matches!(&*init.expr, Expr::Closure(c) if c.capture.is_some());
                        asking.closure(at, &statement.binds, is_move);
                        continue;
                    }
                }
                Stmt::Expr(Expr::Assign(a), _) => {
                    for (ident, value) in assigned::values(&a.left, Some(&a.right)) {
                        // Only this run uses it.
                        let name = ident.to_string();
                        if self.is_initialised(&name, changed)
                            || !changed.contains(&name) && asking.is_given(at, ident)
                        {
                            asking.assigned(at, ident, value, &a.right);
                        }
                    }
                }
                Stmt::Expr(..) => {
                    let assigned = statement.uses.0.iter().filter(|(_, u)| u.assigned);
                    let alone = assigned.filter(|(name, _)| self.is_initialised(name, changed));
                    asking.assigned_inside(at, &alone.map(|(name, _)| name.clone()).collect::<Vec<_>>());
                }
                _ => {}
            }
            asking.forget(&statement.binds);
        }
        asking.found()
    }

    /// Returns whether a variable that the run assigns had no value before, and only this run uses it.
    fn is_initialised(&self, name: &String, changed: &[String]) -> bool {
        self.scope.lookup(name).is_some_and(|b| b.uninit) && !changed.contains(name)
    }
}

/// Returns whether a statement is the value of the block, and to make it does nothing that could be seen before the values of the block
/// end.
fn is_inert_tail(statement: &Statement) -> bool {
    matches!(&statement.stmt, Stmt::Expr(expr, None) if classify::call_free(expr)) && !statement.has_boundary
}

/// Returns whether a `let` may end a value at once: one that is written out or moved, and that its pattern does not bind.
pub(super) fn ends_at_once(local: &Local, value: &Uses) -> bool {
    let may_hold = |init: &LocalInit| literals::makes(&init.expr) || value.0.iter().any(|(_, u)| u.by_value);
    syntax::leaves_part(&local.pat) && local.init.as_ref().is_some_and(may_hold)
}

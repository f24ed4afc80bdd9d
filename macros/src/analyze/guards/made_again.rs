//! Values that are written out of what is the same on every call: each segment that uses one makes it for itself, as it does closures. If
//! such a value is a guard, that is once too often.

use std::collections::HashSet;

use syn::Local;

use super::{
    asking::{moves_all, written_out},
    literals,
};
use crate::{
    facts::statement::Statement,
    model::{Guard, Step},
    parse::syntax,
};

/// Returns whether a value that each segment makes for itself may be a guard: one that is written out, and no closure.
pub(in crate::analyze) fn is_made_by_each(statement: &Statement) -> bool {
    statement.made.is_some() && statement.local().is_some_and(is_asked)
}

fn is_asked(local: &Local) -> bool {
    local.init.as_ref().is_some_and(|init| literals::is_asked(&init.expr))
}

/// Returns the questions about values from before the run that it makes for itself: they live on, unless the run moves them in a
/// statement that is not left out, and is the only one to end them (`lives_on`).
pub(in crate::analyze) fn of_made_before(
    locals: &[Local],
    run: &[Statement],
    unused: &HashSet<usize>,
    lives_on: impl Fn(&str) -> bool,
) -> Vec<(usize, Step)> {
    let mut asked = Vec::new();
    for local in locals.iter().filter(|local| is_asked(local)) {
        let Some(init) = &local.init else { continue };
        for bound in syntax::bound_by_let(local) {
            let name = bound.ident.to_string();
            let mut used = run.iter().enumerate().filter(|(at, _)| !unused.contains(at));
            let is_moved = !lives_on(&name) && used.any(|(_, s)| moves_all(s, &name));
            let guard = written_out(Guard::whole(bound.ident), &init.expr, is_moved);
            asked.extend(guard.map(|guard| (0, Step::AskEnd(guard))));
        }
    }
    asked
}

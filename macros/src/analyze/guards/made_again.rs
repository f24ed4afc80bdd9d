//! Values that are written out of what is the same on every call: each segment that uses one makes it for itself, as it does closures. If
//! such a value is a guard, that is once too often.

use syn::{Expr, Ident, Local, LocalInit};

use super::{
    Questions,
    asking::{moves_all, whole_of, written_out},
    lent::{Finding, Lending},
    literals,
    parts::{self, Taken},
};
use crate::{
    facts::statement::Statement,
    model::{Asked, Guard, Step},
    parse::syntax,
};

/// Returns whether a value that each segment makes for itself may be a guard: one that is written out, and no closure.
pub(in crate::analyze) fn is_made_by_each(statement: &Statement) -> bool {
    statement.made.is_some() && statement.local().is_some_and(is_asked)
}

/// What a call makes is not: its parts may be something that has to be dropped, such as a `Vec`.
fn is_asked(local: &Local) -> bool {
    let asked =
        |init: &LocalInit| literals::is_written_out(&init.expr) && literals::makes_or_lends(&init.expr);
    local.init.as_ref().is_some_and(asked)
}

/// Returns the questions about values from before the run that it makes for itself: they live on, unless the run moves them. What they
/// borrow from gets names in `locals`.
pub(in crate::analyze) fn of_made_before(locals: &mut [Local], run: &[Statement]) -> Questions {
    let mut found = Questions::default();
    for (at, local) in locals.iter_mut().enumerate() {
        let Some(init) = local.init.clone().filter(|init| literals::makes_or_lends(&init.expr)) else {
            continue;
        };
        // Other names than those of values that the run itself makes.
        let question = |ident: Ident, value: &Expr| {
            let guard =
                Guard { ident, shown: parts::shown(&local.pat), asked: Asked::Itself, inside: Vec::new() };
            literals::makes(value).then(|| written_out(guard, value))
        };
        if let Some(Lending { local: named, guards }) = Finding::new(run.len() + at, question).of(local) {
            *local = named;
            found.lent.extend(guards);
        }
        for bound in syntax::bound_by_let(local) {
            let name = bound.ident.to_string();
            let moves = |s: &Statement| s.uses.get(&name).is_some_and(|u| u.by_value);
            let nothing = |s: &Statement| matches!(parts::taken_by(&s.stmt, &name), Taken::Nothing(_));
            let moved = run.iter().position(|s| moves(s) && !nothing(s));
            if literals::makes(&init.expr) && !moved.is_some_and(|at| moves_all(&run[at], &name)) {
                let question = Step::AskEnd(written_out(whole_of(bound), &init.expr));
                found.asked.push((moved.unwrap_or(run.len()), question));
            }
        }
    }
    found
}

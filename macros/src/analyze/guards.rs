//! A value that a run creates and no later code uses ends with its segment. If its block continues after a
//! boundary, that is earlier than in the source, which makes no difference unless dropping the value has an
//! effect: it is a guard. Only types can decide this, so generated code asks them (`boundary.rs` of the
//! runtime).

use std::ops::Range;

use syn::{Expr, Stmt};

use super::{Analysis, liveness::LiveOuts};
use crate::{
    facts::{classify, statement::Statement},
    model::{Guard, Step},
    parse::syntax,
};

impl Analysis<'_, '_> {
    /// Returns, for values that end with the run, the check and the statement of the run before which it is
    /// made. The outer variables `changed` live on.
    pub(super) fn guards(
        &self,
        run: &[Statement],
        rest: &[Statement],
        live_outs: &LiveOuts,
        changed: &[String],
    ) -> Vec<(usize, Step)> {
        let mut asked = Vec::new();
        if rest.is_empty() {
            return asked;
        }
        for (at, statement) in run.iter().enumerate() {
            if live_outs.rematerialised.iter().any(|(i, _)| *i == at) {
                // Host code has it, to the end of the block.
                continue;
            }
            let (names, value) = match &statement.stmt {
                Stmt::Local(local) if statement.made.is_none() => match &local.init {
                    Some(init) => (statement.binds.clone(), &*init.expr),
                    None => continue,
                },
                Stmt::Expr(Expr::Assign(a), _) => match self.initialises(&a.left, changed) {
                    Some(bound) => (vec![bound], &*a.right),
                    None => continue,
                },
                _ => continue,
            };
            if classify::call_free(value) || classify::is_value(value) {
                continue;
            }
            for bound in names {
                let name = bound.ident.to_string();
                let shadowed = (at + 1..run.len()).find(|&i| run[i].binds(&name));
                let end = shadowed.unwrap_or(run.len());
                let moved = run[at + 1..end].iter().any(|s| s.uses.get(&name).is_some_and(|u| u.by_value));
                let leaves = live_outs.carried.iter().any(|o| o.ident == bound.ident && shadowed.is_none());
                if !moved && !leaves {
                    // A pattern or a field may move a part of it: nothing can refer to it afterwards.
                    let parted = (at + 1..end)
                        .find(|&i| run[i].uses.get(&name).is_some_and(|u| u.handed_on || u.taken));
                    let end = parted.or_else(|| given_to_method(run, at + 1..end, &name)).unwrap_or(end);
                    let guard = Guard { ident: bound.ident, lent: lends_temporary(value) };
                    asked.push((end, Step::AskEnd(guard)));
                }
            }
        }
        asked
    }

    /// Returns the variable that an assignment initialises, if only this run uses it.
    fn initialises(&self, left: &Expr, changed: &[String]) -> Option<syntax::Bound> {
        let ident = syntax::plain_name(left)?;
        let name = ident.to_string();
        let alone = self.scope.lookup(&name).is_some_and(|b| b.uninit) && !changed.contains(&name);
        alone.then(|| syntax::Bound { ident: ident.clone(), mutable: false, by_ref: false })
    }
}

/// Returns the first statement that calls a method on a part of a variable, or the last one that uses it, if it calls a method on
/// it, whose result is used: the method may take it. Whatever determines the variable's type stands above.
fn given_to_method(run: &[Statement], mut among: Range<usize>, name: &str) -> Option<usize> {
    let calls = |at: usize| run[at].uses.get(name).is_some_and(|u| u.touched) && !discards(&run[at].stmt);
    let on_part = |at: &usize| calls(*at) && run[*at].uses.get(name).is_some_and(|u| !u.whole);
    among.clone().find(on_part).or_else(|| among.rfind(|&at| run[at].uses.has(name)).filter(|at| calls(*at)))
}

/// Returns whether the statement is a call of a method that nothing uses the result of, such as `list.push(x);`.
fn discards(stmt: &Stmt) -> bool {
    match stmt {
        Stmt::Expr(Expr::Try(e), _) => matches!(&*e.expr, Expr::MethodCall(_)),
        Stmt::Expr(expr, _) => matches!(expr, Expr::MethodCall(_)),
        _ => false,
    }
}

/// Returns whether the value is a reference to a temporary that lives as long as it does.
fn lends_temporary(expr: &Expr) -> bool {
    match expr {
        Expr::Reference(e) => syntax::place_base(&e.expr).is_none(),
        Expr::Paren(e) => lends_temporary(&e.expr),
        _ => false,
    }
}

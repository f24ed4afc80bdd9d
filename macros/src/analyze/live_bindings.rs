//! Bindings whose values later code needs.

use std::collections::HashSet;

use syn::Expr;

use super::Analysis;
use crate::facts::{statement::Statement, uses, uses::Uses};

impl Analysis<'_, '_> {
    /// Returns whether the statement assigns a variable before it, or a closure that it names, reads it.
    pub(super) fn assigns_first(&self, statement: &Statement, name: &str) -> bool {
        if !statement.assigned.contains(name) {
            return false;
        }
        let mut captured = Uses::default();
        for named in statement.uses.names() {
            if let Some(made) = self.scope.lookup(named).and_then(|b| b.made.as_ref()) {
                captured.merge(&made.uses);
            }
        }
        !self.scope.with_captures(captured).has(name)
    }

    /// Returns the bindings whose values are needed after this point: those that later code reads before it
    /// assigns them. `around` is the statement that this point is part of, followed by `rest`; `after` are
    /// the bindings that are needed after the block.
    pub(super) fn live_after(
        &self,
        around: &Statement,
        rest: &[Statement],
        after: &HashSet<usize>,
    ) -> HashSet<usize> {
        // A jump out of a statement passes over assignments below it.
        self.live(hidden(std::slice::from_ref(around)), around.leaves, rest, after)
    }

    /// As [`Self::live_after`], of the bindings outside a run.
    pub(super) fn live_after_run(
        &self,
        run: &[Statement],
        rest: &[Statement],
        after: &HashSet<usize>,
    ) -> HashSet<usize> {
        self.live(hidden(run), false, rest, after)
    }

    /// `bound` are names with another meaning in `rest`; if `jumps`, it may be passed over.
    fn live(
        &self,
        mut bound: HashSet<String>,
        mut jumps: bool,
        rest: &[Statement],
        after: &HashSet<usize>,
    ) -> HashSet<usize> {
        let (mut live, mut dead) = (HashSet::new(), HashSet::new());
        let mut known = HashSet::new();
        for statement in rest {
            for name in statement.assigned.iter().filter(|n| !jumps && !bound.contains(*n)) {
                let id = self.scope.lookup(name).map(|b| b.id);
                dead.extend(id.filter(|id| !live.contains(id) && self.assigns_first(statement, name)));
            }
            jumps |= statement.leaves;
            for name in statement.uses.names() {
                if !bound.contains(name) && known.insert(name) {
                    live.extend(self.scope.ids_of(name).difference(&dead));
                }
            }
            bound.extend(statement.binds.iter().map(|b| b.ident.to_string()));
        }
        live.extend(after.difference(&dead));
        live.extend(&self.named_by_macros);
        live
    }

    /// Returns the bindings whose values are needed throughout a loop's body: those needed after it, and
    /// those that its next iteration reads before it assigns them.
    pub(super) fn around_loop(&self, expr: &Expr, after: &HashSet<usize>) -> HashSet<usize> {
        let mut live = self.scope.ids(&uses::of_expr(expr));
        let (head, body) = match expr {
            Expr::ForLoop(e) => (Some(&*e.expr), &e.body),
            Expr::While(e) => (Some(&*e.cond), &e.body),
            Expr::Loop(e) => (None, &e.body),
            _ => return live,
        };
        let body = Statement::of_value(&syn::parse_quote!(#body));
        let read = head.map(uses::of_expr).unwrap_or_default();
        for name in body.assigned.iter().filter(|name| !read.has(name)) {
            if let Some(b) = self.scope.lookup(name)
                && self.assigns_first(&body, name)
            {
                live.remove(&b.id);
            }
        }
        live.extend(after);
        live.extend(&self.named_by_macros);
        live
    }
}

/// Returns the names that statements give another meaning in the code after them. Closures are in scope already.
fn hidden(statements: &[Statement]) -> HashSet<String> {
    let own = statements.iter().filter(|s| s.made.is_none()).flat_map(|s| &s.binds);
    own.map(|b| b.ident.to_string()).collect()
}

//! A value that a run creates and no later code uses ends with its segment. If its block continues after a
//! boundary, that is earlier than in the source, which makes no difference unless dropping the value has an
//! effect: it is a guard. Only types can decide this, so generated code asks them (`boundary.rs` of the
//! runtime).
//!
//! A value that is moved into another variable, or into a part of one, is asked for where that one ends. A
//! pattern may leave a part of a value where it was: the question is about that part.

use std::{
    collections::{HashMap, HashSet},
    ops::Range,
};

use syn::{Expr, Ident, Local, Stmt};

use super::{Analysis, liveness::LiveOuts};
use crate::{
    facts::{classify, statement::Statement, uses::Use},
    model::{Asked, Guard, Step},
    parse::syntax::{self, Bound},
};

mod parts;
mod temporaries;
#[cfg(test)]
mod tests;

use parts::{Left, Taken};
pub(super) use temporaries::Held;

/// The questions about the values of a run.
pub(super) struct Questions {
    /// Each has the statement of the run before which it is asked.
    pub(super) asked: Vec<(usize, Step)>,
    /// Values that a pattern borrows from, which get names.
    pub(super) held: Vec<Held>,
}

impl Analysis<'_, '_> {
    /// Returns the questions about values that end with the run. The outer variables `changed` live on.
    pub(super) fn guards(
        &self,
        run: &[Statement],
        rest: &[Statement],
        live_outs: &LiveOuts,
        changed: &[String],
    ) -> Questions {
        let mut asking = Asking {
            run,
            live_outs,
            known: HashMap::new(),
            done: HashSet::new(),
            found: Questions { asked: Vec::new(), held: Vec::new() },
        };
        if rest.is_empty() {
            return asking.found;
        }
        for (at, statement) in run.iter().enumerate() {
            let again = live_outs.rematerialised.iter().any(|(i, _)| *i == at);
            match &statement.stmt {
                // Host code has it, to the end of the block.
                _ if again => {}
                Stmt::Local(local) if statement.made.is_none() => {
                    if let Some(init) = &local.init {
                        asking.local(at, local, &init.expr);
                        continue;
                    }
                }
                Stmt::Expr(Expr::Assign(a), _) => {
                    if let Some(bound) = self.initialises(&a.left, changed) {
                        asking.variables(at, vec![bound], &a.right, true);
                    }
                }
                _ => {}
            }
            asking.forget(&statement.binds);
        }
        asking.found
    }

    /// Returns the variable that an assignment initialises, if only this run uses it.
    fn initialises(&self, left: &Expr, changed: &[String]) -> Option<Bound> {
        let ident = syntax::plain_name(left)?;
        let name = ident.to_string();
        let alone = self.scope.lookup(&name).is_some_and(|b| b.uninit) && !changed.contains(&name);
        alone.then(|| Bound { ident: ident.clone(), mutable: false, by_ref: false })
    }
}

/// A question about a value, where it got its name.
#[derive(Clone)]
struct Origin {
    at: usize,
    guard: Guard,
}

impl Origin {
    fn key(&self) -> (usize, String) {
        (self.at, self.guard.ident.to_string())
    }
}

/// The questions that are found, from the beginning of a run to its end.
struct Asking<'s> {
    run: &'s [Statement],
    live_outs: &'s LiveOuts,
    /// What to ask about the variables that may hold a guard.
    known: HashMap<String, Vec<Origin>>,
    /// The values that were asked about.
    done: HashSet<(usize, String)>,
    found: Questions,
}

impl Asking<'_> {
    /// The variables of a `let`.
    fn local(&mut self, at: usize, local: &Local, value: &Expr) {
        let bound = self.run[at].binds.clone();
        let may_hold = self.may_hold(at, value);
        if let Some(held) = may_hold.then(|| Held::of(at, local, value)).flatten() {
            self.held(at, held, bound);
            return;
        }
        // What `ref` borrows from is a variable, which is asked.
        let (bound, lent): (Vec<Bound>, Vec<Bound>) = bound.into_iter().partition(|b| !b.by_ref);
        self.forget(&lent);
        self.variables(at, bound, value, matches!(parts::bare(&local.pat), syn::Pat::Ident(_)));
    }

    /// A value that a pattern borrows from, and the variables that it moves out of it.
    fn held(&mut self, at: usize, held: Held, bound: Vec<Bound>) {
        let (bound, lent): (Vec<Bound>, Vec<Bound>) = bound.into_iter().partition(|b| !b.by_ref);
        self.forget(&lent);
        let whole = held.guard(Asked::Whole);
        let mut origins = self.origins(at, &held.value, whole, !held.lends);
        match held.taken() {
            Taken::Some(left) => {
                self.late(at, left.late, &held.guard(Asked::Referent));
                let asked = Some(held.guard(left.asked));
                self.found.held.push(Held { asked, ..held.clone() });
            }
            taken => {
                if let (Taken::Nothing(asked), Some(own)) = (taken, origins.last_mut()) {
                    own.guard.ask_for(asked);
                }
                self.all(self.run.len(), origins);
                self.found.held.push(held.clone());
            }
        }
        if !held.lends {
            bound.into_iter().for_each(|b| self.variable(at, vec![Origin { at, guard: whole_of(b) }]));
        }
    }

    /// Variables that get a value, or parts of it.
    fn variables(&mut self, at: usize, bound: Vec<Bound>, value: &Expr, whole: bool) {
        self.forget(&bound);
        if !self.may_hold(at, value) {
            return;
        }
        for bound in bound {
            let mut guard = whole_of(bound);
            if temporaries::lends(value) {
                guard.asked = Asked::Referent;
            }
            let origins = self.origins(at, value, guard, whole);
            self.variable(at, origins);
        }
    }

    /// Returns whether a value is made by a call, or of one that is.
    fn may_hold(&self, at: usize, value: &Expr) -> bool {
        let is_called = !classify::call_free(value) && !classify::is_value(value);
        is_called || self.given(at).next().is_some()
    }

    /// Returns the variables that may hold a guard and that a statement moves, or a part of them.
    fn given(&self, at: usize) -> impl Iterator<Item = &Vec<Origin>> {
        let uses = self.run[at].uses.0.iter().filter(|(_, u)| hands_on(u));
        uses.filter_map(|(name, _)| self.known.get(name))
    }

    /// Returns what to ask about a variable that gets a `whole` value, or a part of one. The last question is about itself.
    fn origins(&self, at: usize, value: &Expr, mut guard: Guard, whole: bool) -> Vec<Origin> {
        let is_moved = syntax::place_base(value).is_some();
        if !whole || is_moved || !classify::call_free(value) {
            return vec![Origin { at, guard }];
        }
        // Made of others: only its own type has not been asked about.
        let mut origins: Vec<Origin> = self.given(at).flatten().cloned().collect();
        origins.sort_by_key(Origin::key);
        origins.dedup_by_key(|o| o.key());
        guard.asked = Asked::Itself;
        origins.push(Origin { at, guard });
        origins
    }

    /// Asks about a variable, if it ends with the run.
    fn variable(&mut self, at: usize, mut origins: Vec<Origin>) {
        let Some(Origin { guard: own, .. }) = origins.last().cloned() else { return };
        let name = own.ident.to_string();
        self.known.insert(name.clone(), origins.clone());
        let run = self.run;
        let shadowed = (at + 1..run.len()).find(|&i| run[i].binds(&name));
        let end = shadowed.unwrap_or(run.len());
        // A pattern that shadows it may take it apart: `let (_, w) = w;`.
        let behind = at + 1..end + usize::from(shadowed.is_some_and(|i| parts::divides(&run[i].stmt, &name)));
        let taken = |i: &usize| parts::taken_by(&run[*i].stmt, &name);
        let uses = |i: &usize| run[*i].uses.get(&name);
        let moves = |i: usize| uses(&i).is_some_and(|u| u.by_value) && matches!(taken(&i), Taken::All);
        let leaves = shadowed.is_none() && self.live_outs.carried.iter().any(|o| o.ident == own.ident);
        let lends = matches!(own.asked, Asked::Referent);
        if leaves || !lends && behind.clone().any(moves) {
            // What it moved into is asked.
            return;
        }
        let passes = |i: &usize| uses(i).is_some_and(hands_on) && !matches!(taken(i), Taken::Nothing(_));
        // A pattern or a field may move a part of it: nothing can refer to it afterwards.
        if let Some(i) = behind.clone().find(passes) {
            if let Taken::Some(left) = taken(&i) {
                self.left(i, left, origins);
            } else {
                self.all(i, origins);
            }
            return;
        }
        let untouched =
            behind.filter(|i| uses(i).is_some_and(|u| u.by_value)).find_map(|i| match taken(&i) {
                Taken::Nothing(asked) => Some(asked),
                _ => None,
            });
        if let (Some(asked), Some(own)) = (untouched, origins.last_mut()) {
            own.guard.ask_for(asked);
        }
        let end = given_to_method(run, at + 1..end, &name).unwrap_or(end);
        self.all(end, origins);
    }

    /// Asks about what the pattern of a statement leaves in a variable.
    fn left(&mut self, at: usize, left: Left, origins: Vec<Origin>) {
        match (left.asked, origins.last()) {
            (asked @ Asked::Parts { .. }, Some(own)) => {
                self.late(at, left.late, &own.guard);
                self.ask(at, Guard { asked, ..own.guard.clone() });
            }
            _ => self.all(at, origins),
        }
    }

    /// Asks about what `ref mut` refers to, after its last use.
    fn late(&mut self, at: usize, names: Vec<Ident>, of: &Guard) {
        for ident in names {
            let name = ident.to_string();
            let behind = &self.run[at + 1..];
            let end = behind.iter().position(|s| s.binds(&name)).map_or(behind.len(), |i| i + 1);
            let last = behind[..end].iter().rposition(|s| s.uses.has(&name));
            let shadows = last.is_some_and(|i| behind[i].binds(&name));
            let place = at + 1 + last.map_or(0, |i| if shadows { i } else { i + 1 });
            self.ask(place, Guard { ident, shown: of.shown, asked: Asked::Referent });
        }
    }

    /// Asks all about a variable: itself at `end`, and what it was made of where that was moved.
    fn all(&mut self, end: usize, mut origins: Vec<Origin>) {
        let own = origins.pop();
        for origin in origins {
            let passes = |i: &usize| self.run[*i].uses.get(&origin.key().1).is_some_and(hands_on);
            if let Some(place) = (origin.at + 1..self.run.len()).find(passes) {
                self.once(place, origin);
            }
        }
        own.into_iter().for_each(|own| self.once(end, own));
    }

    fn once(&mut self, place: usize, origin: Origin) {
        if self.done.insert(origin.key()) {
            self.ask(place, origin.guard);
        }
    }

    fn ask(&mut self, place: usize, guard: Guard) {
        self.found.asked.push((place, Step::AskEnd(guard)));
    }

    /// Names that stand for other values from here on.
    fn forget(&mut self, bound: &[Bound]) {
        bound.iter().for_each(|b| _ = self.known.remove(&b.ident.to_string()));
    }
}

fn whole_of(bound: Bound) -> Guard {
    Guard { shown: bound.ident.span(), ident: bound.ident, asked: Asked::Whole }
}

/// Returns whether a use may move the variable, or a part of it.
fn hands_on(u: &Use) -> bool {
    u.by_value || u.handed_on || u.taken
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

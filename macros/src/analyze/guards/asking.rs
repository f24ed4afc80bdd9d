//! The questions about the values of a run, from its beginning to its end.

use std::{
    collections::{HashMap, HashSet},
    ops::Range,
};

use syn::{Expr, Ident, Local, Stmt};

use super::{
    Questions,
    lent::{Finding, Lending},
    literals,
    parts::{self, Left, Taken},
    temporaries::{self, Held},
};
use crate::{
    analyze::liveness::LiveOuts,
    facts::{
        classify,
        statement::Statement,
        uses::{self, Use},
    },
    model::{Asked, Guard, Step},
    parse::syntax::{self, Bound},
};

/// A question about a value, where it got its name.
#[derive(Clone)]
pub(super) struct Origin {
    pub(super) at: usize,
    pub(super) guard: Guard,
}

impl Origin {
    fn key(&self) -> (usize, String) {
        (self.at, self.guard.ident.to_string())
    }
}

/// A variable that gets a value.
enum Named<'v> {
    /// One that is written out.
    Literal(Bound, &'v Expr),
    /// Another one, and what to ask about it.
    Variable(Vec<Origin>),
}

/// The questions that are found, from the beginning of a run to its end.
pub(super) struct Asking<'s> {
    pub(super) run: &'s [Statement],
    live_outs: &'s LiveOuts,
    /// Statements that the segment leaves out.
    unused: &'s HashSet<usize>,
    /// What to ask about the variables that may hold a guard.
    pub(super) known: HashMap<String, Vec<Origin>>,
    /// The values that were asked about.
    done: HashSet<(usize, String)>,
    pub(super) found: Questions,
}

impl<'s> Asking<'s> {
    pub(super) fn new(run: &'s [Statement], live_outs: &'s LiveOuts, unused: &'s HashSet<usize>) -> Self {
        let (known, done) = Default::default();
        Self { run, live_outs, unused, known, done, found: Questions::default() }
    }

    /// Returns how a statement of the segment uses a variable.
    pub(super) fn use_at(&self, at: usize, name: &str) -> Option<&'s Use> {
        self.run[at].uses.get(name).filter(|_| !self.unused.contains(&at))
    }

    /// Returns whether a statement of the segment moves all of a variable, on every way through it.
    pub(super) fn moves_all(&self, at: usize, name: &str) -> bool {
        self.use_at(at, name).is_some() && moves_all(&self.run[at], name)
    }

    /// Returns whether one of them does so before it is shadowed.
    pub(super) fn moves_after(&self, at: usize, name: &str) -> bool {
        self.behind(at, name).any(|i| self.moves_all(i, name))
    }

    /// Returns the statements behind one, up to that which shadows the variable.
    pub(super) fn behind(&self, at: usize, name: &str) -> Range<usize> {
        let end = self.run.len();
        at + 1..(at + 1..end).find(|&i| self.run[i].binds(name)).map_or(end, |i| i + 1)
    }

    /// Returns whether later segments use the variable.
    pub(super) fn leaves(&self, variable: &Ident) -> bool {
        self.live_outs.carried.iter().any(|out| out.ident == *variable)
    }

    pub(super) fn found(self) -> Questions {
        self.found
    }

    /// The variables of a `let`.
    pub(super) fn local(&mut self, at: usize, local: &Local, value: &Expr) {
        let bound = self.run[at].binds.clone();
        let lent = self.lent(at, local);
        let written = lent.as_ref().map_or(local, |lent| &lent.local);
        let by_ref = bound.iter().any(|b| b.by_ref);
        let held = (self.may_hold(at, value) || by_ref && self.is_literal(at, value))
            .then(|| Held::of(at, written, value))
            .flatten();
        if let Some(held) = held {
            self.found.lent.extend(lent.into_iter().flat_map(|lent| lent.guards));
            self.held(at, held, bound);
            return;
        }
        if let Some(Lending { local, guards }) = lent {
            self.found.lending.push((at, Stmt::Local(local)));
            self.found.lent.extend(guards);
        }
        // What `ref` borrows from is a variable, which is asked.
        let (bound, lent): (Vec<Bound>, Vec<Bound>) = bound.into_iter().partition(|b| !b.by_ref);
        let whole = matches!(parts::bare(&local.pat), syn::Pat::Ident(_));
        let of = |bound: Bound| {
            let part = parts::value_of(&local.pat, value, &bound.ident);
            match part.filter(|part| self.is_literal(at, part)) {
                Some(part) => Named::Literal(bound, part),
                None => Named::Variable(self.variable_of(at, bound, value, whole)),
            }
        };
        // What the value is made of may have the same names.
        let named: Vec<Named<'_>> = bound.iter().cloned().map(of).collect();
        self.forget(&lent);
        self.forget(&bound);
        named.into_iter().for_each(|named| self.named(at, named));
    }

    fn named(&mut self, at: usize, named: Named<'_>) {
        match named {
            Named::Literal(bound, value) => self.literal(at, bound, value),
            Named::Variable(origins) => self.variable(at, origins),
        }
    }

    /// Returns the values without a name that are inside of what a `let` binds.
    fn lent(&self, at: usize, local: &Local) -> Option<Lending> {
        let shown = parts::shown(&local.pat);
        let question = |ident: Ident, value: &Expr| {
            let guard = Guard { ident, shown, asked: Asked::Whole, inside: Vec::new() };
            literals::is_call(value).then_some(guard)
        };
        let is_conditional = local.attrs.iter().any(syntax::is_condition);
        if is_conditional { None } else { Finding::new(at, question).of(local) }
    }

    /// Returns whether a value is written out, and nothing that has a name and may hold a guard is moved into it.
    pub(super) fn is_literal(&self, at: usize, value: &Expr) -> bool {
        literals::is_asked(value) && self.given(at).next().is_none()
    }

    /// A variable with a value that is written out. Its type is known at once, and where methods or macros move it is not.
    fn literal(&mut self, at: usize, bound: Bound, value: &Expr) {
        let name = bound.ident.to_string();
        let guard = Guard::whole(bound.ident);
        let leaves = self.leaves(&guard.ident);
        let known = written_out(guard.clone(), value, false);
        self.known.insert(name.clone(), known.into_iter().map(|guard| Origin { at, guard }).collect());
        let guard = written_out(guard, value, self.moves_after(at, &name)).filter(|_| !leaves);
        guard.into_iter().for_each(|guard| self.once(at + 1, Origin { at, guard }));
    }

    /// A value that a pattern borrows from, and the variables that it moves out of it.
    fn held(&mut self, at: usize, held: Held, bound: Vec<Bound>) {
        let (bound, lent): (Vec<Bound>, Vec<Bound>) = bound.into_iter().partition(|b| !b.by_ref);
        self.forget(&lent);
        if self.is_literal(at, &held.value) {
            let asked = written_out(held.guard(Asked::Whole), &held.value, false);
            self.found.held.push(Held { asked, ..held });
            return;
        }
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
            bound
                .into_iter()
                .for_each(|b| self.variable(at, vec![Origin { at, guard: Guard::whole(b.ident) }]));
        }
    }

    /// A variable without a value that gets a `value`, or a part of what is `assigned`.
    pub(super) fn assigned(&mut self, at: usize, ident: &Ident, value: Option<&Expr>, assigned: &Expr) {
        let bound = Bound { ident: ident.clone(), mutable: false, by_ref: false };
        let named = match value.filter(|value| self.is_literal(at, value)) {
            Some(value) => Named::Literal(bound.clone(), value),
            None => {
                let (of, whole) = (value.unwrap_or(assigned), value.is_some());
                Named::Variable(self.variable_of(at, bound.clone(), of, whole))
            }
        };
        self.forget(std::slice::from_ref(&bound));
        self.named(at, named);
    }

    /// Returns what to ask about a variable that gets a `whole` value, or a part of it.
    fn variable_of(&self, at: usize, bound: Bound, value: &Expr, whole: bool) -> Vec<Origin> {
        if !self.may_hold(at, value) {
            return Vec::new();
        }
        let mut guard = Guard::whole(bound.ident);
        if temporaries::lends(value) {
            guard.asked = Asked::Referent;
        }
        self.origins(at, value, guard, whole)
    }

    /// Returns whether a value is made by a call, or of one that may hold a guard.
    fn may_hold(&self, at: usize, value: &Expr) -> bool {
        let is_called = !classify::call_free(value) && !classify::is_value(value);
        is_called || self.is_clone(value) || self.given(at).next().is_some()
    }

    /// Returns whether a value is a clone of one that may hold a guard.
    fn is_clone(&self, value: &Expr) -> bool {
        let Expr::MethodCall(m) = syntax::bare(value) else { return false };
        let known =
            syntax::place_base(&m.receiver).is_some_and(|name| self.known.contains_key(&name.to_string()));
        known && m.method == "clone"
    }

    /// Returns the variables that may hold a guard and that a statement moves, or a part of them.
    pub(super) fn given(&self, at: usize) -> impl Iterator<Item = &Vec<Origin>> {
        let uses = self.run[at].uses.0.iter().filter(|(_, u)| hands_on(u));
        uses.filter_map(|(name, _)| self.known.get(name))
    }

    /// Returns what to ask about a variable that gets a `whole` value, or a part of one. The last question is about itself.
    fn origins(&self, at: usize, value: &Expr, mut guard: Guard, whole: bool) -> Vec<Origin> {
        let is_moved = syntax::place_base(value).is_some() && !self.is_closure(value);
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
        // What shadows it may take it: `let (_, w) = w;`.
        let behind = at + 1..end + usize::from(shadowed.is_some_and(|i| run[i].uses.has(&name)));
        let taken = |i: &usize| parts::taken_by(&run[*i].stmt, &name);
        let uses = |i: &usize| self.use_at(*i, &name);
        let moves = |i: usize| uses(&i).is_some_and(Use::moves) && matches!(taken(&i), Taken::All);
        let leaves = shadowed.is_none() && self.leaves(&own.ident);
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
        // The call of a closure may take it.
        if let Some(i) = (at + 1..end).find(|&i| self.use_at(i, &name).is_some() && self.calls(i, &name)) {
            self.all(i, origins);
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
        let is_mutable = run[at].binds.iter().any(|b| b.ident == own.ident && b.mutable);
        let end = given_to_method(run, at + 1..end, &name, is_mutable).unwrap_or(end);
        self.all(end, origins);
    }

    /// Asks about what the pattern of a statement leaves in a variable.
    fn left(&mut self, at: usize, left: Left, origins: Vec<Origin>) {
        match (left.asked, origins.last()) {
            (asked @ Asked::Parts { .. }, Some(own)) => {
                self.late(at, left.late, &own.guard);
                // The parts that it moves are asked where they go.
                self.ask(at, Guard { asked, inside: Vec::new(), ..own.guard.clone() });
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
            self.ask(place, Guard { ident, shown: of.shown, asked: Asked::Referent, inside: Vec::new() });
        }
    }

    /// Asks all about a variable: itself at `end`, and what it was made of where that was moved.
    fn all(&mut self, end: usize, mut origins: Vec<Origin>) {
        let own = origins.pop();
        self.parts(origins);
        own.into_iter().for_each(|own| self.once(end, own));
    }

    /// Asks about what a value was made of, where that was moved.
    pub(super) fn parts(&mut self, origins: Vec<Origin>) {
        for origin in origins {
            let passes = |i: &usize| self.use_at(*i, &origin.key().1).is_some_and(hands_on);
            if let Some(place) = (origin.at + 1..self.run.len()).find(passes) {
                self.once(place, origin);
            }
        }
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
    pub(super) fn forget(&mut self, bound: &[Bound]) {
        bound.iter().for_each(|b| _ = self.known.remove(&b.ident.to_string()));
    }
}

/// Asks about a value that is written out: its own type, and those of the values that are written out inside of it. If it is moved away,
/// the question is about those that it borrows from, if there are any.
pub(super) fn written_out(guard: Guard, value: &Expr, is_moved: bool) -> Option<Guard> {
    let inside = literals::inside(value, is_moved);
    let none = Asked::Parts { pat: Box::new(syn::parse_quote!(_)), parts: Vec::new(), itself: false };
    let asked = if is_moved { none } else { Asked::Itself };
    (!is_moved || !inside.is_empty()).then_some(Guard { asked, inside, ..guard })
}

/// Returns whether a statement moves all of a variable, on every way through it.
pub(super) fn moves_all(statement: &Statement, name: &str) -> bool {
    statement.uses.get(name).is_some_and(Use::moves)
        && matches!(parts::taken_by(&statement.stmt, name), Taken::All)
}

/// Returns whether a use may move the variable, or a part of it.
pub(super) fn hands_on(u: &Use) -> bool {
    u.by_value || u.captured || u.handed_on || u.taken
}

/// Returns the first statement that calls a method on a part of a variable, or the last one that uses it, if it calls a method on
/// it, whose result is used: the method may take it. Whatever determines the variable's type stands above.
fn given_to_method(
    run: &[Statement],
    mut among: Range<usize>,
    name: &str,
    is_mutable: bool,
) -> Option<usize> {
    let changes = |at: usize| changes(&run[at].stmt, is_mutable);
    let calls = |at: usize| run[at].uses.get(name).is_some_and(|u| u.touched) && !changes(at);
    let on_part = |at: &usize| calls(*at) && run[*at].uses.get(name).is_some_and(|u| !u.whole);
    among.clone().find(on_part).or_else(|| among.rfind(|&at| run[at].uses.has(name)).filter(|at| calls(*at)))
}

/// Returns whether the statement is a call of methods that nothing uses the result of, such as `list.push(x);`, of which the first has not
/// the name of one that takes its value: it changes a variable, or what that refers to, and may determine its type.
fn changes(stmt: &Stmt, is_mutable: bool) -> bool {
    let Stmt::Expr(expr, _) = stmt else { return false };
    let mut call = match syntax::bare(expr) {
        Expr::Try(e) => syntax::bare(&e.expr),
        expr => expr,
    };
    let mut is_alone = true;
    while let Expr::MethodCall(m) = call {
        call = syntax::bare(&m.receiver);
        if !matches!(call, Expr::MethodCall(_)) {
            let takes =
                uses::consumes(&m.method) || ["for_each", "try_for_each"].iter().any(|name| m.method == name);
            return !takes && (is_mutable || !is_alone);
        }
        is_alone = false;
    }
    false
}

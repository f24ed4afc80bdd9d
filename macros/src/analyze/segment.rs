//! One run of statements as a segment: its live-ins, its steps, and its live-outs.

use std::collections::{BTreeSet, HashSet};

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, format_ident};
use syn::{Expr, Local, Pat, Stmt};

use super::{
    Analysis, Tail,
    guards::{self, Held, Questions},
    lets,
    liveness::{Changed, LiveOuts},
    macro_bindings::Probed,
    motion, partition,
    scope::{Binding, Lenders},
};
use crate::{
    diag::Code,
    facts::{
        classify,
        statement::Statement,
        uses::{Sequence, Use, Uses},
        values,
    },
    model::{Ending, Guard, LiveIn, LiveOut, Location, Part, PlanItem, Run, Segment, Step},
    parse::syntax,
};

/// A run under analysis.
struct Device<'s> {
    run: &'s [Statement],
    tail: Option<(&'s Statement, Tail)>,
    /// The statements after it.
    rest: &'s [Statement],
    outs: LiveOuts,
    /// Statements that nothing needs.
    unused: HashSet<usize>,
    /// The positions of borrows that later code uses, each with a use.
    borrows: Vec<(usize, Step)>,
}

impl Analysis<'_, '_> {
    /// Returns a run, and the tail after it, as parts of host code, and the borrows that host code evaluates again after
    /// these, with their positions in the run.
    pub(super) fn segment(
        &mut self,
        run: &[Statement],
        tail: Option<(&Statement, Tail)>,
        rest: &[Statement],
        after: &HashSet<usize>,
    ) -> (Vec<Part>, Vec<(usize, Local)>) {
        let value = tail.map(|(value, _)| value);
        let stmts = run.iter().chain(value).map(|s| s.stmt.clone()).collect();
        self.runs.push(Run { stmts, report: self.errors.place() });
        if tail.is_none() && run.iter().all(|s| s.made.is_some()) {
            // Their names are bound already.
            self.note_captures(run);
            let never_used = never_used(run, rest).into_iter();
            return (never_used.map(|at| Part::Written(kept_until_the_end(run, at))).collect(), Vec::new());
        }
        // The type of an unused closure's parameters may be unknown; the segment that uses the closure has
        // its own. Closures that only host code uses are evaluated only there.
        let outs = self.find_live_outs(run, rest);
        let borrows = outs.kept_borrows(run, rest);
        // One that fails does so in its place, above other failures.
        let host = |at: usize| {
            let again = outs.rematerialised.iter().any(|(i, _)| *i == at) && !may_fail(&run[at]);
            again && !borrows.iter().any(|(i, _)| *i == at)
        };
        let mut unused = unused(run, value, host);
        let mut never_used = never_used(run, rest);
        never_used.retain(|at| unused.contains(at));
        if tail.is_some() {
            // They end with the function, as the segment does.
            let by_segment = never_used.extract_if(.., |at| guards::is_made_by_each(&run[*at]));
            by_segment.for_each(|at| _ = unused.remove(&at));
        }
        let kept: Vec<Part> =
            never_used.iter().map(|at| Part::Written(kept_until_the_end(run, *at))).collect();
        let mut parts: Vec<Part> = outs.copies.iter().cloned().map(Part::Written).collect();
        let nothing_leaves = tail.is_none() && outs.carried.is_empty() && outs.shadowed.is_empty();
        if nothing_leaves && unused.len() == run.len() {
            self.bind_run(run, &Uses::default(), &outs);
            parts.extend(kept);
            return (parts, outs.rematerialised);
        }
        let again = outs.rematerialised.clone();
        // Nothing comes behind the tail; before the segment, they may only move what it does not use.
        let used = run.iter().enumerate().filter(|(at, _)| !unused.contains(at)).map(|(_, s)| s).chain(value);
        let used = Sequence::of(used);
        let is_free = never_used.iter().all(|at| run[*at].value.names().all(|name| !used.has(name)));
        let (before, behind) = match tail {
            None => (Vec::new(), kept),
            Some(_) if is_free => (kept, Vec::new()),
            Some(_) => (Vec::new(), Vec::new()),
        };
        parts.extend(before);
        let device = Device { run, tail, rest, outs, unused, borrows };
        parts.push(Part::Segment(Box::new(self.device(device, after))));
        parts.extend(behind);
        (parts, again)
    }

    /// A run that becomes a segment.
    fn device(&mut self, device: Device<'_>, after: &HashSet<usize>) -> Segment {
        let (run, value) = (device.run, device.tail.map(|(value, _)| value));
        let used = run.iter().enumerate().filter(|(at, _)| !device.unused.contains(at)).map(|(_, s)| s);
        self.check_macros(used.clone().chain(value));
        let mut uses = Sequence::of(used.chain(value));
        uses.merge(&kept_under_other_names(run, &device.outs));
        let closures = self.outer_closures(&mut uses);
        let mut live = self.live_after_run(run, device.rest, after);
        // Host code evaluates these again after the segment.
        live.extend(device.outs.rematerialised.iter().flat_map(|(at, _)| self.scope.ids(&run[*at].value)));
        let mut probes = self.probes(run, device.rest, &live);
        let changed = self.changed(run, device.rest, &uses, &live);

        let live_ins = self.live_ins(run, value, &uses);
        let live_outs = self.live_outs(&device.outs, &changed);
        let (mut steps, lent) = self.steps(&device, &closures, &changed, &live_outs, &mut probes);
        steps.extend(device.borrows.into_iter().map(|(_, step)| step));
        self.refuse_results(run, &device.outs);
        let all: TokenStream = run.iter().chain(value).map(|s| s.stmt.to_token_stream()).collect();
        let location = self.location(&all);
        let ending = self.ending(device.tail, &live_outs);
        self.plan_segment(location, &live_ins, &live_outs, &ending);
        let gives_outputs = !matches!(ending, Ending::Result(_));
        let unreached = (gives_outputs && run.last().is_some_and(|s| classify::never_ends(&s.stmt)))
            .then(|| self.fresh("o"));
        let moved = gives_outputs && live_ins.iter().any(LiveIn::moves);
        let outputs = moved.then(|| self.fresh("outputs"));
        self.bind_run(run, &uses, &device.outs);
        let flows = Vec::new();
        let mut segment = Segment {
            location,
            live_ins,
            closures,
            steps,
            live_outs,
            ending,
            lent,
            flows,
            unreached,
            outputs,
        };
        self.put_in_form(&mut segment);
        segment
    }

    /// Returns the live-ins in the order of first use.
    fn live_ins(&mut self, run: &[Statement], tail: Option<&Statement>, uses: &Uses) -> Vec<LiveIn> {
        let mut bound_inside = syntax::bound_anywhere(run.iter().chain(tail).map(|s| &s.stmt));
        bound_inside.extend(run.iter().chain(tail).flat_map(|s| syntax::values_inside(&s.stmt)));
        let mut all = Vec::new();
        for (name, u) in &uses.0 {
            self.live_in(name, u, run, &bound_inside, &mut all);
        }
        all
    }

    fn live_in(
        &mut self,
        name: &str,
        u: &Use,
        run: &[Statement],
        bound_inside: &HashSet<String>,
        all: &mut Vec<LiveIn>,
    ) {
        let Some(b) = self.outside(name).filter(|b| b.made.is_none()) else { return };
        let (id, mutable, uninit, exclusive) = (b.id, b.mutable, b.uninit, b.exclusive);
        let (ident, eager) = (u.ident.clone(), self.scope.eager_derived.contains(&id));
        self.check_through(u, mutable || exclusive);
        if u.assigned && (uninit && !self.scope.assigned.contains(&id) || self.assigned_first(run, name)) {
            let ty = self.scope.types.get(&id).cloned().map(Box::new);
            return all.push(LiveIn::Fresh { ident, mutable: mutable || u.touched, ty });
        }
        let changes = u.changes(mutable || exclusive);
        if exclusive && (changes || u.whole) {
            return all.push(LiveIn::Exclusive { ident, eager });
        }
        let owned = self.scope.owned.contains(&id);
        // Of what eager code made, a part may enter where the whole cannot.
        let taken = owned && (u.taken || u.called && !eager);
        if u.whole || taken || changes || bound_inside.contains(name) || u.fields.is_empty() {
            return all.push(LiveIn::Whole { ident, eager, changes, moves: u.by_value && name != "self" });
        }
        let clean = self.scope.clean.get(&id).cloned().unwrap_or_default();
        for path in outermost(&u.fields).map(<[String]>::to_vec) {
            let eager = eager && !path.first().is_some_and(|f| clean.contains(f));
            let name = self.fresh("f");
            all.push(LiveIn::Field { base: ident.clone(), path, eager, name });
        }
    }

    /// Returns the live-outs: changed variables, then bindings, then values kept under other names.
    fn live_outs(&mut self, outs: &LiveOuts, changed: &[Changed]) -> Vec<LiveOut> {
        let mut all = Vec::new();
        for Changed { ident, shadowed_at } in changed {
            let known = self.scope.lookup(&ident.to_string()).map(|b| (b.id, b.exclusive));
            self.host_assigned.extend(known.map(|(id, _)| id));
            let exclusive = known.is_some_and(|(_, exclusive)| exclusive);
            let output = self.fresh("o");
            all.push(LiveOut::Changed {
                ident: ident.clone(),
                output,
                exclusive,
                // What it refers to keeps its name.
                kept: shadowed_at.is_some() && !exclusive,
            });
        }
        for bound in &outs.carried {
            let ident = bound.ident.clone();
            // It shadows an outer variable that is assigned first.
            let shadows = all.iter().any(|out: &LiveOut| *out.ident() == ident);
            let through = shadows.then(|| self.fresh("o"));
            all.push(LiveOut::Bound { ident, mutable: bound.mutable, through });
        }
        let shadowed = outs.shadowed.iter().cloned();
        all.extend(shadowed.map(|(ident, alias, _)| LiveOut::Shadowed { ident, alias }));
        all
    }

    /// Returns the steps of the segment in order, with values kept and checks made between its statements, and the values that get
    /// a name inside of one.
    fn steps(
        &self,
        device: &Device<'_>,
        closures: &[Local],
        changed: &[Changed],
        live_outs: &[LiveOut],
        probes: &mut Vec<Probed>,
    ) -> (Vec<Step>, Vec<Guard>) {
        let run = device.run;
        let names: Vec<String> = changed.iter().map(|c| c.ident.to_string()).collect();
        let Questions { asked: mut between, held, lending, lent } =
            self.guards(run, device.rest, &device.outs, &device.unused, &names);
        between.extend(guards::of_made_before(closures, run, &device.unused, |name| self.lives_on(name)));
        between.extend(kept(changed, live_outs, &device.outs));
        let mut steps = Vec::new();
        let mut at_place = |at: usize, steps: &mut Vec<Step>| {
            steps.extend(between.extract_if(.., |(place, _)| *place == at).map(|(_, step)| step));
        };
        for (at, statement) in run.iter().enumerate() {
            at_place(at, &mut steps);
            if device.unused.contains(&at) {
                continue;
            }
            let probed = probes.iter().position(|p| p.at == at).map(|i| probes.swap_remove(i));
            let written = lending.iter().find(|(place, _)| *place == at);
            let stmt = written.map_or(&statement.stmt, |(_, stmt)| stmt);
            if let Some(Held { named, asked, taken, .. }) = held.iter().find(|held| held.at == at).cloned() {
                steps.push(Step::Statement(Stmt::Local(named)));
                steps.extend(asked.map(Step::AskEnd));
                steps.push(Step::Statement(Stmt::Local(taken)));
                continue;
            }
            steps.push(match (stmt, probed) {
                (_, Some(Probed { macro_name, probes, .. })) => {
                    Step::Probed { call: stmt.clone(), macro_name, probes }
                }
                (Stmt::Local(l), None) if statement.made.is_some() => {
                    let leaves = |name: &str| live_outs.iter().any(|out| out.ident() == name);
                    Step::Statement(Stmt::Local(partition::closure(l.clone(), leaves)))
                }
                _ if device.outs.rematerialised.iter().any(|(i, _)| *i == at) => Step::Borrow(stmt.clone()),
                _ => Step::Statement(stmt.clone()),
            });
        }
        at_place(run.len(), &mut steps);
        (steps, lent)
    }

    /// Returns whether a value that each segment makes for itself lived at a boundary before the run, or lives on where the run is
    /// passed over.
    fn lives_on(&self, name: &str) -> bool {
        let is_boundary = |item: &PlanItem| !matches!(item, PlanItem::Segment { .. });
        let made = self.outside(name).and_then(|b| b.made.as_ref());
        made.is_some_and(|made| made.arms < self.arms || self.plan[made.planned..].iter().any(is_boundary))
    }

    /// Returns the ending of the segment.
    fn ending(&mut self, tail: Option<(&Statement, Tail)>, live_outs: &[LiveOut]) -> Ending {
        let value = tail.and_then(|(value, tail)| match &value.stmt {
            Stmt::Expr(expr, _) => Some((expr, tail)),
            _ => None,
        });
        match value {
            None => Ending::Outputs,
            // A result before `?` or in a `break`: variables that the run changes live on.
            Some((expr, Tail::Function | Tail::Tried)) if live_outs.is_empty() => {
                Ending::Result(expr.clone())
            }
            Some((expr, tail)) => {
                let (mut expr, result) = (expr.clone(), matches!(tail, Tail::Function | Tail::Tried));
                if tail == Tail::Function {
                    motion::with_error(&mut expr, &self.error_type());
                }
                Ending::Value { expr, name: self.fresh("t"), result }
            }
        }
    }

    fn plan_segment(
        &mut self,
        location: Location,
        live_ins: &[LiveIn],
        live_outs: &[LiveOut],
        ending: &Ending,
    ) {
        let mut leaving: Vec<String> =
            live_outs.iter().map(|out| motion::shown(out.ident().to_string())).collect();
        match ending {
            Ending::Outputs => {}
            Ending::Result(_) => leaving.push("the result".to_owned()),
            Ending::Value { .. } => leaving.push("a value".to_owned()),
        }
        let live_ins = live_ins.iter().filter_map(LiveIn::name).collect();
        self.plan.push(PlanItem::Segment { location, live_ins, live_outs: leaving });
    }

    /// Returns whether the run assigns a variable before it reads it.
    fn assigned_first(&self, run: &[Statement], name: &str) -> bool {
        let mentions = |s: &&Statement| self.scope.with_captures(s.uses.clone()).has(name);
        run.iter().find(mentions).is_some_and(|s| self.assigns_first(s, name))
    }

    fn check_through(&mut self, u: &Use, mutable: bool) {
        if u.through && !mutable {
            self.errors.push(
                Code::WritesThrough,
                &u.ident,
                format!("a segment writes through `{}`: a replay would not repeat it", u.ident),
                "write in an `#[eager]` region, or make the value an output of the segment",
            );
        }
    }

    /// The run's names are in scope from here on.
    fn bind_run(&mut self, run: &[Statement], uses: &Uses, outs: &LiveOuts) {
        for (name, u) in &uses.0 {
            if u.assigned
                && let Some(id) = self.scope.lookup(name).map(|b| b.id)
            {
                self.scope.assigned.insert(id);
            }
        }
        // Its closures were bound at once. Their names, and those of variables, are in the order of the code from here on.
        let is_pending = |b: &mut Binding| b.made.is_some() && !self.captured.contains_key(&b.id);
        let mut pending: Vec<Binding> = self.scope.names.extract_if(.., is_pending).collect();
        for (at, statement) in run.iter().enumerate() {
            if let Some(name) = &statement.made {
                self.scope.names.extend(pending.extract_if(.., |b| b.name == *name).next());
                self.note_capture(statement);
                continue;
            }
            let Some(local) = statement.local() else { continue };
            let given = &statement.uses;
            let owned = local.init.as_ref().is_some_and(|i| !classify::call_free(&i.expr))
                || self.scope.hands_over(given);
            let value = local.init.as_ref().map(|i| &*i.expr);
            let host = value.is_some_and(|e| self.repeatable(e, &[]));
            let device = !host && value.is_some_and(|e| self.makes_device(e));
            let reference = self.binds_references(local, |n| self.scope.is_reference(n));
            let lends = value.is_some_and(values::lends) || statement.binds.iter().any(|b| b.by_ref);
            let lenders = match value {
                Some(value) if lends => self.lenders_of(value, given),
                _ if lends => self.scope.roots(given),
                _ => Lenders::default(),
            };
            // Host code has a `&mut` of its own from here on, through which later segments write.
            let again = value.filter(|_| outs.rematerialised.iter().any(|(again, _)| *again == at));
            let exclusive = again.map(|value| self.exclusive(&local.pat, value)).unwrap_or_default();
            for b in statement.binds.clone() {
                let id = self.scope.bind(b.ident.to_string(), b.mutable);
                self.scope.describe(id, host, device);
                self.scope.note_list(id, values::binds_list(local));
                self.scope.note_reference(id, reference);
                self.scope.types.extend(lets::type_of_name(local).map(|ty| (id, ty.clone())));
                self.scope.lenders.insert(id, lenders.clone());
                if owned {
                    self.scope.owned.insert(id);
                }
                if outs.emptied.contains(&b.ident) {
                    self.emptied.push((b.ident, id));
                    self.scope.names.iter_mut().filter(|n| n.id == id).for_each(|n| n.uninit = true);
                }
            }
            self.scope.mark_exclusive(&exclusive);
        }
    }
}

/// Values that are kept before later statements take their names, and where.
fn kept(changed: &[Changed], live_outs: &[LiveOut], outs: &LiveOuts) -> Vec<(usize, Step)> {
    let changed = changed.iter().zip(live_outs).filter_map(|(c, out)| match out {
        LiveOut::Changed { ident, output, kept: true, .. } => {
            Some((c.shadowed_at?, Step::Keep { output: output.clone(), ident: ident.clone() }))
        }
        _ => None,
    });
    let shadowed = outs.shadowed.iter().cloned();
    let shadowed = shadowed.map(|(ident, output, at)| (at, Step::Keep { output, ident }));
    changed.chain(shadowed).collect()
}

/// The outer variables that [`kept`] takes before the run shadows them.
fn kept_under_other_names(run: &[Statement], outs: &LiveOuts) -> Uses {
    let mut uses = Uses::default();
    for (ident, _, shadowed_at) in &outs.shadowed {
        let name = ident.to_string();
        if !run[..*shadowed_at].iter().any(|s| s.binds(&name)) {
            uses.entry(ident).whole = true;
        }
    }
    uses
}

/// Returns whether a `let` may end the function.
fn may_fail(statement: &Statement) -> bool {
    let init = statement.local().and_then(|local| local.init.as_ref());
    init.is_some_and(|init| init.diverge.is_some() || matches!(&*init.expr, Expr::Try(_)))
}

/// Returns the values of a run that each segment which uses one makes for itself, that nothing uses, and that may be guards: they are
/// written out, or have taken over host values.
fn never_used(run: &[Statement], rest: &[Statement]) -> Vec<usize> {
    if !run.iter().any(|s| guards::is_made_by_each(s) || takes_over(s)) {
        return Vec::new();
    }
    // What later code uses, without values that nothing uses, and with these: a closure that is left out may determine the type of a
    // value.
    let (mut needed, mut named) = (Uses::default(), Uses::default());
    let mut guards = Vec::new();
    for at in (0..run.len() + rest.len()).rev() {
        let statement = run.get(at).unwrap_or_else(|| &rest[at - run.len()]);
        let is_idle = statement.made.is_some() && !statement.is_used_by(&needed);
        if is_idle && at < run.len() {
            let is_guard = guards::is_made_by_each(statement);
            if is_guard || takes_over(statement) && !statement.is_used_by(&named) {
                guards.push(at);
            }
        }
        if !is_idle {
            needed.precede(statement);
        }
        named.precede(statement);
    }
    guards.reverse();
    guards
}

/// Returns whether each segment makes a value for itself, which is not a closure, of others that it may move.
fn takes_over(statement: &Statement) -> bool {
    let is_closure = |local: &Local| classify::closure_name(local).is_some();
    let is_made = statement.made.is_some() && !statement.local().is_none_or(is_closure);
    is_made && statement.value.0.iter().any(|(_, u)| u.handed_on)
}

/// Returns the `let` of a value that nothing uses as host code, which has the value to the end of the block: under a name of its own,
/// since later code may have bound that of the `let` anew.
fn kept_until_the_end(run: &[Statement], at: usize) -> Stmt {
    let mut stmt = run[at].stmt.clone();
    if let Stmt::Local(local) = &mut stmt {
        let pat = match &mut local.pat {
            Pat::Type(t) => &mut *t.pat,
            pat => pat,
        };
        if let Pat::Ident(p) = pat {
            p.ident = format_ident!("__kept{at}", span = Span::mixed_site());
        }
    }
    stmt
}

/// Returns closures of the run, and bindings that host code evaluates, that no later code in the run uses.
fn unused(run: &[Statement], value: Option<&Statement>, host: impl Fn(usize) -> bool) -> HashSet<usize> {
    let (mut unused, mut behind) = (HashSet::new(), Uses::default());
    value.into_iter().for_each(|value| behind.precede(value));
    for (at, statement) in run.iter().enumerate().rev() {
        let may_be_left_out = statement.local().is_some() && (statement.made.is_some() || host(at));
        if may_be_left_out && !statement.is_used_by(&behind) {
            unused.insert(at);
        } else {
            behind.precede(statement);
        }
    }
    unused
}

/// Returns field paths without those that are inside another path.
pub(super) fn outermost(paths: &BTreeSet<Vec<String>>) -> impl Iterator<Item = &[String]> {
    let is_inside = |p: &[String]| paths.iter().any(|q| q.len() < p.len() && p.starts_with(q));
    paths.iter().map(Vec::as_slice).filter(move |p| !is_inside(p))
}

//! Live-out analysis: the values that leave a segment, which are its own bindings that later code needs, and
//! outer variables that it changes. The values that enter it are found in `segment.rs`.

use std::{
    cell::OnceCell,
    collections::{BTreeSet, HashSet},
};

use proc_macro2::Ident;
use syn::{
    Expr, Local, Pat, Stmt,
    visit_mut::{self, VisitMut},
};

use super::{Analysis, host_values::BoundInRun, lets};
use crate::{
    diag::{Code, shortened},
    facts::{
        operations,
        statement::Statement,
        uses::{Sequence, Use, Uses},
        values,
    },
    model::Step,
    parse::{
        rename::Rename,
        syntax::{self, Bound},
    },
};

/// An outer variable that a run changes and later code sees, and the statement of the run that shadows it.
pub(super) struct Changed {
    pub(super) ident: Ident,
    pub(super) shadowed_at: Option<usize>,
}

/// The treatment of a run's `let`s that later code needs.
#[derive(Default)]
pub(super) struct LiveOuts {
    /// Values that leave the segment.
    pub(super) carried: Vec<Bound>,
    /// Bindings that the run moves away, and that later code assigns again.
    pub(super) emptied: Vec<Ident>,
    /// Call-free borrows that host code evaluates again, in order, and their positions in the run.
    pub(super) rematerialised: Vec<(usize, Local)>,
    /// Bindings that are shadowed later in the run, but borrowed by one of `again`: the name, its name in
    /// host code, and the statement that shadows it.
    pub(super) shadowed: Vec<(Ident, Ident, usize)>,
    /// Copies of outer references that the run shadows, for `again`: host code makes them before the segment.
    pub(super) copies: Vec<Stmt>,
}

impl LiveOuts {
    /// Returns borrows that later code uses, while the run changes or moves their referents: host code
    /// evaluates them again, so nothing else would show rustc that the referents are still needed. Each has
    /// its position and a use.
    pub(super) fn kept_borrows(&self, run: &[Statement], rest: &[Statement]) -> Vec<(usize, Step)> {
        let mut kept = Vec::new();
        for (at, _) in &self.rematerialised {
            let statement = &run[*at];
            let changed = |name: &str| {
                run[at + 1..].iter().any(|s| {
                    let left = match &s.stmt {
                        Stmt::Expr(Expr::Assign(a), _) => &a.left,
                        Stmt::Expr(Expr::Binary(b), _) if syntax::is_assign(&b.op) => &b.left,
                        _ => return false,
                    };
                    syntax::place_base(left).is_some_and(|base| base == name)
                })
            };
            let shadowed =
                |name: &Ident| run[at + 1..].iter().any(|s| s.binds.iter().any(|b| b.ident == *name));
            if !statement.value.names().any(changed) {
                continue;
            }
            let later = Sequence::of(rest);
            for bound in &statement.binds {
                if let Some(used) = later.get(&bound.ident.to_string()).filter(|_| !shadowed(&bound.ident)) {
                    kept.push((*at, Step::StillUsed { ident: bound.ident.clone(), at: used.ident.span() }));
                }
            }
        }
        kept
    }
}

impl Analysis<'_, '_> {
    /// `let h = ops::neg(x);` that leaves the segment, where `ops::neg(x)?` was meant.
    pub(super) fn refuse_results(&mut self, run: &[Statement], live_outs: &LiveOuts) {
        for bound in &live_outs.carried {
            let name = &bound.ident;
            let last = run.iter().rev().find(|s| s.binds.iter().any(|b| b.ident == *name));
            if let Some(Stmt::Local(Local { pat: Pat::Ident(_), init: Some(init), .. })) =
                last.map(|s| &s.stmt)
                && operations::is_operation(&init.expr)
            {
                let call = shortened(&init.expr);
                self.errors.push(
                    Code::LeavesSegment,
                    name,
                    format!(
                        "`{name}` is a `Result` and is used after its segment: a replay cannot return it"
                    ),
                    format!("write `let {name} = {call}?;`"),
                );
            }
        }
    }

    /// Returns which of the run's own bindings later code needs, and how they get there.
    pub(super) fn find_live_outs(&mut self, run: &[Statement], rest: &[Statement]) -> LiveOuts {
        let mut live = Live {
            run,
            rest,
            needed: self.needed(run, rest),
            seen: HashSet::new(),
            behind: Uses::default(),
            bound: OnceCell::new(),
            found: LiveOuts::default(),
        };
        for (at, statement) in run.iter().enumerate().rev() {
            if let Some(next) = run.get(at + 1) {
                live.behind.precede(next);
            }
            self.out(at, statement, &mut live);
            live.seen.extend(statement.binds.iter().map(|b| b.ident.to_string()));
        }
        live.found.carried.reverse();
        live.found.rematerialised.sort_by_key(|(at, _)| *at);
        live.found
    }

    /// The names that later code needs.
    fn needed(&self, run: &[Statement], rest: &[Statement]) -> BTreeSet<String> {
        let mut needed: BTreeSet<String> = Sequence::of(rest).names().map(str::to_owned).collect();
        // A closure of an outer scope that is used later needs its captured variables.
        let outer: Vec<String> = needed.iter().cloned().collect();
        for name in outer {
            let in_run = run.iter().any(|s| s.made.as_ref() == Some(&name));
            let made = self.scope.lookup(&name).filter(|_| !in_run).and_then(|b| b.made.as_ref());
            needed.extend(made.iter().flat_map(|made| made.uses.names()).map(str::to_owned));
        }
        needed
    }

    /// Determines how the bindings of the statement at `at` get to later code.
    fn out(&mut self, at: usize, statement: &Statement, live: &mut Live<'_>) {
        let Some(local) = statement.local() else { return };
        let wanted = |b: &&Bound| {
            let name = b.ident.to_string();
            live.needed.contains(&name) && !live.seen.contains(&name)
        };
        let wanted: Vec<&Bound> = statement.binds.iter().filter(wanted).collect();
        if wanted.is_empty() {
            return;
        }
        let fixed = statement
            .binds
            .iter()
            .all(|b| !b.mutable || live.behind.get(&b.ident.to_string()).is_none_or(|u| !u.changes(true)));
        let before = &live.run[..at];
        let again = fixed
            && self.evaluated_again(statement, before, || {
                live.bound.get_or_init(|| self.bound_in_run(live.run)).before(at)
            });
        if (again || statement.made.is_some()) && local.init.is_some() {
            let local = self.with_meanings(at, local.clone(), &statement.value, again, live);
            if again {
                self.needs_in_host_code(&statement.value);
                live.found.rematerialised.push((at, local));
            }
            return;
        }
        for b in wanted {
            let name = b.ident.to_string();
            let moved = live.behind.get(&name).is_some_and(|u| u.by_value);
            if b.mutable && moved && assigned_anew(live.rest, &name) {
                live.found.emptied.push(b.ident.clone());
            } else {
                live.found.carried.push(b.clone());
            }
        }
    }

    /// Handles a `let` that host code or a later segment evaluates, where the names that it uses may have a
    /// different meaning: such values leave under names of their own.
    fn with_meanings(
        &mut self,
        at: usize,
        mut local: Local,
        uses: &Uses,
        again: bool,
        live: &mut Live<'_>,
    ) -> Local {
        let run = live.run;
        for (name, u) in &uses.0 {
            // `let h = &h;`
            let shadows = again && run[at].binds(name);
            let changes = again && live.behind.get(name).is_some_and(|b| self.changes(&run[..at], b));
            if !live.seen.contains(name) && !changes && (!shadows || self.is_untouched(&run[..at], name)) {
                live.needed.insert(name.clone());
                continue;
            }
            let alias = if again { self.aliased(at, name, live) } else { None };
            let alias = match alias {
                Some(alias) => alias,
                None => {
                    // Changed or shadowed further down.
                    let shadow = (at + 1..run.len()).find(|&i| run[i].binds(name));
                    let shadow = if changes || shadows { Some(at) } else { shadow };
                    let alias = self.fresh("o");
                    live.found.shadowed.push((u.ident.clone(), alias.clone(), shadow.unwrap_or(run.len())));
                    alias
                }
            };
            Rename::new(name, &syn::parse_quote!(#alias)).visit_local_mut(&mut local);
        }
        local
    }

    /// Returns whether the statements `before` leave the meaning and the value of an outer name as they are.
    fn is_untouched(&self, before: &[Statement], name: &str) -> bool {
        let changes = |s: &Statement| s.uses.get(name).is_some_and(|u| self.changes(&[], u));
        !before.iter().any(|s| s.binds(name) || changes(s))
    }

    /// Gives a reference another name, which host code binds to it; `None` if the name at `at` stands for
    /// something else.
    fn aliased(&mut self, at: usize, name: &str, live: &mut Live<'_>) -> Option<Ident> {
        let run = live.run;
        let Some(source) = run[..at].iter().rposition(|s| s.binds(name)) else {
            let ident = run[at].value.get(name).filter(|_| self.scope.is_reference(name))?.ident.clone();
            let alias = self.fresh("o");
            live.found.copies.push(syn::parse_quote!(let #alias = #ident;));
            return Some(alias);
        };
        let statement = &run[source];
        let bound = self.bound_in_run(&run[..source]);
        if !self.evaluated_again(statement, &run[..source], || bound.before(source)) {
            return None;
        }
        let (alias, mut local) = (self.fresh("o"), statement.local()?.clone());
        if !(Only { name, alias: &alias }).of(&mut local.pat) {
            return None;
        }
        // As it is where the reference is made.
        let later = &run[source + 1..];
        let seen = later.iter().flat_map(|s| &s.binds).map(|b| b.ident.to_string()).collect();
        let seen = std::mem::replace(&mut live.seen, seen);
        let behind = std::mem::replace(&mut live.behind, Sequence::of(later));
        let local = self.with_meanings(source, local, &statement.value, true, live);
        (live.seen, live.behind) = (seen, behind);
        live.found.rematerialised.push((source, local));
        Some(alias)
    }

    /// Returns whether a name stands for a list after the statements `before`.
    pub(super) fn is_list(&self, before: &[Statement], name: &str) -> bool {
        let own = before.iter().rev().find(|s| s.binds(name)).and_then(Statement::local);
        own.map(values::binds_list).unwrap_or_else(|| self.scope.lookup(name).is_some_and(|b| b.list))
    }

    /// Returns whether a use after the statements `before` may change the variable.
    fn changes(&self, before: &[Statement], u: &Use) -> bool {
        let name = u.ident.to_string();
        let known = match before.iter().rev().find(|s| s.binds(&name)) {
            None => self.scope.lookup(&name).is_some_and(|b| b.is_changed_by(u)),
            Some(own) => {
                let is_exclusive = lets::makes_exclusive(own);
                let mutable = own.binds.iter().any(|b| b.ident == u.ident && b.mutable);
                u.changes(mutable || is_exclusive) || is_exclusive && u.passes_on()
            }
        };
        u.through || known
    }

    /// Outer variables that the run changes and later code sees, with the statement that shadows them.
    pub(super) fn changed(
        &self,
        run: &[Statement],
        rest: &[Statement],
        uses: &Uses,
        live: &HashSet<usize>,
    ) -> Vec<Changed> {
        let mut changed = Vec::new();
        for (name, u) in &uses.0 {
            let Some(b) = self.outside(name).filter(|b| b.made.is_none()) else { continue };
            if !b.is_changed_by(u) {
                continue;
            }
            let made = || run.iter().any(|s| s.made.as_ref() == Some(name));
            let seen = || !(u.by_value && assigned_anew(rest, name)) && live.contains(&b.id) && !made();
            if b.exclusive || seen() {
                let shadowed_at = run.iter().position(|s| s.binds(name));
                changed.push(Changed { ident: u.ident.clone(), shadowed_at });
            }
        }
        changed
    }
}

/// The live-outs of a run, from its end to its beginning.
struct Live<'s> {
    run: &'s [Statement],
    rest: &'s [Statement],
    /// Names that later code needs.
    needed: BTreeSet<String>,
    /// Names bound after this point.
    seen: HashSet<String>,
    /// The run's uses after this point.
    behind: Uses,
    /// Names that the run binds, found when first asked for.
    bound: OnceCell<BoundInRun>,
    found: LiveOuts,
}

/// Returns whether the statements assign a new value to the variable before anything reads it.
fn assigned_anew(rest: &[Statement], name: &str) -> bool {
    let first = rest.iter().find(|s| s.leaves || s.uses.has(name) || s.binds(name));
    first.is_some_and(|s| s.assigned.contains(name) && !s.leaves)
}

/// Reduces a pattern to one of its names.
struct Only<'a> {
    name: &'a str,
    /// Its new name.
    alias: &'a Ident,
}

impl Only<'_> {
    /// Returns whether that is possible.
    fn of(&mut self, pat: &mut Pat) -> bool {
        let bound = syntax::bound(pat);
        let plain = bound.iter().filter(|b| b.ident == self.name).all(|b| !b.mutable && !b.by_ref);
        self.visit_pat_mut(pat);
        plain && bound.iter().any(|b| b.ident == self.name) && syntax::bound(pat).len() == 1
    }
}

impl VisitMut for Only<'_> {
    fn visit_pat_mut(&mut self, pat: &mut Pat) {
        match pat {
            Pat::Ident(p) if p.ident == self.name => p.ident = self.alias.clone(),
            // A name in capitals may be a constant's.
            Pat::Ident(p) if p.subpat.is_none() && p.ident.to_string().starts_with(char::is_lowercase) => {
                *pat = syn::parse_quote!(_);
            }
            other => visit_mut::visit_pat_mut(self, other),
        }
    }

    fn visit_field_pat_mut(&mut self, field: &mut syn::FieldPat) {
        // `S { h }` becomes `S { h: renamed }`.
        field.colon_token.get_or_insert_default();
        visit_mut::visit_field_pat_mut(self, field);
    }
}

//! `let`s: those of device runs, those that each segment recreates, and those that host code evaluates.

use std::{collections::HashSet, rc::Rc};

use syn::{
    Expr, Local, LocalInit, Stmt,
    visit::{self, Visit},
};

use super::{
    Analysis, Made, Tail, guards,
    partition::{Draft, Walk, only_piecewise},
    scope::{Binding, Lenders},
};
use crate::{
    facts::{
        classify, macros,
        statement::Statement,
        uses::{self, Sequence, Use, Uses},
        values,
    },
    model::{Block, HostLet, Location, Part, Value},
    parse::{attributes, syntax},
};

/// A `let` with a value, and facts that are needed first.
struct Let<'s> {
    statement: &'s Statement,
    init: &'s LocalInit,
    /// The `let` without our attributes.
    plain: Local,
    host: bool,
    key: bool,
}

impl<'s> Let<'s> {
    fn of(statement: &'s Statement, local: &'s Local, init: &'s LocalInit) -> Self {
        Self {
            statement,
            init,
            plain: without_ours(local),
            host: attributes::let_flag(&local.attrs, "host"),
            key: attributes::let_flag(&local.attrs, "key"),
        }
    }

    /// Returns whether it is marked as holding host values.
    fn says_host(&self) -> bool {
        self.host || self.key
    }
}

/// The place where a `let` is evaluated.
enum Place {
    /// In the pending run.
    Run,
    /// In host code, before or after the pending run.
    HostCode { behind_run: bool },
}

/// The value that is assigned to a variable declared without one.
#[derive(Default)]
struct Given {
    /// A value that may be the caller's own.
    owned: bool,
    /// Perhaps a part of one.
    part: bool,
}

/// The known facts about the value of a `let`.
struct Described {
    /// Names that take a value of eager code.
    eager_derived: HashSet<String>,
    /// Of a struct literal: the fields that hold none.
    clean: Option<HashSet<String>>,
    host: bool,
    device: bool,
    /// Set if it is a vector or an array.
    list: bool,
    /// Set if it is an iterator that host code advances.
    iterator: bool,
    /// Set if it is a shared reference.
    reference: bool,
    /// The bindings that it may refer to.
    lenders: Lenders,
}

impl Analysis<'_, '_> {
    /// Rewrites `let r = &f(x)?;` as `let v = f(x)?; let r = &v;`, which is equivalent, so that the value can
    /// leave a segment.
    pub(super) fn without_temporaries(&mut self, stmts: &[Stmt]) -> Vec<Stmt> {
        let mut all = Vec::with_capacity(stmts.len());
        for stmt in stmts {
            if let Stmt::Local(local) = stmt
                && local.attrs.is_empty()
                && let Some(init) = local.init.as_ref().filter(|i| i.diverge.is_none())
                && let Expr::Reference(r) = &*init.expr
                && r.attrs.is_empty()
                && (matches!(&*r.expr, Expr::Try(_) | Expr::Call(_) | Expr::Macro(_))
                    && !classify::call_free(&r.expr)
                    || attributes::boundary(&r.expr).is_some())
            {
                let (mut value, inner, mutability) = (self.fresh("v"), &r.expr, r.mutability);
                let (pat, at) = (&local.pat, r.and_token.span);
                // Errors about the value are shown at the user's name for it.
                value.set_span(value.span().located_at(syn::spanned::Spanned::span(pat)));
                all.push(syn::parse_quote_spanned!(at=> let #mutability #value = #inner;));
                all.push(syn::parse_quote_spanned!(at=> let #pat = &#mutability #value;));
            } else {
                all.push(stmt.clone());
            }
        }
        all
    }

    /// Rewrites `let b = { b = f(x)?; … };` as `let v = { b = f(x)?; … }; let b = v;`, so that there is a place
    /// where the outer variable has changed and its name is not taken yet.
    pub(super) fn shadowed_apart(&mut self, stmts: Vec<Stmt>) -> Vec<Stmt> {
        let mut all = Vec::with_capacity(stmts.len());
        for mut stmt in stmts {
            if let Stmt::Local(local) = &mut stmt
                && local.attrs.is_empty()
                && self.changes_what_it_shadows(local)
                && let Some(init) = &mut local.init
            {
                let mut value = self.fresh("v");
                value.set_span(value.span().located_at(syn::spanned::Spanned::span(&local.pat)));
                let inner = std::mem::replace(&mut init.expr, syn::parse_quote!(#value));
                let at = local.let_token.span;
                all.push(syn::parse_quote_spanned!(at=> let #value = #inner;));
            }
            all.push(stmt);
        }
        all
    }

    /// Returns whether the value of a `let` changes an outer variable whose name the `let` takes.
    fn changes_what_it_shadows(&self, local: &Local) -> bool {
        let Some(init) = local.init.as_ref().filter(|init| !classify::expr_has_boundary(&init.expr)) else {
            return false;
        };
        if lends_exclusively(init) {
            return false;
        }
        let uses = uses::of_expr(&init.expr);
        syntax::bound_by_let(local).iter().any(|bound| {
            let name = bound.ident.to_string();
            let outer = self.scope.lookup(&name).filter(|b| b.made.is_none());
            let changes = |b: &Binding| uses.get(&name).is_some_and(|u| b.is_changed_by(u));
            outer.is_some_and(changes)
        })
    }

    /// Returns `let v = c();` and `let r = if v { &mut a } else { &mut b };` for `let r = if c() { &mut a } else { &mut b };`, which
    /// is equivalent, so that host code, which calls nothing, makes the reference. `None` for other `let`s, and where host code
    /// decides anyway.
    fn condition_apart(&mut self, local: &Local) -> Option<[Statement; 2]> {
        let init = local.init.as_ref().filter(|i| i.diverge.is_none() && local.attrs.is_empty())?;
        let Expr::If(e) = &*init.expr else { return None };
        if !chooses_exclusive(e) || self.is_split(&init.expr) {
            return None;
        }
        let mut value = self.fresh("v");
        value.set_span(value.span().located_at(syn::spanned::Spanned::span(&e.cond)));
        let (at, cond) = (local.let_token.span, &e.cond);
        let condition = syn::parse_quote_spanned!(at=> let #value = #cond;);
        let mut chosen = (*local).clone();
        if let Some(LocalInit { expr, .. }) = &mut chosen.init
            && let Expr::If(e) = &mut **expr
        {
            *e.cond = syn::parse_quote!(#value);
        }
        Some([Statement::of(condition), Statement::of(Stmt::Local(chosen))])
    }

    pub(super) fn local(&mut self, local: &Local, from: &[Statement], walk: &mut Walk<'_>) {
        let Some(init) = &local.init else { return self.declared(local, from, walk) };
        if let Some(both) = self.condition_apart(local) {
            let from = [&both[..], &from[1..]].concat();
            for at in 0..both.len() {
                if let Some(local) = from[at].local() {
                    self.local(local, &from[at..], walk);
                }
            }
            return;
        }
        let (statement, found) = (&from[0], Let::of(&from[0], local, init));
        // With `#[host]`, only names: a function, a constant or a variant is the same on every call.
        let constant = !found.key
            && (!statement.has_boundary || found.host && matches!(&*init.expr, Expr::Path(_)))
            && self.is_constant(&found.plain, &from[1..]);
        // Full mode would keep the value of the recorded call.
        let calls = found.key && !statement.has_boundary && classify::calls_functions(&init.expr);
        let changing = !constant && (found.host || calls);
        if changing && self.host_statement.is_none() {
            self.host_statement = Some(Location { index: 0, ..self.location(&statement.stmt) });
        }
        if matches!(&*init.expr, Expr::Closure(_)) && !found.host && !statement.has_boundary {
            self.check_move_closure(&init.expr, &statement.value, &walk.run);
            // In its place in the run, and again in each later segment that uses it.
            return self.made_in_each_segment(from, found.plain, walk);
        }
        if constant {
            // As a closure: made where it is used, so that it need not be part of a key.
            let first = self.scope.next_id;
            self.made_in_each_segment(from, found.plain, walk);
            (first..self.scope.next_id).for_each(|id| self.scope.describe(id, true, false));
            return;
        }
        match self.place(&found, from, walk) {
            Place::Run => self.push(walk, statement.with(Stmt::Local(found.plain))),
            Place::HostCode { behind_run } => {
                if behind_run {
                    self.flush(from, walk);
                }
                self.host_let(&found, &from[1..], walk);
            }
        }
    }

    /// `let x;`
    fn declared(&mut self, local: &Local, from: &[Statement], walk: &mut Walk<'_>) {
        let binds = &from[0].binds;
        if self.depends_on_run(&walk.run, &Uses::default(), binds) {
            self.flush(from, walk);
        }
        let is_number = written_type(local).is_some_and(|ty| values::is_number_type(&ty));
        let first = self.scope.next_id;
        for b in binds {
            let given = if is_number { Given::default() } else { self.given_to(&b.ident, &from[1..]) };
            let id = self.scope.bind(b.ident.to_string(), b.mutable);
            self.scope.names.iter_mut().filter(|n| n.id == id).for_each(|n| n.uninit = true);
            self.scope.types.extend(type_of_name(local).map(|ty| (id, ty.clone())));
            if given.owned {
                self.scope.owned.insert(id);
            }
            if given.part {
                self.scope.host_results.insert(id);
            }
        }
        walk.drafts.push(Draft::Declared(without_ours(local), (first..self.scope.next_id).collect()));
    }

    /// Returns what statements assign a variable.
    fn given_to(&self, variable: &syn::Ident, rest: &[Statement]) -> Given {
        struct Assigned<'t, 'a, 'e, 'v>(&'t Analysis<'a, 'e>, &'v syn::Ident, Given);
        impl<'x> Visit<'x> for Assigned<'_, '_, '_, '_> {
            fn visit_expr_assign(&mut self, a: &'x syn::ExprAssign) {
                if uses::of_assigned(&a.left).get(&self.1.to_string()).is_some_and(|u| u.assigned) {
                    let (uses, scope) = (uses::of_given(&a.right), &self.0.scope);
                    let calls = values::gives_owned(&a.right) && !values::is_number(&a.right);
                    self.2.owned |= calls || scope.hands_over(&uses);
                    self.2.part |= scope.hands_on(&uses);
                }
                visit::visit_expr_assign(self, a);
            }
        }
        let mut assigned = Assigned(self, variable, Given::default());
        rest.iter().for_each(|statement| assigned.visit_stmt(&statement.stmt));
        assigned.2
    }

    /// A closure, or another value that each segment makes for itself; `from` begins with its `let`.
    fn made_in_each_segment(&mut self, from: &[Statement], plain: Local, walk: &mut Walk<'_>) {
        let statement = &from[0];
        // The name is bound at once, so a run that uses its earlier meaning ends here, and so does one that makes two such values of
        // one name.
        let is_made = |name: &str| walk.run.iter().any(|s| s.made.as_deref() == Some(name));
        let ends_run = |name: &str| {
            self.run.uses().has(name) || self.run.binds(name) && (statement.value.has(name) || is_made(name))
        };
        if statement.binds.iter().any(|b| ends_run(&b.ident.to_string())) {
            self.flush(from, walk);
        }
        let name = statement.binds.first().map(|b| b.ident.to_string());
        let is_closure = statement.made.is_some();
        let made = Rc::new(Made {
            local: plain.clone(),
            uses: statement.value.clone(),
            planned: self.plan.len(),
            arms: self.arms,
        });
        self.push(walk, Statement { made: name, ..statement.with(Stmt::Local(plain)) });
        for b in &statement.binds {
            let id = self.scope.bind(b.ident.to_string(), is_closure && b.mutable);
            self.scope.names.iter_mut().filter(|n| n.id == id).for_each(|n| n.made = Some(made.clone()));
        }
    }

    /// Returns the place where a `let` is evaluated.
    fn place(&self, found: &Let<'_>, from: &[Statement], walk: &Walk<'_>) -> Place {
        let Let { statement, init, .. } = found;
        let Statement { value, binds, has_boundary, .. } = statement;
        let leaves = statement.leaves || self.steered(&init.expr);
        // Writes of a segment through a reference go to a variable of its own.
        let borrowed = (borrows_mutably(&init.expr) || syntax::binds_mutably(&found.plain.pat)) && {
            let later = Sequence::of(&from[1..]);
            binds.iter().any(|b| later.get(&b.ident.to_string()).is_some_and(|u| u.through))
        };
        let on_device = self.device_arithmetic(&init.expr);
        let evaluated = classify::call_free(&init.expr) && init.diverge.is_none() && !borrowed && !on_device;
        let iterator = self.takes_from_host_iterator(&init.expr)
            || self.binds_host_iterator(&found.plain, &from[1..]) && self.is_iterator_of_host(&init.expr);
        let must = found.says_host() || *has_boundary || leaves || iterator;
        // A call of a macro of the function does not show what it uses.
        let is_hidden = || !walk.run.is_empty() && macros::calls_any(&statement.stmt, &self.own_macros);
        let depends = self.depends_on_run(&walk.run, value, binds)
            || self.overtakes_check(&init.expr, value)
            || is_hidden();
        // An assignment must run once, but a borrow would be evaluated again after its segment. The same
        // holds for an expression that moves one part of a value and borrows another.
        let mixed = binds.iter().any(|b| b.by_ref) && binds.iter().any(|b| !b.by_ref);
        let alone = must || mixed || classify::assigns(&init.expr);
        // What a segment writes through the name is written through it by host code.
        let plain = classify::call_free(&init.expr) && init.diverge.is_none() && !on_device;
        let passes = |name: &str, u: &Use| {
            u.passes_on() && !self.run.binds(name) && self.scope.lookup(name).is_some_and(|b| b.exclusive)
        };
        let renamed = lends_exclusively(init) && binds.iter().any(|b| value.has(&b.ident.to_string()))
            || plain && statement.uses.0.iter().any(|(name, u)| passes(name, u));
        let passed_on = depends && evaluated && self.passes_on_exclusive(found, from, &walk.run);
        if !renamed && (!(must || evaluated) || depends && !alone && !passed_on) {
            return Place::Run;
        }
        let is_late = *has_boundary || leaves || depends || guards::ends_at_once(&found.plain, value);
        let behind_run = is_late || self.takes_from_run(&statement.uses, None);
        Place::HostCode { behind_run }
    }

    /// Returns whether a `let` gives another name to a `&mut` of the pending run, for code after a boundary: host code makes the
    /// `&mut` again behind the run, and can pass it on then, also to the names that follow.
    fn passes_on_exclusive(&self, found: &Let<'_>, from: &[Statement], run: &[Statement]) -> bool {
        let Some(name) = syntax::plain_name(&found.init.expr).map(ToString::to_string) else { return false };
        let made = run.iter().rev().find(|s| s.binds(&name));
        let Some(at) = from[1..].iter().position(|s| s.has_boundary || s.leaves) else { return false };
        let later = Sequence::of(&from[at + 1..]);
        made.is_some_and(makes_exclusive)
            && renamings(found.statement, &from[1..=at]).iter().any(|name| later.has(name))
    }

    /// Adds a `let` that host code evaluates; `rest` are the statements after it.
    fn host_let(&mut self, found: &Let<'_>, rest: &[Statement], walk: &mut Walk<'_>) {
        let Let { statement, init, plain, .. } = found;
        let binds = &statement.binds;
        let described = self.described(found, rest);
        let live = self.live_after(statement, rest, walk.after);
        let mut value = self.host_value(&init.expr, Tail::Value, &live);
        if let Value::Region(region) = &mut value {
            region.ty = written_type(plain);
        }
        let otherwise = init.diverge.as_ref().map(|(_, e)| self.otherwise(e, &live));
        // It may be changed in a segment alone, which has its own.
        let changes_later = binds.iter().any(|b| b.mutable) && {
            let later = Sequence::of(rest);
            binds.iter().any(|b| later.get(&b.ident.to_string()).is_some_and(|u| u.changes(b.mutable)))
        };
        let span = syn::spanned::Spanned::span(&statement.stmt);
        let (attrs, pat) = (plain.attrs.clone(), plain.pat.clone());
        walk.part(Part::Let(Box::new(HostLet { span, attrs, pat, value, otherwise, changes_later })));
        self.note_assigned(&statement.value);
        let calls = statement.has_boundary || !described.host && values::gives_owned(&init.expr);
        let owned = calls && !found.says_host() || self.scope.hands_over(&statement.uses);
        let is_number = values::is_number(&init.expr)
            || written_type(plain).is_some_and(|ty| values::is_number_type(&ty));
        let host_results = !is_number
            && (found.says_host() && values::gives_owned(&init.expr) || self.scope.hands_on(&statement.uses));
        let exclusive =
            if statement.has_boundary { HashSet::new() } else { self.exclusive(&plain.pat, &init.expr) };
        let first = self.scope.next_id;
        self.bind_described(binds, described, owned);
        if host_results {
            self.scope.host_results.extend(first..self.scope.next_id);
        }
        self.scope.mark_exclusive(&exclusive);
    }

    /// Returns the known facts about the value of a `let` before it is evaluated.
    fn described(&self, found: &Let<'_>, rest: &[Statement]) -> Described {
        let Let { statement, init, plain, .. } = found;
        let boundary = statement.has_boundary;
        let eager = boundary && !only_piecewise(&init.expr);
        let passes_on = !found.says_host() && !boundary && classify::call_free(&init.expr);
        let eager_derived: HashSet<String> = match (eager && !found.says_host(), passes_on) {
            (true, _) => statement.binds.iter().map(|b| b.ident.to_string()).collect(),
            (false, true) => self.derivation_of(&init.expr).names(&plain.pat),
            (false, false) => HashSet::new(),
        };
        let host = found.says_host() || !boundary && self.repeatable(&init.expr, &[]);
        Described {
            eager_derived,
            clean: self.clean_fields(&init.expr),
            host,
            device: !host && self.makes_device(&init.expr),
            list: values::binds_list(plain),
            iterator: self.binds_host_iterator(plain, rest),
            reference: self.binds_references(plain, |n| self.scope.is_reference(n)),
            lenders: if boundary {
                Lenders::default()
            } else {
                self.lenders_of(&init.expr, &statement.value)
            },
        }
    }

    /// Binds the names of a `let` that host code evaluated.
    fn bind_described(&mut self, binds: &[syntax::Bound], described: Described, owned: bool) {
        let Described { eager_derived, clean, host, device, list, iterator, reference, lenders } = described;
        let first = self.scope.next_id;
        for b in binds {
            let name = b.ident.to_string();
            let taken = eager_derived.contains(&name);
            let id = self.scope.bind(name, b.mutable);
            if taken {
                self.scope.eager_derived.insert(id);
            }
            if let (true, Some(clean)) = (taken, &clean) {
                self.scope.clean.insert(id, clean.clone());
            }
            self.scope.lenders.insert(id, lenders.clone());
            self.scope.describe(id, host, device);
            self.scope.note_list(id, list);
            self.scope.note_reference(id, reference);
            if iterator {
                self.scope.note_iterator(id);
            }
        }
        if owned {
            self.scope.owned.extend(first..self.scope.next_id);
        }
    }

    /// Builds the block after the `else` of a `let`.
    fn otherwise(&mut self, diverge: &Expr, live: &HashSet<usize>) -> Block {
        match diverge {
            // As written: in a segment, rustc would not know that it never ends.
            Expr::Block(b) if classify::only_fails(&b.block.stmts) => {
                let stmts = &b.block.stmts;
                self.in_host_code(&Sequence::of(
                    &stmts.iter().cloned().map(Statement::of).collect::<Vec<_>>(),
                ));
                Block { parts: stmts.iter().cloned().map(Part::Written).collect() }
            }
            Expr::Block(b) => self.block(&b.block.stmts, Tail::Unit, live),
            other => Block { parts: vec![Part::Evaluated(other.clone())] },
        }
    }
}

/// Returns the `let` without our attributes.
fn without_ours(local: &Local) -> Local {
    let mut plain = local.clone();
    let ours =
        |a: &syn::Attribute| a.path().is_ident("host") || a.path().is_ident("key") || attributes::is_ours(a);
    plain.attrs.retain(|a| !ours(a));
    plain
}

/// The type of a `let`: generic values, as of `collect`, are found by it.
fn written_type(local: &Local) -> Option<syn::Type> {
    match &local.pat {
        syn::Pat::Type(t) => Some((*t.ty).clone()),
        _ => None,
    }
}

/// Returns the type that is written with a name, of which it is that of the variable.
pub(super) fn type_of_name(local: &Local) -> Option<&syn::Type> {
    match &local.pat {
        syn::Pat::Type(t) if matches!(&*t.pat, syn::Pat::Ident(_)) => Some(&t.ty),
        _ => None,
    }
}

/// Returns whether a statement is a `let` of a `&mut`, or of a value that contains one.
pub(super) fn makes_exclusive(statement: &Statement) -> bool {
    let init = statement.local().and_then(|local| local.init.as_ref());
    init.is_some_and(|init| borrows_mutably(&init.expr))
}

/// Returns the names that a `let` binds, and those that the statements behind it give to the same values.
fn renamings(first: &Statement, rest: &[Statement]) -> HashSet<String> {
    let bound = |s: &Statement| s.binds.iter().map(|b| b.ident.to_string()).collect::<Vec<_>>();
    let mut names: HashSet<String> = bound(first).into_iter().collect();
    for statement in rest {
        let init = statement.local().and_then(|local| local.init.as_ref());
        let renamed = init.and_then(|init| syntax::plain_name(&init.expr)).map(ToString::to_string);
        if renamed.is_some_and(|name| names.contains(&name)) {
            names.extend(bound(statement));
        }
    }
    names
}

/// Returns whether an `if` chooses a `&mut` by a condition that makes calls and binds no names.
fn chooses_exclusive(e: &syn::ExprIf) -> bool {
    struct Binds(bool);
    impl<'a> Visit<'a> for Binds {
        fn visit_expr_let(&mut self, _: &'a syn::ExprLet) {
            self.0 = true;
        }
    }
    let mut decided = e.clone();
    *decided.cond = syn::parse_quote!(true);
    let decided = Expr::If(decided);
    let mut binds = Binds(false);
    binds.visit_expr(&e.cond);
    let is_plain = e.attrs.is_empty() && !binds.0;
    is_plain && borrows_mutably(&decided) && classify::call_free(&decided) && !classify::call_free(&e.cond)
}

/// Returns whether the value of a `let` only refers to variables, to some of them by `&mut`.
fn lends_exclusively(init: &LocalInit) -> bool {
    let plain = classify::call_free(&init.expr) && init.diverge.is_none() && !classify::assigns(&init.expr);
    plain && borrows_mutably(&init.expr)
}

/// Returns whether an expression is `&mut …`, or contains one.
fn borrows_mutably(expr: &Expr) -> bool {
    match expr {
        Expr::Reference(r) => r.mutability.is_some(),
        Expr::Paren(p) => borrows_mutably(&p.expr),
        Expr::Tuple(t) => t.elems.iter().any(borrows_mutably),
        Expr::Call(c) => c.args.iter().any(borrows_mutably),
        Expr::If(_) | Expr::Match(_) | Expr::Block(_) => syntax::tails(expr).into_iter().any(borrows_mutably),
        _ => false,
    }
}

//! Walks the statements of a block, collects runs of device statements, and leaves the rest to host code.

use std::{collections::HashSet, rc::Rc};

use proc_macro2::Ident;
use syn::{Expr, Local, LocalInit, Stmt};

use super::{
    Analysis, Made, Tail, classify, ends, host_values, is_unit_like, macros,
    statement::Statement,
    uses::{self, Sequence, Uses},
};
use crate::{
    model::{Block, Closure, HostLet, Location, Part, Value},
    parse::{attributes, attributes::Edge, syntax},
};

/// A part of a block, some of which may turn out to be unnecessary.
enum Draft {
    Part(Part),
    /// A closure: kept only if host code uses it.
    Closure {
        name: String,
        id: Option<usize>,
        local: Box<Local>,
        /// The variables that it captures.
        variables: HashSet<String>,
    },
    /// The declaration of a binding that a run moved away: kept only if host code assigns it.
    Emptied(Ident, usize),
    /// `let x;`: kept only if host code assigns it, since nothing else would say its type.
    Declared(Local, Vec<usize>),
}

/// A block under way.
struct Walk<'b> {
    /// The pending run.
    run: Vec<Statement>,
    drafts: Vec<Draft>,
    /// The bindings that live on behind the block.
    after: &'b HashSet<usize>,
}

impl Walk<'_> {
    fn part(&mut self, part: Part) {
        self.drafts.push(Draft::Part(part));
    }
}

/// A `let` with a value, and what is asked of it first.
struct Let<'s> {
    statement: &'s Statement,
    init: &'s LocalInit,
    /// Without attributes of ours.
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

    /// Whether its names hold host values because it says so.
    fn says_host(&self) -> bool {
        self.host || self.key
    }
}

impl Analysis<'_, '_> {
    /// The host code of a block; `after` are the bindings that live on behind it.
    pub(super) fn block(&mut self, stmts: &[Stmt], tail: Tail, after: &HashSet<usize>) -> Block {
        let stmts = self.without_temporaries(stmts);
        let stmts = self.captured_apart(stmts);
        let (stmts, edges) = self.reordered(&stmts, tail);
        let statements: Vec<Statement> = stmts.iter().cloned().map(Statement::of).collect();
        let drafts = self.scoped(|a| a.statements(&statements, &edges, tail, after));
        Block { parts: drafts.into_iter().filter_map(|draft| self.settled(draft)).collect() }
    }

    /// A draft as it stands when all of its block is known; `None` for what nothing needs.
    fn settled(&self, draft: Draft) -> Option<Part> {
        match draft {
            Draft::Part(part) => Some(part),
            Draft::Closure { name, id, local, variables } if self.host_uses.contains(&name) => {
                let shared = id.is_some_and(|id| self.in_segments.contains(&id));
                Some(Part::Closure(closure(*local, |n| shared && variables.contains(n))))
            }
            Draft::Emptied(ident, id) if self.host_assigned.contains(&id) => Some(Part::Emptied(ident)),
            Draft::Declared(local, ids) if ids.iter().any(|id| self.host_assigned.contains(id)) => {
                Some(Part::Declared(local))
            }
            Draft::Closure { .. } | Draft::Emptied(..) | Draft::Declared(..) => None,
        }
    }

    /// `let r = &f(x)?;` as `let v = f(x)?; let r = &v;`, which means the same: the value can then leave a segment.
    fn without_temporaries(&mut self, stmts: &[Stmt]) -> Vec<Stmt> {
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
                // What is wrong with the value is shown at the user's name for it.
                value.set_span(value.span().located_at(syn::spanned::Spanned::span(pat)));
                all.push(syn::parse_quote_spanned!(at=> let #mutability #value = #inner;));
                all.push(syn::parse_quote_spanned!(at=> let #pat = &#mutability #value;));
            } else {
                all.push(stmt.clone());
            }
        }
        all
    }

    fn statements(
        &mut self,
        statements: &[Statement],
        edges: &[Option<Edge>],
        tail: Tail,
        after: &HashSet<usize>,
    ) -> Vec<Draft> {
        let mut walk = Walk { run: Vec::new(), drafts: Vec::new(), after };
        for (at, statement) in statements.iter().enumerate() {
            let (from, stmt) = (&statements[at..], &statement.stmt);
            let is_last = from.len() == 1 && tail != Tail::Unit;
            self.edge = edges.get(at).copied().flatten();
            match stmt {
                Stmt::Item(_) => walk.part(Part::Written(stmt.clone())),
                Stmt::Local(local) => self.local(local, from, &mut walk),
                // The block's value is that it never ends, which a segment's call would hide.
                Stmt::Expr(expr @ Expr::Return(_), _) if is_last => {
                    self.flush(from, &mut walk);
                    walk.part(Part::Value(self.host_value(expr, tail, after)));
                }
                Stmt::Macro(m) if is_last && macros::never_returns(&m.mac) => {
                    self.flush(from, &mut walk);
                    self.in_host_code(&statement.uses);
                    walk.part(Part::Written(stmt.clone()));
                }
                Stmt::Macro(m) if is_last && m.semi_token.is_none() => {
                    let expr = Expr::Macro(syn::ExprMacro { attrs: m.attrs.clone(), mac: m.mac.clone() });
                    self.tail(&expr, tail, &mut walk);
                }
                Stmt::Macro(_) => self.push(&mut walk, statement.clone()),
                Stmt::Expr(expr, None) if is_last && !is_unit_like(expr) => self.tail(expr, tail, &mut walk),
                Stmt::Expr(expr, _) => self.statement(expr, from, &mut walk),
            }
        }
        self.flush(&[], &mut walk);
        walk.drafts
    }

    /// A statement of the pending run.
    fn push(&mut self, walk: &mut Walk<'_>, statement: Statement) {
        self.pending.extend(statement.binds.iter().map(|b| b.ident.to_string()));
        if let Stmt::Macro(m) = &statement.stmt {
            self.maybe_bound.extend(super::macro_bindings::named_by(&m.mac));
        }
        self.run.push(&statement);
        let own = &statement.uses;
        let with_captures = self.with_captures(own.clone());
        if with_captures.0.len() > own.0.len() || self.names_closures(own) {
            self.run.add(&with_captures);
        }
        let check = super::evaluation_order::Check::of(&statement.stmt);
        if check.leaves() {
            self.checks.push((check, with_captures));
        }
        walk.run.push(statement);
    }

    /// Takes the pending run.
    fn take_run(&mut self, walk: &mut Walk<'_>) -> Vec<Statement> {
        self.pending.clear();
        self.maybe_bound.clear();
        self.run = Sequence::default();
        self.checks.clear();
        std::mem::take(&mut walk.run)
    }

    /// Ends the pending run; `rest` are the statements behind it.
    fn flush(&mut self, rest: &[Statement], walk: &mut Walk<'_>) {
        if walk.run.is_empty() {
            return;
        }
        let run = self.take_run(walk);
        let parts = self.segment(&run, None, rest, walk.after);
        walk.drafts.extend(parts.into_iter().map(Draft::Part));
        let emptied = std::mem::take(&mut self.emptied).into_iter();
        walk.drafts.extend(emptied.map(|(ident, id)| Draft::Emptied(ident, id)));
        let closures = (0..run.len()).filter_map(|at| self.usable_closure(&run, at));
        walk.drafts.extend(closures);
    }

    /// The closure of a run's statement, which host code can use from the end of the run on.
    fn usable_closure(&self, run: &[Statement], at: usize) -> Option<Draft> {
        let (local, name) = (run[at].local()?, run[at].made.clone()?);
        if run[at + 1..].iter().any(|s| s.made.is_none() && s.binds(&name)) {
            return None;
        }
        let id = self.lookup(&name).map(|b| b.id);
        let variable = |n: &&str| self.lookup(n).is_some_and(|b| b.made.is_none());
        let variables = run[at].value.names().filter(variable).map(str::to_owned).collect();
        Some(Draft::Closure { name, id, local: Box::new(local.clone()), variables })
    }

    fn local(&mut self, local: &Local, from: &[Statement], walk: &mut Walk<'_>) {
        let Some(init) = &local.init else { return self.declared(local, from, walk) };
        let (statement, found) = (&from[0], Let::of(&from[0], local, init));
        // With `#[host]` only what is named: a function, a constant or a variant is the same on every call.
        let constant = !found.key
            && (!statement.has_boundary || found.host && matches!(&*init.expr, Expr::Path(_)))
            && self.is_constant(&found.plain, &from[1..]);
        // Full mode would give the value of the call that it recorded, for ever.
        let calls = found.key && !statement.has_boundary && classify::calls_functions(&init.expr);
        let changing = !constant && (found.host || calls);
        if changing && self.host_statement.is_none() {
            self.host_statement = Some(Location { index: 0, ..self.location(&statement.stmt) });
        }
        if matches!(&*init.expr, Expr::Closure(_)) && !found.host && !statement.has_boundary {
            self.check_move_closure(&init.expr, &statement.value, &walk.run);
            // In its place in the run, and again in each later segment that uses it.
            return self.made_in_each_segment(statement, found.plain, walk);
        }
        if constant {
            // As a closure: made where it is used, so that it need not be part of a key.
            let first = self.next_id;
            self.made_in_each_segment(statement, found.plain, walk);
            (first..self.next_id).for_each(|id| self.describe(id, true, false));
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
        let first = self.next_id;
        for b in binds {
            let id = self.bind(b.ident.to_string(), b.mutable);
            self.names.iter_mut().filter(|n| n.id == id).for_each(|n| n.uninit = true);
        }
        walk.drafts.push(Draft::Declared(without_ours(local), (first..self.next_id).collect()));
    }

    /// A closure, or another value that each segment makes for itself.
    fn made_in_each_segment(&mut self, statement: &Statement, plain: Local, walk: &mut Walk<'_>) {
        let name = statement.binds.first().map(|b| b.ident.to_string());
        let is_closure = statement.made.is_some();
        let made = Rc::new(Made { local: plain.clone(), uses: statement.value.clone() });
        self.push(walk, Statement { made: name, ..statement.with(Stmt::Local(plain)) });
        for b in &statement.binds {
            let id = self.bind(b.ident.to_string(), is_closure && b.mutable);
            self.names.iter_mut().filter(|n| n.id == id).for_each(|n| n.made = Some(made.clone()));
        }
    }

    /// Where a `let` is evaluated.
    fn place(&self, found: &Let<'_>, from: &[Statement], walk: &Walk<'_>) -> Place {
        let Let { statement, init, .. } = found;
        let Statement { value, binds, has_boundary, .. } = statement;
        let leaves = statement.leaves || self.steered(&init.expr);
        // What a segment writes through a reference, it writes to a variable of its own.
        let lent = (lends_to_change(&init.expr) || syntax::binds_to_change(&found.plain.pat)) && {
            let later = Sequence::of(&from[1..]);
            binds.iter().any(|b| later.get(&b.ident.to_string()).is_some_and(|u| u.through))
        };
        let on_device = self.device_arithmetic(&init.expr);
        let evaluated = classify::call_free(&init.expr) && init.diverge.is_none() && !lent && !on_device;
        let must = found.says_host() || *has_boundary || leaves;
        let depends = self.depends_on_run(&walk.run, value, binds) || self.overtakes_check(&init.expr, value);
        // What assigns must run once: as a borrow, it would be evaluated again behind its segment.
        // So must what moves one part of a value and borrows another.
        let mixed = binds.iter().any(|b| b.by_ref) && binds.iter().any(|b| !b.by_ref);
        let alone = must || mixed || classify::assigns(&init.expr);
        if !(must || evaluated) || depends && !alone {
            return Place::Run;
        }
        let behind_run = *has_boundary || leaves || depends || self.moves_from_run(&statement.uses);
        Place::HostCode { behind_run }
    }

    /// A `let` that host code evaluates; `rest` are the statements behind it.
    fn host_let(&mut self, found: &Let<'_>, rest: &[Statement], walk: &mut Walk<'_>) {
        let Let { statement, init, plain, .. } = found;
        let binds = &statement.binds;
        let described = self.described(found);
        let live = self.live_after(rest, walk.after);
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
        let owned = statement.has_boundary && !found.says_host() || self.hands_over(&statement.uses);
        self.bind_described(binds, described, owned);
        if !statement.has_boundary {
            self.mark_exclusive(&super::eager_values::exclusive(&plain.pat, &init.expr));
        }
    }

    /// What is known of the value of a `let` before it is evaluated.
    fn described(&self, found: &Let<'_>) -> Described {
        let Let { statement, init, plain, .. } = found;
        let boundary = statement.has_boundary;
        let eager = boundary && !only_piecewise(&init.expr);
        let passes_on = !found.says_host() && !boundary && classify::call_free(&init.expr);
        let tainted: HashSet<String> = match (eager && !found.says_host(), passes_on) {
            (true, _) => statement.binds.iter().map(|b| b.ident.to_string()).collect(),
            (false, true) => self.taint_of(&init.expr).names(&plain.pat),
            (false, false) => HashSet::new(),
        };
        let host = found.says_host() || !boundary && self.repeatable(&init.expr, &[]);
        Described {
            tainted,
            clean: self.clean_fields(&init.expr),
            host,
            device: !host && self.makes_device(&init.expr),
            list: host_values::binds_list(plain),
            lenders: if boundary { HashSet::new() } else { self.roots(&statement.value) },
        }
    }

    /// Binds the names of a `let` that host code evaluated.
    fn bind_described(&mut self, binds: &[syntax::Bound], described: Described, owned: bool) {
        let Described { tainted, clean, host, device, list, lenders } = described;
        let first = self.next_id;
        for b in binds {
            let name = b.ident.to_string();
            let taken = tainted.contains(&name);
            let id = self.bind(name, b.mutable);
            if taken {
                self.tainted.insert(id);
            }
            if let (true, Some(clean)) = (taken, &clean) {
                self.clean.insert(id, clean.clone());
            }
            self.lenders.insert(id, lenders.clone());
            self.describe(id, host, device);
            self.note_list(id, list);
        }
        if owned {
            self.owned.extend(first..self.next_id);
        }
    }

    /// The block behind the `else` of a `let`.
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

    /// Bindings that code behind this point uses.
    pub(super) fn live_after(&self, rest: &[Statement], after: &HashSet<usize>) -> HashSet<usize> {
        let mut live = self.ids(&Sequence::of(rest));
        live.extend(after);
        live
    }

    fn statement(&mut self, expr: &Expr, from: &[Statement], walk: &mut Walk<'_>) {
        let statement = &from[0];
        let uses = &statement.value;
        let value = if let Expr::Assign(a) = expr { &a.right } else { expr };
        if statement.has_boundary || statement.leaves || self.steered(value) {
            return self.host_statement(expr, from, walk);
        }
        let assigns =
            matches!(expr, Expr::Assign(_)) || matches!(expr, Expr::Binary(b) if syntax::is_assign(&b.op));
        let in_host_code = assigns
            && classify::call_free(expr)
            && !self.device_arithmetic(expr)
            && !self.depends_on_run(&walk.run, uses, &[])
            && !self.overtakes_check(expr, uses);
        if !in_host_code {
            let stmt = match &statement.stmt {
                Stmt::Expr(e, semi) => {
                    // Ours is no user's: lints of theirs do not mean it.
                    let ours = crate::krate::generated_at(ends(e).1);
                    Stmt::Expr(e.clone(), Some(semi.unwrap_or(syn::Token![;](ours))))
                }
                other => other.clone(),
            };
            return self.push(walk, statement.with(stmt));
        }
        if self.moves_from_run(uses) {
            self.flush(from, walk);
        }
        match expr {
            Expr::Assign(a) if self.is_tainted(&uses::of_expr(&a.right)) => self.taint_by(&a.left, &a.right),
            Expr::Binary(b) if self.is_tainted(uses) => self.taint(&b.left),
            _ => {}
        }
        self.in_host_code(uses);
        self.note_assigned(uses);
        walk.part(Part::Evaluated(expr.clone()));
    }

    /// A statement with a boundary, or that host code decides about.
    fn host_statement(&mut self, expr: &Expr, from: &[Statement], walk: &mut Walk<'_>) {
        let uses = &from[0].value;
        self.flush(from, walk);
        let live = self.live_after(&from[1..], walk.after);
        if let Expr::Assign(a) = expr
            && attributes::boundary(expr).is_none()
        {
            let value = self.host_value(&a.right, Tail::Value, &live);
            if !only_piecewise(&a.right) {
                self.taint(&a.left);
            }
            self.note_assigned(uses);
            return walk.part(Part::Assign((*a.left).clone(), value));
        }
        // Other attributes are allowed before a statement, and not before the value inside.
        let (mut plain, mut own) = (expr.clone(), Vec::new());
        if attributes::boundary(expr).is_some() {
            let ours;
            (ours, own) = attributes::take(&mut plain).into_iter().partition(attributes::is_ours);
            attributes::put(&mut plain, ours);
        }
        let value = self.host_value(&plain, Tail::Unit, &live);
        self.note_assigned(uses);
        walk.part(Part::Statement(own, value));
    }

    /// The names that the left side of an assignment assigns are values of eager code from here on.
    fn taint(&mut self, left: &Expr) {
        for (name, u) in &uses::of_assigned(left).0 {
            if u.assigned
                && let Some(id) = self.lookup(name).map(|b| b.id)
            {
                self.tainted.insert(id);
            }
        }
    }

    /// As [`taint`](Self::taint), by a value whose parts may be known.
    fn taint_by(&mut self, left: &Expr, right: &Expr) {
        let clean = self.clean_fields(right).unwrap_or_default();
        let known = syntax::plain_name(left).and_then(|n| self.lookup(&n.to_string())).map(|b| b.id);
        if let Some(id) = known {
            let before = self.clean.get(&id).cloned();
            let was = self.tainted.contains(&id);
            let both = match before {
                Some(before) => before.intersection(&clean).cloned().collect(),
                None if was => HashSet::new(),
                None => clean,
            };
            self.clean.insert(id, both);
        }
        self.taint(left);
    }

    /// The fields of a struct literal that hold no value of eager code.
    fn clean_fields(&self, expr: &Expr) -> Option<HashSet<String>> {
        let Expr::Struct(literal) = expr else { return None };
        let clean = |e: &Expr| !self.is_tainted(&uses::of_expr(e));
        if literal.rest.as_deref().is_some_and(|rest| !clean(rest)) {
            return None;
        }
        let fields = literal.fields.iter().filter(|f| clean(&f.expr));
        Some(fields.map(|f| quote::ToTokens::to_token_stream(&f.member).to_string()).collect())
    }

    /// Whether the code takes an owned value as a whole.
    pub(super) fn hands_over(&self, uses: &Uses) -> bool {
        let owned = |name: &str| self.lookup(name).is_some_and(|b| self.owned.contains(&b.id));
        uses.0.iter().any(|(name, u)| u.by_value && owned(name))
    }

    fn note_assigned(&mut self, uses: &Uses) {
        for (name, u) in &uses.0 {
            if u.assigned
                && let Some(id) = self.lookup(name).map(|b| b.id)
            {
                self.assigned.insert(id);
                self.host_assigned.insert(id);
            }
        }
    }

    fn tail(&mut self, expr: &Expr, tail: Tail, walk: &mut Walk<'_>) {
        let value = Statement::of_value(expr);
        if self.is_split(expr) || classify::call_free(expr) {
            self.flush(std::slice::from_ref(&value), walk);
            walk.part(Part::Value(self.host_value(expr, tail, walk.after)));
        } else {
            let run = self.take_run(walk);
            let parts = self.segment(&run, Some((&value, tail)), &[], walk.after);
            walk.drafts.extend(parts.into_iter().map(Draft::Part));
        }
    }
}

/// Where a `let` is evaluated.
enum Place {
    /// In the pending run.
    Run,
    /// In host code, before the pending run or behind it.
    HostCode { behind_run: bool },
}

/// What is known of the value of a `let`.
struct Described {
    /// Names that take a value of eager code.
    tainted: HashSet<String>,
    /// Of a struct literal: the fields that hold none.
    clean: Option<HashSet<String>>,
    host: bool,
    device: bool,
    /// Whether it is a vector or an array.
    list: bool,
    /// The bindings that it may refer to.
    lenders: HashSet<usize>,
}

/// A closure that keeps copies of those of its variables that are `needed` by later code; only a `move` closure does.
pub(super) fn closure(local: Local, needed: impl Fn(&str) -> bool) -> Closure {
    let copied = match &local.init {
        Some(init) if matches!(&*init.expr, Expr::Closure(c) if c.capture.is_some()) => {
            let uses = uses::of_expr(&init.expr).0.into_iter();
            uses.filter(|(n, _)| n != "self" && needed(n)).map(|(_, u)| u.ident).collect()
        }
        _ => Vec::new(),
    };
    Closure { local, copied }
}

/// The `let` without attributes of ours.
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

/// `&mut …`, or what holds it.
fn lends_to_change(expr: &Expr) -> bool {
    match expr {
        Expr::Reference(r) => r.mutability.is_some(),
        Expr::Paren(p) => lends_to_change(&p.expr),
        Expr::Tuple(t) => t.elems.iter().any(lends_to_change),
        Expr::Call(c) => c.args.iter().any(lends_to_change),
        _ => false,
    }
}

/// Whether all boundaries of the expression are `#[piecewise]` calls: their results come from segments.
fn only_piecewise(expr: &Expr) -> bool {
    struct Eager(bool);
    impl<'a> syn::visit::Visit<'a> for Eager {
        fn visit_attribute(&mut self, a: &'a syn::Attribute) {
            self.0 |= attributes::is_eager(a);
        }
    }
    let mut eager = Eager(false);
    syn::visit::Visit::visit_expr(&mut eager, expr);
    !eager.0
}

//! Walks the statements of a block, collects runs of device statements, and leaves the rest to host code.

use std::collections::HashSet;

use proc_macro2::{Ident, TokenStream};
use quote::quote;
use syn::{
    Expr, Item, ItemMacro, Local, Pat, Stmt,
    visit::{self, Visit},
};

use super::{
    Analysis, Tail, declared, ends, evaluation_order::AssignedField, is_unit_like, pending_run::PendingRun,
};
use crate::{
    facts::{
        classify, macros,
        statement::Statement,
        uses::{self, Use, Uses},
    },
    model::{Block, Part},
    parse::{attributes, attributes::Edge, syntax},
};

/// A part of a block, some of which may turn out to be unnecessary.
pub(super) enum Draft {
    Part(Part),
    /// A closure: kept only if host code uses it.
    Closure {
        id: usize,
        local: Box<Local>,
        /// The variables that it captures.
        variables: HashSet<String>,
    },
    /// The declaration of a binding that a run moved away: kept only if host code assigns it.
    Emptied(Ident, usize),
    /// `let x;`: kept only if host code assigns it, since nothing else would determine its type.
    Declared(Local, Vec<usize>),
}

/// A block being partitioned.
pub(super) struct Walk<'b> {
    /// The pending run.
    pub(super) run: Vec<Statement>,
    pub(super) drafts: Vec<Draft>,
    /// The bindings that are live after the block.
    pub(super) after: &'b HashSet<usize>,
}

impl Walk<'_> {
    pub(super) fn part(&mut self, part: Part) {
        self.drafts.push(Draft::Part(part));
    }
}

impl Analysis<'_, '_> {
    /// Returns the host code of a block; `after` are the bindings that are live after it.
    pub(super) fn block(&mut self, stmts: &[Stmt], tail: Tail, after: &HashSet<usize>) -> Block {
        let stmts = self.without_temporaries(stmts);
        let stmts = declared::apart(stmts);
        let stmts = self.shadowed_apart(stmts);
        let stmts = self.captured_apart(stmts);
        let (stmts, edges) = self.reordered(&stmts, tail);
        let statements: Vec<Statement> = stmts.iter().cloned().map(Statement::of).collect();
        let takes = self.takes.clone();
        let drafts = self.scoped(|a| {
            a.scope.enter_items(&stmts);
            a.statements(&statements, &edges, tail, after)
        });
        self.takes = takes;
        Block { parts: drafts.into_iter().filter_map(|draft| self.completed(draft)).collect() }
    }

    /// Completes a draft when all of its block is known; `None` if nothing needs it.
    fn completed(&self, draft: Draft) -> Option<Part> {
        match draft {
            Draft::Part(part) => Some(part),
            Draft::Closure { id, local, variables } if self.host_closures.contains(&id) => {
                let shared = self.in_segments.contains(&id);
                let local = closure(*local, |n| shared && variables.contains(n));
                Some(Part::Closure(self.host_closure(local)))
            }
            Draft::Emptied(ident, id) if self.host_assigned.contains(&id) => Some(Part::Emptied(ident)),
            Draft::Declared(local, ids) if ids.iter().any(|id| self.host_assigned.contains(id)) => {
                Some(Part::Declared(local))
            }
            Draft::Closure { .. } | Draft::Emptied(..) | Draft::Declared(..) => None,
        }
    }

    /// Passes the definition of a macro: code before it means another one of the name, and so do macros that call it there. What it
    /// names stands for what host code before it has.
    fn defined(&mut self, name: &Ident, rules: &TokenStream, from: &[Statement], walk: &mut Walk<'_>) {
        let callers = self.callers(name);
        let calls = |s: &Statement| macros::calls_any(&s.stmt, &callers);
        let named = &from[0].uses;
        if walk.run.iter().any(calls) || named.names().any(|name| self.run.binds(name)) {
            self.flush(from, walk);
        }
        self.in_host_code(named);
        self.named_by_macros.extend(self.scope.ids(named));
        self.note_macro(name, rules);
        self.scope.enter_macro(name);
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
            if self.reads_written(&statement.uses) {
                self.flush(from, &mut walk);
            }
            match stmt {
                Stmt::Item(item) => {
                    if let Item::Macro(ItemMacro { ident: Some(name), mac, .. }) = item {
                        self.defined(name, &mac.tokens, from, &mut walk);
                    }
                    walk.part(Part::Written(stmt.clone()));
                }
                Stmt::Local(local) => self.local(local, from, &mut walk),
                // The block never ends, which a segment's call would hide.
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
    pub(super) fn push(&mut self, walk: &mut Walk<'_>, statement: Statement) {
        let captured = self.scope.with_captures(statement.uses.clone());
        self.run.push(&statement, captured, self.scope.names_closures(&statement.uses));
        walk.run.push(statement);
    }

    /// Takes the pending run.
    fn take_run(&mut self, walk: &mut Walk<'_>) -> Vec<Statement> {
        self.run = PendingRun::default();
        std::mem::take(&mut walk.run)
    }

    /// Ends the pending run; `rest` are the statements after it.
    pub(super) fn flush(&mut self, rest: &[Statement], walk: &mut Walk<'_>) {
        if walk.run.is_empty() {
            return;
        }
        let run = self.take_run(walk);
        let (parts, again) = self.segment(&run, None, rest, walk.after);
        walk.drafts.extend(parts.into_iter().map(Draft::Part));
        let emptied = std::mem::take(&mut self.emptied).into_iter();
        walk.drafts.extend(emptied.map(|(ident, id)| Draft::Emptied(ident, id)));
        // In the order in which they were written: a borrow may be one of a closure.
        let mut again = again.into_iter().peekable();
        for at in 0..run.len() {
            walk.drafts.extend(self.usable_closure(&run, at));
            while let Some((_, local)) = again.next_if(|(of, _)| *of == at) {
                walk.part(Part::Closure(self.host_closure(local)));
            }
        }
    }

    /// The closure of a run's statement, which host code can use from the end of the run on.
    fn usable_closure(&self, run: &[Statement], at: usize) -> Option<Draft> {
        let (local, name) = (run[at].local()?, run[at].made.clone()?);
        if run[at + 1..].iter().any(|s| s.made.is_none() && s.binds(&name)) {
            return None;
        }
        let id = self.scope.names.iter().rev().find(|b| b.made.is_some() && b.name == name)?.id;
        let variable = |n: &&str| self.scope.lookup(n).is_some_and(|b| b.made.is_none());
        let variables = run[at].value.names().filter(variable).map(str::to_owned).collect();
        Some(Draft::Closure { id, local: Box::new(local.clone()), variables })
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
                    // This binding is generated, so lints for the user do not apply to it.
                    let ours = crate::krate::generated_at(ends(e).1);
                    Stmt::Expr(e.clone(), Some(semi.unwrap_or(syn::Token![;](ours))))
                }
                other => other.clone(),
            };
            return self.push(walk, statement.with(stmt));
        }
        if self.takes_from_run(uses, AssignedField::of(expr).as_ref()) {
            self.flush(from, walk);
        }
        match expr {
            Expr::Assign(a) if self.is_eager_derived(&uses::of_expr(&a.right)) => {
                self.derive_by(&a.left, &a.right)
            }
            Expr::Binary(b) if self.is_eager_derived(uses) => self.mark_eager_derived(&b.left),
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
        let live = self.live_after(&from[0], &from[1..], walk.after);
        if let Expr::Assign(a) = expr
            && attributes::boundary(expr).is_none()
        {
            let value = self.host_value(&a.right, Tail::Value, &live);
            if !only_piecewise(&a.right) {
                self.mark_eager_derived(&a.left);
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

    pub(super) fn note_assigned(&mut self, uses: &Uses) {
        for (name, u) in &uses.0 {
            if u.assigned
                && let Some(id) = self.scope.lookup(name).map(|b| b.id)
            {
                self.scope.assigned.insert(id);
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
            // Nothing follows that could need a borrow again.
            let (parts, _) = self.segment(&run, Some((&value, tail)), &[], walk.after);
            walk.drafts.extend(parts.into_iter().map(Draft::Part));
        }
    }
}

/// Returns a closure, or another value that is made where it is used, that keeps copies of those of its variables that
/// later code needs (`needed`), if it takes them: a `move` closure does, and a value does with what it moves.
pub(super) fn closure(mut local: Local, needed: impl Fn(&str) -> bool) -> Local {
    if let Some(init) = &mut local.init {
        let copied = copied(&init.expr, needed);
        if !copied.is_empty() {
            let value = &init.expr;
            let copies = quote!(#(let #copied = ::core::clone::Clone::clone(&#copied);)*);
            *init.expr = syn::parse_quote!({ #copies #value });
        }
    }
    local
}

fn copied(value: &Expr, needed: impl Fn(&str) -> bool) -> Vec<Ident> {
    let takes = takes(value);
    let uses = uses::of_expr(value).0.into_iter();
    uses.filter(|(n, u)| n != "self" && needed(n) && takes(n, u)).map(|(_, u)| u.ident).collect()
}

/// Returns whether a value takes a variable: it moves it or a part of it, and does not refer to it, which it could not do
/// with a copy of its own.
fn takes(expr: &Expr) -> impl Fn(&str, &Use) -> bool {
    #[derive(Default)]
    struct Borrowed {
        borrowed: HashSet<String>,
        /// Captured by `move` closures.
        captured: HashSet<String>,
    }
    impl Borrowed {
        fn note(&mut self, place: &Expr) {
            self.borrowed.extend(syntax::place_base(place).map(ToString::to_string));
        }
        fn matched(&mut self, pat: &Pat, value: &Expr) {
            if syntax::bound(pat).iter().any(|b| b.by_ref) {
                self.note(value);
            }
        }
    }
    impl<'a> Visit<'a> for Borrowed {
        fn visit_expr_reference(&mut self, r: &'a syn::ExprReference) {
            self.note(&r.expr);
            visit::visit_expr_reference(self, r);
        }
        fn visit_expr_method_call(&mut self, m: &'a syn::ExprMethodCall) {
            self.note(&m.receiver);
            visit::visit_expr_method_call(self, m);
        }
        fn visit_expr_match(&mut self, m: &'a syn::ExprMatch) {
            m.arms.iter().for_each(|arm| self.matched(&arm.pat, &m.expr));
            visit::visit_expr_match(self, m);
        }
        fn visit_expr_let(&mut self, l: &'a syn::ExprLet) {
            self.matched(&l.pat, &l.expr);
            visit::visit_expr_let(self, l);
        }
        fn visit_expr_closure(&mut self, c: &'a syn::ExprClosure) {
            let captured = if c.capture.is_some() { &mut self.captured } else { &mut self.borrowed };
            captured.extend(uses::of_expr(&c.body).names().map(str::to_owned));
        }
    }
    let mut found = Borrowed::default();
    found.visit_expr(expr);
    move |name, u| {
        let moved = u.by_value || u.parted() || u.handed_on || found.captured.contains(name);
        moved && !found.borrowed.contains(name)
    }
}

/// Returns whether all boundaries of the expression are `#[piecewise]` calls: their results come from
/// segments.
pub(super) fn only_piecewise(expr: &Expr) -> bool {
    struct Eager(bool);
    impl<'a> Visit<'a> for Eager {
        fn visit_attribute(&mut self, a: &'a syn::Attribute) {
            self.0 |= attributes::is_eager(a);
        }
    }
    let mut eager = Eager(false);
    eager.visit_expr(expr);
    !eager.0
}

//! Expressions that host code may evaluate by itself: expressions over parameters and host values, which
//! create nothing on the device and mean the same at any position.
//!
//! A device operation needs a tensor, or the scope of one. Therefore an expression that names no variable
//! from which a tensor can be obtained creates none, whatever it calls; of a variable that may hold a tensor,
//! only its sizes are read.

use std::collections::HashSet;

use syn::{
    Expr, Local, Pat, Stmt, Token, UnOp,
    parse::Parser,
    punctuated::Punctuated,
    visit::{self, Visit},
    visit_mut::{self, VisitMut},
};

use super::Analysis;
use crate::{
    facts::{classify, effects, operations, sizes, statement, statement::Statement, uses, values},
    parse::{attributes, device, parameter_kind, syntax},
};

/// Macros that evaluate only their expressions.
const MACROS: [&str; 3] = ["vec", "matches", "format"];

impl Analysis<'_, '_> {
    /// Returns whether host code may evaluate the expression, again or instead of a segment. `pending`
    /// contains names that the pending run binds, and whether they are host values.
    pub(super) fn repeatable(&self, expr: &Expr, pending: &[(String, bool)]) -> bool {
        let mut check =
            Repeatable { t: self, pending, bound: Vec::new(), roots: 0, calls: false, fails: false };
        check.visit_expr(expr);
        // The result of a call without any of our variables is independent of them.
        if check.fails || check.calls && check.roots == 0 {
            return false;
        }
        !effects::has_effects(expr, &self.header.params)
    }

    /// Returns whether a `let` names a value that costs nothing to create and means the same wherever it is
    /// created: a function, a constant, a variant, or a struct literal of host values that never change. It
    /// can have any type.
    pub(super) fn is_constant(&self, local: &Local, rest: &[Statement]) -> bool {
        let Some(init) = local.init.as_ref().filter(|i| i.diverge.is_none()) else { return false };
        let plain = |pat: &Pat| matches!(pat, Pat::Ident(p) if p.by_ref.is_none() && p.mutability.is_none() && p.subpat.is_none());
        let named = match &local.pat {
            Pat::Type(t) => plain(&t.pat),
            pat => plain(pat),
        };
        if !named
            || !local.attrs.is_empty()
            || !self.is_built(&init.expr, &syntax::bound_inside(&init.expr))
            || !self.is_made_freely(&init.expr)
            || makes_cells(&init.expr)
        {
            return false;
        }
        let uses = uses::of_expr(&init.expr);
        let bound = syntax::bound_anywhere(statement::stmts(rest));
        uses.names().all(|name| {
            let fixed = match self.scope.lookup(name) {
                None => true,
                Some(b) => {
                    b.host && !b.mutable && b.made.is_none() && !self.scope.eager_derived.contains(&b.id)
                }
            };
            fixed && !self.run.may_bind(name) && !bound.contains(name)
        })
    }

    /// Returns whether everything that an expression evaluates on the way to its value costs nothing and is
    /// the same at any position.
    fn is_made_freely(&self, expr: &Expr) -> bool {
        // A constructor with calls in it can cross as a value.
        let chosen = matches!(expr, Expr::If(_) | Expr::Match(_) | Expr::Struct(_));
        let mut kept = expr.clone();
        Closures.visit_expr_mut(&mut kept);
        classify::call_free(&kept) || chosen && self.repeatable(&kept, &[])
    }

    /// Returns whether an expression is a function, a constant, a variant or a struct literal. What patterns inside it
    /// bind (`bound`) is none of these, but a part of another value, which may be moved only once.
    fn is_built(&self, expr: &Expr, bound: &HashSet<String>) -> bool {
        let is_built = |e: &Expr| self.is_built(e, bound);
        let tail = |b: &syn::Block| matches!(b.stmts.as_slice(), [Stmt::Expr(e, None)] if is_built(e));
        match expr {
            Expr::Struct(_) => true,
            Expr::Closure(_) => true,
            Expr::Call(c) => classify::call_free(expr) || boxed(c).is_some_and(is_built),
            Expr::Path(p) => p.path.get_ident().is_none_or(|i| {
                let name = i.to_string();
                self.scope.lookup(&name).is_none() && !self.run.may_bind(&name) && !bound.contains(&name)
            }),
            Expr::Paren(p) => is_built(&p.expr),
            Expr::Tuple(t) => t.elems.iter().any(is_built),
            Expr::Array(a) => a.elems.iter().any(is_built),
            Expr::Cast(c) => is_built(&c.expr),
            Expr::If(i) => tail(&i.then_branch) && i.else_branch.as_ref().is_some_and(|(_, e)| is_built(e)),
            Expr::Block(b) => tail(&b.block),
            Expr::Match(m) => !m.arms.is_empty() && m.arms.iter().all(|a| is_built(&a.body)),
            _ => false,
        }
    }

    /// Returns whether arithmetic on the expression may be an operator of the user's that works on the
    /// device.
    pub(super) fn device_arithmetic(&self, expr: &Expr) -> bool {
        struct Search<'t, 'a, 'e>(&'t Analysis<'a, 'e>, bool);
        impl Search<'_, '_, '_> {
            fn operand(&mut self, e: &Expr) {
                // Numbers are neither referred to nor cloned to be added.
                let (inner, referred) = match e {
                    Expr::Reference(r) => (&*r.expr, true),
                    Expr::MethodCall(m) if m.method == "clone" => (&*m.receiver, true),
                    other => (other, false),
                };
                let Some(base) = syntax::place_base(inner) else { return };
                let Some(b) = self.0.scope.lookup(&base.to_string()) else { return };
                self.1 |= b.device || referred && !b.host;
            }
        }
        impl<'x> Visit<'x> for Search<'_, '_, '_> {
            fn visit_expr_binary(&mut self, b: &'x syn::ExprBinary) {
                if !syntax::compares(&b.op) {
                    self.operand(&b.left);
                    self.operand(&b.right);
                }
                visit::visit_expr_binary(self, b);
            }
            fn visit_expr_unary(&mut self, u: &'x syn::ExprUnary) {
                if !matches!(u.op, UnOp::Deref(_)) {
                    self.operand(&u.expr);
                }
                visit::visit_expr_unary(self, u);
            }
        }
        let mut search = Search(self, false);
        search.visit_expr(expr);
        search.1
    }

    /// Returns whether the value of an expression may hold a tensor: it is an operation, or built from such
    /// variables.
    pub(super) fn makes_device(&self, expr: &Expr) -> bool {
        match expr {
            e if device::is_flow(e) => true,
            Expr::Try(e) => operations::is_operation(&e.expr),
            Expr::Paren(e) => self.makes_device(&e.expr),
            Expr::Reference(e) => self.makes_device(&e.expr),
            Expr::Tuple(t) => t.elems.iter().any(|e| self.makes_device(e)),
            Expr::Call(c) => {
                let region = !attributes::of(expr).is_empty();
                classify::call_free(expr) && (region || c.args.iter().any(|e| self.makes_device(e)))
            }
            Expr::Struct(s) => s.fields.iter().any(|f| self.makes_device(&f.expr)),
            Expr::Binary(_) | Expr::Unary(_) => self.device_arithmetic(expr),
            Expr::MethodCall(m) => m.method == "clone" && self.makes_device(&m.receiver),
            other => syntax::plain_name(other)
                .and_then(|n| self.scope.lookup(&n.to_string()))
                .is_some_and(|b| b.device),
        }
    }

    /// The names that a run binds.
    pub(super) fn bound_in_run(&self, run: &[Statement]) -> BoundInRun {
        let (mut names, mut ends): (Vec<(String, bool)>, _) = (Vec::new(), Vec::new());
        for statement in run {
            if let Some(local) = statement.local() {
                let host = local.init.as_ref().is_some_and(|i| self.repeatable(&i.expr, &names));
                names.extend(statement.binds.iter().map(|b| (b.ident.to_string(), host && !b.mutable)));
            }
            ends.push(names.len());
        }
        BoundInRun { names, ends }
    }

    /// Returns whether a `let` of a run is evaluated by host code where its names are needed: they may
    /// borrow, and a replay could not return them. `above` are the statements of the run above it, `before`
    /// the names that these bind.
    pub(super) fn evaluated_again<'p>(
        &self,
        statement: &Statement,
        above: &[Statement],
        before: impl Fn() -> &'p [(String, bool)],
    ) -> bool {
        let init = statement.local().and_then(|l| l.init.as_ref()).filter(|_| statement.made.is_none());
        let Some(init) = init else { return false };
        let by_ref = statement.binds.iter().any(|b| b.by_ref);
        let ends = init.diverge.as_ref().is_none_or(|(_, e)| match &**e {
            Expr::Block(b) => classify::only_fails(&b.block.stmts) && operations::device_call(e).is_none(),
            _ => false,
        });
        if !ends {
            return false;
        }
        if let Some((list, at)) = picked_from(&init.expr)
            && self.is_list(above, &list.to_string())
            && at.is_none_or(|at| self.repeatable(at, before()))
        {
            return true;
        }
        if init.diverge.is_none() && classify::call_free(&init.expr) && !self.device_arithmetic(&init.expr) {
            if by_ref || classify::borrows(&init.expr) {
                return true;
            }
            // A name may stand for a reference. A name without a known binding is from a macro.
            let before = before();
            let known = |n: &str| self.scope.lookup(n).is_some() || before.iter().any(|(b, _)| b == n);
            let reference = |n: &str| self.is_reference(above, n);
            return gives_place(&init.expr)
                && statement.value.names().all(known)
                && (statement.value.names().all(reference) || self.repeatable(&init.expr, before));
        }
        // What did not fail in the segment does not fail behind it.
        let value = match &*init.expr {
            Expr::Try(e) => &*e.expr,
            other => other,
        };
        (by_ref || init.diverge.is_some() || values::lends(value)) && self.repeatable(value, before())
    }
}

impl Analysis<'_, '_> {
    /// Returns whether a name stands for a shared reference after the statements `above` of a run.
    fn is_reference(&self, above: &[Statement], name: &str) -> bool {
        match above.iter().rposition(|s| s.binds(name)) {
            None => self.scope.is_reference(name),
            Some(at) => above[at].local().is_some_and(|local| {
                self.binds_references(local, |other| self.is_reference(&above[..at], other))
            }),
        }
    }

    /// Returns whether all names that a `let` binds are shared references, given which names are.
    pub(super) fn binds_references(&self, local: &Local, is_reference: impl Fn(&str) -> bool) -> bool {
        fn plain(pat: &Pat) -> bool {
            match pat {
                Pat::Ident(p) => p.by_ref.is_none() && p.subpat.is_none(),
                Pat::Tuple(t) => t.elems.iter().all(plain),
                _ => false,
            }
        }
        fn refers(expr: &Expr, is_reference: &impl Fn(&str) -> bool) -> bool {
            match expr {
                Expr::Reference(r) => r.mutability.is_none(),
                Expr::Tuple(t) => t.elems.iter().all(|e| refers(e, is_reference)),
                other => syntax::plain_name(other).is_some_and(|n| is_reference(&n.to_string())),
            }
        }
        let Some(init) = local.init.as_ref().filter(|i| i.diverge.is_none()) else { return false };
        // A name that stands for a whole tuple is not a reference.
        let whole = matches!((&local.pat, &*init.expr), (Pat::Ident(_), Expr::Tuple(_)));
        plain(&local.pat) && !whole && classify::call_free(&init.expr) && refers(&init.expr, &is_reference)
    }
}

/// The names that a run binds, and whether they are host values.
pub(super) struct BoundInRun {
    names: Vec<(String, bool)>,
    /// The number of them after each statement.
    ends: Vec<usize>,
}

impl BoundInRun {
    /// Those that are bound before the statement at `at`.
    pub(super) fn before(&self, at: usize) -> &[(String, bool)] {
        &self.names[..at.checked_sub(1).map_or(0, |before| self.ends[before])]
    }
}

/// Closures stand for code that is not evaluated, also in a box: creating one costs nothing.
struct Closures;

impl VisitMut for Closures {
    fn visit_expr_mut(&mut self, expr: &mut Expr) {
        let inner = match &*expr {
            Expr::Call(c) => boxed(c).cloned(),
            _ => None,
        };
        if let Some(inner) = inner {
            *expr = inner;
        }
        match expr {
            Expr::Closure(_) => *expr = syn::parse_quote!(()),
            other => visit_mut::visit_expr_mut(self, other),
        }
    }
}

/// `e` of `Box::new(e)`.
fn boxed(call: &syn::ExprCall) -> Option<&Expr> {
    let Expr::Path(path) = &*call.func else { return None };
    let mut names = path.path.segments.iter().rev().map(|s| s.ident.to_string());
    let new = names.next().is_some_and(|n| n == "new");
    let owner = names.next().is_some_and(|n| ["Box", "Rc", "Arc"].contains(&n.as_str()));
    call.args.first().filter(|_| new && owner)
}

/// `v` of `v.last().unwrap()`, and `i` of `v.get(i)`: a reference to an element.
fn picked_from(expr: &Expr) -> Option<(&syn::Ident, Option<&Expr>)> {
    let Expr::MethodCall(m) = expr else { return None };
    if m.method == "unwrap" || m.method == "expect" {
        return picked_from(&m.receiver);
    }
    let picks = ["first", "last", "get"].iter().any(|n| m.method == n);
    Some((syntax::plain_name(&m.receiver).filter(|_| picks)?, m.args.first()))
}

/// Returns whether the value is a variable, or one of several variables.
fn gives_place(expr: &Expr) -> bool {
    let tail = |b: &syn::Block| matches!(b.stmts.last(), Some(Stmt::Expr(e, None)) if gives_place(e));
    match expr {
        Expr::Path(_) | Expr::Field(_) => true,
        Expr::Paren(p) => gives_place(&p.expr),
        Expr::Tuple(t) => t.elems.iter().any(gives_place),
        Expr::Array(a) => a.elems.iter().any(gives_place),
        Expr::Block(b) => tail(&b.block),
        Expr::If(i) => tail(&i.then_branch) || i.else_branch.as_ref().is_some_and(|(_, e)| gives_place(e)),
        Expr::Match(m) => m.arms.iter().any(|a| gives_place(&a.body)),
        _ => false,
    }
}

struct Repeatable<'t, 'a, 'e> {
    t: &'t Analysis<'a, 'e>,
    pending: &'t [(String, bool)],
    /// Names bound inside the expression.
    bound: Vec<String>,
    /// The number of variables of the function that were found.
    roots: usize,
    /// Set if anything is called.
    calls: bool,
    fails: bool,
}

/// The meaning of a name in host code.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Name {
    /// Of the expression itself, or a function or constant.
    Own,
    Host,
    /// As `Host`, and declared `mut`.
    Changing,
    Other,
}

impl Repeatable<'_, '_, '_> {
    fn name(&self, name: &str) -> Name {
        if self.bound.iter().any(|b| b == name) {
            return Name::Own;
        }
        if let Some((_, host)) = self.pending.iter().rev().find(|(n, _)| n == name) {
            return if *host { Name::Host } else { Name::Other };
        }
        match self.t.scope.lookup(name) {
            None if self.t.run.may_bind(name) => Name::Other,
            None => Name::Own,
            Some(b) if b.made.is_some() || !b.host => Name::Other,
            Some(b) if b.mutable => Name::Changing,
            Some(_) => Name::Host,
        }
    }

    fn variable(&mut self, ident: &syn::Ident) {
        let name = self.name(&ident.to_string());
        self.roots += usize::from(name != Name::Own);
        self.fails |= name == Name::Other;
    }

    fn receiver(&mut self, m: &syn::ExprMethodCall) {
        if let Some(base) = syntax::place_base(&m.receiver) {
            let name = self.name(&base.to_string());
            if name == Name::Other && sizes::is_number(&m.method) {
                self.roots += 1;
                return;
            }
            self.fails |= name == Name::Changing && !values::only_reads(&m.method);
        }
        self.visit_expr(&m.receiver);
    }

    fn arms(&mut self, m: &syn::ExprMatch) {
        self.visit_expr(&m.expr);
        for arm in &m.arms {
            self.scoped(&[&arm.pat], |s| {
                arm.guard.iter().for_each(|(_, g)| s.visit_expr(g));
                s.visit_expr(&arm.body);
            });
        }
    }

    fn branches(&mut self, i: &syn::ExprIf) {
        let depth = self.bound.len();
        self.visit_expr(&i.cond);
        self.visit_block(&i.then_branch);
        self.bound.truncate(depth);
        i.else_branch.iter().for_each(|(_, e)| self.visit_expr(e));
    }

    fn macro_call(&mut self, mac: &syn::Macro) {
        let known = MACROS.iter().any(|n| mac.path.is_ident(n));
        let parsed = Punctuated::<Expr, Token![,]>::parse_terminated.parse2(mac.tokens.clone());
        let Some(exprs) = parsed.ok().filter(|_| known) else {
            self.fails = true;
            return;
        };
        let mut inner = Repeatable { bound: self.bound.clone(), ..*self };
        exprs.iter().for_each(|e| inner.visit_expr(e));
        (self.roots, self.calls, self.fails) = (inner.roots, inner.calls, inner.fails);
    }

    fn scoped(&mut self, pats: &[&Pat], f: impl FnOnce(&mut Self)) {
        let depth = self.bound.len();
        for pat in pats {
            self.bound.extend(syntax::bound(pat).into_iter().map(|b| b.ident.to_string()));
        }
        f(self);
        self.bound.truncate(depth);
    }
}

impl<'x> Visit<'x> for Repeatable<'_, '_, '_> {
    fn visit_expr(&mut self, expr: &'x Expr) {
        if self.fails {
            return;
        }
        if attributes::of(expr).iter().any(|a| !attributes::is_lint_level(a)) {
            self.fails = true;
            return;
        }
        match expr {
            Expr::Path(p) => {
                if let Some(ident) = p.path.get_ident() {
                    self.variable(ident);
                }
            }
            Expr::MethodCall(m) => {
                self.calls = true;
                self.receiver(m);
                m.args.iter().for_each(|a| self.visit_expr(a));
            }
            Expr::Call(c) => {
                self.calls |= !classify::call_free(expr);
                self.fails |= operations::is_operation(expr);
                visit::visit_expr_call(self, c);
            }
            Expr::Reference(r) => {
                self.fails |= r.mutability.is_some();
                self.visit_expr(&r.expr);
            }
            Expr::Closure(c) => {
                self.fails |= c.asyncness.is_some();
                let inputs: Vec<&Pat> = c.inputs.iter().collect();
                self.scoped(&inputs, |s| s.visit_expr(&c.body));
            }
            Expr::Match(m) => self.arms(m),
            Expr::If(i) => self.branches(i),
            Expr::Let(l) => {
                self.visit_expr(&l.expr);
                self.bound.extend(syntax::bound(&l.pat).into_iter().map(|b| b.ident.to_string()));
            }
            Expr::Macro(m) => self.macro_call(&m.mac),
            Expr::Binary(b) => {
                self.fails |= syntax::is_assign(&b.op);
                visit::visit_expr_binary(self, b);
            }
            Expr::Lit(_)
            | Expr::Field(_)
            | Expr::Index(_)
            | Expr::Paren(_)
            | Expr::Group(_)
            | Expr::Cast(_)
            | Expr::Tuple(_)
            | Expr::Array(_)
            | Expr::Struct(_)
            | Expr::Range(_)
            | Expr::Unary(_)
            | Expr::Repeat(_)
            | Expr::Block(_) => visit::visit_expr(self, expr),
            _ => self.fails = true,
        }
    }

    fn visit_block(&mut self, block: &'x syn::Block) {
        let depth = self.bound.len();
        visit::visit_block(self, block);
        self.bound.truncate(depth);
    }

    fn visit_local(&mut self, local: &'x Local) {
        visit::visit_local(self, local);
        self.bound.extend(syntax::bound_by_let(local).into_iter().map(|b| b.ident.to_string()));
    }

    fn visit_stmt(&mut self, stmt: &'x Stmt) {
        if matches!(stmt, Stmt::Macro(_)) {
            self.fails = true;
        }
        visit::visit_stmt(self, stmt);
    }

    fn visit_item(&mut self, _: &'x syn::Item) {}
}

/// Returns whether an expression makes a value that is changed through shared references, such as a `Cell`: what is made anew in its
/// place would have lost the change.
fn makes_cells(expr: &Expr) -> bool {
    struct Cells(bool);
    impl<'a> Visit<'a> for Cells {
        fn visit_path(&mut self, path: &'a syn::Path) {
            let mut owners = path.segments.iter().rev().skip(1);
            self.0 |= owners.any(|of| of.ident == "Cell" || parameter_kind::names_interior(&of.ident));
            visit::visit_path(self, path);
        }
    }
    let mut cells = Cells(false);
    cells.visit_expr(expr);
    cells.0
}

//! The role of a statement in the partition: whether it has a boundary, calls something, or can leave its
//! block.

use syn::{
    Expr, ExprCall, Ident, Local, Stmt,
    visit::{self, Visit},
};

use super::{
    jumps::{self, leaves},
    macros, operations, sizes,
};
use crate::parse::{attributes, device, syntax};

/// Finds boundaries and `#[host] let`s, outside closures and items.
pub(crate) fn has_boundary(stmt: &Stmt) -> bool {
    let mut find = Find::default();
    find.visit_stmt(stmt);
    find.found
}

pub(crate) fn expr_has_boundary(expr: &Expr) -> bool {
    let mut find = Find::default();
    find.visit_expr(expr);
    find.found
}

#[derive(Default)]
struct Find {
    found: bool,
}

impl<'a> Visit<'a> for Find {
    fn visit_attribute(&mut self, a: &'a syn::Attribute) {
        self.found |= attributes::is_ours(a);
    }
    fn visit_local(&mut self, local: &'a Local) {
        // It runs on every call, so the control flow around it does.
        self.found |= attributes::let_flag(&local.attrs, "host");
        visit::visit_local(self, local);
    }
    fn visit_expr_closure(&mut self, _: &'a syn::ExprClosure) {}
    fn visit_item(&mut self, _: &'a syn::Item) {}
}

/// Returns whether statements end in a `return`, or in a macro that never returns, on every way to their end.
pub(crate) fn ends_the_call(stmts: &[Stmt]) -> bool {
    stmts.last().is_some_and(never_ends)
}

/// Returns whether a statement is a `return`, or a macro that never returns, or control flow that ends in one on every way.
pub(crate) fn never_ends(stmt: &Stmt) -> bool {
    match stmt {
        Stmt::Expr(expr, _) => expr_never_ends(expr),
        Stmt::Macro(m) => macros::never_returns(&m.mac),
        _ => false,
    }
}

/// As [`never_ends`], of an expression.
pub(crate) fn expr_never_ends(expr: &Expr) -> bool {
    match expr {
        Expr::Return(_) => true,
        Expr::Macro(m) => macros::never_returns(&m.mac),
        e if !attributes::of(e).is_empty() => false,
        Expr::Block(e) => e.label.is_none() && ends_the_call(&e.block.stmts),
        Expr::If(e) => {
            let otherwise = e.else_branch.as_ref();
            ends_the_call(&e.then_branch.stmts) && otherwise.is_some_and(|(_, e)| expr_never_ends(e))
        }
        Expr::Match(e) => !e.arms.is_empty() && e.arms.iter().all(|arm| expr_never_ends(&arm.body)),
        Expr::Loop(e) => !jumps::expr_goes_on(expr) && !jumps::breaks(&e.body),
        _ => false,
    }
}

/// Returns whether statements without boundaries end in an error or a panic, and cannot leave in any other
/// way.
pub(crate) fn only_fails(stmts: &[Stmt]) -> bool {
    ends_the_call(stmts) && !stmts.iter().any(|s| leaves(s) || has_boundary(s))
}

/// Returns whether a call only builds a value, by the convention of names.
pub(crate) fn is_constructor(call: &ExprCall) -> bool {
    constructor_name(call).is_some()
}

/// The name of a call that only builds a value: by convention, capitalised.
fn constructor_name(call: &ExprCall) -> Option<String> {
    match &*call.func {
        Expr::Path(p) => {
            let name = p.path.segments.last()?.ident.to_string();
            name.starts_with(char::is_uppercase).then_some(name)
        }
        _ => None,
    }
}

/// Returns whether evaluating the expression calls nothing: it consists of references, field paths, indexing,
/// arithmetic, constructors, and control flow over these. Such an expression means the same in host code and
/// segments.
pub(crate) fn call_free(expr: &Expr) -> bool {
    struct Calls(bool);
    impl<'a> Visit<'a> for Calls {
        fn visit_expr(&mut self, e: &'a Expr) {
            match e {
                e if device::is_flow(e) => self.0 = true,
                Expr::Call(c) if constructor_name(c).is_none() => self.0 = true,
                Expr::MethodCall(_)
                | Expr::Macro(_)
                | Expr::Await(_)
                | Expr::Try(_)
                | Expr::Closure(_)
                | Expr::Async(_)
                | Expr::Return(_)
                | Expr::Break(_)
                | Expr::Continue(_)
                | Expr::Loop(_)
                | Expr::While(_)
                | Expr::ForLoop(_) => self.0 = true,
                _ => visit::visit_expr(self, e),
            }
        }
        fn visit_stmt(&mut self, s: &'a Stmt) {
            match s {
                Stmt::Macro(_) => self.0 = true,
                _ => visit::visit_stmt(self, s),
            }
        }
    }
    let mut calls = Calls(false);
    calls.visit_expr(expr);
    !calls.0
}

/// Returns whether the expression calls functions or macros, and not only methods of the variables that it
/// names: those can return a different value on each call.
pub(crate) fn calls_functions(expr: &Expr) -> bool {
    struct Calls(bool);
    impl<'a> Visit<'a> for Calls {
        fn visit_expr_call(&mut self, c: &'a ExprCall) {
            self.0 |= constructor_name(c).is_none();
            visit::visit_expr_call(self, c);
        }
        fn visit_expr_method_call(&mut self, m: &'a syn::ExprMethodCall) {
            // A global, by convention: `COUNT.load(…)`.
            let global = syntax::place_base(&m.receiver);
            self.0 |= global.is_some_and(|name| !name.to_string().chars().any(char::is_lowercase));
            visit::visit_expr_method_call(self, m);
        }
        fn visit_macro(&mut self, _: &'a syn::Macro) {
            self.0 = true;
        }
    }
    let mut calls = Calls(false);
    calls.visit_expr(expr);
    calls.0
}

/// Returns whether evaluating the expression assigns, outside closures.
pub(crate) fn assigns(expr: &Expr) -> bool {
    struct Assigns(bool);
    impl<'a> Visit<'a> for Assigns {
        fn visit_expr(&mut self, e: &'a Expr) {
            match e {
                Expr::Closure(_) => {}
                Expr::Assign(_) => self.0 = true,
                Expr::Binary(b) if syntax::is_assign(&b.op) => self.0 = true,
                _ => visit::visit_expr(self, e),
            }
        }
        fn visit_item(&mut self, _: &'a syn::Item) {}
    }
    let mut assigns = Assigns(false);
    assigns.visit_expr(expr);
    assigns.0
}

/// Returns whether the value of a call-free expression may borrow: it then cannot be carried out of a
/// segment, and is evaluated again after it.
pub(crate) fn borrows(expr: &Expr) -> bool {
    match expr {
        Expr::Reference(_) => true,
        Expr::Paren(p) => borrows(&p.expr),
        Expr::Tuple(t) => t.elems.iter().any(borrows),
        Expr::Array(a) => a.elems.iter().any(borrows),
        Expr::Call(c) => c.args.iter().any(borrows),
        Expr::Struct(s) => s.fields.iter().any(|f| borrows(&f.expr)),
        Expr::Block(b) => {
            b.block.stmts.last().is_some_and(|s| matches!(s, Stmt::Expr(e, None) if borrows(e)))
        }
        Expr::If(i) => {
            let tail = |b: &syn::Block| {
                b.stmts.last().is_some_and(|s| matches!(s, Stmt::Expr(e, None) if borrows(e)))
            };
            tail(&i.then_branch) || i.else_branch.as_ref().is_some_and(|(_, e)| borrows(e))
        }
        Expr::Match(m) => m.arms.iter().any(|a| borrows(&a.body)),
        _ => false,
    }
}

/// Returns whether an expression only builds a value from regions and from expressions without calls.
pub(crate) fn builds_around_boundaries(expr: &Expr) -> bool {
    let part = |e: &Expr| attributes::boundary(e).is_some() || builds_around_boundaries(e);
    if !expr_has_boundary(expr) {
        return call_free(expr);
    }
    match expr {
        Expr::Call(c) => constructor_name(c).is_some() && c.args.iter().all(part),
        Expr::Tuple(t) => t.elems.iter().all(part),
        Expr::Array(a) => a.elems.iter().all(part),
        Expr::Struct(s) => s.fields.iter().all(|f| part(&f.expr)) && s.rest.as_deref().is_none_or(part),
        Expr::Paren(p) => part(&p.expr),
        Expr::Cast(c) => part(&c.expr),
        Expr::Field(f) => part(&f.base),
        _ => false,
    }
}

/// Returns whether an expression is control flow whose blocks can be split.
pub(crate) fn is_control(expr: &Expr) -> bool {
    matches!(
        expr,
        Expr::If(_)
            | Expr::Match(_)
            | Expr::ForLoop(_)
            | Expr::While(_)
            | Expr::Loop(_)
            | Expr::Block(_)
            | Expr::Unsafe(_)
    )
}

/// `_g` of `let _g = f();`, which is there to be held.
pub(crate) fn guard_name(local: &Local) -> Option<&Ident> {
    let syn::Pat::Ident(p) = &local.pat else { return None };
    let name = p.ident.to_string();
    let named_so = name.strip_prefix('_').is_some_and(|n| n.starts_with(|c: char| c.is_alphanumeric()));
    let called = local.init.as_ref().is_some_and(|i| !call_free(&i.expr) && !is_value(&i.expr));
    (named_so && called).then_some(&p.ident)
}

/// A value of the device, or a number or size of one: nothing that something waits for.
pub(crate) fn is_value(expr: &Expr) -> bool {
    match expr {
        Expr::Try(e) => is_value(&e.expr),
        Expr::Paren(e) => is_value(&e.expr),
        Expr::Reference(e) => is_value(&e.expr),
        Expr::MethodCall(m) => {
            (sizes::is_number(&m.method) || m.method == "clone") && m.args.iter().all(call_free)
        }
        Expr::Index(i) => is_value(&i.expr),
        other => matches!(other, Expr::Call(_)) && operations::is_operation(other),
    }
}

/// The name of `let f = |…| …;`.
pub(crate) fn closure_name(local: &Local) -> Option<String> {
    let init = local.init.as_ref()?;
    let first = || syntax::bound_by_let(local).first().map(|b| b.ident.to_string());
    if matches!(&*init.expr, Expr::Closure(_)) { first() } else { None }
}

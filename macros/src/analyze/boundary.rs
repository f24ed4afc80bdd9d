//! Boundaries, and other expressions that host code evaluates. Which statements have a boundary is decided in
//! `classify.rs`.

use std::collections::HashSet;

use proc_macro2::Ident;
use quote::ToTokens;
use syn::{
    Expr,
    visit::Visit,
    visit_mut::{self, VisitMut},
};

use super::{Analysis, Tail};
use crate::{
    diag::{Code, nearest, shortened},
    facts::{classify, operations, uses},
    model::{Carrier, PiecewiseCall, PlanItem, Region, Value},
    parse::{
        attributes::{self, Boundary, EagerArgs, Edge},
        device, syntax,
    },
};

impl Analysis<'_, '_> {
    /// Builds an expression of host code; boundaries are recognised where they are a whole value.
    pub(super) fn host_expr(&mut self, expr: &Expr) -> Value {
        self.in_host_code(&uses::of_expr(expr));
        match attributes::boundary(expr) {
            Some(Boundary::Eager(attr)) => return self.region(expr, attr),
            Some(Boundary::Piecewise(attr)) => return self.piecewise(expr, attr),
            None => {}
        }
        if classify::expr_has_boundary(expr) {
            if let Expr::Let(l) = expr {
                // `if let P = #[eager] …`
                return Value::Condition((*l.pat).clone(), Box::new(self.host_expr(&l.expr)));
            }
            if classify::builds_around_boundaries(expr) {
                return Value::Built(expr.clone(), self.regions_in(expr));
            }
            self.refuse_nested(expr);
        } else if let Some(attr) = device::first(expr).filter(|_| !self.misplaced) {
            self.errors.push(
                Code::DevicePosition,
                attr,
                "control flow of the device in host code, which runs on every call",
                "decide in a statement before, `let v = #[device] if … { … } else { … };`, and use `v` here",
            );
        } else if let Some(call) = operations::device_call(expr).filter(|_| !self.misplaced) {
            let text = shortened(&call.func);
            self.errors.push(
                Code::HostOperation,
                call,
                format!(
                    "`{text}` is in host code, which runs on every call, outside of segments and regions"
                ),
                "compute it in a statement before, `let v = …;`, and use `v` here",
            );
        }
        Value::Written(expr.clone())
    }

    /// `Ok(#[eager] f(&x)?)`, a tuple, a literal: the boundaries in it, in order.
    fn regions_in(&mut self, expr: &Expr) -> Vec<Value> {
        struct Find<'e>(Vec<&'e Expr>);
        impl<'e> Visit<'e> for Find<'e> {
            fn visit_expr(&mut self, e: &'e Expr) {
                if attributes::boundary(e).is_some() {
                    self.0.push(e);
                } else {
                    syn::visit::visit_expr(self, e);
                }
            }
        }
        let mut find = Find(Vec::new());
        find.visit_expr(expr);
        find.0.into_iter().map(|e| self.host_expr(e)).collect()
    }

    fn refuse_nested(&mut self, expr: &Expr) {
        if self.misplaced {
            // This was already reported, with a better message.
            return;
        }
        struct Marks(Vec<syn::Attribute>);
        impl<'a> Visit<'a> for Marks {
            fn visit_attribute(&mut self, a: &'a syn::Attribute) {
                if attributes::is_ours(a) {
                    self.0.push(a.clone());
                }
            }
            fn visit_local(&mut self, local: &'a syn::Local) {
                self.0.extend(local.attrs.iter().filter(|a| a.path().is_ident("host")).cloned());
                syn::visit::visit_local(self, local);
            }
            fn visit_expr_closure(&mut self, _: &'a syn::ExprClosure) {}
            fn visit_expr_async(&mut self, _: &'a syn::ExprAsync) {}
        }
        let mut marks = Marks(Vec::new());
        marks.visit_expr(expr);
        for a in marks.0 {
            self.errors.push(
                Code::BoundaryPosition,
                &a,
                "a boundary in the middle of an expression",
                "bind it first: `let v = #[eager] …;`, then use `v`",
            );
        }
    }

    fn region(&mut self, expr: &Expr, attr: &syn::Attribute) -> Value {
        let args = attributes::eager_args(attr, self.errors);
        let mut inner = attributes::without_ours(expr);
        let (levels, others): (Vec<_>, Vec<_>) =
            attributes::take(&mut inner).into_iter().partition(attributes::is_lint_level);
        attributes::put(&mut inner, others);
        let location = self.location(&inner);
        let (call, moved) = (shortened(&inner), self.moved(&args, &inner));
        let EagerArgs { capability, support, .. } = args;
        self.plan.push(PlanItem::Boundary { location, call, support: support.clone(), moved });
        Value::Region(Box::new(Region { location, support, capability, ty: None, levels, value: inner }))
    }

    /// Returns the direction in which the region was moved.
    fn moved(&mut self, args: &EagerArgs, inner: &Expr) -> Option<Edge> {
        let placed = self.edge.take();
        if let (None, Some((edge, token))) = (placed, &args.edge) {
            let edge = edge.name();
            self.errors.push(
                Code::MovePosition,
                token,
                format!("`{edge}` moves a statement, and this region is a part of one"),
                format!("bind it first: `let v = #[eager({edge})] …;`, then use `v`"),
            );
        }
        if let Some(name) = &args.capability
            && let Some(near) = nearest(&name.to_string(), &["early", "late"])
            && !uses::of_expr(inner).has(&name.to_string())
        {
            self.errors.push(
                Code::UnknownArgument,
                name,
                format!("`{name}` would name the capability to read device data, and nothing uses it"),
                format!("did you mean `{near}`?"),
            );
        }
        placed
    }

    fn piecewise(&mut self, expr: &Expr, attr: &syn::Attribute) -> Value {
        let mut inner = attributes::without_ours(expr);
        let location = self.location(&inner);
        self.plan.push(PlanItem::Piecewise { location, call: shortened(&inner) });
        let Some(call) = syntax::innermost_call(&mut inner) else {
            self.errors.push(
                Code::PiecewiseTarget,
                attr,
                "`#[piecewise]` marks a call of a function with boundaries",
                "write `#[piecewise] layer(x)?`",
            );
            return Value::Written(inner);
        };
        self.check_piecewise(call);
        let carrier = match call {
            Expr::Call(c) if is_associated(&c.func) => Carrier::Twin,
            Expr::Call(syn::ExprCall { args, .. }) | Expr::MethodCall(syn::ExprMethodCall { args, .. })
                if args.is_empty() =>
            {
                Carrier::OwnArgument
            }
            _ => Carrier::FirstArgument,
        };
        Value::Piecewise(Box::new(PiecewiseCall { call: inner, carrier }))
    }

    fn check_piecewise(&mut self, call: &Expr) {
        if let Some(at) = calls_itself(call, &self.header.name) {
            let text = at.to_token_stream().to_string();
            self.errors.push(
                Code::Recursion,
                at,
                format!("`{text}` calls itself through its own segments: its plan would have no end"),
                "write a loop, or give the repeated part a function of its own and call that with `#[piecewise]`",
            );
        }
        let args = match call {
            Expr::Call(c) => &c.args,
            Expr::MethodCall(m) => &m.args,
            _ => return,
        };
        for arg in args.iter().filter(|arg| !classify::call_free(arg)) {
            self.errors.push(
                Code::PiecewiseArgument,
                arg,
                "an argument of a `#[piecewise]` call makes calls, which would be outside of any segment",
                "bind it first: `let a = …;`, then pass `a`",
            );
        }
    }

    /// `return`, `break` and `continue`: their values may make calls.
    pub(super) fn jump(&mut self, expr: &Expr, after: &HashSet<usize>) -> Value {
        struct Strip;
        impl VisitMut for Strip {
            fn visit_attributes_mut(&mut self, attrs: &mut Vec<syn::Attribute>) {
                attrs.retain(|a| !attributes::is_ours(a));
            }
        }
        match expr {
            Expr::Return(syn::ExprReturn { attrs, expr: Some(value), .. }) => {
                let value = self.tail_expr(value, Tail::Function, &HashSet::new());
                Value::Return(attrs.clone(), Box::new(value))
            }
            Expr::Break(syn::ExprBreak { attrs, label, expr: Some(value), .. }) => {
                let tail = self.break_tail(label.as_ref());
                let value = self.tail_expr(value, tail, after);
                Value::Break(attrs.clone(), label.clone(), Box::new(value))
            }
            Expr::Return(_) | Expr::Break(_) => Value::Written(expr.clone()),
            other => {
                let mut plain = other.clone();
                visit_mut::visit_expr_mut(&mut Strip, &mut plain);
                Value::Written(plain)
            }
        }
    }
}

/// The name under which a function calls itself, if it does.
fn calls_itself<'a>(call: &'a Expr, name: &str) -> Option<&'a Ident> {
    let (owner, own) = name.rsplit_once("::").map_or((None, name), |(owner, own)| (Some(owner), own));
    let owner = owner.map(|o| o.split('<').next().unwrap_or(o));
    match call {
        Expr::Call(c) => {
            let Expr::Path(path) = &*c.func else { return None };
            let mut segments = path.path.segments.iter().rev();
            let last = &segments.next()?.ident;
            let before = segments.next().map(|s| s.ident.to_string());
            let same = match (owner, before.as_deref()) {
                (None, None | Some("self")) => true,
                (Some(owner), Some(before)) => before == "Self" || before == owner,
                _ => false,
            };
            (same && last == own).then_some(last)
        }
        Expr::MethodCall(m) => {
            let on_self = syntax::plain_name(&m.receiver).is_some_and(|r| r == "self");
            (on_self && owner.is_some() && m.method == own).then_some(&m.method)
        }
        _ => None,
    }
}

/// Returns whether a function is `Type::method`, or `<Type>::method`; by convention, types are capitalised
/// and modules are not.
fn is_associated(func: &Expr) -> bool {
    let Expr::Path(path) = func else { return false };
    let own = path.qself.as_ref().is_some_and(|q| q.as_token.is_none());
    let before = path.path.segments.iter().rev().nth(1);
    let capitalised = before.is_some_and(|s| s.ident.to_string().starts_with(char::is_uppercase));
    own || path.qself.is_none() && capitalised
}

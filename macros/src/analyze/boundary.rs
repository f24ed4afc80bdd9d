//! Boundaries, and other expressions that the driver evaluates.

use std::collections::HashSet;

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::{
    Expr,
    spanned::Spanned,
    visit_mut::{self, VisitMut},
};

use super::{Transform, classify, cx, operations, shortened, uses};
use crate::{
    diag::{Code, nearest},
    parse::attributes,
};

impl Transform<'_, '_> {
    /// An expression of the driver: boundaries in it are expanded, wherever the whole of it is one.
    pub(super) fn driver_expr(&mut self, expr: &Expr) -> TokenStream {
        self.in_driver(&uses::of_expr(expr));
        if let Some(boundary) = attributes::boundary(expr) {
            return match boundary {
                attributes::Boundary::Eager(a) => {
                    let a = a.clone();
                    self.eager(expr, &a)
                }
                attributes::Boundary::Piecewise(a) => {
                    let a = a.clone();
                    self.piecewise(expr, &a)
                }
            };
        }
        if classify::expr_has_boundary(expr) {
            if let Expr::Let(l) = expr {
                // `if let P = #[eager] …`
                let (pat, init) = (&l.pat, self.driver_expr(&l.expr));
                return quote!(let #pat = #init);
            }
            if classify::builds_around_boundaries(expr) {
                return self.build(expr);
            }
            self.refuse_nested(expr);
        } else if let Some(call) = operations::device_call(expr).filter(|_| !self.misplaced) {
            let text = shortened(&call.func);
            self.errors.push(
                Code::DriverOperation,
                call,
                format!("`{text}` stands where host code runs on every call, in no segment and no region"),
                "compute it in a statement before, `let v = …;`, and use `v` here",
            );
        }
        quote!(#expr)
    }

    /// `Ok(#[eager] f(&x)?)`, a tuple, a literal: regions in their places, and nothing else that is evaluated.
    fn build(&mut self, expr: &Expr) -> TokenStream {
        struct Replace<'t, 'a, 'e>(&'t mut Transform<'a, 'e>);
        impl VisitMut for Replace<'_, '_, '_> {
            fn visit_expr_mut(&mut self, e: &mut Expr) {
                if attributes::boundary(e).is_some() {
                    *e = Expr::Verbatim(self.0.driver_expr(e));
                } else {
                    visit_mut::visit_expr_mut(self, e);
                }
            }
        }
        let mut expr = expr.clone();
        Replace(self).visit_expr_mut(&mut expr);
        quote!(#expr)
    }

    fn refuse_nested(&mut self, expr: &Expr) {
        if self.misplaced {
            // Told already, in better words.
            return;
        }
        struct Marks(Vec<syn::Attribute>);
        impl<'a> syn::visit::Visit<'a> for Marks {
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
        syn::visit::Visit::visit_expr(&mut marks, expr);
        for a in marks.0 {
            self.errors.push(
                Code::BoundaryPosition,
                &a,
                "a boundary in the middle of an expression",
                "bind it first: `let v = #[eager] …;`, then use `v`",
            );
        }
    }

    fn eager(&mut self, expr: &Expr, attr: &syn::Attribute) -> TokenStream {
        let p = crate::krate::private();
        let krate = crate::krate::krate();
        let args = attributes::eager_args(attr, self.errors);
        let mut inner = attributes::without_ours(expr);
        // Allowed before a statement, and not before a value.
        let (levels, others): (Vec<_>, Vec<_>) =
            attributes::take(&mut inner).into_iter().partition(attributes::is_lint_level);
        attributes::put(&mut inner, others);
        let support = match &args.support {
            Some(level) => quote_spanned!(level.span()=> #p::Support::#level),
            None => quote!(#p::Support::Never),
        };
        let index = self.plan.len();
        let site = self.site_of(index, &inner);
        let call = shortened(&inner);
        let moved = self.moved(&args, &inner);
        self.plan.push(
            quote!(#p::PlanItem::Boundary { site: #site, call: #call, support: #support, moved: #moved }),
        );
        let cx = cx();
        let error = crate::krate::user_error(self.context.ret);
        let region = Ident::new("__region", Span::mixed_site());
        let value = Ident::new("__value", Span::mixed_site());
        let step = self.context.step;
        let hint = self.hint.take().map(|ty| quote!(: #ty));
        let capability = args.capability.map(|name| quote!(let #name: &#krate::Eager<#step> = &#region;));
        quote! {
            {
                #[allow(unused_imports)]
                use #p::{EagerOther as _, EagerResult as _, EagerTensors as _};
                let #region = #error::of(#cx.eager(#site, #support))?;
                #capability
                #[allow(unreachable_code, clippy::let_unit_value)]
                #(#levels)*
                let #value #hint = #inner;
                #error::of((&&&#p::Finish::new(#value)).finish(#region))?
            }
        }
    }

    /// Where the region was moved, as the plan says it.
    fn moved(&mut self, args: &attributes::EagerArgs, inner: &Expr) -> TokenStream {
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
        let p = crate::krate::private();
        match placed {
            Some(attributes::Edge::Early) => quote!(::core::option::Option::Some(#p::BoundaryMove::Early)),
            Some(attributes::Edge::Late) => quote!(::core::option::Option::Some(#p::BoundaryMove::Late)),
            None => quote!(::core::option::Option::None),
        }
    }

    fn piecewise(&mut self, expr: &Expr, attr: &syn::Attribute) -> TokenStream {
        let p = crate::krate::private();
        let cx = cx();
        let mut inner = attributes::without_ours(expr);
        let index = self.plan.len();
        let site = self.site_of(index, &inner);
        let text = shortened(&inner);
        self.plan.push(quote!(#p::PlanItem::Piecewise { site: #site, call: #text }));
        let Some(call) = innermost_call(&mut inner) else {
            self.errors.push(
                Code::PiecewiseTarget,
                attr,
                "`#[piecewise]` marks a call of a function with boundaries",
                "write `#[piecewise] layer(x)?`",
            );
            return quote!(#inner);
        };
        if let Some(at) = calls_itself(call, &self.context.name) {
            let text = at.to_token_stream().to_string();
            self.errors.push(
                Code::Recursion,
                at,
                format!("`{text}` calls itself through its own segments: its plan would have no end"),
                "write a loop, or give the repeated part a function of its own and call that with `#[piecewise]`",
            );
        }
        let args = match call {
            Expr::Call(c) => &mut c.args,
            Expr::MethodCall(m) => &mut m.args,
            _ => return quote!(#inner),
        };
        for arg in args.iter() {
            if !classify::call_free(arg) {
                self.errors.push(
                    Code::PiecewiseArgument, arg,
                    "an argument of a `#[piecewise]` call makes calls of its own, which no segment would hold",
                    "bind it first: `let a = …;`, then pass `a`",
                );
            }
        }
        if let Expr::Call(c) = call
            && let Some(method) = associated(&mut c.func)
        {
            *method = super::by_path(method);
            c.args.push(syn::parse_quote!(#cx));
            return quote!(#inner);
        }
        let args = match call {
            Expr::Call(c) => &mut c.args,
            Expr::MethodCall(m) => &mut m.args,
            _ => return quote!(#inner),
        };
        match args.first_mut() {
            Some(first) => {
                let shown = crate::krate::generated_at(first.span());
                let p = crate::krate::private_at(shown);
                *first = syn::parse_quote_spanned!(shown=> #p::OnlyForFunctionsWithBoundaries(#cx, #first));
            }
            None => args.push(syn::parse_quote!(#cx)),
        }
        quote!(#inner)
    }

    /// The plain-Rust parts of a driver statement: `return` and `break` values that make calls.
    pub(super) fn jump(&mut self, expr: &Expr, after: &HashSet<usize>) -> TokenStream {
        struct Strip;
        impl VisitMut for Strip {
            fn visit_attributes_mut(&mut self, attrs: &mut Vec<syn::Attribute>) {
                attrs.retain(|a| !attributes::is_ours(a));
            }
        }
        match expr {
            Expr::Return(r) => match r.expr.as_deref() {
                Some(value) => {
                    let value = self.tail_expr(value, super::Tail::Function, &Default::default());
                    let attrs = &r.attrs;
                    quote!(#(#attrs)* return #value)
                }
                None => quote!(#expr),
            },
            Expr::Break(b) => match b.expr.as_deref() {
                Some(value) => {
                    let tail = self.break_tail(b.label.as_ref());
                    let value = self.tail_expr(value, tail, after);
                    let (attrs, label) = (&b.attrs, &b.label);
                    quote!(#(#attrs)* break #label #value)
                }
                None => quote!(#expr),
            },
            other => {
                let mut plain = other.clone();
                visit_mut::visit_expr_mut(&mut Strip, &mut plain);
                quote!(#plain)
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
            let on_self = uses::plain_name(&m.receiver).is_some_and(|r| r == "self");
            (on_self && owner.is_some() && m.method == own).then_some(&m.method)
        }
        _ => None,
    }
}

/// `method` of `Type::method`, or of `<Type>::method`; by convention, types are capitalised and modules are not.
fn associated(func: &mut Expr) -> Option<&mut Ident> {
    let Expr::Path(path) = func else { return None };
    let own = path.qself.as_ref().is_some_and(|q| q.as_token.is_none());
    let before = path.path.segments.iter().rev().nth(1);
    let capitalised = before.is_some_and(|s| s.ident.to_string().starts_with(char::is_uppercase));
    if own || path.qself.is_none() && capitalised {
        path.path.segments.last_mut().map(|s| &mut s.ident)
    } else {
        None
    }
}

/// The call that a `#[piecewise]` stands before: below `?` and parentheses.
fn innermost_call(expr: &mut Expr) -> Option<&mut Expr> {
    match expr {
        Expr::Call(_) | Expr::MethodCall(_) => Some(expr),
        Expr::Try(t) => innermost_call(&mut t.expr),
        Expr::Paren(p) => innermost_call(&mut p.expr),
        Expr::Group(g) => innermost_call(&mut g.expr),
        _ => None,
    }
}

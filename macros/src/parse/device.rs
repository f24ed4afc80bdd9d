//! `#[device]` on control flow.

use proc_macro2::{Ident, Span};
use quote::{quote, quote_spanned};
use syn::{
    Attribute, Expr, ExprBlock, Lit, Stmt,
    spanned::Spanned,
    visit::Visit,
    visit_mut::{self, VisitMut},
};

use super::attributes;
use crate::diag::{Code, Errors, nearest};

pub(crate) fn is_device(a: &Attribute) -> bool {
    a.path().is_ident("device")
}

/// The `#[device]` of an expression.
pub(crate) fn attribute(expr: &Expr) -> Option<&Attribute> {
    attributes::of(expr).iter().find(|a| is_device(a))
}

/// Returns whether the expression is control flow of the device.
pub(crate) fn is_flow(expr: &Expr) -> bool {
    matches!(expr, Expr::If(_) | Expr::While(_) | Expr::Match(_)) && attribute(expr).is_some()
}

/// The predicate or the index of control flow of the device.
pub(crate) fn predicate(expr: &Expr) -> Option<&Expr> {
    match expr {
        Expr::If(e) if is_flow(expr) => Some(&e.cond),
        Expr::While(e) if is_flow(expr) => Some(&e.cond),
        Expr::Match(e) if is_flow(expr) => Some(&e.expr),
        _ => None,
    }
}

/// Returns whether there is a `#[device]` in the code, outside items.
pub(crate) fn has_flow(block: &syn::Block) -> bool {
    block.stmts.iter().any(is_anywhere_in)
}

/// Returns whether a statement has a `#[device]`, outside closures and items.
pub(crate) fn is_in(stmt: &Stmt) -> bool {
    match stmt {
        Stmt::Expr(expr, _) => first(expr).is_some(),
        Stmt::Local(local) => local.init.as_ref().is_some_and(|init| {
            first(&init.expr).is_some() || init.diverge.as_ref().is_some_and(|(_, e)| first(e).is_some())
        }),
        _ => false,
    }
}

/// Returns whether there is a `#[device]` in a statement, also in closures.
pub(crate) fn is_anywhere_in(stmt: &Stmt) -> bool {
    let mut find = Anywhere(false);
    find.visit_stmt(stmt);
    find.0
}

/// Returns whether there is a `#[device]` in an expression, also in closures.
pub(crate) fn is_anywhere_in_expr(expr: &Expr) -> bool {
    let mut find = Anywhere(false);
    find.visit_expr(expr);
    find.0
}

/// Set if there is a `#[device]` outside items.
struct Anywhere(bool);

impl<'a> Visit<'a> for Anywhere {
    fn visit_attribute(&mut self, a: &'a Attribute) {
        self.0 |= is_device(a);
    }
    fn visit_item(&mut self, _: &'a syn::Item) {}
}

/// Returns the first `#[device]` of an expression, outside closures and items.
pub(crate) fn first(expr: &Expr) -> Option<&Attribute> {
    struct Find<'a>(Option<&'a Attribute>);
    impl<'a> Visit<'a> for Find<'a> {
        fn visit_attribute(&mut self, a: &'a Attribute) {
            if is_device(a) {
                self.0 = self.0.or(Some(a));
            }
        }
        fn visit_expr_closure(&mut self, _: &'a syn::ExprClosure) {}
        fn visit_item(&mut self, _: &'a syn::Item) {}
    }
    let mut find = Find(None);
    find.visit_expr(expr);
    find.0
}

/// Gives every `else if` of a `#[device] if` an attribute of its own, since Rust's syntax has no place for one there, and
/// binds limits that the host computes before their loops, where they are values of the host like others.
pub(crate) fn spread(block: &mut syn::Block) {
    struct Spread;
    impl VisitMut for Spread {
        fn visit_expr_mut(&mut self, expr: &mut Expr) {
            visit_mut::visit_expr_mut(self, expr);
            bind_limit(expr);
        }
        fn visit_expr_if_mut(&mut self, e: &mut syn::ExprIf) {
            let own = e.attrs.iter().find(|a| is_device(a)).cloned();
            if let (Some(own), Some((_, other))) = (own, &mut e.else_branch)
                && let Expr::If(next) = &mut **other
                && !next.attrs.iter().any(is_device)
            {
                next.attrs.push(own);
            }
            visit_mut::visit_expr_if_mut(self, e);
        }
        fn visit_item_mut(&mut self, _: &mut syn::Item) {}
    }
    Spread.visit_block_mut(block);
}

/// Writes `{ let limit: u32 = f(); #[device(limit = limit)] while … }` for `#[device(limit = f())] while …`.
fn bind_limit(expr: &mut Expr) {
    let Expr::While(e) = expr else { return };
    let Some(attr) = e.attrs.iter_mut().find(|a| is_device(a)) else { return };
    let Ok(given) = attr.parse_args_with(attributes::named_values::<Expr>) else { return };
    let [(name, Some(value))] = &given[..] else { return };
    if name != "limit" || is_constant(value) {
        return;
    }
    let shown = Span::mixed_site().located_at(value.span());
    let limit = Ident::new("__limit", shown);
    let ty = quote_spanned!(shown=> ::core::primitive::u32);
    let bound = syn::parse_quote!(let #limit: #ty = #value;);
    if let syn::Meta::List(list) = &mut attr.meta {
        list.tokens = quote!(#name = #limit);
    }
    let stmts = vec![bound, Stmt::Expr(expr.clone(), None)];
    let block = syn::Block { brace_token: syn::token::Brace(shown), stmts };
    *expr = Expr::Block(ExprBlock { attrs: Vec::new(), label: None, block });
}

/// Returns whether a limit is a constant, by the convention of their names, or a literal, which may be a wrong one.
pub(crate) fn is_constant(limit: &Expr) -> bool {
    match limit {
        Expr::Lit(_) => true,
        Expr::Unary(u) => is_constant(&u.expr),
        Expr::Path(p) => {
            p.path.segments.last().is_some_and(|s| !s.ident.to_string().contains(char::is_lowercase))
        }
        _ => false,
    }
}

/// The help with the valid forms.
const FORMS: &str = "write `#[device]`, or `#[device(limit = 1000)]` on a `while`";

/// Reads `#[device]` and `#[device(limit = N)]`: the limit, which is a `u32` of the host.
pub(crate) fn limit(attr: &Attribute, errors: &mut Errors) -> Option<Expr> {
    if matches!(attr.meta, syn::Meta::Path(_)) {
        return None;
    }
    let Ok(found) = attr.parse_args_with(attributes::named_values::<Expr>) else {
        errors.push(Code::AttributeArguments, attr, "these arguments of `#[device]` cannot be read", FORMS);
        return None;
    };
    let mut limit: Option<Expr> = None;
    for (name, value) in found {
        if name != "limit" {
            let help = match nearest(&name.to_string(), &["limit"]) {
                Some(near) => format!("did you mean `{near}`?"),
                None => FORMS.to_owned(),
            };
            errors.push(Code::UnknownArgument, &name, format!("`#[device]` has no argument `{name}`"), help);
        } else if limit.is_some() {
            errors.push(Code::RepeatedAttribute, &name, "`limit` is given twice", "remove one");
        } else if let Some(value) = value {
            limit = checked(value, errors);
        } else {
            errors.push(
                Code::AttributeArguments,
                &name,
                "`limit` has no value",
                "write how many rounds the loop may run: `limit = 1000`",
            );
        }
    }
    limit
}

/// Returns the limit that the attribute of a loop states, as [`limit`] has found it right.
pub(crate) fn stated_limit(attr: &Attribute) -> Option<Expr> {
    if matches!(attr.meta, syn::Meta::Path(_)) {
        return None;
    }
    let given = attr.parse_args_with(attributes::named_values::<Expr>).ok()?;
    given.into_iter().find_map(|(_, value)| value)
}

/// The value of `limit`, if it can be one.
fn checked(value: Expr, errors: &mut Errors) -> Option<Expr> {
    let wrong = match &value {
        Expr::Lit(l) => match &l.lit {
            Lit::Int(n) => match n.base10_parse::<u64>() {
                Ok(0) => Some("a loop with the limit 0 runs no round"),
                Ok(n) if u32::try_from(n).is_ok() => None,
                _ => Some("a limit is at most 4294967295"),
            },
            _ => Some("a limit is an integer"),
        },
        Expr::Unary(u) if matches!(u.op, syn::UnOp::Neg(_)) && is_constant(&value) => {
            Some("a limit is positive")
        }
        _ => None,
    };
    match wrong {
        None => Some(value),
        Some(wrong) => {
            let help = "write how many rounds the loop may run: `limit = 1000`";
            errors.push(Code::AttributeArguments, &value, wrong, help);
            None
        }
    }
}

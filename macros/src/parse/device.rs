//! `#[device]` on control flow.

use syn::{
    Attribute, Expr, Lit,
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

/// Returns whether there is a `#[device]` in the code, outside items.
pub(crate) fn has_flow(block: &syn::Block) -> bool {
    struct Find(bool);
    impl<'a> Visit<'a> for Find {
        fn visit_attribute(&mut self, a: &'a Attribute) {
            self.0 |= is_device(a);
        }
        fn visit_item(&mut self, _: &'a syn::Item) {}
    }
    let mut find = Find(false);
    find.visit_block(block);
    find.0
}

/// Returns whether a statement has a `#[device]`, outside closures and items.
pub(crate) fn is_in(stmt: &syn::Stmt) -> bool {
    match stmt {
        syn::Stmt::Expr(expr, _) => first(expr).is_some(),
        syn::Stmt::Local(local) => local.init.as_ref().is_some_and(|init| {
            first(&init.expr).is_some() || init.diverge.as_ref().is_some_and(|(_, e)| first(e).is_some())
        }),
        _ => false,
    }
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

/// Gives every `else if` of a `#[device] if` an attribute of its own: Rust's syntax has no place for one there.
pub(crate) fn spread(block: &mut syn::Block) {
    struct Spread;
    impl VisitMut for Spread {
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

/// The help with the valid forms.
const FORMS: &str = "write `#[device]`, or `#[device(limit = 1000)]` on a `while`";

/// Reads `#[device]` and `#[device(limit = N)]`: the limit, which is an integer or a constant.
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
        Expr::Unary(_) => Some("a limit is positive"),
        Expr::Path(_) => None,
        _ => Some("a limit is an integer or a constant"),
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

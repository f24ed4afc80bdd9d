//! Values that are written out: a struct, a tuple struct or a unit. Making one calls nothing, and its type may be a guard all the same.

use proc_macro2::Span;
use quote::format_ident;
use syn::{
    Expr, Pat, Path, Token,
    visit::{self, Visit},
};

use crate::{
    facts::classify,
    model::{GuardPart, Inside},
    parse::syntax::{self, tails},
};

/// Returns whether an expression writes out a value of a type that may be a guard, other than behind a reference.
pub(super) fn makes(expr: &Expr) -> bool {
    Makes::any(expr, false)
}

/// Returns whether an expression writes out such a value anywhere.
pub(super) fn makes_or_lends(expr: &Expr) -> bool {
    Makes::any(expr, true)
}

struct Makes {
    behind_references: bool,
    found: bool,
}

impl Makes {
    fn any(expr: &Expr, behind_references: bool) -> bool {
        let mut makes = Self { behind_references, found: false };
        makes.visit_expr(expr);
        makes.found
    }
}

impl<'a> Visit<'a> for Makes {
    fn visit_expr(&mut self, e: &'a Expr) {
        self.found |= is_literal(e);
        match e {
            Expr::Closure(_) => {}
            Expr::Reference(_) if !self.behind_references => {}
            _ => visit::visit_expr(self, e),
        }
    }
    fn visit_macro(&mut self, _: &'a syn::Macro) {}
}

/// Returns whether a value is written out as far as its type is concerned, on each way to it: the parts may be made by calls.
pub(super) fn is_written_out(expr: &Expr) -> bool {
    let all = tails(syntax::bare(expr));
    !all.is_empty()
        && all.into_iter().map(syntax::bare).all(|tail| match tail {
            Expr::Call(e) => is_constructor(&e.func),
            Expr::Tuple(_) | Expr::Array(_) => true,
            other => is_literal(other) || classify::call_free(other),
        })
}

/// Returns, for each way to the value of an expression, what to ask about what is inside of it, and where that is: values that are
/// written out there, and those that calls make.
pub(super) fn inside(expr: &Expr) -> Vec<Inside> {
    let of_tail = |tail: &Expr| {
        let mut inner = Inner { parts: Vec::new() };
        let pat = inner.fields(syntax::bare(tail))?;
        (!inner.parts.is_empty()).then_some(Inside { pat, parts: inner.parts })
    };
    tails(expr).into_iter().filter_map(of_tail).collect()
}

/// By convention, what is capitalised and is no constant; `Some` and the like only hold others.
fn is_type(path: &Path) -> bool {
    let name = path.segments.last().map(|s| s.ident.to_string()).unwrap_or_default();
    let is_standard = ["Some", "None", "Ok", "Err"].contains(&name.as_str());
    !is_standard
        && name.starts_with(char::is_uppercase)
        && (name.len() == 1 || name.contains(char::is_lowercase))
}

/// By convention, as well; `Some` and the like are among them.
fn is_constructor(func: &Expr) -> bool {
    let capital = |path: &Path| {
        path.segments.last().is_some_and(|s| s.ident.to_string().starts_with(char::is_uppercase))
    };
    matches!(func, Expr::Path(p) if capital(&p.path))
}

fn is_literal(expr: &Expr) -> bool {
    match expr {
        Expr::Struct(_) => true,
        Expr::Call(e) => matches!(&*e.func, Expr::Path(p) if is_type(&p.path)),
        Expr::Path(p) => is_type(&p.path),
        _ => false,
    }
}

/// Patterns that are like expressions.
struct Inner {
    parts: Vec<GuardPart>,
}

impl Inner {
    /// Returns a pattern of a value that is inside of another one, if there is something to ask about it.
    fn part(&mut self, expr: &Expr) -> Option<Pat> {
        let all: Vec<&Expr> = tails(syntax::bare(expr)).into_iter().map(syntax::bare).collect();
        let is_made = |tail: &&Expr| {
            !classify::call_free(tail) && !classify::is_value(tail) && !matches!(tail, Expr::Closure(_))
        };
        if all.is_empty() || all.iter().any(|tail| is_made(tail) && !is_written_out(tail)) {
            return Some(self.name(true, None));
        }
        let expr = *all.first()?;
        let fields = self.fields(expr);
        if is_literal(expr) { Some(self.name(false, fields)) } else { fields }
    }

    fn name(&mut self, whole: bool, fields: Option<Pat>) -> Pat {
        let ident = format_ident!("__part{}", self.parts.len(), span = Span::mixed_site());
        self.parts.push(GuardPart { ident: ident.clone(), whole });
        let subpat = fields.map(|pat| (<Token![@]>::default(), Box::new(pat)));
        Pat::Ident(syn::PatIdent { attrs: Vec::new(), by_ref: None, mutability: None, ident, subpat })
    }

    /// Returns a pattern of the parts of a value, if there is something to ask about them.
    fn fields(&mut self, expr: &Expr) -> Option<Pat> {
        match expr {
            Expr::Struct(e) => {
                let (path, mut fields) = (&e.path, Vec::new());
                for field in e.fields.iter().filter(|field| field.attrs.is_empty()) {
                    let member = &field.member;
                    fields.extend(self.part(&field.expr).map(|pat| quote::quote!(#member: #pat)));
                }
                (!fields.is_empty()).then(|| syn::parse_quote!(#path { #(#fields,)* .. }))
            }
            Expr::Call(e) if is_constructor(&e.func) => {
                let (func, elems) = (&e.func, self.elems(&e.args)?);
                Some(syn::parse_quote!(#func(#(#elems),*)))
            }
            Expr::Tuple(e) => {
                let elems = self.elems(&e.elems)?;
                Some(syn::parse_quote!((#(#elems,)*)))
            }
            Expr::Array(e) => {
                let elems = self.elems(&e.elems)?;
                Some(syn::parse_quote!([#(#elems),*]))
            }
            _ => None,
        }
    }

    fn elems<'e>(&mut self, elems: impl IntoIterator<Item = &'e Expr>) -> Option<Vec<Pat>> {
        let elems: Vec<Option<Pat>> = elems.into_iter().map(|elem| self.part(elem)).collect();
        let is_any = elems.iter().any(Option::is_some);
        is_any.then(|| elems.into_iter().map(|pat| pat.unwrap_or_else(|| syn::parse_quote!(_))).collect())
    }
}

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

/// Returns whether a value is written out, and a type in it may be that of a guard.
pub(super) fn is_asked(expr: &Expr) -> bool {
    classify::call_free(expr) && syntax::place_base(expr).is_none() && makes(expr)
}

/// Returns whether an expression writes out a value of a type that may be a guard.
pub(super) fn makes(expr: &Expr) -> bool {
    struct Makes(bool);
    impl<'a> Visit<'a> for Makes {
        fn visit_expr(&mut self, e: &'a Expr) {
            self.0 |= is_literal(e);
            if !matches!(e, Expr::Closure(_)) {
                visit::visit_expr(self, e);
            }
        }
        fn visit_macro(&mut self, _: &'a syn::Macro) {}
    }
    let mut makes = Makes(false);
    makes.visit_expr(expr);
    makes.0
}

/// Returns whether a value is the result of a call, other than of one whose type is often open until it is used: a question about
/// such a value, asked where it is made, would determine its type.
pub(super) fn is_call(expr: &Expr) -> bool {
    const OPEN: [&str; 11] = [
        "new",
        "with_capacity",
        "default",
        "from",
        "from_iter",
        "into",
        "try_into",
        "collect",
        "parse",
        "sum",
        "product",
    ];
    match syntax::bare(expr) {
        Expr::Try(e) => is_call(&e.expr),
        Expr::MethodCall(m) => {
            let is_open = m.turbofish.is_none() && OPEN.iter().any(|name| m.method == name);
            !is_open && !classify::is_value(expr)
        }
        Expr::Call(c) if !classify::is_constructor(c) && !classify::is_value(expr) => {
            let Expr::Path(path) = &*c.func else { return true };
            let all: Vec<&syn::PathSegment> = path.path.segments.iter().collect();
            let is_open = matches!(&all[..], [.., of, name] if of.arguments.is_none()
                && OPEN.iter().any(|open| name.ident == open) && (c.args.is_empty() || name.ident != "new"));
            !is_open
        }
        _ => false,
    }
}

/// Returns, for each way to a value that is written out, the values that are so inside of it, and where; or those alone that a reference
/// in it borrows from, which stay where they are when it is moved.
pub(super) fn inside(expr: &Expr, lent_alone: bool) -> Vec<Inside> {
    let of_tail = |tail: &Expr| {
        let mut inner = Inner { parts: Vec::new(), lent_alone };
        let pat = match syntax::bare(tail) {
            tail @ Expr::Reference(_) => inner.part(tail)?,
            tail => inner.fields(tail)?,
        };
        (!inner.parts.is_empty()).then_some(Inside { pat, parts: inner.parts })
    };
    tails(expr).into_iter().filter_map(of_tail).collect()
}

/// By convention, what is capitalised; `Some` and the like only hold others.
fn is_type(path: &Path) -> bool {
    let name = path.segments.last().map(|s| s.ident.to_string()).unwrap_or_default();
    let is_standard = ["Some", "None", "Ok", "Err"].contains(&name.as_str());
    !is_standard && name.starts_with(char::is_uppercase)
}

/// By convention, what is written in capitals alone is a constant.
fn is_constant(path: &Path) -> bool {
    let name = path.segments.last().map(|s| s.ident.to_string()).unwrap_or_default();
    name.len() > 1 && !name.contains(char::is_lowercase)
}

fn is_literal(expr: &Expr) -> bool {
    match expr {
        Expr::Struct(_) => true,
        Expr::Call(e) => matches!(&*e.func, Expr::Path(p) if is_type(&p.path)),
        Expr::Path(p) => is_type(&p.path) && !is_constant(&p.path),
        _ => false,
    }
}

/// Patterns that are like expressions.
struct Inner {
    parts: Vec<GuardPart>,
    /// Set while only values behind references are asked about.
    lent_alone: bool,
}

impl Inner {
    /// Returns a pattern of a value that is inside of another one, if there is something to ask about it.
    fn part(&mut self, expr: &Expr) -> Option<Pat> {
        let mut expr = syntax::bare(expr);
        let mut references = 0;
        while let Expr::Reference(e) = expr {
            (expr, references) = (syntax::bare(&e.expr), references + 1);
        }
        let expr = tails(expr).into_iter().map(syntax::bare).find(|tail| makes(tail))?;
        // What a reference is inside of a pattern may go through to.
        let outside = self.lent_alone;
        self.lent_alone &= references == 0;
        let fields = self.fields(expr);
        let is_passed_over = std::mem::replace(&mut self.lent_alone, outside);
        if is_passed_over || !is_literal(expr) {
            return fields;
        }
        let ident = format_ident!("__part{}", self.parts.len(), span = Span::mixed_site());
        self.parts.push(GuardPart { ident: ident.clone(), references });
        let subpat = fields.map(|pat| (<Token![@]>::default(), Box::new(pat)));
        Some(Pat::Ident(syn::PatIdent { attrs: Vec::new(), by_ref: None, mutability: None, ident, subpat }))
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
            Expr::Call(e) if classify::is_constructor(e) => {
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

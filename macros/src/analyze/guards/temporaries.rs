//! Values without a name that a `let` borrows from: they live as long as its variables.

use proc_macro2::Span;
use quote::format_ident;
use syn::{Expr, Ident, Local, Pat, Stmt, UnOp};

use super::parts::{self, Taken};
use crate::{
    model::{Asked, Guard},
    parse::{device, syntax},
};

/// Such a value under a name, `let held = value; let pat = held;`, about which can be asked.
#[derive(Clone)]
pub(crate) struct Held {
    pub(crate) at: usize,
    pub(super) ident: Ident,
    pub(super) value: Expr,
    /// Set if the pattern matches a reference to it, or a part of it.
    pub(super) lends: bool,
    pub(crate) named: Local,
    /// Asked between the two.
    pub(crate) asked: Option<Guard>,
    pub(crate) taken: Local,
}

impl Held {
    /// Returns the value that a `let` borrows from, unless the variable is a reference to that value itself.
    pub(super) fn of(at: usize, local: &Local, value: &Expr) -> Option<Self> {
        let is_plain = matches!(parts::bare(&local.pat), Pat::Ident(p) if p.by_ref.is_none());
        let by_ref = syntax::bound_always(&local.pat).iter().any(|b| b.by_ref);
        let is_reference = matches!(syntax::bare(value), Expr::Reference(_));
        let is_conditional = local.attrs.iter().any(syntax::is_condition);
        let is_seen = is_plain && lends(value) && !is_part(value);
        if is_seen || !is_reference && !by_ref || is_conditional || device::is_flow(value) {
            return None;
        }
        let ident = format_ident!("__held{at}", span = Span::mixed_site());
        let mut taken = local.clone();
        let value = temporary(&mut taken.init.as_mut()?.expr, &ident)?;
        let lends = is_reference || syntax::plain_name(&taken.init.as_ref()?.expr).is_none();
        let Stmt::Local(mut named) = syn::parse_quote!(#[allow(unused_mut)] let mut #ident = #value;) else {
            return None;
        };
        named.attrs.extend(local.attrs.iter().cloned());
        if let Pat::Type(typed) = &local.pat
            && !lends
        {
            named.pat = Pat::Type(syn::PatType { pat: Box::new(named.pat), ..typed.clone() });
        }
        Some(Self { at, ident, value, lends, named, asked: None, taken })
    }

    /// Returns a question about it.
    pub(super) fn guard(&self, asked: Asked) -> Guard {
        Guard { ident: self.ident.clone(), shown: parts::shown(&self.taken.pat), asked, inside: Vec::new() }
    }

    /// Returns what the pattern moves out of it.
    pub(super) fn taken(&self) -> Taken {
        if self.lends {
            return Taken::Nothing(Asked::Whole);
        }
        let refutable = self.taken.init.as_ref().is_some_and(|i| i.diverge.is_some());
        parts::by_pattern(&self.taken.pat, refutable)
    }
}

/// Puts a name in the place of the value that a place, or a reference to one, is in, and returns the value; `None` if that is a variable.
fn temporary(expr: &mut Expr, name: &Ident) -> Option<Expr> {
    match expr {
        Expr::Paren(e) => temporary(&mut e.expr, name),
        Expr::Group(e) => temporary(&mut e.expr, name),
        Expr::Reference(e) => temporary(&mut e.expr, name),
        Expr::Field(e) => temporary(&mut e.base, name),
        Expr::Index(e) => temporary(&mut e.expr, name),
        Expr::Unary(e) if matches!(e.op, UnOp::Deref(_)) => temporary(&mut e.expr, name),
        Expr::Path(_) | Expr::Lit(_) => None,
        other => Some(std::mem::replace(other, syn::parse_quote!(#name))),
    }
}

/// Returns whether the value is a reference to a temporary that lives as long as it does.
pub(super) fn lends(expr: &Expr) -> bool {
    match expr {
        Expr::Reference(e) => syntax::place_base(&e.expr).is_none(),
        Expr::Paren(e) => lends(&e.expr),
        _ => false,
    }
}

/// Returns whether the value refers to a part of another.
fn is_part(expr: &Expr) -> bool {
    match expr {
        Expr::Reference(e) => is_part(&e.expr),
        Expr::Paren(e) => is_part(&e.expr),
        Expr::Field(_) | Expr::Index(_) => true,
        Expr::Unary(e) => matches!(e.op, UnOp::Deref(_)),
        _ => false,
    }
}

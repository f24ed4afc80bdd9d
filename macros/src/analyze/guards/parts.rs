//! What a pattern moves out of a value, and what it leaves there.

use proc_macro2::Span;
use quote::format_ident;
use syn::{Expr, Ident, Pat, Stmt};

use crate::{
    model::Asked,
    parse::syntax::{self, Bound},
};

/// What a statement moves out of a variable that it mentions by value.
pub(super) enum Taken {
    All,
    Some(Left),
    /// What to ask about the value in place of the whole.
    Nothing(Asked),
}

/// The part of a value that a pattern leaves.
pub(super) struct Left {
    /// The question about it, which is asked before.
    pub(super) asked: Asked,
    /// The names that `ref mut` gives to parts of it, whose types may be known later.
    pub(super) late: Vec<Ident>,
}

/// Returns what a variable gets of a value that is written out as the pattern is.
pub(super) fn value_of<'e>(pat: &Pat, value: &'e Expr, name: &Ident) -> Option<&'e Expr> {
    match (bare(pat), syntax::bare(value)) {
        (Pat::Ident(p), _) if p.subpat.is_none() => (p.ident == *name).then_some(value),
        (Pat::Tuple(p), Expr::Tuple(e)) if p.elems.len() == e.elems.len() && !has_rest(&p.elems) => {
            p.elems.iter().zip(&e.elems).find_map(|(pat, value)| value_of(pat, value, name))
        }
        _ => None,
    }
}

/// Returns what a statement that mentions a variable by value moves out of it.
pub(super) fn taken_by(stmt: &Stmt, name: &str) -> Taken {
    let is_it = |expr: &Expr| syntax::plain_name(expr).is_some_and(|n| n == name);
    match stmt {
        Stmt::Local(local) => match &local.init {
            Some(init) if is_it(&init.expr) => by_pattern(&local.pat, init.diverge.is_some()),
            _ => Taken::All,
        },
        Stmt::Expr(Expr::Assign(a), _) if is_it(&a.right) => match &*a.left {
            Expr::Infer(_) => Taken::Nothing(Asked::Whole),
            left if leaves(left) => Taken::Some(Left { asked: Asked::Whole, late: Vec::new() }),
            _ => Taken::All,
        },
        _ => Taken::All,
    }
}

/// Returns what a pattern moves out of a value.
pub(super) fn by_pattern(pat: &Pat, refutable: bool) -> Taken {
    let pat = bare(pat);
    let names = Names { refutable };
    let moves = names.of(pat).iter().any(|b| !b.by_ref);
    let mut divided = Divided { names, late: moves.then(Vec::new), parts: Vec::new() };
    let mut rest = pat.clone();
    let itself = match &mut rest {
        // Nothing that it refers to ends here.
        Pat::Reference(_) => return Taken::All,
        pat if moves && divided.names.moves_all(pat) && !is_struct(pat) => return Taken::All,
        pat => divided.by(pat),
    };
    let Divided { late, parts, .. } = divided;
    let asked = match itself {
        Some(itself) => Asked::Parts { pat: Box::new(rest), parts, itself },
        None => Asked::Whole,
    };
    match late {
        Some(late) => Taken::Some(Left { asked, late }),
        None => Taken::Nothing(asked),
    }
}

/// How to tell the names in a pattern from constants.
struct Names {
    refutable: bool,
}

impl Names {
    fn of(&self, pat: &Pat) -> Vec<Bound> {
        if self.refutable { syntax::bound(pat) } else { syntax::bound_always(pat) }
    }

    fn moves_all(&self, pat: &Pat) -> bool {
        !syntax::leaves_part(pat) && self.of(pat).iter().all(|b| !b.by_ref)
    }
}

/// A pattern whose parts are to be asked about.
struct Divided {
    names: Names,
    /// Set if the pattern moves something.
    late: Option<Vec<Ident>>,
    parts: Vec<Ident>,
}

impl Divided {
    /// Gives names to the parts that a pattern leaves, and returns whether its type may be a guard as well; `None` if not all
    /// parts are known.
    fn by(&mut self, pat: &mut Pat) -> Option<bool> {
        match pat {
            Pat::Tuple(p) if !has_rest(&p.elems) => p.elems.iter_mut().for_each(|p| self.part(p)),
            Pat::Slice(p) if !has_rest(&p.elems) => p.elems.iter_mut().for_each(|p| self.part(p)),
            Pat::TupleStruct(p) if !has_rest(&p.elems) => p.elems.iter_mut().for_each(|p| self.part(p)),
            Pat::Struct(p) if p.rest.is_none() && !is_conditional(p) => {
                for field in &mut p.fields {
                    self.part(&mut field.pat);
                    field.colon_token.get_or_insert_default();
                }
            }
            _ => return None,
        }
        Some(is_struct(pat))
    }

    fn part(&mut self, pat: &mut Pat) {
        if self.names.moves_all(pat) {
            *pat = syn::parse_quote!(_);
            return;
        }
        if let Pat::Ident(p) = &*pat
            && p.mutability.is_some()
            && let Some(late) = &mut self.late
        {
            late.push(p.ident.clone());
            *pat = syn::parse_quote!(_);
            return;
        }
        let name = format_ident!("__part{}", self.parts.len(), span = Span::mixed_site());
        *pat = syn::parse_quote!(#name);
        self.parts.push(name);
    }
}

/// Returns whether one of the fields may be absent.
fn is_conditional(pat: &syn::PatStruct) -> bool {
    pat.fields.iter().any(|field| field.attrs.iter().any(syntax::is_condition))
}

fn is_struct(pat: &Pat) -> bool {
    matches!(pat, Pat::TupleStruct(_) | Pat::Struct(_))
}

/// Without parentheses and types.
pub(super) fn bare(pat: &Pat) -> &Pat {
    match pat {
        Pat::Paren(p) => bare(&p.pat),
        Pat::Type(p) => bare(&p.pat),
        other => other,
    }
}

/// Returns whether patterns have a `..` among them, which may have a name.
fn has_rest<'p>(elems: impl IntoIterator<Item = &'p Pat>) -> bool {
    elems.into_iter().any(|pat| match pat {
        Pat::Ident(p) => p.subpat.iter().any(|(_, pat)| matches!(**pat, Pat::Rest(_))),
        other => matches!(other, Pat::Rest(_)),
    })
}

/// Returns whether an assignment to several places leaves a part of its value.
fn leaves(left: &Expr) -> bool {
    match left {
        Expr::Infer(_) | Expr::Range(_) => true,
        Expr::Tuple(e) => e.elems.iter().any(leaves),
        Expr::Array(e) => e.elems.iter().any(leaves),
        Expr::Call(e) => e.args.iter().any(leaves),
        Expr::Struct(e) => e.dot2_token.is_some() || e.fields.iter().any(|f| leaves(&f.expr)),
        Expr::Paren(e) => leaves(&e.expr),
        _ => false,
    }
}

/// The name at which a pattern is shown.
pub(super) fn shown(pat: &Pat) -> Span {
    let bound: Option<Ident> = syntax::bound_always(pat).into_iter().next().map(|b| b.ident);
    bound.map_or_else(|| syn::spanned::Spanned::span(pat), |ident| ident.span())
}

//! Iterators that are advanced on both sides of a boundary. A segment can neither key such an iterator nor return
//! it, so it remains in host code, which then runs the loops over it.

use syn::{
    Expr, Ident, Local, Pat, PatIdent,
    visit::{self, Visit},
};

use super::Analysis;
use crate::{
    facts::{statement::Statement, uses, values},
    parse::syntax,
};

/// Methods that advance their receiver.
const ADVANCE: [&str; 6] = ["next", "next_back", "nth", "by_ref", "peek", "next_if"];

/// Methods that return an iterator over a container.
const ITERATE: [&str; 6] = ["iter", "into_iter", "windows", "chunks", "chars", "bytes"];

/// Methods that return an iterator over the items of another one.
const ADAPT: [&str; 12] = [
    "rev",
    "skip",
    "take",
    "cloned",
    "copied",
    "step_by",
    "enumerate",
    "zip",
    "chain",
    "cycle",
    "peekable",
    "fuse",
];

impl Analysis<'_, '_> {
    /// Returns whether a `let` binds an iterator for host code; `rest` are the statements after it.
    pub(super) fn binds_host_iterator(&self, local: &Local, rest: &[Statement]) -> bool {
        let Some((pat, init)) = plain_pattern(local).zip(local.init.as_ref()) else { return false };
        let name = &pat.ident;
        if values::binds_list(local) || init.diverge.is_some() {
            return false;
        }
        let end = rest.iter().position(|s| s.binds.iter().any(|b| b.ident == *name)).unwrap_or(rest.len());
        let text = name.to_string();
        let last = rest[..end].iter().rposition(|s| s.uses.has(&text));
        let crosses = last.is_some_and(|last| rest[..=last].iter().any(|s| s.has_boundary));
        let advanced = || pat.mutability.is_some() && rest[..end].iter().any(|s| advances(s, name));
        crosses && (iterates(&init.expr) || advanced())
    }

    /// Returns whether host code may create an iterator: from host values, or as a view of a container.
    pub(super) fn is_iterator_of_host(&self, expr: &Expr) -> bool {
        self.repeatable(expr, &[]) || iterates(expr)
    }

    /// Returns whether an expression advances, or looks at, an iterator of host code.
    pub(super) fn advances_host_iterator(&self, expr: &Expr) -> bool {
        let iterator = |name: &str| self.scope.lookup(name).is_some_and(|b| b.iterator);
        uses::of_expr(expr).names().any(iterator)
    }

    /// `it` of `&mut it` if it is an iterator of host code: a loop over either has the same items.
    pub(super) fn items_of<'e>(&self, expr: &'e Expr) -> &'e Expr {
        match expr {
            Expr::Reference(r) if self.advances_host_iterator(&r.expr) => &r.expr,
            other => other,
        }
    }

    /// Returns whether an expression is a chain of methods that begins with an iterator of host code.
    pub(super) fn takes_from_host_iterator(&self, expr: &Expr) -> bool {
        match expr {
            Expr::MethodCall(m) => {
                self.takes_from_host_iterator(&m.receiver)
                    || syntax::plain_name(&m.receiver)
                        .and_then(|name| self.scope.lookup(&name.to_string()))
                        .is_some_and(|b| b.iterator)
            }
            Expr::Try(e) => self.takes_from_host_iterator(&e.expr),
            Expr::Paren(e) => self.takes_from_host_iterator(&e.expr),
            _ => false,
        }
    }
}

/// `mut it` of `let mut it = …;`.
fn plain_pattern(local: &Local) -> Option<&PatIdent> {
    let pat = match &local.pat {
        Pat::Type(typed) => &*typed.pat,
        pat => pat,
    };
    match pat {
        Pat::Ident(p) if p.by_ref.is_none() && p.subpat.is_none() => Some(p),
        _ => None,
    }
}

/// Returns whether a statement advances the variable as an iterator.
fn advances(statement: &Statement, name: &Ident) -> bool {
    struct Search<'n>(&'n Ident, bool);
    impl<'a> Visit<'a> for Search<'_> {
        fn visit_expr_method_call(&mut self, m: &'a syn::ExprMethodCall) {
            let advance = ADVANCE.iter().any(|n| m.method == n);
            self.1 |= advance && syntax::plain_name(&m.receiver) == Some(self.0);
            visit::visit_expr_method_call(self, m);
        }
        fn visit_expr_for_loop(&mut self, e: &'a syn::ExprForLoop) {
            if let Expr::Reference(r) = &*e.expr {
                self.1 |= r.mutability.is_some() && syntax::plain_name(&r.expr) == Some(self.0);
            }
            visit::visit_expr_for_loop(self, e);
        }
    }
    let mut search = Search(name, false);
    search.visit_stmt(&statement.stmt);
    search.1
}

/// Returns whether an expression only asks containers for an iterator, as `xs.iter().enumerate()` does.
fn iterates(expr: &Expr) -> bool {
    let Expr::MethodCall(m) = expr else { return false };
    let is = |names: &[&str]| names.iter().any(|n| m.method == n);
    let argument = |arg: &Expr| matches!(arg, Expr::Lit(_)) || iterates(arg) || is_place(arg);
    let iterator = is(&ITERATE) && is_place(&m.receiver) || is(&ADAPT) && iterates(&m.receiver);
    iterator && m.attrs.is_empty() && m.args.iter().all(argument)
}

/// Returns whether an expression is a variable or a field of one, or a reference to it.
fn is_place(expr: &Expr) -> bool {
    match expr {
        Expr::Reference(r) => is_place(&r.expr),
        Expr::Paren(p) => is_place(&p.expr),
        Expr::Index(_) => false,
        other => syntax::place_base(other).is_some(),
    }
}

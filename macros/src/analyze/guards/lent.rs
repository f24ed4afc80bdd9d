//! Values without a name that a reference inside of another value borrows from, as in `let pair = (&f(), 1);`: they live as long as
//! the variables of the `let`, whatever becomes of these.
//!
//! Each gets a name where it is made, `(&{ let lent = f(); lent }, 1)`, which is a value without a name as well, and is asked about
//! there. A reference that is all of a `let` is asked about by its variable instead.

use proc_macro2::Span;
use quote::format_ident;
use syn::{Expr, Ident, Local, Stmt, UnOp};

use crate::{facts::classify, model::Guard};

/// A `let` with names for the values that it borrows from, and the questions about them.
pub(super) struct Lending {
    pub(super) local: Local,
    pub(super) guards: Vec<Guard>,
}

/// Finds those values of a `let`.
pub(super) struct Finding<F> {
    at: usize,
    /// Returns the question about one under a name, if it may be a guard.
    question: F,
    guards: Vec<Guard>,
}

impl<F: Fn(Ident, &Expr) -> Option<Guard>> Finding<F> {
    pub(super) fn new(at: usize, question: F) -> Self {
        Self { at, question, guards: Vec::new() }
    }

    pub(super) fn of(mut self, local: &Local) -> Option<Lending> {
        let mut local = local.clone();
        match &mut *local.init.as_mut()?.expr {
            // By its variable.
            Expr::Reference(e) => self.inside(&mut e.expr),
            other => self.inside(other),
        }
        (!self.guards.is_empty()).then_some(Lending { local, guards: self.guards })
    }

    /// Goes through what a `let` keeps the temporaries of, by rustc's rules.
    fn inside(&mut self, expr: &mut Expr) {
        match expr {
            Expr::Paren(e) => self.inside(&mut e.expr),
            Expr::Group(e) => self.inside(&mut e.expr),
            Expr::Cast(e) => self.inside(&mut e.expr),
            Expr::Tuple(e) => e.elems.iter_mut().for_each(|e| self.inside(e)),
            Expr::Array(e) => e.elems.iter_mut().for_each(|e| self.inside(e)),
            Expr::Struct(e) => e.fields.iter_mut().for_each(|f| self.inside(&mut f.expr)),
            Expr::Call(e) if classify::is_constructor(e) => {
                e.args.iter_mut().for_each(|e| self.inside(e));
            }
            Expr::Block(e) if e.label.is_none() && e.attrs.is_empty() => self.tail(&mut e.block),
            Expr::If(e) if e.attrs.is_empty() => {
                self.tail(&mut e.then_branch);
                e.else_branch.iter_mut().for_each(|(_, other)| self.inside(other));
            }
            Expr::Match(e) if e.attrs.is_empty() => {
                e.arms.iter_mut().for_each(|arm| self.inside(&mut arm.body))
            }
            Expr::Reference(e) => self.lent(&mut e.expr),
            _ => {}
        }
    }

    fn tail(&mut self, block: &mut syn::Block) {
        if let Some(Stmt::Expr(value, None)) = block.stmts.last_mut() {
            self.inside(value);
        }
    }

    /// The operand of a reference.
    fn lent(&mut self, operand: &mut Expr) {
        self.inside(operand);
        let (value, found) = (root(operand), self.guards.len());
        let name = format_ident!("__lent{}_{found}", self.at, span = Span::mixed_site());
        let Some(guard) = (self.question)(name.clone(), value) else { return };
        self.guards.push(guard);
        *value = syn::parse_quote!({
            let #name = #value;
            #name
        });
    }
}

/// Returns the value that a place is in.
fn root(expr: &mut Expr) -> &mut Expr {
    match expr {
        Expr::Paren(syn::ExprParen { expr: inner, .. })
        | Expr::Group(syn::ExprGroup { expr: inner, .. })
        | Expr::Field(syn::ExprField { base: inner, .. })
        | Expr::Index(syn::ExprIndex { expr: inner, .. })
        | Expr::Unary(syn::ExprUnary { op: UnOp::Deref(_), expr: inner, .. }) => root(inner),
        other => other,
    }
}

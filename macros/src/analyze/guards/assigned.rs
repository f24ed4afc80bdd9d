//! Variables without a value that get one in an arm: `if c { g = f()?; } else { g = h(); }`.
//!
//! They may have none at the end of the run, so each value gets a name where it is assigned, `g = { let lent = f()?; lent }`, and is
//! asked about there.

use proc_macro2::Span;
use quote::format_ident;
use syn::{
    Expr, Ident, Stmt,
    visit_mut::{self, VisitMut},
};

use crate::{model::Guard, parse::syntax};

/// Gives names to the values that a statement assigns to some variables, and returns the questions about them.
pub(super) fn asked<F>(stmt: &mut Stmt, at: usize, variables: &[String], question: F) -> Vec<Guard>
where
    F: Fn(Ident, &Ident, &Expr) -> Option<Guard>,
{
    let mut inside = Assigned { at, variables, question, guards: Vec::new() };
    inside.visit_stmt_mut(stmt);
    inside.guards
}

struct Assigned<'v, F> {
    at: usize,
    variables: &'v [String],
    /// Returns the question about a value under a name, and the variable that gets it, if it may be a guard.
    question: F,
    guards: Vec<Guard>,
}

impl<F: Fn(Ident, &Ident, &Expr) -> Option<Guard>> VisitMut for Assigned<'_, F> {
    fn visit_expr_assign_mut(&mut self, e: &mut syn::ExprAssign) {
        visit_mut::visit_expr_assign_mut(self, e);
        let Some(variable) =
            syntax::plain_name(&e.left).filter(|name| self.variables.contains(&name.to_string()))
        else {
            return;
        };
        let name = format_ident!("__given{}_{}", self.at, self.guards.len(), span = Span::mixed_site());
        let Some(guard) = (self.question)(name.clone(), variable, &e.right) else { return };
        self.guards.push(guard);
        let value = &e.right;
        *e.right = syn::parse_quote!({
            let #name = #value;
            #name
        });
    }

    fn visit_expr_closure_mut(&mut self, _: &mut syn::ExprClosure) {}
}

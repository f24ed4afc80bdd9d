//! Variables without a value that get one in an arm: `if c { g = f()?; } else { g = h(); }`.
//!
//! They may have none at the end of the run, so each value gets a name where it is assigned, `g = { let lent = f()?; lent }`, and is
//! asked about there.

use proc_macro2::Span;
use quote::format_ident;
use syn::{
    Expr, Ident, Stmt,
    visit::{self, Visit},
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

/// Returns those of some variables to which a statement assigns a value that may be a guard, with the places of the assignments.
pub(super) fn variables(stmt: &Stmt, among: &[String], may_hold: impl Fn(&Expr) -> bool) -> Vec<Ident> {
    struct Found<'v, F> {
        among: &'v [String],
        may_hold: F,
        found: Vec<Ident>,
    }
    impl<'a, F: Fn(&Expr) -> bool> Visit<'a> for Found<'_, F> {
        fn visit_expr_assign(&mut self, e: &'a syn::ExprAssign) {
            visit::visit_expr_assign(self, e);
            let values = values(&e.left, Some(&e.right)).into_iter();
            let holds = values.filter(|(name, value)| {
                self.among.contains(&name.to_string()) && (self.may_hold)(value.unwrap_or(&e.right))
            });
            self.found.extend(holds.map(|(name, _)| name.clone()));
        }

        fn visit_expr_closure(&mut self, _: &'a syn::ExprClosure) {}
    }
    let mut found = Found { among, may_hold, found: Vec::new() };
    found.visit_stmt(stmt);
    found.found
}

/// Returns the variables that an assignment changes as a whole, `a` and `b` of `(a, _, b) = …`, and the value that each gets, if it
/// stands there as one.
pub(super) fn values<'e>(left: &'e Expr, value: Option<&'e Expr>) -> Vec<(&'e Ident, Option<&'e Expr>)> {
    let of_part = |part: &'e Expr| values(part, None);
    match (syntax::bare(left), value.map(syntax::bare)) {
        (Expr::Tuple(e), Some(Expr::Tuple(v))) if e.elems.len() == v.elems.len() => {
            e.elems.iter().zip(&v.elems).flat_map(|(part, value)| values(part, Some(value))).collect()
        }
        (Expr::Tuple(e), _) => e.elems.iter().flat_map(of_part).collect(),
        (Expr::Array(e), _) => e.elems.iter().flat_map(of_part).collect(),
        (Expr::Call(e), _) => e.args.iter().flat_map(of_part).collect(),
        (Expr::Struct(e), _) => e.fields.iter().flat_map(|field| of_part(&field.expr)).collect(),
        (left, _) => syntax::plain_name(left).map(|name| (name, value)).into_iter().collect(),
    }
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

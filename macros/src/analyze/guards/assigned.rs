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

use super::{
    asking::{Asking, Origin, hands_on},
    literals,
};
use crate::{
    facts::uses,
    model::{Asked, Guard},
    parse::syntax,
};

impl Asking<'_> {
    /// Variables that get their value in an arm. Only the type of the value itself is asked about, where it is made. Those that the
    /// run moves are asked about where they go.
    pub(super) fn assigned_inside(&mut self, at: usize, names: &[String]) {
        let moved = |name: &&String| {
            let moves = self.run[at].uses.get(name).is_some_and(|u| u.by_value);
            moves || (at + 1..self.run.len()).any(|i| self.moves_all(i, name))
        };
        let (moved, held): (Vec<String>, Vec<String>) = names.iter().cloned().partition(|name| moved(&name));
        let mut stmt = self.run[at].stmt.clone();
        let may_hold = |value: &Expr| literals::is_call(value) || self.is_literal(at, value);
        let passed_on = variables(&stmt, &moved, may_hold);
        let asked = asked(&mut stmt, at, &held, |ident, variable, value| {
            let guard = Guard { ident, shown: variable.span(), asked: Asked::Itself, inside: Vec::new() };
            may_hold(value).then_some(guard)
        });
        if !asked.is_empty() {
            self.found.lending.push((at, stmt));
            self.found.lent.extend(asked);
        }
        self.given_inside(at, &moved);
        for variable in passed_on {
            let guard = Guard { asked: Asked::Itself, ..Guard::whole(variable) };
            self.known.insert(guard.ident.to_string(), vec![Origin { at, guard }]);
        }
    }

    /// Returns whether a statement moves what may hold a guard into a variable that had a value, and that no later code uses.
    pub(super) fn is_given(&self, at: usize, variable: &Ident) -> bool {
        !self.leaves(variable) && self.given(at).next().is_some()
    }

    /// What a statement moves into variables that it assigns inside of a block or an arm, and that no later code but the run's uses: it
    /// ends with these, or where the run moves them.
    fn given_inside(&mut self, at: usize, moved: &[String]) {
        for (variable, names) in given(&self.run[at].stmt) {
            let name = variable.to_string();
            let is_outer = self.run[at].uses.get(&name).is_some_and(|u| u.assigned);
            let mut given: Vec<Origin> =
                names.iter().filter_map(|name| self.known.get(name)).flatten().cloned().collect();
            if !is_outer || given.is_empty() || self.leaves(&variable) {
                continue;
            }
            if moved.contains(&name) {
                let guard = Guard { asked: Asked::Itself, ..Guard::whole(variable) };
                given.push(Origin { at, guard });
                self.known.insert(name, given);
            } else {
                self.parts(given);
            }
        }
    }
}

/// Gives names to the values that a statement assigns to some variables, and returns the questions about them.
fn asked<F>(stmt: &mut Stmt, at: usize, variables: &[String], question: F) -> Vec<Guard>
where
    F: Fn(Ident, &Ident, &Expr) -> Option<Guard>,
{
    let mut inside = Assigned { at, variables, question, guards: Vec::new() };
    inside.visit_stmt_mut(stmt);
    inside.guards
}

/// Returns those of some variables to which a statement assigns a value that may be a guard, with the places of the assignments.
fn variables(stmt: &Stmt, among: &[String], may_hold: impl Fn(&Expr) -> bool) -> Vec<Ident> {
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

/// Returns the variables that a statement assigns inside of a block or an arm, and the names of those that each assignment moves.
fn given(stmt: &Stmt) -> Vec<(Ident, Vec<String>)> {
    struct Found(Vec<(Ident, Vec<String>)>);
    impl<'a> Visit<'a> for Found {
        fn visit_expr_assign(&mut self, e: &'a syn::ExprAssign) {
            visit::visit_expr_assign(self, e);
            for (name, value) in values(&e.left, Some(&e.right)) {
                let uses = uses::of_given(value.unwrap_or(&e.right));
                let moves = uses.0.iter().filter(|(_, u)| hands_on(u)).map(|(name, _)| name.clone());
                self.0.push((name.clone(), moves.collect()));
            }
        }

        fn visit_expr_closure(&mut self, _: &'a syn::ExprClosure) {}
    }
    let mut found = Found(Vec::new());
    found.visit_stmt(stmt);
    found.0
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

impl<F: Fn(Ident, &Ident, &Expr) -> Option<Guard>> Assigned<'_, F> {
    /// Gives a name to a value that a place gets, or to the parts of it that stand there as such.
    fn give(&mut self, left: &Expr, value: &mut Expr) {
        let left = syntax::bare(left);
        if let (Expr::Tuple(left), Expr::Tuple(value)) = (left, &mut *value)
            && left.elems.len() == value.elems.len()
        {
            left.elems.iter().zip(&mut value.elems).for_each(|(left, value)| self.give(left, value));
            return;
        }
        let Some(variable) =
            syntax::plain_name(left).filter(|name| self.variables.contains(&name.to_string()))
        else {
            return;
        };
        let name = format_ident!("__given{}_{}", self.at, self.guards.len(), span = Span::mixed_site());
        let Some(guard) = (self.question)(name.clone(), variable, value) else { return };
        self.guards.push(guard);
        *value = syn::parse_quote!({
            let #name = #value;
            #name
        });
    }
}

impl<F: Fn(Ident, &Ident, &Expr) -> Option<Guard>> VisitMut for Assigned<'_, F> {
    fn visit_expr_assign_mut(&mut self, e: &mut syn::ExprAssign) {
        visit_mut::visit_expr_assign_mut(self, e);
        self.give(&e.left, &mut e.right);
    }

    fn visit_expr_closure_mut(&mut self, _: &mut syn::ExprClosure) {}
}

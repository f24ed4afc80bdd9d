//! Closures that arms of `#[device]` control flow call: each arm that does makes its own.
//!
//! The runtime calls arms as closures (`expand/device_flow.rs`), for which the lifetimes in the types of outer variables are
//! fixed. If the parameters of an outer closure have no written type, `g` of `let g = |v| ops::neg(v);` would refuse a
//! reference to a variable of the arm.

use quote::ToTokens;
use syn::{
    Block, Expr, ExprClosure, Local, Pat, Stmt,
    visit_mut::{self, VisitMut},
};

use super::uses;
use crate::parse::{device, syntax};

/// Moves or copies such closures of a body with `#[device]` control flow into arms. `keep` are those that stay where they are.
pub(crate) fn given_to_arms(block: &mut Block, keep: impl Fn(&Expr) -> bool) {
    Blocks(&keep).visit_block_mut(block);
}

struct Blocks<'k>(&'k dyn Fn(&Expr) -> bool);

impl VisitMut for Blocks<'_> {
    fn visit_block_mut(&mut self, block: &mut Block) {
        // From behind: an arm that is given a closure uses those that it calls.
        for at in (0..block.stmts.len()).rev() {
            let mut rest = Block { brace_token: block.brace_token, stmts: block.stmts.split_off(at + 1) };
            let closure = match &block.stmts[at] {
                Stmt::Local(local) => movable(local, &rest.stmts).filter(|e| !(self.0)(e)).map(|_| local),
                _ => None,
            };
            let unused = closure.is_some_and(|closure| {
                let (direct, in_arms) = (uses_directly(&rest, closure), Given(closure).to(&mut rest));
                in_arms && !direct
            });
            if unused {
                // Nothing else would determine the types of its parameters.
                block.stmts.pop();
            }
            block.stmts.append(&mut rest.stmts);
        }
        visit_mut::visit_block_mut(self, block);
    }

    fn visit_item_mut(&mut self, _: &mut syn::Item) {}
}

/// Returns the closure of a `let` that means the same wherever the statements after it make it: nothing there takes a name
/// that it uses.
fn movable<'l>(local: &'l Local, rest: &[Stmt]) -> Option<&'l Expr> {
    let init = local.init.as_ref().filter(|i| i.diverge.is_none() && local.attrs.is_empty())?;
    let (Expr::Closure(closure), Pat::Ident(name)) = (&*init.expr, &local.pat) else { return None };
    let plain = name.by_ref.is_none() && name.mutability.is_none() && name.subpat.is_none();
    if !plain || !is_inferred(closure) || !rest.iter().any(device::is_anywhere_in) {
        return None;
    }
    let (taken, items) = (syntax::bound_anywhere(rest), syntax::items_inside(rest)?);
    let named = uses::of_expr(&init.expr);
    // Also functions, modules, types and macros, which are no variables.
    let mentioned = syntax::identifiers(init.expr.to_token_stream());
    let is_taken = |name: &str| taken.contains(name) || items.contains(name);
    (!is_taken(&name.ident.to_string())
        && !named.names().any(is_taken)
        && !mentioned.iter().any(|name| items.contains(name)))
    .then_some(&init.expr)
}

/// Returns whether rustc finds out the types of a closure's parameters, and whether it takes nothing.
fn is_inferred(closure: &ExprClosure) -> bool {
    closure.capture.is_none()
        && closure.asyncness.is_none()
        && closure.inputs.iter().any(|input| !matches!(input, Pat::Type(_)))
}

/// Returns whether code names the closure outside the arms in it.
fn uses_directly(block: &Block, closure: &Local) -> bool {
    let mut outside = block.clone();
    Arms(&mut |arm: &mut Block| arm.stmts.clear()).visit_block_mut(&mut outside);
    let names = syntax::bound_by_let(closure);
    outside.stmts.iter().any(|stmt| {
        let uses = uses::of_stmt(stmt);
        names.iter().any(|b| uses.has(&b.ident.to_string()))
    })
}

/// Gives a closure to the arms that use it.
struct Given<'l>(&'l Local);

impl Given<'_> {
    /// Returns whether there are any.
    fn to(&self, code: &mut Block) -> bool {
        let mut found = false;
        Arms(&mut |arm: &mut Block| {
            let direct = uses_directly(arm, self.0);
            found |= self.to(arm) || direct;
            if direct {
                arm.stmts.insert(0, Stmt::Local(self.0.clone()));
            }
        })
        .visit_block_mut(code);
        found
    }
}

/// Visits the bodies of the outermost control flow of the device.
struct Arms<'f>(&'f mut dyn FnMut(&mut Block));

impl VisitMut for Arms<'_> {
    fn visit_expr_mut(&mut self, expr: &mut Expr) {
        if !device::is_flow(expr) {
            return visit_mut::visit_expr_mut(self, expr);
        }
        match expr {
            Expr::If(e) => {
                self.visit_expr_mut(&mut e.cond);
                (self.0)(&mut e.then_branch);
                match e.else_branch.as_mut().map(|(_, other)| &mut **other) {
                    Some(Expr::Block(other)) => (self.0)(&mut other.block),
                    // `else if`, which is in an arm of its own.
                    Some(other) => self.arm(other),
                    None => {}
                }
            }
            Expr::While(e) => {
                self.visit_expr_mut(&mut e.cond);
                (self.0)(&mut e.body);
            }
            Expr::Match(e) => {
                self.visit_expr_mut(&mut e.expr);
                e.arms.iter_mut().for_each(|arm| self.arm(&mut arm.body));
            }
            _ => {}
        }
    }

    fn visit_item_mut(&mut self, _: &mut syn::Item) {}
}

impl Arms<'_> {
    /// Visits an arm that need not be a block.
    fn arm(&mut self, body: &mut Expr) {
        if let Expr::Block(e) = body
            && e.attrs.is_empty()
            && e.label.is_none()
        {
            return (self.0)(&mut e.block);
        }
        let value = std::mem::replace(body, Expr::PLACEHOLDER);
        let mut block: Block = syn::parse_quote!({});
        block.stmts.push(Stmt::Expr(value, None));
        (self.0)(&mut block);
        *body = match block.stmts.pop() {
            Some(Stmt::Expr(value, None)) if block.stmts.is_empty() => value,
            last => {
                block.stmts.extend(last);
                Expr::Block(syn::ExprBlock { attrs: Vec::new(), label: None, block })
            }
        };
    }
}

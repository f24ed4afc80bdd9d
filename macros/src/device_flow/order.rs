//! Expressions around control flow of the device that are evaluated after it.
//!
//! `f(&(#[device] if …), &y)` reads `y` when the arms are done, so a value that they assign to it leaves them.

use std::collections::BTreeSet;

use syn::{Arm, BinOp, Block, Expr, ExprClosure, ExprMatch, Local, Pat, visit_mut, visit_mut::VisitMut};

use super::{Flows, Later, nameable};
use crate::{
    facts::uses,
    parse::{device, syntax},
};

/// Names of variables.
type Names = BTreeSet<String>;

impl Flows {
    /// Visits the parts of an expression that is not itself control flow of the device.
    pub(super) fn visit_parts(&mut self, expr: &mut Expr) {
        match expr {
            Expr::Closure(c) => self.visit_closure(c),
            Expr::ForLoop(e) => {
                let pat = (*e.pat).clone();
                let mut round = of_block(&e.body);
                syntax::bound_always(&pat).iter().for_each(|b| _ = round.remove(&b.ident.to_string()));
                self.before(&round, |s| s.visit_expr_mut(&mut e.expr));
                self.scoped(&[&pat], |s| {
                    s.note_exclusive(&pat, &e.expr);
                    s.before(&round, |s| s.visit_block_mut(&mut e.body));
                });
            }
            Expr::Loop(e) => {
                let round = of_block(&e.body);
                self.before(&round, |s| s.visit_block_mut(&mut e.body));
            }
            Expr::While(e) => {
                let round = of_expr(&Expr::While(e.clone()));
                let depth = self.names.len();
                self.condition(&mut e.cond, &round);
                self.before(&round, |s| s.visit_block_mut(&mut e.body));
                self.names.truncate(depth);
            }
            Expr::If(e) => {
                let depth = self.names.len();
                let mut branches = Names::new();
                if device::is_anywhere_in_expr(&e.cond) {
                    branches = of_block(&e.then_branch);
                    bound_by_condition(&e.cond)
                        .iter()
                        .for_each(|b| _ = branches.remove(&b.ident.to_string()));
                    branches.extend(e.else_branch.iter().flat_map(|(_, other)| of_expr(other)));
                }
                self.condition(&mut e.cond, &branches);
                self.visit_block_mut(&mut e.then_branch);
                self.names.truncate(depth);
                if let Some((_, other)) = &mut e.else_branch {
                    self.visit_expr_mut(other);
                }
            }
            Expr::Match(e) => self.visit_match(e),
            Expr::Let(e) => {
                self.visit_expr_mut(&mut e.expr);
                self.bind_around(self.condition, &syntax::bound(&e.pat), false);
                self.note_exclusive(&e.pat, &e.expr);
            }
            other => self.visit_operands(other),
        }
    }

    fn visit_closure(&mut self, c: &mut ExprClosure) {
        let ret = match &c.output {
            syn::ReturnType::Type(_, ty) => nameable(ty),
            syn::ReturnType::Default => None,
        };
        let outside = std::mem::replace(&mut self.ret, ret);
        let inputs: Vec<Pat> = c.inputs.iter().cloned().collect();
        let inputs: Vec<&Pat> = inputs.iter().collect();
        self.before_all(Later::of_closure(), |s| s.scoped(&inputs, |s| s.visit_expr_mut(&mut c.body)));
        self.ret = outside;
    }

    /// Visits the parts of an expression without scopes of its own, in the order of their evaluation.
    fn visit_operands(&mut self, expr: &mut Expr) {
        match expr {
            Expr::Assign(e) => {
                let place = assigned(&e.left);
                self.before(&place, |s| s.visit_expr_mut(&mut e.right));
                self.visit_expr_mut(&mut e.left);
            }
            Expr::Binary(e) if syntax::is_assign(&e.op) => {
                // Which side comes first depends on the types.
                let (place, value) = (of_expr(&e.left), of_expr(&e.right));
                self.before(&value, |s| s.visit_expr_mut(&mut e.left));
                self.before(&place, |s| s.visit_expr_mut(&mut e.right));
            }
            Expr::Binary(e) => self.operands([&mut *e.left, &mut *e.right]),
            Expr::Array(e) => self.operands(&mut e.elems),
            Expr::Tuple(e) => self.operands(&mut e.elems),
            Expr::Call(e) => self.operands(std::iter::once(&mut *e.func).chain(&mut e.args)),
            Expr::MethodCall(e) => self.operands(std::iter::once(&mut *e.receiver).chain(&mut e.args)),
            Expr::Index(e) => self.operands([&mut *e.expr, &mut *e.index]),
            Expr::Range(e) => self.operands(e.start.as_deref_mut().into_iter().chain(e.end.as_deref_mut())),
            Expr::Struct(e) => {
                self.operands(e.fields.iter_mut().map(|f| &mut f.expr).chain(e.rest.as_deref_mut()));
            }
            other => visit_mut::visit_expr_mut(self, other),
        }
    }

    /// Visits the value of a `let`, which is evaluated before its `else`.
    pub(super) fn visit_let(&mut self, local: &mut Local) {
        let Some(init) = &mut local.init else { return };
        let diverge = init.diverge.as_mut().map(|(_, diverge)| &mut **diverge);
        self.operands(std::iter::once(&mut *init.expr).chain(diverge));
    }

    /// Visits a part of an expression that code with the names `later` follows.
    pub(super) fn before<R>(&mut self, later: &Names, f: impl FnOnce(&mut Self) -> R) -> R {
        self.before_all(Later::of(later.clone()), f)
    }

    pub(super) fn before_all<R>(&mut self, later: Later, f: impl FnOnce(&mut Self) -> R) -> R {
        self.later.push(later);
        let result = f(self);
        self.later.pop();
        result
    }

    /// Visits a condition, whose `let`s are in scope in what follows it.
    fn condition(&mut self, cond: &mut Expr, later: &Names) {
        let around = std::mem::replace(&mut self.condition, self.later.len());
        self.before(later, |s| s.visit_expr_mut(cond));
        self.condition = around;
    }

    fn visit_match(&mut self, e: &mut ExprMatch) {
        let guards = || e.arms.iter().filter_map(|arm| arm.guard.as_ref());
        let mut arms = Names::new();
        if device::is_anywhere_in_expr(&e.expr)
            || guards().any(|(_, guard)| device::is_anywhere_in_expr(guard))
        {
            let all = ExprMatch { attrs: Vec::new(), expr: Box::new(syn::parse_quote!(())), ..e.clone() };
            arms = of_expr(&Expr::Match(all));
        }
        self.before(&arms, |s| s.visit_expr_mut(&mut e.expr));
        for Arm { pat, guard, body, .. } in &mut e.arms {
            self.scoped(&[pat], |s| {
                s.note_exclusive(pat, &e.expr);
                if let Some((_, guard)) = guard {
                    s.condition(guard, &arms);
                }
                s.visit_expr_mut(body);
            });
        }
    }

    /// Visits operands in the order of their evaluation.
    fn operands<'e>(&mut self, operands: impl IntoIterator<Item = &'e mut Expr>) {
        let mut operands: Vec<&mut Expr> = operands.into_iter().collect();
        for at in 0..operands.len() {
            let (done, rest) = operands.split_at_mut(at + 1);
            let mut later = Names::new();
            if device::is_anywhere_in_expr(done[at]) {
                later = rest.iter().flat_map(|expr| of_expr(expr)).collect();
            }
            self.before(&later, |s| s.visit_expr_mut(done[at]));
        }
    }
}

/// Returns the outer names of an expression of which the value from before may matter.
pub(super) fn of_expr(expr: &Expr) -> Names {
    uses::of_expr(expr).needed().map(str::to_owned).collect()
}

/// The same of a block; what its statements replace first is not needed.
pub(super) fn of_block(block: &Block) -> Names {
    let mut later = Later::default();
    block.stmts.iter().for_each(|stmt| later.stmt(stmt));
    later.names
}

/// Returns what the `let`s of a condition bind.
fn bound_by_condition(cond: &Expr) -> Vec<syntax::Bound> {
    match cond {
        Expr::Let(e) => syntax::bound(&e.pat),
        Expr::Binary(e) if matches!(e.op, BinOp::And(_)) => {
            let mut bound = bound_by_condition(&e.left);
            bound.extend(bound_by_condition(&e.right));
            bound
        }
        _ => Vec::new(),
    }
}

/// Returns the names that the place on the left of an assignment reads; a variable that is assigned as a whole is not read.
fn assigned(left: &Expr) -> Names {
    let uses = uses::of_assigned(left);
    let read = uses.0.iter().filter(|(_, u)| u.whole || !u.fields.is_empty());
    read.map(|(name, _)| name.clone()).collect()
}

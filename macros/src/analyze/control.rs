//! Control flow that host code decides, since it contains a boundary or a jump out of itself, and values in
//! host code.

use std::collections::HashSet;

use syn::{Expr, Stmt};

use super::{Analysis, Tail, Target, ends};
use crate::{
    facts::{classify, jumps, macros, statement::Statement, uses},
    model::{Arm, Block, Control, ControlKind, Otherwise, Part, Value, Wrapper},
    parse::{attributes, device, syntax},
};

impl Analysis<'_, '_> {
    /// An expression in value position that may make device calls: those become a segment.
    pub(super) fn tail_expr(&mut self, expr: &Expr, tail: Tail, after: &HashSet<usize>) -> Value {
        let jumps = matches!(expr, Expr::Return(_) | Expr::Break(_) | Expr::Continue(_));
        if jumps || self.is_split(expr) || classify::call_free(expr) {
            return self.host_value(expr, tail, after);
        }
        let value = Statement::of_value(expr);
        // Nothing follows that could need a borrow again.
        let (parts, _) = if tail == Tail::Unit {
            let statement = value.with(Stmt::Expr(expr.clone(), Some(syn::Token![;](ends(expr).1))));
            self.segment(std::slice::from_ref(&statement), None, &[], after)
        } else {
            self.segment(&[], Some((&value, tail)), &[], after)
        };
        Value::Block(Block { parts })
    }

    /// Returns whether a value of eager code, or an iterator of host code, decides which part of the expression
    /// runs, in which case host code does.
    pub(super) fn steered(&self, expr: &Expr) -> bool {
        let decides = |e: &Expr| self.is_eager_derived(&uses::of_expr(e)) || self.advances_host_iterator(e);
        match expr {
            // The device decides.
            e if device::is_flow(e) => false,
            Expr::If(e) => decides(&e.cond) || e.else_branch.as_ref().is_some_and(|(_, e)| self.steered(e)),
            Expr::Match(e) => {
                decides(&e.expr) || e.arms.iter().any(|a| a.guard.as_ref().is_some_and(|(_, g)| decides(g)))
            }
            Expr::While(e) => decides(&e.cond),
            Expr::ForLoop(e) => decides(&e.expr),
            Expr::Try(e) => self.steered(&e.expr),
            Expr::Paren(e) => self.steered(&e.expr),
            _ => false,
        }
    }

    /// Returns whether the expression is split by host code rather than left to a segment.
    pub(super) fn is_split(&self, expr: &Expr) -> bool {
        classify::expr_has_boundary(expr) || jumps::expr_leaves(expr) || self.steered(expr)
    }

    /// An expression that host code evaluates itself.
    pub(super) fn host_value(&mut self, expr: &Expr, tail: Tail, after: &HashSet<usize>) -> Value {
        if attributes::boundary(expr).is_some() {
            return self.host_expr(expr);
        }
        let split = self.is_split(expr);
        if split && let Some(control) = self.control(expr, tail, after) {
            return Value::Control(Box::new(control));
        }
        if matches!(expr, Expr::Return(_) | Expr::Break(_) | Expr::Continue(_)) {
            return self.jump(expr, after);
        }
        let wrapped = if split { self.wrapped(expr, tail, after) } else { None };
        match wrapped {
            Some((value, by)) => {
                Value::Wrapped { attrs: attributes::of(expr).to_vec(), value: Box::new(value), by }
            }
            None => self.host_expr(expr),
        }
    }

    /// Handles an expression inside `?`, parentheses and similar wrappers.
    fn wrapped(&mut self, expr: &Expr, tail: Tail, after: &HashSet<usize>) -> Option<(Value, Wrapper)> {
        Some(match expr {
            // `if … { … } else { … }?`: the branches return results, like the function.
            Expr::Try(e) if has_branches(&e.expr) => {
                // Each branch with its own `?`: their errors may be of several types.
                let branches = with_question_mark(&e.expr, e.question_token);
                let by = if tail == Tail::Unit { Wrapper::Discard } else { Wrapper::Parentheses };
                (self.host_value(&branches, Tail::Value, after), by)
            }
            Expr::Try(e) => (self.host_value(&e.expr, Tail::Tried, after), Wrapper::Try),
            Expr::Paren(e) => (self.host_value(&e.expr, tail, after), Wrapper::Parentheses),
            Expr::Cast(e) => (self.host_value(&e.expr, Tail::Value, after), Wrapper::Cast(e.ty.clone())),
            Expr::Unary(e) => (self.host_value(&e.expr, Tail::Value, after), Wrapper::Unary(e.op)),
            _ => return None,
        })
    }

    /// Builds control flow that remains in host code; `None` for other expressions.
    fn control(&mut self, expr: &Expr, tail: Tail, after: &HashSet<usize>) -> Option<Control> {
        let kind = match expr {
            Expr::If(e) => self.branches(e, tail, after),
            Expr::Match(e) => self.arms(e, tail, after),
            Expr::ForLoop(e) => {
                let iterated = self.host_expr(&e.expr);
                let live = self.around_loop(expr, after);
                let body = self.scoped(|a| {
                    a.bind_from(&syntax::bound_always(&e.pat), &e.pat, a.items_of(&e.expr));
                    a.loop_body(e.label.as_ref(), Tail::Unit, &e.body, &live)
                });
                ControlKind::For { label: e.label.clone(), pat: (*e.pat).clone(), iterated, body }
            }
            Expr::While(e) => {
                let live = self.around_loop(expr, after);
                let (condition, body) = self.scoped(|a| {
                    let condition = a.host_expr(&e.cond);
                    a.bind_conditions(&e.cond);
                    (condition, a.loop_body(e.label.as_ref(), Tail::Unit, &e.body, &live))
                });
                ControlKind::While { label: e.label.clone(), condition, body }
            }
            Expr::Loop(e) => {
                let live = self.around_loop(expr, after);
                let body = self.loop_body(e.label.as_ref(), tail, &e.body, &live);
                ControlKind::Loop { label: e.label.clone(), body }
            }
            Expr::Block(e) => {
                let stmts = &e.block.stmts;
                let body = self.within(e.label.as_ref(), false, tail, |a| a.block(stmts, tail, after));
                ControlKind::Block { label: e.label.clone(), body }
            }
            Expr::Unsafe(e) => ControlKind::Unsafe { body: self.block(&e.block.stmts, tail, after) },
            _ => return None,
        };
        Some(Control { attrs: attributes::of(expr).to_vec(), kind })
    }

    fn branches(&mut self, e: &syn::ExprIf, tail: Tail, after: &HashSet<usize>) -> ControlKind {
        // Assignments in one branch do not count in the other.
        let before = self.scope.assigned.clone();
        let (condition, then) = self.scoped(|a| {
            let condition = a.host_expr(&e.cond);
            a.bind_conditions(&e.cond);
            let tail = if e.else_branch.is_none() { Tail::Unit } else { tail };
            (condition, a.in_arm(|a| a.block(&e.then_branch.stmts, tail, after)))
        });
        let after_then = std::mem::replace(&mut self.scope.assigned, before);
        let otherwise = e.else_branch.as_ref().map(|(_, other)| match &**other {
            Expr::If(e) => {
                let kind = self.in_arm(|a| a.branches(e, tail, after));
                Otherwise::If(Box::new(Control { attrs: e.attrs.clone(), kind }))
            }
            other => Otherwise::Block(match plain_block(other) {
                Some(block) => self.in_arm(|a| a.block(&block.stmts, tail, after)),
                None => {
                    let value = self.in_arm(|a| a.tail_expr(other, tail, after));
                    Block { parts: vec![Part::Value(value)] }
                }
            }),
        });
        self.scope.assigned.extend(after_then);
        ControlKind::If { condition, then, otherwise }
    }

    fn arms(&mut self, e: &syn::ExprMatch, tail: Tail, after: &HashSet<usize>) -> ControlKind {
        let scrutinee = self.host_expr(&e.expr);
        let (before, mut assigned) = (self.scope.assigned.clone(), HashSet::new());
        let mut arms = Vec::new();
        for arm in &e.arms {
            assigned.extend(std::mem::replace(&mut self.scope.assigned, before.clone()));
            arms.push(self.scoped(|a| {
                a.bind_from(&syntax::bound(&arm.pat), &arm.pat, &e.expr);
                let guard = arm.guard.as_ref().map(|(_, guard)| a.host_expr(guard));
                let body = match plain_block(&arm.body) {
                    Some(block) => Value::Block(a.in_arm(|a| a.block(&block.stmts, tail, after))),
                    None => a.in_arm(|a| a.tail_expr(&arm.body, tail, after)),
                };
                Arm { attrs: arm.attrs.clone(), pat: arm.pat.clone(), guard, body }
            }));
        }
        self.scope.assigned.extend(assigned);
        ControlKind::Match { scrutinee, arms }
    }

    fn loop_body(
        &mut self,
        label: Option<&syn::Label>,
        tail: Tail,
        body: &syn::Block,
        live: &HashSet<usize>,
    ) -> Block {
        self.within(label, true, tail, |a| a.in_arm(|a| a.block(&body.stmts, Tail::Unit, live)))
    }

    /// Runs inside a loop or a labelled block whose value is `tail`.
    fn within<R>(
        &mut self,
        label: Option<&syn::Label>,
        is_loop: bool,
        tail: Tail,
        f: impl FnOnce(&mut Self) -> R,
    ) -> R {
        let label = label.map(|l| l.name.ident.to_string());
        self.breaks.push(Target { label, is_loop, tail });
        let result = f(self);
        self.breaks.pop();
        result
    }

    /// Returns the role of a `break`'s value.
    pub(super) fn break_tail(&self, label: Option<&syn::Lifetime>) -> Tail {
        let label = label.map(|l| l.ident.to_string());
        let target = self.breaks.iter().rev().find(|t| match &label {
            Some(_) => t.label == label,
            None => t.is_loop,
        });
        match target {
            Some(Target { tail: tail @ (Tail::Function | Tail::Tried), .. }) => *tail,
            _ => Tail::Value,
        }
    }

    /// Binds the patterns of `let` conditions.
    fn bind_conditions(&mut self, cond: &Expr) {
        match cond {
            Expr::Let(l) => {
                self.bind_from(&syntax::bound(&l.pat), &l.pat, &l.expr);
            }
            Expr::Binary(b) => {
                self.bind_conditions(&b.left);
                self.bind_conditions(&b.right);
            }
            Expr::Paren(p) => self.bind_conditions(&p.expr),
            _ => {}
        }
    }
}

/// A block that a branch can be split as: without a label or attributes.
fn plain_block(expr: &Expr) -> Option<&syn::Block> {
    match expr {
        Expr::Block(b) if b.attrs.is_empty() && b.label.is_none() => Some(&b.block),
        _ => None,
    }
}

/// Returns whether an expression is `if` or `match` whose branches end in values, or a block around one.
fn has_branches(expr: &Expr) -> bool {
    if !attributes::of(expr).is_empty() {
        return false;
    }
    match expr {
        Expr::If(e) => e.else_branch.is_some(),
        Expr::Match(_) => true,
        Expr::Paren(e) => has_branches(&e.expr),
        Expr::Block(e) => e.label.is_none(),
        _ => false,
    }
}

/// Returns the expression with `?` after the values of its branches, instead of one after the whole
/// expression.
fn with_question_mark(expr: &Expr, mark: syn::Token![?]) -> Expr {
    let mut expr = expr.clone();
    if has_branches(&expr) {
        match &mut expr {
            Expr::If(e) => {
                end_in_question_mark(&mut e.then_branch, mark);
                if let Some((_, other)) = &mut e.else_branch {
                    **other = with_question_mark(other, mark);
                }
            }
            Expr::Match(e) => {
                e.arms.iter_mut().for_each(|arm| {
                    *arm.body = with_question_mark(&arm.body, mark);
                    arm.comma.get_or_insert_default();
                });
            }
            Expr::Paren(e) => *e.expr = with_question_mark(&e.expr, mark),
            Expr::Block(e) => end_in_question_mark(&mut e.block, mark),
            _ => {}
        }
        return expr;
    }
    let never = match &expr {
        Expr::Return(_) | Expr::Break(_) | Expr::Continue(_) => true,
        Expr::Macro(m) => macros::never_returns(&m.mac),
        _ => false,
    };
    if never {
        return expr;
    }
    // `#[eager] f(x)` is `#[eager] f(x)?`.
    let own = attributes::take(&mut expr);
    let expr = match expr {
        Expr::Path(_) | Expr::Call(_) | Expr::MethodCall(_) | Expr::Field(_) | Expr::Macro(_) => expr,
        other => syn::parse_quote!((#other)),
    };
    Expr::Try(syn::ExprTry { attrs: own, expr: Box::new(expr), question_token: mark })
}

fn end_in_question_mark(block: &mut syn::Block, mark: syn::Token![?]) {
    match block.stmts.last_mut() {
        Some(Stmt::Expr(e, None)) => *e = with_question_mark(e, mark),
        Some(last) => {
            if let Stmt::Macro(m) = last
                && m.semi_token.is_none()
            {
                let value = Expr::Macro(syn::ExprMacro { attrs: m.attrs.clone(), mac: m.mac.clone() });
                *last = Stmt::Expr(with_question_mark(&value, mark), None);
            }
        }
        None => {}
    }
}

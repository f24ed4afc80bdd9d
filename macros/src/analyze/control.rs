//! Expressions that the driver evaluates itself: control flow that holds a boundary or a jump out of it.

use std::collections::HashSet;

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Expr, Stmt};

use super::{Tail, Target, Transform, classify, ends, uses};
use crate::parse::attributes;

impl Transform<'_, '_> {
    /// An expression in value position that may make device calls: those become a segment.
    pub(super) fn tail_expr(&mut self, expr: &Expr, tail: Tail, after: &HashSet<usize>) -> TokenStream {
        let jumps = matches!(expr, Expr::Return(_) | Expr::Break(_) | Expr::Continue(_));
        if jumps || self.is_split(expr) || classify::call_free(expr) {
            return self.tail_in_driver(expr, tail, after);
        }
        let tokens = if tail == Tail::Unit {
            let stmt = Stmt::Expr(expr.clone(), Some(syn::Token![;](ends(expr).1)));
            self.segment(std::slice::from_ref(&stmt), None, &[], after)
        } else {
            self.segment(&[], Some((expr, tail)), &[], after)
        };
        quote!({ #tokens })
    }

    /// Whether a value of eager code decides which part of the expression runs: the driver then does.
    pub(super) fn steered(&self, expr: &Expr) -> bool {
        let tainted = |e: &Expr| self.is_tainted(&uses::of_expr(e));
        match expr {
            Expr::If(e) => tainted(&e.cond) || e.else_branch.as_ref().is_some_and(|(_, e)| self.steered(e)),
            Expr::Match(e) => {
                tainted(&e.expr) || e.arms.iter().any(|a| a.guard.as_ref().is_some_and(|(_, g)| tainted(g)))
            }
            Expr::While(e) => tainted(&e.cond),
            Expr::ForLoop(e) => tainted(&e.expr),
            Expr::Try(e) => self.steered(&e.expr),
            Expr::Paren(e) => self.steered(&e.expr),
            _ => false,
        }
    }

    /// Whether the expression is split by the driver rather than left to a segment.
    pub(super) fn is_split(&self, expr: &Expr) -> bool {
        let stmt = Stmt::Expr(expr.clone(), None);
        classify::has_boundary(&stmt) || classify::leaves(&stmt) || self.steered(expr)
    }

    /// An expression that the driver evaluates itself.
    pub(super) fn tail_in_driver(&mut self, expr: &Expr, tail: Tail, after: &HashSet<usize>) -> TokenStream {
        if attributes::boundary(expr).is_none() {
            if classify::is_control(expr) && self.is_split(expr) {
                return self.control(expr, tail, after);
            }
            if matches!(expr, Expr::Return(_) | Expr::Break(_) | Expr::Continue(_)) {
                return self.jump(expr, after);
            }
            if self.is_split(expr) {
                let own = attributes::of(expr);
                match expr {
                    // `if … { … } else { … }?`: the branches give results, as the function does.
                    Expr::Try(e) if has_branches(&e.expr) => {
                        // Each branch with its own `?`: their errors may be of several types.
                        let branches = with_question_mark(&e.expr, e.question_token);
                        let inner = self.tail_in_driver(&branches, Tail::Value, after);
                        return if tail == Tail::Unit {
                            quote!(#(#own)* { let _ = #inner; })
                        } else {
                            quote!(#(#own)* (#inner))
                        };
                    }
                    Expr::Try(e) => {
                        let inner = self.tail_in_driver(&e.expr, Tail::Function, after);
                        return quote!(#(#own)* (#inner)?);
                    }
                    Expr::Paren(e) => {
                        let inner = self.tail_in_driver(&e.expr, tail, after);
                        return quote!(#(#own)* (#inner));
                    }
                    Expr::Cast(e) => {
                        let (inner, ty) = (self.tail_in_driver(&e.expr, Tail::Value, after), &e.ty);
                        return quote!(#(#own)* (#inner) as #ty);
                    }
                    Expr::Unary(e) => {
                        let (op, inner) = (&e.op, self.tail_in_driver(&e.expr, Tail::Value, after));
                        return quote!(#(#own)* #op (#inner));
                    }
                    _ => {}
                }
            }
        }
        self.driver_expr(expr)
    }

    /// Control flow that stays in the driver.
    fn control(&mut self, expr: &Expr, tail: Tail, after: &HashSet<usize>) -> TokenStream {
        let own = attributes::of(expr);
        match expr {
            Expr::If(e) => {
                // What one branch assigns is not assigned in the other.
                let before = self.assigned.clone();
                let (cond, then) = self.scoped(|t| {
                    let cond = t.driver_expr(&e.cond);
                    t.bind_conditions(&e.cond);
                    let tail = if e.else_branch.is_none() { Tail::Unit } else { tail };
                    (cond, t.block(&e.then_branch.stmts, tail, after))
                });
                let after_then = std::mem::replace(&mut self.assigned, before);
                let other = e.else_branch.as_ref().map(|(_, other)| {
                    let tokens = match &**other {
                        Expr::Block(b) if b.attrs.is_empty() && b.label.is_none() => {
                            let inner = self.block(&b.block.stmts, tail, after);
                            quote!({ #inner })
                        }
                        Expr::If(_) => self.control(other, tail, after),
                        other => {
                            let inner = self.tail_expr(other, tail, after);
                            quote!({ #inner })
                        }
                    };
                    quote!(else #tokens)
                });
                self.assigned.extend(after_then);
                quote!(#(#own)* if #cond { #then } #other)
            }
            Expr::Match(e) => {
                let scrutinee = self.driver_expr(&e.expr);
                let (before, mut assigned) = (self.assigned.clone(), HashSet::new());
                let arms: Vec<TokenStream> = e
                    .arms
                    .iter()
                    .map(|arm| {
                        assigned.extend(std::mem::replace(&mut self.assigned, before.clone()));
                        self.scoped(|t| {
                            t.bind_from(&uses::bound(&arm.pat), &arm.pat, &e.expr);
                            let (attrs, pat) = (&arm.attrs, &arm.pat);
                            let guard = arm.guard.as_ref().map(|(_, g)| {
                                let g = t.driver_expr(g);
                                quote!(if #g)
                            });
                            let body = match &*arm.body {
                                Expr::Block(b) if b.attrs.is_empty() && b.label.is_none() => {
                                    let inner = t.block(&b.block.stmts, tail, after);
                                    quote!({ #inner })
                                }
                                other => t.tail_expr(other, tail, after),
                            };
                            quote!(#(#attrs)* #pat #guard => #body,)
                        })
                    })
                    .collect();
                self.assigned.extend(assigned);
                quote!(#(#own)* match #scrutinee { #(#arms)* })
            }
            Expr::ForLoop(e) => {
                let iter = self.driver_expr(&e.expr);
                let live = self.around_loop(expr, after);
                let (label, pat) = (&e.label, &e.pat);
                let body = self.scoped(|t| {
                    t.bind_from(&uses::bound_always(pat), pat, &e.expr);
                    t.within(label.as_ref(), true, Tail::Unit, |t| t.block(&e.body.stmts, Tail::Unit, &live))
                });
                quote!(#(#own)* #label for #pat in #iter { #body })
            }
            Expr::While(e) => {
                let live = self.around_loop(expr, after);
                let label = &e.label;
                let (cond, body) = self.scoped(|t| {
                    let cond = t.driver_expr(&e.cond);
                    t.bind_conditions(&e.cond);
                    let stmts = &e.body.stmts;
                    (cond, t.within(label.as_ref(), true, Tail::Unit, |t| t.block(stmts, Tail::Unit, &live)))
                });
                quote!(#(#own)* #label while #cond { #body })
            }
            Expr::Loop(e) => {
                let live = self.around_loop(expr, after);
                let label = &e.label;
                let stmts = &e.body.stmts;
                let body = self.within(label.as_ref(), true, tail, |t| t.block(stmts, Tail::Unit, &live));
                quote!(#(#own)* #label loop { #body })
            }
            Expr::Block(e) => {
                let label = &e.label;
                let stmts = &e.block.stmts;
                let body = self.within(label.as_ref(), false, tail, |t| t.block(stmts, tail, after));
                quote!(#(#own)* #label { #body })
            }
            Expr::Unsafe(e) => {
                let body = self.block(&e.block.stmts, tail, after);
                quote!(#(#own)* unsafe { #body })
            }
            other => quote!(#other),
        }
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

    /// What the value of a `break` is.
    pub(super) fn break_tail(&self, label: Option<&syn::Lifetime>) -> Tail {
        let label = label.map(|l| l.ident.to_string());
        let target = self.breaks.iter().rev().find(|t| match &label {
            Some(_) => t.label == label,
            None => t.is_loop,
        });
        match target {
            Some(Target { tail: Tail::Function, .. }) => Tail::Function,
            _ => Tail::Value,
        }
    }

    /// What lives on in a loop's body: what the code behind it uses, and what its next turn does.
    pub(super) fn around_loop(&self, expr: &Expr, after: &HashSet<usize>) -> HashSet<usize> {
        let mut live = self.ids(&uses::of_expr(expr));
        live.extend(after);
        live
    }

    /// Binds the patterns of `let` conditions.
    fn bind_conditions(&mut self, cond: &Expr) {
        match cond {
            Expr::Let(l) => {
                self.bind_from(&uses::bound(&l.pat), &l.pat, &l.expr);
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

/// `if` and `match` whose branches end in values, and blocks around them.
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

/// The expression with `?` behind the values of its branches, in place of one behind the whole.
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
        Expr::Macro(m) => classify::never_returns(&m.mac),
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

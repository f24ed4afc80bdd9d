//! `if`, `match` and loops.

use quote::ToTokens;
use syn::{Expr as SynExpr, ExprForLoop, ExprIf, ExprMatch, Pat, RangeLimits, spanned::Spanned};

use super::Parser;
use crate::{
    diag::Code,
    kernel::{
        model::{Arm, ArmPattern, Expr, For, Form, Kind},
        views::ViewOp,
    },
};

/// The parts of `0..8`, perhaps within `(0..8).rev()`.
struct Bounds<'a> {
    from: &'a SynExpr,
    to: &'a SynExpr,
    inclusive: bool,
    reversed: bool,
}

impl Parser<'_> {
    pub(super) fn condition(&mut self, expr: &ExprIf) -> Kind {
        let condition = if let SynExpr::Let(pattern) = &*expr.cond {
            self.refuse(pattern, "`if let`", "kernels have only numbers and `bool`: write a comparison");
            self.nothing(pattern.span())
        } else {
            self.expr(&expr.cond)
        };
        let condition = Box::new(condition);
        let then = self.block(&expr.then_branch, false);
        let other = expr.else_branch.as_ref().map(|(_, other)| Box::new(self.expr(other)));
        Kind::If { condition, then, other }
    }

    pub(super) fn choice(&mut self, expr: &ExprMatch) -> Kind {
        let value = Box::new(self.expr(&expr.expr));
        let mut arms = Vec::new();
        for arm in &expr.arms {
            self.attributes(&arm.attrs);
            if let Some((token, guard)) = &arm.guard {
                let help = "write `_ => if … { … } else { … }`, or an `if` around the `match`";
                let at = quote::quote!(#token #guard);
                self.errors.push(Code::KernelPattern, at, "a kernel cannot have a guard in a `match`", help);
            }
            let mut patterns = Vec::new();
            self.alternatives(&arm.pat, &mut patterns);
            arms.push(Arm { patterns, value: self.expr(&arm.body), span: arm.pat.span() });
        }
        Kind::Match { value, arms }
    }

    fn alternatives(&mut self, pattern: &Pat, out: &mut Vec<ArmPattern>) {
        match pattern {
            Pat::Or(or) => or.cases.iter().for_each(|case| self.alternatives(case, out)),
            Pat::Paren(inner) => self.alternatives(&inner.pat, out),
            Pat::Wild(_) => out.push(ArmPattern::Any),
            Pat::Lit(lit) => {
                let value = self.expr(&SynExpr::Lit(lit.clone()));
                out.push(ArmPattern::Is(value));
            }
            Pat::Path(path) if path.qself.is_none() => {
                let value = self.expr(&SynExpr::Path(path.clone()));
                out.push(ArmPattern::Is(value));
            }
            // A constant, as rustc's lints have them; a name would bind.
            Pat::Ident(pat) if pat.subpat.is_none() && pat.by_ref.is_none() && is_constant(&pat.ident) => {
                let path = syn::Path::from(pat.ident.clone());
                let index = self.names.constant(&path);
                out.push(ArmPattern::Is(self.made(Kind::Constant(index), pat.ident.span())));
            }
            Pat::Range(range) => {
                let from = range.start.as_ref().map(|bound| self.expr(bound));
                let to = range.end.as_ref().map(|bound| self.expr(bound));
                let inclusive = matches!(range.limits, RangeLimits::Closed(_));
                out.push(ArmPattern::Range { from, to, inclusive });
            }
            other => {
                let help = "write numbers, ranges such as `1..=3`, constants, or `_`; the value itself has a name outside of the `match`";
                self.errors.push(Code::KernelPattern, other, "a kernel cannot have this pattern", help);
            }
        }
    }

    pub(super) fn counted(&mut self, expr: &ExprForLoop) -> Kind {
        let Some(bounds) = bounds(&expr.expr) else {
            let help = "write a range of constants, such as `for i in 0..8`, or `(0..8).rev()`";
            self.errors.push(Code::KernelLoop, &expr.expr, "a kernel cannot iterate over this", help);
            return self.nothing(expr.span()).kind;
        };
        let (from, to) = (self.bound(bounds.from), self.bound(bounds.to));
        let mark = self.names.mark();
        let number = self.names.enter_loop(expr.label.as_ref().map(|label| label.name.clone()));
        let counter = self.binding(&expr.pat).unwrap_or(None);
        if let Some(local) = counter {
            if self.names.locals[local].mutable {
                let help = "remove `mut`, and bind a variable of its own: `let mut j = i;`";
                self.errors.push(Code::KernelLoop, &expr.pat, "a counter that changes", help);
            }
            self.names.note_bound(local);
        }
        let body = self.block(&expr.body, false);
        self.names.leave_loop();
        self.names.leave(mark);
        Kind::For(For {
            number,
            label: expr.label.as_ref().map(|label| label.name.clone()),
            counter,
            ty: self.fresh(),
            from: Box::new(from),
            to: Box::new(to),
            inclusive: bounds.inclusive,
            reversed: bounds.reversed,
            body,
        })
    }

    /// A bound of a loop: made of constants and of counters around.
    fn bound(&mut self, expr: &SynExpr) -> Expr {
        let bound = self.expr(expr);
        if !self.is_constant(&bound) {
            let help = match self.form {
                Form::Index => {
                    "write a constant, a size such as `x.dim(0)`, a parameter, or the counter of an enclosing loop, and leave early with `if … { break; }`"
                }
                _ => {
                    "write a constant such as `8`, a `#[key]` parameter, or the counter of an enclosing loop, and leave early with `if … { break; }`"
                }
            };
            self.errors.push(Code::KernelLoop, expr, "the bound of a kernel's loop is not a constant", help);
        }
        bound
    }

    pub(super) fn is_constant(&self, expr: &Expr) -> bool {
        match &expr.kind {
            Kind::Bool(_) | Kind::Integer(..) | Kind::Float(..) | Kind::Constant(_) => true,
            Kind::Local(local) => self.names.is_bound(*local),
            Kind::View(call) => call.op == ViewOp::Dim,
            Kind::Neg(inner) | Kind::Not(inner) | Kind::Cast(inner, _) | Kind::From(_, inner) => {
                self.is_constant(inner)
            }
            Kind::Binary(_, left, right) => self.is_constant(left) && self.is_constant(right),
            Kind::Method(_, _, all) => all.iter().all(|one| self.is_constant(one)),
            _ => false,
        }
    }

    /// Rejects `while` and `loop`.
    pub(super) fn endless(&mut self, at: impl ToTokens, what: &str) {
        let message = format!("a kernel cannot have `{what}`: it is not known to end");
        let help =
            "write a loop with a constant bound, and leave it early: `for _ in 0..32 { if … { break; } … }`";
        self.errors.push(Code::KernelLoop, at, message, help);
    }
}

/// Returns whether a name is spelt like a constant.
fn is_constant(name: &syn::Ident) -> bool {
    let name = name.to_string();
    name.chars().any(char::is_uppercase) && !name.chars().any(char::is_lowercase)
}

fn bounds(expr: &SynExpr) -> Option<Bounds<'_>> {
    match expr {
        SynExpr::Paren(inner) => bounds(&inner.expr),
        SynExpr::Group(inner) => bounds(&inner.expr),
        SynExpr::MethodCall(call) if call.method == "rev" && call.args.is_empty() => {
            let bounds = bounds(&call.receiver)?;
            Some(Bounds { reversed: !bounds.reversed, ..bounds })
        }
        SynExpr::Range(range) => Some(Bounds {
            from: range.start.as_deref()?,
            to: range.end.as_deref()?,
            inclusive: matches!(range.limits, RangeLimits::Closed(_)),
            reversed: false,
        }),
        _ => None,
    }
}

//! Control flow on device data.

use quote::ToTokens;
use syn::{Arm, BinOp, Expr, Pat, UnOp};

use super::{device::Device, name_of, the};
use crate::{
    diag::Code,
    parse::syntax::{bare, compares},
};

impl Device<'_, '_> {
    /// Checks a condition of `if`, `while` or `assert!`, which is not checked again afterwards. What it binds is in scope in
    /// the rest of it, and after it.
    pub(super) fn condition(&mut self, expr: &Expr, word: &str) {
        match bare(expr) {
            Expr::Binary(b) if matches!(b.op, BinOp::And(_) | BinOp::Or(_)) => {
                self.condition(&b.left, word);
                self.condition(&b.right, word);
            }
            Expr::Unary(u) if matches!(u.op, UnOp::Not(_)) => self.condition(&u.expr, word),
            Expr::Binary(b) if compares(&b.op) && (self.is_tensor(&b.left) || self.is_tensor(&b.right)) => {
                let tensor = if self.is_tensor(&b.left) { &b.left } else { &b.right };
                self.steers(expr, &name_of(tensor), word);
            }
            Expr::Let(l) => {
                if self.is_tensor(&l.expr) && looks_inside(&l.pat) {
                    self.steers(&l.expr, &name_of(&l.expr), word);
                } else {
                    self.expr(&l.expr);
                }
                self.bind_conditions(expr);
            }
            other if self.is_tensor(other) => self.steers(other, &name_of(other), word),
            _ => self.expr(expr),
        }
    }

    /// Checks a `match` whose arms read elements.
    pub(super) fn matched(&mut self, expr: &Expr, arms: &[Arm]) {
        if self.is_tensor(expr) && arms.iter().any(|a| looks_inside(&a.pat)) {
            self.steers(expr, &name_of(expr), "match");
        } else {
            self.expr(expr);
        }
    }

    /// Checks the iterator of a `for`.
    pub(super) fn iterated(&mut self, expr: &Expr) {
        let over = match bare(expr) {
            Expr::MethodCall(m) if ["iter", "into_iter"].iter().any(|n| m.method == n) => &m.receiver,
            other => other,
        };
        if self.is_tensor(over) {
            let name = name_of(over);
            self.errors.push(
                Code::DeviceControlFlow,
                expr,
                format!("a `for` over the elements of {}: they are on the device, and a recording has one path", the(&name)),
                format!(
                    "loop over sizes (`for i in 0..{name}.dim(0).get()?`, with `ops::narrow`), or read it in a region: \
                     `#[key] let values = #[eager(cx)] cx.read(&{name})?;`"
                ),
            );
        } else {
            self.expr(expr);
        }
    }

    fn steers(&mut self, at: impl ToTokens, name: &str, word: &str) {
        // `assert!` has no form for the device.
        let on_device = if word.ends_with('!') {
            String::new()
        } else {
            format!(", or with `#[device] {word}` if it is a single value")
        };
        self.errors.push(
            Code::DeviceControlFlow,
            at,
            format!("`{word}` on the value of {}: it is on the device, and a recording has one path", the(name)),
            format!(
                "choose on the device with `ops::where_`{on_device}, or read it in a region, which then controls host code: \
                 `let v = #[eager(cx)] cx.item(&{name})?;`"
            ),
        );
    }
}

/// A pattern that would need the elements: a literal or a range, a slice of them.
fn looks_inside(pat: &Pat) -> bool {
    match pat {
        Pat::Lit(_) | Pat::Range(_) | Pat::Slice(_) => true,
        Pat::Or(o) => o.cases.iter().any(looks_inside),
        Pat::Paren(p) => looks_inside(&p.pat),
        Pat::Reference(r) => looks_inside(&r.pat),
        _ => false,
    }
}

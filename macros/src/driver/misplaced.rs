//! Attributes of ours where they mean nothing, or something else than they seem to.

use syn::{
    Attribute, Block, Expr, Local,
    spanned::Spanned,
    visit::{self, Visit},
};

use super::{attrs, free};
use crate::diag::{Code, Errors, nearest};

const KNOWN: [&str; 4] = ["eager", "piecewise", "host", "key"];

/// Checks every attribute of a body.
pub(super) fn check(block: &Block, errors: &mut Errors) {
    let mut check = Check { errors, depth: 0 };
    check.visit_block(block);
}

struct Check<'e> {
    errors: &'e mut Errors,
    /// Inside closures, async blocks and eager regions.
    depth: usize,
}

impl Check<'_> {
    fn unknown(&mut self, a: &Attribute) {
        let Some(name) = a.path().get_ident().map(ToString::to_string) else { return };
        if KNOWN.contains(&name.as_str()) || is_builtin(&name) {
            return;
        }
        if let Some(near) = nearest(&name, &KNOWN) {
            self.errors.push(
                Code::UnknownAttribute,
                a,
                format!("there is no attribute `{name}` here"),
                format!("did you mean `#[{near}]`?"),
            );
        }
    }

    fn left_operand(&mut self, operand: &Expr, whole: &str, example: &str) {
        for a in attrs::of(operand) {
            if attrs::is_ours(a) {
                self.errors.push(
                    Code::BoundaryPosition,
                    a,
                    format!("this attribute belongs to the left operand of the {whole}, not to all of it"),
                    format!("write `{example}`"),
                );
            }
        }
    }
}

fn is_builtin(name: &str) -> bool {
    matches!(
        name,
        "allow" | "warn" | "deny" | "expect" | "forbid" | "cfg" | "cfg_attr" | "doc" | "rustfmt" | "inline"
    )
}

impl<'a> Visit<'a> for Check<'_> {
    fn visit_attribute(&mut self, a: &'a Attribute) {
        self.unknown(a);
        if self.depth > 0 && attrs::is_ours(a) {
            self.errors.push(
                Code::NestedBoundary, a,
                "a boundary inside a closure, an async block or another eager region",
                "a boundary must stand in the function's own statements; make the closure a loop, or a function of its own",
            );
        }
    }

    fn visit_local(&mut self, local: &'a Local) {
        for a in &local.attrs {
            if attrs::is_ours(a) {
                let name = &a.path().segments[0].ident;
                let text = match free::bound(&local.pat).first() {
                    Some(b) => b.ident.to_string(),
                    None => "x".to_owned(),
                };
                self.errors.push(
                    Code::MisplacedAttribute,
                    a,
                    format!("`#[{name}]` marks an expression, not a `let`"),
                    format!("write `let {text} = #[{name}] …;`"),
                );
            }
        }
        visit::visit_local(self, local);
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        match expr {
            Expr::Assign(e) => self.left_operand(&e.left, "assignment", "a = #[eager] f(&x)?"),
            Expr::Binary(e) => self.left_operand(&e.left, "operator", "let v = #[eager] f(&x)?; … v + 1"),
            Expr::Range(e) => {
                if let Some(start) = &e.start {
                    self.left_operand(start, "range", "let n = #[eager] f(&x)?; … 0..n");
                }
            }
            _ => {}
        }
        for a in attrs::of(expr) {
            for wrong in ["host", "key"] {
                if a.path().is_ident(wrong) {
                    self.errors.push(
                        Code::MisplacedAttribute,
                        a,
                        format!("`#[{wrong}]` marks a parameter or a `let`, not an expression"),
                        format!("write `#[{wrong}] let x = …;`"),
                    );
                }
            }
        }
        let closed = matches!(expr, Expr::Closure(_) | Expr::Async(_)) || attrs::boundary(expr).is_some();
        if closed {
            // The expression's own attribute is in place; those inside are not.
            let own = attrs::boundary(expr).is_some();
            if own && self.depth > 0 {
                self.errors.push_span(
                    Code::NestedBoundary, attrs::of(expr).first().map_or(expr.span(), Spanned::span),
                    "a boundary inside a closure, an async block or another eager region",
                    "a boundary must stand in the function's own statements; make the closure a loop, or a function of its own",
                );
                return;
            }
            let stripped = attrs::without_ours(expr);
            let mut inner = Check { errors: &mut *self.errors, depth: self.depth + 1 };
            visit::visit_expr(&mut inner, &stripped);
        } else {
            visit::visit_expr(self, expr);
        }
    }

    fn visit_item(&mut self, _: &'a syn::Item) {}
}

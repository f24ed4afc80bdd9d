//! The size of a dimension where a number is asked for.

use quote::ToTokens;
use syn::{BinOp, Expr, ExprMethodCall, Lit, Local, Pat, RangeLimits};

use super::{device::Device, name_of};
use crate::{
    diag::{Code, shortened},
    parse::{syntax::bare, types},
};

impl Device<'_, '_> {
    /// `x.dim(1)`, and arithmetic of it with literals.
    fn size<'e>(&self, expr: &'e Expr) -> Option<&'e ExprMethodCall> {
        match bare(expr) {
            Expr::MethodCall(m) if m.method == "dim" && m.args.len() == 1 && self.is_tensor(&m.receiver) => {
                Some(m)
            }
            Expr::Binary(b) if arithmetic(&b.op) => match (self.size(&b.left), self.size(&b.right)) {
                (Some(size), None) if is_literal(&b.right) => Some(size),
                (None, Some(size)) if is_literal(&b.left) => Some(size),
                (left, right) => left.and(right),
            },
            _ => None,
        }
    }

    fn not_a_number(&mut self, size: &ExprMethodCall, at: &Expr, ty: &str) {
        let name = name_of(&size.receiver);
        let axis = size.args.to_token_stream().to_string();
        let whole = bare(at).to_token_stream().to_string() == size.to_token_stream().to_string();
        let number = if whole {
            format!("{name}.dim({axis}).get()?")
        } else {
            format!("({}).get()?", shortened(bare(at)))
        };
        let number = if ty == "usize" { number } else { format!("{number} as {ty}") };
        self.errors.push(
            Code::SizeAsNumber,
            at,
            format!("`{name}.dim({axis})` is a size, not a number of type `{ty}`: a bucket may pad the dimension"),
            format!(
                "write `{number}`, an error where a bucket pads the dimension; the real size of a padded one is \
                 `ops::size(&{name}, {axis})?` on the device, and `cx.size(&{name}, {axis})?` in an `#[eager(cx)]` region"
            ),
        );
    }

    /// `let n: usize = x.dim(1);`.
    pub(super) fn size_in_let(&mut self, local: &Local) -> bool {
        let (Pat::Type(t), Some(init)) = (&local.pat, &local.init) else { return false };
        let (Some(_), Some(size)) = (types::scalar(&t.ty), self.size(&init.expr)) else { return false };
        let ty = t.ty.to_token_stream().to_string();
        self.not_a_number(&size.clone(), &init.expr, &ty);
        true
    }

    /// `x.dim(1) as f32`, `0..x.dim(1)`.
    pub(super) fn size_as_number(&mut self, expr: &Expr) {
        let (value, ty) = match expr {
            Expr::Cast(cast) if types::scalar(&cast.ty).is_some() => {
                (&*cast.expr, cast.ty.to_token_stream().to_string())
            }
            Expr::Range(range)
                if matches!(range.limits, RangeLimits::HalfOpen(_) | RangeLimits::Closed(_)) =>
            {
                match (range.start.as_deref(), range.end.as_deref()) {
                    (Some(start), Some(end)) if is_literal(start) => (end, "usize".to_owned()),
                    _ => return,
                }
            }
            _ => return,
        };
        if let Some(size) = self.size(value) {
            self.not_a_number(size, value, &ty);
        }
    }
}

fn arithmetic(op: &BinOp) -> bool {
    matches!(op, BinOp::Add(_) | BinOp::Sub(_) | BinOp::Mul(_) | BinOp::Div(_) | BinOp::Rem(_))
}

fn is_literal(expr: &Expr) -> bool {
    matches!(bare(expr), Expr::Lit(l) if matches!(l.lit, Lit::Int(_)))
}

//! Lints: mistakes that the tokens of a body show, where the types would be less clear, or only a run-time
//! check would find them.
//!
//! Soundness does not depend on lints but on types, and an alias or a helper hides from a lint everything
//! that it looks for. So a lint may report only what is certain, and the catalogue states for each what
//! happens beyond it.

use syn::{Block, Expr, Ident, Stmt};

use crate::{diag::Errors, parse::syntax::bare};

mod conditions;
mod device;
mod effects;
mod macros;
mod scopes;
mod shapes;
mod sizes;
mod tables;

/// A tensor or scalar parameter.
pub(crate) struct TensorParam {
    pub(crate) name: String,
    /// Its sizes, if `#[dims]` states them as numbers; `None` without `#[dims]`.
    pub(crate) dims: Option<Vec<Option<usize>>>,
}

/// The facts about the function that the lints need.
pub(crate) struct Context<'a> {
    pub(crate) tensors: Vec<TensorParam>,
    pub(crate) symbols: &'a [String],
    /// Names of all parameters.
    pub(crate) params: Vec<&'a Ident>,
}

/// Checks the statements of a segment for side effects.
pub(crate) fn segment(stmts: &[Stmt], params: &[&Ident], errors: &mut Errors) {
    macros::check(stmts, errors);
    effects::check(stmts, params, errors);
}

/// Checks the use of device data in a whole body.
pub(crate) fn check(block: &Block, context: &Context<'_>, errors: &mut Errors) {
    device::check(block, context, errors);
}

/// Returns a value as it appears in a message: its name, or that it is a tensor.
fn the(name: &str) -> String {
    if name == "t" { "a tensor".to_owned() } else { format!("`{name}`") }
}

/// A value as the user may name it: its name, or `t`.
fn name_of(expr: &Expr) -> String {
    match bare(expr) {
        Expr::Reference(r) => name_of(&r.expr),
        Expr::Unary(u) if matches!(u.op, syn::UnOp::Deref(_)) => name_of(&u.expr),
        Expr::MethodCall(m) if m.method == "clone" => name_of(&m.receiver),
        Expr::Path(p) => p.path.get_ident().map_or_else(|| "t".to_owned(), ToString::to_string),
        _ => "t".to_owned(),
    }
}

#[cfg(test)]
mod tests;

//! What the tokens of a body show to be wrong, where the types would say less about it, or only a net at run
//! time would say anything.
//!
//! None of this is what makes a graph function sound: the types are, and an alias or a helper hides everything
//! that is looked for here. So a lint may only speak where it is sure, and each says in the catalogue which net
//! stands behind it.

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
    /// Its sizes, where `#[dims]` gives them as numbers; `None` for no `#[dims]`.
    pub(crate) dims: Option<Vec<Option<usize>>>,
}

/// What the lints need to know of the function.
pub(crate) struct Context<'a> {
    pub(crate) tensors: Vec<TensorParam>,
    pub(crate) symbols: &'a [String],
    /// Names of all parameters.
    pub(crate) params: Vec<&'a Ident>,
}

/// Looks at the statements of a segment: what they do besides computing.
pub(crate) fn segment(stmts: &[Stmt], params: &[&Ident], errors: &mut Errors) {
    macros::check(stmts, errors);
    effects::check(stmts, params, errors);
}

/// Looks at a whole body: what it does with device data, wherever it does it.
pub(crate) fn check(block: &Block, context: &Context<'_>, errors: &mut Errors) {
    device::check(block, context, errors);
}

/// A value as it stands in a message: its name, or that it is a tensor.
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

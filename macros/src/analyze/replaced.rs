//! Pointers to functions that begin as closures (`let mut f: fn(…) = |…| …;`), and are replaced by another function: each segment
//! makes the closure of the `let` anew, so behind a boundary it would not be the new one.

use syn::{Local, Pat, Stmt, Type};

use super::{Analysis, order::Order};
use crate::{diag::Code, facts::classify, parse::syntax};

impl Analysis<'_, '_> {
    /// Refuses a pointer that is replaced, and used behind a boundary after that; `after` follows its `let`.
    pub(super) fn check_replaced(&mut self, local: &Local, after: &[Stmt]) {
        let Some(name) = classify::closure_name(local).filter(|_| is_pointer(local)) else { return };
        let mut order = Order::of_variable(&name);
        order.statements(after);
        if let Some(used) = order.used {
            self.errors.push(
                Code::ReplacedClosure,
                &used,
                format!(
                    "`{name}` is used behind a boundary after it was replaced, and each segment makes the closure of its `let` anew"
                ),
                format!(
                    "choose it at once, `#[host] let {name}: … = if … {{ … }} else {{ … }};`, or bind the new function by a `let` of its own"
                ),
            );
        }
    }
}

/// Returns whether a `let` gives a closure a type that is written, and so may be given another one.
fn is_pointer(local: &Local) -> bool {
    let is_written = matches!(&local.pat, Pat::Type(typed) if !matches!(&*typed.ty, Type::Infer(_)));
    is_written && syntax::bound_by_let(local).iter().any(|bound| bound.mutable)
}

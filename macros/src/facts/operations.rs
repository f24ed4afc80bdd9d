//! Calls of `ops::…`.

use syn::{
    Expr, ExprCall, Ident,
    visit::{self, Visit},
};

use crate::parse::{attributes, syntax::bare};

/// Operations that return something other than a tensor; `ui-tests/tests/names.rs` compares the list with the
/// functions.
const NO_TENSOR: [&str; 17] = [
    "add_rms_norm",
    "append",
    "cache_view",
    "cross_entropy_weighted",
    "lstm_cell",
    "mark_tokens",
    "moe_route",
    "nll_loss_weighted",
    "rope_scatter",
    "scatter_rows",
    "set_rng_state",
    "sort",
    "split",
    "split_at",
    "store",
    "top_log_probs",
    "topk",
];

/// Operations that do nothing on the device.
const NO_LAUNCH: [&str; 1] = ["cache_view"];

/// `f` of `ops::f(…)`, of `graphable::ops::f(…)`.
pub(crate) fn operation(call: &ExprCall) -> Option<&Ident> {
    let Expr::Path(path) = bare(&call.func) else { return None };
    let mut segments = path.path.segments.iter().rev();
    let (function, module) = (segments.next()?, segments.next()?);
    (path.qself.is_none() && module.ident == "ops").then_some(&function.ident)
}

/// Returns whether `ops::f(…)?` is a tensor.
pub(crate) fn gives_tensor(expr: &Expr) -> bool {
    let Expr::Call(call) = bare(expr) else { return false };
    operation(call).is_some_and(|f| !NO_TENSOR.iter().any(|n| f == n))
}

/// Returns whether the expression is `ops::f(…)`.
pub(crate) fn is_operation(expr: &Expr) -> bool {
    matches!(bare(expr), Expr::Call(call) if operation(call).is_some())
}

/// The first `ops::f(…)` of an expression, outside closures and regions.
pub(crate) fn device_call(expr: &Expr) -> Option<&ExprCall> {
    struct Search<'a>(Option<&'a ExprCall>);
    impl<'a> Visit<'a> for Search<'a> {
        fn visit_expr(&mut self, expr: &'a Expr) {
            if attributes::boundary(expr).is_none() && self.0.is_none() {
                visit::visit_expr(self, expr);
            }
        }
        fn visit_expr_call(&mut self, call: &'a ExprCall) {
            if operation(call).is_some_and(|f| !NO_LAUNCH.iter().any(|n| f == n)) {
                self.0 = Some(call);
            } else {
                visit::visit_expr_call(self, call);
            }
        }
        fn visit_expr_closure(&mut self, _: &'a syn::ExprClosure) {}
        fn visit_item(&mut self, _: &'a syn::Item) {}
    }
    let mut search = Search(None);
    search.visit_expr(expr);
    search.0
}

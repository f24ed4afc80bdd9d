//! Macros that a segment may not call.

use syn::visit::{self, Visit};

use crate::{
    diag::{Code, Errors},
    facts::macros::prints,
};

/// Refuses macro calls that print: that would happen once, and never in a replay.
pub(crate) fn check<'a>(stmts: impl IntoIterator<Item = &'a syn::Stmt>, errors: &mut Errors) {
    struct Macros<'e> {
        errors: &'e mut Errors,
    }
    impl<'a> Visit<'a> for Macros<'_> {
        fn visit_macro(&mut self, mac: &'a syn::Macro) {
            let Some(last) = mac.path.segments.last() else { return };
            let name = last.ident.to_string();
            if prints(&name) {
                self.errors.push(
                    Code::Prints,
                    &mac.path,
                    format!(
                        "`{name}!` in a segment runs when the segment is recorded, and never in a replay"
                    ),
                    "move it into an `#[eager] { … }` region, which runs on every call",
                );
            }
            visit::visit_macro(self, mac);
        }
        fn visit_item(&mut self, _: &'a syn::Item) {}
    }
    let mut macros = Macros { errors };
    stmts.into_iter().for_each(|s| macros.visit_stmt(s));
}

//! Which macros a segment may call.

use syn::visit::{self, Visit};

use crate::diag::{Code, Errors};

const ALLOWED: [&str; 24] = [
    "vec",
    "matches",
    "assert",
    "assert_eq",
    "assert_ne",
    "debug_assert",
    "debug_assert_eq",
    "debug_assert_ne",
    "format",
    "format_args",
    "concat",
    "stringify",
    "panic",
    "unreachable",
    "todo",
    "unimplemented",
    "bail",
    "ensure",
    "anyhow",
    "env",
    "cfg",
    "line",
    "file",
    "column",
];

const PRINTS: [&str; 13] = [
    "println", "eprintln", "print", "eprint", "dbg", "info", "debug", "trace", "warn", "error", "write",
    "writeln", "log",
];

/// Refuses macro calls that a segment must not make: their tokens cannot be judged, or what they do
/// would happen once and never in a replay.
pub(super) fn check(stmts: &[syn::Stmt], errors: &mut Errors) {
    struct Macros<'e>(&'e mut Errors);
    impl<'a> Visit<'a> for Macros<'_> {
        fn visit_macro(&mut self, mac: &'a syn::Macro) {
            let Some(last) = mac.path.segments.last() else { return };
            let name = last.ident.to_string();
            if PRINTS.contains(&name.as_str()) {
                self.0.push(
                    Code::Prints,
                    &mac.path,
                    format!(
                        "`{name}!` in a segment runs when the segment is recorded, and never in a replay"
                    ),
                    "move it into an `#[eager] { … }` region, which runs on every call",
                );
            } else if !ALLOWED.contains(&name.as_str()) {
                self.0.push(
                    Code::UnknownMacro,
                    &mac.path,
                    format!("`{name}!` is not known to be harmless in a segment: a replay does not run it"),
                    "call a function instead, or move it into an `#[eager] { … }` region or a `#[host] let`",
                );
            }
            visit::visit_macro(self, mac);
        }
        fn visit_item(&mut self, _: &'a syn::Item) {}
    }
    let mut macros = Macros(errors);
    stmts.iter().for_each(|s| macros.visit_stmt(s));
}

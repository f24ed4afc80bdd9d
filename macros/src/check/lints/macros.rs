//! Which macros a segment may call.

use syn::visit::{self, Visit};

use crate::diag::{Code, Errors};

/// Macros of the standard library that compute with their expressions.
const COMPUTES: [&str; 14] = [
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
    "panic",
    "unreachable",
    "todo",
    "unimplemented",
];

/// Others that only compute.
const ALLOWED: [&str; 20] = [
    "concat",
    "stringify",
    "bail",
    "ensure",
    "anyhow",
    "env",
    "cfg",
    "line",
    "file",
    "column",
    "module_path",
    "option_env",
    "include_str",
    "include_bytes",
    "compile_error",
    "assert_matches",
    "debug_assert_matches",
    "smallvec",
    "eyre",
    "const_format",
];

/// Those of the standard library that print.
const STANDARD_PRINTS: [&str; 5] = ["println", "eprintln", "print", "eprint", "dbg"];

/// Those that write where they are told to.
const WRITES: [&str; 2] = ["write", "writeln"];

/// Logging, which only reads. In a segment it speaks when the body runs: at warm-up, when recorded, when audited.
const LOGS: [&str; 14] = [
    "info",
    "debug",
    "trace",
    "warn",
    "error",
    "log",
    "event",
    "span",
    "info_span",
    "debug_span",
    "trace_span",
    "warn_span",
    "error_span",
    "level_enabled",
];

/// Whether a call is known to change none of the variables that it names, but where its expressions say so.
pub(crate) fn only_reads(mac: &syn::Macro) -> bool {
    let Some(last) = mac.path.segments.last() else { return false };
    let known = COMPUTES.iter().chain(&STANDARD_PRINTS).chain(&ALLOWED).chain(&LOGS);
    known.into_iter().any(|name| last.ident == name)
}

/// Refuses macro calls that print: that would happen once, and never in a replay.
pub(crate) fn check<'a>(stmts: impl IntoIterator<Item = &'a syn::Stmt>, errors: &mut Errors) {
    struct Macros<'e> {
        errors: &'e mut Errors,
    }
    impl<'a> Visit<'a> for Macros<'_> {
        fn visit_macro(&mut self, mac: &'a syn::Macro) {
            let Some(last) = mac.path.segments.last() else { return };
            let name = last.ident.to_string();
            if STANDARD_PRINTS.iter().chain(&WRITES).any(|p| *p == name) {
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

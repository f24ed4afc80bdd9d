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

/// Others that a segment may call.
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

/// Those of other crates, or that write where they are told to.
const PRINTS: [&str; 8] = ["info", "debug", "trace", "warn", "error", "write", "writeln", "log"];

/// Whether a call is known to change none of the variables that it names, but where its expressions say so.
pub(crate) fn only_reads(mac: &syn::Macro) -> bool {
    let last = mac.path.segments.last();
    last.is_some_and(|s| COMPUTES.iter().chain(&STANDARD_PRINTS).any(|name| s.ident == name))
}

/// Refuses macro calls that a segment must not make: their tokens cannot be judged, or what they do
/// would happen once and never in a replay.
pub(crate) fn check<'a>(stmts: impl IntoIterator<Item = &'a syn::Stmt>, errors: &mut Errors) {
    look(stmts, false, errors);
}

/// The same for a function that is one segment: its macros are not taken apart, so only printing is refused.
pub(crate) fn check_whole<'a>(stmts: impl IntoIterator<Item = &'a syn::Stmt>, errors: &mut Errors) {
    look(stmts, true, errors);
}

fn look<'a>(stmts: impl IntoIterator<Item = &'a syn::Stmt>, any: bool, errors: &mut Errors) {
    struct Macros<'e> {
        errors: &'e mut Errors,
        any: bool,
    }
    impl<'a> Visit<'a> for Macros<'_> {
        fn visit_macro(&mut self, mac: &'a syn::Macro) {
            let Some(last) = mac.path.segments.last() else { return };
            let name = last.ident.to_string();
            if STANDARD_PRINTS.iter().chain(&PRINTS).any(|p| *p == name) {
                self.errors.push(
                    Code::Prints,
                    &mac.path,
                    format!(
                        "`{name}!` in a segment runs when the segment is recorded, and never in a replay"
                    ),
                    "move it into an `#[eager] { … }` region, which runs on every call",
                );
            } else if !self.any && !COMPUTES.iter().chain(&ALLOWED).any(|a| *a == name) {
                self.errors.push(
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
    let mut macros = Macros { errors, any };
    stmts.into_iter().for_each(|s| macros.visit_stmt(s));
}

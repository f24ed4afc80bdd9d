//! Known facts about macros, by their names.

use std::collections::HashSet;

use proc_macro2::{Ident, TokenStream, TokenTree};
use syn::{Expr, Stmt, parse::Parser as _, visit::Visit};

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

/// Macros of the standard library that print.
const STANDARD_PRINTS: [&str; 5] = ["println", "eprintln", "print", "eprint", "dbg"];

/// Macros that write to their first argument.
const WRITES: [&str; 2] = ["write", "writeln"];

/// Logging macros, which only read. In a segment, they log whenever the body runs: during warm-up, recording
/// and audits.
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

/// Returns whether a call is known not to change the variables that it names, except where its expressions
/// do.
pub(crate) fn only_reads(mac: &syn::Macro) -> bool {
    let Some(last) = mac.path.segments.last() else { return false };
    let known = COMPUTES.iter().chain(&STANDARD_PRINTS).chain(&ALLOWED).chain(&LOGS);
    known.into_iter().any(|name| last.ident == name)
}

/// Returns the elements of a call of `vec!`.
pub(crate) fn elements(mac: &syn::Macro) -> Option<Vec<Expr>> {
    if mac.path.segments.last()?.ident != "vec" {
        return None;
    }
    let repeated = |input: syn::parse::ParseStream<'_>| {
        let element = input.parse()?;
        input.parse::<syn::Token![;]>()?;
        Ok(vec![element, input.parse()?])
    };
    let listed = syn::punctuated::Punctuated::<Expr, syn::Token![,]>::parse_terminated;
    let listed = listed.parse2(mac.tokens.clone()).map(|all| all.into_iter().collect());
    listed.or_else(|_| repeated.parse2(mac.tokens.clone())).ok()
}

/// Returns whether code calls one of these macros, also within the tokens of another call, or passes its name to a macro that is not
/// known, which may call it.
pub(crate) fn calls_any(stmt: &Stmt, names: &HashSet<String>) -> bool {
    struct Calls<'n>(&'n HashSet<String>, bool);
    impl<'a> Visit<'a> for Calls<'_> {
        fn visit_macro(&mut self, m: &'a syn::Macro) {
            self.1 |= m.path.get_ident().is_some_and(|i| self.0.contains(&i.to_string()));
            self.1 |= names_call(&m.tokens, self.0);
            let is_named = || idents(m.tokens.clone()).iter().any(|i| self.0.contains(&i.to_string()));
            self.1 |= !only_reads(m) && is_named();
        }
    }
    let mut calls = Calls(names, false);
    calls.visit_stmt(stmt);
    calls.1
}

/// Returns the names of the macros that code calls itself, in their places: not within the tokens of another call, nor those that it
/// defines.
pub(crate) fn called(stmt: &Stmt) -> Vec<Ident> {
    #[derive(Default)]
    struct Called(Vec<Ident>, HashSet<String>);
    impl<'a> Visit<'a> for Called {
        fn visit_macro(&mut self, m: &'a syn::Macro) {
            self.0.extend(m.path.get_ident().cloned());
        }
        fn visit_item(&mut self, item: &'a syn::Item) {
            if let syn::Item::Macro(syn::ItemMacro { ident: Some(name), .. }) = item {
                self.1.insert(name.to_string());
            }
        }
    }
    let mut called = Called::default();
    called.visit_stmt(stmt);
    let Called(mut names, defined) = called;
    names.retain(|name| !defined.contains(&name.to_string()));
    names
}

/// Returns whether code calls a macro that is not known.
pub(crate) fn calls_unknown(expr: &Expr) -> bool {
    struct Calls(bool);
    impl<'a> Visit<'a> for Calls {
        fn visit_macro(&mut self, m: &'a syn::Macro) {
            // Among the tokens of a known one, there may be another.
            let inside = m.tokens.clone().into_iter().any(|token| is_bang(&token));
            self.0 |= !only_reads(m) || inside;
        }
    }
    let mut calls = Calls(false);
    calls.visit_expr(expr);
    calls.0
}

fn is_bang(token: &TokenTree) -> bool {
    match token {
        TokenTree::Punct(p) => p.as_char() == '!',
        TokenTree::Group(group) => group.stream().into_iter().any(|token| is_bang(&token)),
        TokenTree::Ident(_) | TokenTree::Literal(_) => false,
    }
}

/// Returns whether one of these names and `!` are among tokens.
fn names_call(tokens: &TokenStream, names: &HashSet<String>) -> bool {
    let mut named = false;
    tokens.clone().into_iter().any(|token| {
        let is_call = named && matches!(&token, TokenTree::Punct(p) if p.as_char() == '!');
        named = matches!(&token, TokenTree::Ident(ident) if names.contains(&ident.to_string()));
        is_call || matches!(&token, TokenTree::Group(group) if names_call(&group.stream(), names))
    })
}

/// Returns whether a macro with this name prints, or writes to its argument.
pub(crate) fn prints(name: &str) -> bool {
    STANDARD_PRINTS.iter().chain(&WRITES).any(|p| *p == name)
}

/// Returns whether a macro is known to end in a panic or an error.
pub(crate) fn never_returns(m: &syn::Macro) -> bool {
    let name = m.path.segments.last().map(|s| s.ident.to_string());
    name.is_some_and(|n| ["panic", "unreachable", "todo", "unimplemented", "bail"].contains(&n.as_str()))
}

/// The names that a call of a macro, as a statement, may bind.
pub(crate) fn names_in(mac: &syn::Macro) -> Vec<String> {
    if only_reads(mac) {
        return Vec::new();
    }
    idents(mac.tokens.clone()).iter().map(ToString::to_string).collect()
}

/// The names among the tokens of a macro call, each once.
pub(crate) fn idents(tokens: TokenStream) -> Vec<Ident> {
    fn collect(tokens: TokenStream, found: &mut Vec<Ident>) {
        let mut path = false;
        for token in tokens {
            match &token {
                // `x` of `a.x` or `a::x` is not a variable.
                TokenTree::Ident(i) if !path && !found.contains(i) => found.push(i.clone()),
                TokenTree::Group(g) => collect(g.stream(), found),
                _ => {}
            }
            path = matches!(&token, TokenTree::Punct(p) if p.as_char() == '.' || p.as_char() == ':');
        }
    }
    let mut found = Vec::new();
    collect(tokens, &mut found);
    found
}

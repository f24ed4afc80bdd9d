//! The values that a formatting macro shows by `Display`.

use proc_macro2::Span;
use syn::{Expr, Ident, Lit, LitStr, Macro, Token, parse::Parser, punctuated::Punctuated};

/// Macros of which some argument is a format string.
const FORMATS: [&str; 25] = [
    "format",
    "format_args",
    "panic",
    "todo",
    "unimplemented",
    "unreachable",
    "assert",
    "assert_eq",
    "assert_ne",
    "debug_assert",
    "debug_assert_eq",
    "debug_assert_ne",
    "bail",
    "ensure",
    "anyhow",
    "eyre",
    "print",
    "println",
    "eprint",
    "eprintln",
    "write",
    "writeln",
    "info",
    "warn",
    "error",
];

/// A value shown by `Display`: an argument, or a name inside the string.
pub(super) enum Shown {
    Argument(Expr),
    Inline(Ident),
}

/// The arguments of a macro call, if they are expressions.
pub(super) fn arguments(mac: &Macro) -> Vec<Expr> {
    let parser = Punctuated::<Expr, Token![,]>::parse_terminated;
    parser.parse2(mac.tokens.clone()).map(|p| p.into_iter().collect()).unwrap_or_default()
}

/// What a call shows by `Display`.
pub(super) fn displayed(mac: &Macro) -> Vec<Shown> {
    let known = mac.path.segments.last().is_some_and(|s| FORMATS.iter().any(|f| s.ident == f));
    let arguments = if known { arguments(mac) } else { Vec::new() };
    let Some((at, format)) = arguments.iter().enumerate().find_map(|(i, a)| Some((i, string(a)?))) else {
        return Vec::new();
    };
    let (named, positional): (Vec<&Expr>, Vec<&Expr>) =
        arguments[at + 1..].iter().partition(|a| matches!(a, Expr::Assign(_)));
    let mut next = 0;
    let mut shown = Vec::new();
    for (name, spec) in placeholders(&format.value()) {
        let index = if name.is_empty() {
            next += 1;
            Some(next - 1)
        } else {
            name.parse::<usize>().ok()
        };
        if spec.trim_end().ends_with('?') {
            continue;
        }
        match index {
            Some(index) => shown.extend(positional.get(index).map(|e| Shown::Argument((*e).clone()))),
            None => shown.extend(by_name(&name, &named, format.span())),
        }
    }
    shown
}

fn string(expr: &Expr) -> Option<&LitStr> {
    match expr {
        Expr::Lit(l) => match &l.lit {
            Lit::Str(s) => Some(s),
            _ => None,
        },
        _ => None,
    }
}

fn by_name(name: &str, named: &[&Expr], span: Span) -> Option<Shown> {
    for argument in named {
        if let Expr::Assign(a) = argument
            && let Expr::Path(p) = &*a.left
            && p.path.is_ident(name)
        {
            return Some(Shown::Argument((*a.right).clone()));
        }
    }
    syn::parse_str::<Ident>(name).ok().map(|mut ident| {
        ident.set_span(span);
        Shown::Inline(ident)
    })
}

/// `(argument, spec)` of every `{…}`.
fn placeholders(text: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find(['{', '}']) {
        let after = &rest[at + 1..];
        if rest[at..].starts_with("{{") || rest[at..].starts_with("}}") {
            rest = &after[1..];
        } else if rest[at..].starts_with('{') {
            let end = after.find('}').unwrap_or(after.len());
            let (name, spec) = after[..end].split_once(':').unwrap_or((&after[..end], ""));
            found.push((name.trim().to_owned(), spec.to_owned()));
            rest = after.get(end + 1..).unwrap_or("");
        } else {
            rest = after;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Vec<String> {
        let mac: Macro = syn::parse_str(text).expect("a macro call");
        let name = |s: Shown| match s {
            Shown::Argument(e) => quote::quote!(#e).to_string(),
            Shown::Inline(i) => format!("{{{i}}}"),
        };
        displayed(&mac).into_iter().map(name).collect()
    }

    #[test]
    fn what_is_displayed() {
        assert_eq!(shown(r#"format!("{} {:?} {a} {a:?} {0:>3} {{x}}", x, y)"#), ["x", "{a}", "x"]);
        assert_eq!(shown(r#"assert!(ok, "{n}", n = x)"#), ["x"]);
        assert_eq!(shown(r#"vec!["{x}"]"#), [""; 0]);
        assert_eq!(
            shown(r#"format!("{} { }", x"#.trim_end_matches('"').replace(", x", ", x)").as_str()),
            ["x"]
        );
    }
}

//! The values that a formatting macro shows by `Display`.

use proc_macro2::Span;
use quote::ToTokens;
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
pub(crate) enum Shown {
    Argument(Expr),
    Inline(Ident),
}

/// The arguments of a macro call, if they are expressions.
pub(crate) fn arguments(mac: &Macro) -> Vec<Expr> {
    let parser = Punctuated::<Expr, Token![,]>::parse_terminated;
    parser.parse2(mac.tokens.clone()).map(|p| p.into_iter().collect()).unwrap_or_default()
}

/// Returns whether the format string of a call names `self`.
pub(crate) fn shows_self(mac: &Macro) -> bool {
    let is_format = mac.path.segments.last().is_some_and(|s| FORMATS.iter().any(|f| s.ident == f));
    let arguments = if is_format { arguments(mac) } else { Vec::new() };
    let named = |e: &Expr| matches!(e, Expr::Assign(a) if a.left.to_token_stream().to_string() == "self");
    let format = arguments.iter().find_map(string);
    format.is_some_and(|s| names(&s.value(), s.span()).iter().any(|n| n == "self"))
        && !arguments.iter().any(named)
}

/// Returns the arguments that a call formats with `Display`.
pub(crate) fn displayed(mac: &Macro) -> Vec<Shown> {
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
    identifier(name).map(|mut ident| {
        ident.set_span(span);
        Shown::Inline(ident)
    })
}

/// The variables that a format string names: arguments, widths and precisions.
pub(crate) fn names(text: &str, span: Span) -> Vec<Ident> {
    let mut found = Vec::new();
    for (argument, spec) in placeholders(text) {
        found.extend(identifier(&argument));
        // `width$` and `.precision$` follow a fill and an alignment; the fill may be any letter.
        for part in spec.split_inclusive('$').filter_map(|part| part.strip_suffix('$')) {
            let start = part.char_indices().rev().take_while(|(_, c)| *c == '_' || c.is_alphanumeric());
            let starts: Vec<usize> = start.map(|(at, _)| at).collect();
            found.extend(starts.iter().rev().find_map(|at| identifier(&part[*at..])));
        }
    }
    found.iter_mut().for_each(|name| name.set_span(span));
    found
}

/// Returns a name, if the text is one, including `self`. (Parsing it could produce an error of rustc's.)
fn identifier(text: &str) -> Option<Ident> {
    let (first, rest) = text.split_at_checked(text.chars().next()?.len_utf8())?;
    let starts = first == "_" && !rest.is_empty() || first.chars().all(unicode_ident::is_xid_start);
    let is_name = starts && rest.chars().all(unicode_ident::is_xid_continue);
    is_name.then(|| Ident::new(text, Span::call_site()))
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
    fn names_of_format_strings() {
        let all = |text: &str| {
            let found = names(text, Span::call_site());
            found.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(
            all("{a} {0} {} {b:?} {:>w$} {c:*^w$.p$} {:.*} {self} {ä:_<1$}"),
            ["a", "b", "w", "c", "w", "p", "self", "ä"]
        );
        for none in
            ["{{²", "{{½}}", "{²}", "{", "}", "{{", "{:", "{:$", "{:²$}", "{a b}", "{a.b}", "{{{{a}}}}", ""]
        {
            assert!(all(none).is_empty(), "{none}");
        }
        assert_eq!(all("{{{a}}} {:x$"), ["a", "x"]);
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

//! The arms of a `#[device] match`: each is for one integer or several, and the last one for all others.

use std::collections::HashSet;

use quote::ToTokens;
use syn::{ExprMatch, Lit, Pat, spanned::Spanned};

use crate::diag::{Code, Errors};

pub(super) fn check(e: &ExprMatch, errors: &mut Errors) {
    let mut arms = Arms { seen: HashSet::new(), errors };
    let mut all = false;
    for arm in &e.arms {
        if let Some((when, guard)) = &arm.guard {
            arms.refuse(
                quote::quote!(#when #guard),
                "an arm of a `#[device] match` has no guard: the index alone chooses it",
                "decide inside the arm, with `#[device] if … { … } else { … }`",
            );
        }
        if all {
            arms.refuse(&arm.pat, "no index reaches this arm: `_` stands above it", "move `_` to the end");
        }
        match &arm.pat {
            Pat::Wild(_) => all = true,
            pat => arms.pattern(pat),
        }
    }
    let wrong = e.arms.iter().any(|arm| arm.guard.is_some() || is_binding(&arm.pat));
    if !all && !wrong {
        arms.errors.push_span(
            Code::DevicePattern,
            e.match_token.span(),
            "a `#[device] match` needs an arm for every other index",
            "add `_ => …` at the end",
        );
    }
}

fn is_binding(pat: &Pat) -> bool {
    matches!(pat, Pat::Ident(p) if !is_constant(&p.ident.to_string()))
}

/// Returns whether a single name is that of a constant, by convention.
fn is_constant(name: &str) -> bool {
    !name.chars().any(char::is_lowercase) && name.starts_with(char::is_alphabetic)
}

struct Arms<'e> {
    /// The integers of the arms above.
    seen: HashSet<i128>,
    errors: &'e mut Errors,
}

impl Arms<'_> {
    fn refuse(&mut self, at: impl ToTokens, message: &str, help: impl std::fmt::Display) {
        self.errors.push(Code::DevicePattern, at, message, help);
    }

    fn pattern(&mut self, pat: &Pat) {
        let help = "write integers or constants, `0 | 1 => …`, and `_ => …` for all others";
        match pat {
            Pat::Or(or) => or.cases.iter().for_each(|case| self.pattern(case)),
            Pat::Paren(p) => self.pattern(&p.pat),
            Pat::Path(_) => {}
            Pat::Ident(p)
                if p.subpat.is_none() && p.by_ref.is_none() && is_constant(&p.ident.to_string()) => {}
            Pat::Lit(l) => match &l.lit {
                Lit::Int(n) => {
                    let Ok(value) = n.base10_parse::<i128>() else { return };
                    if !self.seen.insert(value) {
                        self.refuse(pat, "an arm above is for this index already", "remove it here");
                    }
                }
                Lit::Bool(_) => self.refuse(
                    pat,
                    "the index of a `#[device] match` is an integer",
                    "write `#[device] if … { … } else { … }`",
                ),
                _ => self.refuse(pat, "the index of a `#[device] match` is an integer", help),
            },
            Pat::Ident(p) => {
                let name = &p.ident;
                self.refuse(
                    pat,
                    &format!("`{name}` would be the index on the host, and it is on the device"),
                    "write `_`, and use the scalar that is matched",
                );
            }
            Pat::Range(_) => {
                self.refuse(
                    pat,
                    "an arm of a `#[device] match` has no range",
                    "list the integers: `0 | 1 | 2 => …`",
                );
            }
            Pat::Wild(_) => {
                self.refuse(pat, "`_` beside other integers makes them superfluous", "write `_` alone");
            }
            other => self.refuse(other, "an arm of a `#[device] match` is for integers", help),
        }
    }
}

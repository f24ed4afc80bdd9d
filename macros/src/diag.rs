//! Errors, collected so that a function reports all of them at once.

use proc_macro2::{Span, TokenStream};
use quote::ToTokens;

/// Collects errors. Must be drained with [`Errors::finish`].
#[derive(Default)]
pub(crate) struct Errors {
    list: Vec<syn::Error>,
}

impl Errors {
    /// An error on `at`: what is wrong, and what to write instead.
    pub(crate) fn push(
        &mut self,
        at: &impl ToTokens,
        message: impl std::fmt::Display,
        help: impl std::fmt::Display,
    ) {
        // Not only the first token: all of `at` is underlined.
        self.list.push(syn::Error::new_spanned(at, format!("{message}\n\nhelp: {help}")));
    }

    /// As [`push`](Self::push), on a span.
    pub(crate) fn push_span(
        &mut self,
        at: Span,
        message: impl std::fmt::Display,
        help: impl std::fmt::Display,
    ) {
        self.list.push(syn::Error::new(at, format!("{message}\n\nhelp: {help}")));
    }

    /// The errors of another part of the same function.
    pub(crate) fn append(&mut self, other: Self) {
        self.list.extend(other.list);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// All errors as `compile_error!` calls; nothing when there are none.
    pub(crate) fn finish(self) -> TokenStream {
        self.list.iter().map(syn::Error::to_compile_error).collect()
    }
}

/// The known name nearest to `name`, if one is near enough to be meant.
pub(crate) fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    known
        .iter()
        .map(|k| (distance(name, k), *k))
        .filter(|(d, k)| *d <= 1 + k.len() / 4)
        .min_by_key(|(d, _)| *d)
        .map(|(_, k)| k)
}

/// Levenshtein distance.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.iter().enumerate() {
            let substituted = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggestions() {
        assert_eq!(nearest("suport", &["support", "cx"]), Some("support"));
        assert_eq!(nearest("banana", &["support", "cx"]), None);
    }

    #[test]
    fn all_errors_are_reported() {
        let mut errors = Errors::default();
        errors.push_span(Span::call_site(), "one", "a");
        errors.push_span(Span::call_site(), "two", "b");
        assert_eq!(errors.finish().to_string().matches("compile_error").count(), 2);
    }
}

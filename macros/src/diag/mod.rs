//! Errors, collected so that a function reports all of them together.

use proc_macro2::{Span, TokenStream};
use quote::ToTokens;

pub(crate) mod catalogue;
mod nearest;
mod shortened;

pub(crate) use catalogue::Code;
pub(crate) use nearest::nearest;
pub(crate) use shortened::{on_one_line, shortened};

/// Collects errors. Must be drained with [`Errors::finish`].
#[derive(Default)]
pub(crate) struct Errors {
    list: Vec<syn::Error>,
    /// Set if the function cannot be emitted, because rustc would find more errors in it.
    breaking: bool,
}

/// A position among the errors of a function, recorded so that errors of a later check appear in the order of
/// the source.
#[derive(Clone, Copy)]
pub(crate) struct Place(usize);

impl Errors {
    /// Adds an error at `at`: the problem, and what to write instead.
    pub(crate) fn push(
        &mut self,
        code: Code,
        at: impl ToTokens,
        message: impl std::fmt::Display,
        help: impl std::fmt::Display,
    ) {
        // Not only the first token: all of `at` is underlined.
        self.breaking |= !code.harmless();
        self.list.push(syn::Error::new_spanned(at, rendered(code, message, help)));
    }

    /// As [`push`](Self::push), on a span.
    pub(crate) fn push_span(
        &mut self,
        code: Code,
        at: Span,
        message: impl std::fmt::Display,
        help: impl std::fmt::Display,
    ) {
        self.breaking |= !code.harmless();
        self.list.push(syn::Error::new(at, rendered(code, message, help)));
    }

    /// Adds a syntax error.
    pub(crate) fn push_syntax(&mut self, code: Code, errors: syn::Error, help: impl std::fmt::Display) {
        for error in errors {
            self.push_span(code, error.span(), &error, &help);
        }
    }

    /// The errors of another part of the same function.
    pub(crate) fn append(&mut self, other: Self) {
        self.list.extend(other.list);
        self.breaking |= other.breaking;
    }

    /// The place of the next error.
    pub(crate) fn place(&self) -> Place {
        Place(self.list.len())
    }

    /// Inserts the errors of a later check at their positions, in the order in which these were recorded.
    pub(crate) fn insert(&mut self, found: Vec<(Place, Self)>) {
        for (place, errors) in found.into_iter().rev() {
            self.breaking |= errors.breaking;
            self.list.splice(place.0..place.0, errors.list);
        }
    }

    pub(crate) fn count(&self) -> usize {
        self.list.len()
    }

    /// Returns whether a function with these errors is emitted without its body.
    pub(crate) fn is_breaking(&self) -> bool {
        self.breaking
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// All errors as `compile_error!` calls; nothing when there are none.
    pub(crate) fn finish(self) -> TokenStream {
        self.list.iter().map(syn::Error::to_compile_error).collect()
    }
}

impl Code {
    /// Returns whether the code is valid Rust nevertheless: it is then emitted, so that the items it uses are
    /// not reported as unused.
    fn harmless(self) -> bool {
        use Code::*;
        matches!(
            self,
            Prints
                | InputOutput
                | Clock
                | Randomness
                | Threads
                | Environment
                | Ambient
                | Synchronises
                | HostOperation
                | DimsContradiction
                | Guard
                | Recursion
        )
    }
}

fn rendered(code: Code, message: impl std::fmt::Display, help: impl std::fmt::Display) -> String {
    format!("[{}] {message}\n\nhelp: {help}", code.entry().code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_errors_are_reported() {
        let mut errors = Errors::default();
        errors.push_span(Code::BareScalar, Span::call_site(), "one", "a");
        errors.push_span(Code::ByValue, Span::call_site(), "two", "b");
        let text = errors.finish().to_string();
        assert_eq!(text.matches("compile_error").count(), 2);
        assert!(text.contains("[G020] one") && text.contains("[G021] two"), "{text}");
    }

    #[test]
    fn codes_are_unique_and_in_order() {
        let codes: Vec<&str> = catalogue::ALL.iter().map(|c| c.entry().code).collect();
        assert!(codes.windows(2).all(|w| w[0] < w[1]), "{codes:?}");
    }
}

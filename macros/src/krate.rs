//! The path of the runtime crate in generated code.

use proc_macro2::{Span, TokenStream};
use quote::quote;

/// Returns the path of the runtime crate. This is the only place that knows its name.
pub(crate) fn krate() -> TokenStream {
    quote!(::graphable)
}

/// Returns the path of the module that generated code uses.
pub(crate) fn private() -> TokenStream {
    let krate = krate();
    quote!(#krate::__private)
}

/// Returns a span located at `span` for generated code: errors about it are shown there.
pub(crate) fn generated_at(span: Span) -> Span {
    Span::mixed_site().located_at(span)
}

/// Like [`private`], for code that is shown at `span`.
pub(crate) fn private_at(span: Span) -> TokenStream {
    let shown = private().into_iter().map(|mut token| {
        token.set_span(span);
        token
    });
    shown.collect()
}

/// Returns the error type of a result type, through the trait of errors that can hold ours. Problems are
/// always reported at the position of the result's type, so rustc reports them only once.
pub(crate) fn user_error(ret: &syn::Type) -> TokenStream {
    let shown = generated_at(syn::spanned::Spanned::span(ret));
    let p = private_at(shown);
    quote::quote_spanned!(shown=> <<#ret as #p::TryError>::Error as #p::UserError>)
}

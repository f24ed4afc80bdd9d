//! Where generated code finds the runtime.

use proc_macro2::{Span, TokenStream};
use quote::quote;

/// Path of the runtime crate. The only place that knows its name.
pub(crate) fn krate() -> TokenStream {
    quote!(::graphable)
}

/// Path of what generated code uses.
pub(crate) fn private() -> TokenStream {
    let krate = krate();
    quote!(#krate::__private)
}

/// Where `span` is, for generated code: errors about it are shown there.
pub(crate) fn generated_at(span: Span) -> Span {
    Span::mixed_site().located_at(span)
}

/// As [`private`], for code that is shown at `span`.
pub(crate) fn private_at(span: Span) -> TokenStream {
    let shown = private().into_iter().map(|mut token| {
        token.set_span(span);
        token
    });
    shown.collect()
}

/// The error type of a result type, as what can hold our errors. What is wrong with it is shown at the result's type,
/// wherever it is asked: rustc then says it once.
pub(crate) fn user_error(ret: &syn::Type) -> TokenStream {
    let shown = generated_at(syn::spanned::Spanned::span(ret));
    let p = private_at(shown);
    quote::quote_spanned!(shown=> <<#ret as #p::TryError>::Error as #p::UserError>)
}

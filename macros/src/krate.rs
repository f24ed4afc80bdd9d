//! The path of the runtime crate in generated code.

use proc_macro2::TokenStream;
use quote::quote;

/// `::graphable`
pub(crate) fn krate() -> TokenStream {
    quote!(::graphable)
}

/// Where the items for generated code are.
pub(crate) fn private() -> TokenStream {
    quote!(::graphable::__private)
}

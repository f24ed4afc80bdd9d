//! Where generated code finds the runtime.

use proc_macro2::TokenStream;
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

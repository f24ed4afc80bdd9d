//! The items emitted for a function with errors: its signature, so that callers get no errors of their own.

use proc_macro2::TokenStream;
use quote::quote;

/// A body of any type.
pub(crate) fn body() -> TokenStream {
    quote!({ ::core::unreachable!() })
}

/// Returns attributes for a function whose lifetimes were filled in; a replaced body uses no parameter.
pub(crate) fn allow(broken: bool) -> TokenStream {
    let broken = broken.then(|| quote!(unused_variables, unused_mut, dead_code, clippy::all,));
    quote! {
        #[allow(#broken single_use_lifetimes, mismatched_lifetime_syntaxes, clippy::needless_lifetimes)]
        #[allow(clippy::extra_unused_lifetimes, clippy::multiple_bound_locations)]
    }
}

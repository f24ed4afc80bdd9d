//! The derive of a graph's type.

use proc_macro2::TokenStream;
use quote::quote;
use syn::DeriveInput;

use crate::krate::krate;

/// Returns the implementations that make the type show the methods of the graph object that it contains.
pub(crate) fn derive_graph(tokens: TokenStream) -> TokenStream {
    let DeriveInput { ident, generics, .. } = match syn::parse2(tokens) {
        Ok(item) => item,
        Err(error) => return error.to_compile_error(),
    };
    let (k, (parameters, arguments, _)) = (krate(), generics.split_for_impl());
    // As `finish_non_exhaustive` writes it.
    let text = format!("{ident} {{ .. }}");
    quote! {
        #[automatically_derived]
        impl #parameters ::core::ops::Deref for #ident #arguments {
            type Target = #k::GraphObject;
            #[inline]
            fn deref(&self) -> &#k::GraphObject {
                &self.0
            }
        }
        #[automatically_derived]
        impl #parameters ::core::fmt::Debug for #ident #arguments {
            #[inline]
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                ::core::fmt::Formatter::write_str(f, #text)
            }
        }
    }
}

//! What is emitted for a function with errors: its signature, so that callers have none of their own.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{
    Attribute, Signature, Visibility,
    parse::{Parse, ParseStream},
};

use crate::function::{self, Expanded, Unit};

/// A body of any type.
pub(crate) fn body() -> TokenStream {
    quote!({ ::core::unreachable!() })
}

/// Attributes for a function whose lifetimes were filled; a replaced body uses no parameter.
pub(crate) fn allow(broken: bool) -> TokenStream {
    let broken = broken.then(|| quote!(unused_variables, unused_mut, dead_code, clippy::all,));
    quote!(#[allow(#broken clippy::needless_lifetimes, clippy::extra_unused_lifetimes, clippy::multiple_bound_locations, single_use_lifetimes)])
}

/// A function of which only the signature is understood.
struct Head {
    attrs: Vec<Attribute>,
    vis: Visibility,
    sig: Signature,
}

impl Parse for Head {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let head =
            Self { attrs: input.call(Attribute::parse_outer)?, vis: input.parse()?, sig: input.parse()? };
        input.parse::<TokenStream>()?;
        Ok(head)
    }
}

/// For an item that cannot be parsed: the error, and as much of the item as is understood. A function keeps its
/// siblings, so that whoever uses its graph has no error.
pub(crate) fn unparsed(item: TokenStream, error: &syn::Error) -> TokenStream {
    let mut errors = crate::diag::Errors::default();
    let help = "complete the function; until then its callers see its signature";
    errors.push_syntax(crate::diag::Code::Unparsable, error.clone(), help);
    let Ok(Head { attrs, vis, sig }) = syn::parse2(item) else { return errors.finish() };
    let block = syn::parse_quote!({});
    let unit = Unit { attrs: &attrs, vis: &vis, sig, block, owner: None, helper: None, broken: Some(errors) };
    let Expanded { function, siblings } = function::expand(unit);
    quote!(#function #siblings)
}

//! `#[derive(ConfigValue)]`: host values that are compared by value.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};

use super::{Errors, Item, local, parse, private};

pub(crate) fn derive_config(tokens: TokenStream) -> TokenStream {
    let input = match parse(tokens) {
        Ok(input) => input,
        Err(errors) => return errors,
    };
    let mut errors = Errors::default();
    let Some(item) = Item::new(&input, "ConfigValue", &mut errors) else { return errors.finish() };

    let (p, k) = (private(), local("k"));
    let body = item.visit(
        |i| quote!(#k.word(#i);),
        |field| {
            let (ty, binding) = (field.ty(), &field.binding);
            quote_spanned!(field.span()=> <#ty as #p::ConfigValue>::config_key(#binding, #k);)
        },
    );
    let bound = |field: &super::Field<'_>| {
        let ty = field.ty();
        Some(quote!(#ty: #p::ConfigValue))
    };
    let live_in = item.implement(
        &quote!(#p::LiveIn),
        bound,
        &quote!(#[inline] #[allow(unused_variables)] fn write_key(&self, #k: &mut #p::KeyWriter) { #body }),
    );
    let config = item.implement(&quote!(#p::ConfigValue), bound, &TokenStream::new());
    // If every field can be a `#[key]`, so can the whole type: the bound has a lifetime of its own, so that a
    // type with a field which cannot is not an error here.
    let fields = item.fields().filter(|field| !item.is_recursive(field.ty()));
    let mut generics = input.generics.clone();
    for ty in fields.map(super::Field::ty) {
        generics.make_where_clause().predicates.push(syn::parse_quote!(for<'__key> #ty: #p::Key));
    }
    generics.make_where_clause().predicates.push(syn::parse_quote!(for<'__key> Self: ::core::clone::Clone));
    for ty in item.fields().map(super::Field::ty).filter(|ty| item.is_generic(ty)) {
        generics.make_where_clause().predicates.push(syn::parse_quote!(#ty: #p::ConfigValue));
    }
    let key = item.implement_with(&quote!(#p::Key), &generics, &TokenStream::new());
    quote!(#live_in #config #key)
}

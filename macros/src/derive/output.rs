//! `#[derive(GraphOutput)]`: structs of tensors that enter and leave segments.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::{DeriveInput, GenericParam, Lifetime, LifetimeParam, parse_quote};

use super::{Code, Errors, Field, Item, local, parse, private};
use crate::krate::Path;

pub(crate) fn derive_output(tokens: TokenStream) -> TokenStream {
    let input = match parse(tokens) {
        Ok(input) => input,
        Err(errors) => return errors,
    };
    let mut errors = Errors::default();
    let Some(item) = Item::new(&input, "GraphOutput", &mut errors) else { return errors.finish() };
    check(&input, &item, &mut errors);
    if !errors.is_empty() {
        return errors.finish();
    }

    let p = private();
    let (live_in, device) = (live_in(&item), device(&item));
    let (live_out, keep) = (live_out(&item, &p), keep(&item, &p));
    quote!(#live_in #device #live_out #keep)
}

fn check(input: &DeriveInput, item: &Item<'_>, errors: &mut Errors) {
    if let Some(second) = input.generics.lifetimes().nth(1) {
        errors.push(
            Code::DeriveTarget,
            second,
            "an output has one lifetime, that of its tensors",
            "use one lifetime for all tensors; what the output borrows otherwise cannot leave a segment",
        );
    }
    if item.variants.is_empty() {
        errors.push(
            Code::DeriveTarget,
            &input.ident,
            "an output needs a variant",
            "an enum without variants has no value",
        );
    }
}

fn live_in(item: &Item<'_>) -> TokenStream {
    let (p, k) = (private(), local("k"));
    let body = item.visit(
        |i| quote!(#k.word(#i);),
        |field| {
            let (ty, binding) = (field.ty(), &field.binding);
            quote_spanned!(field.span()=> <#ty as #p::LiveIn>::write_key(#binding, #k);)
        },
    );
    item.implement(
        &quote!(#p::LiveIn),
        |field| bound(field, &quote!(#p::LiveIn)),
        &quote!(#[inline] #[allow(unused_variables)] fn write_key(&self, #k: &mut #p::KeyWriter) { #body }),
    )
}

/// An output's host fields were computed in a segment or keyed before: its handle is a device value.
fn device(item: &Item<'_>) -> TokenStream {
    let p = private();
    item.implement(&quote!(#p::DeviceValue), |field| bound(field, &quote!(#p::LiveIn)), &TokenStream::new())
}

fn live_out(item: &Item<'_>, p: &Path) -> TokenStream {
    let mut generics = item.input.generics.clone();
    let lifetime = match generics.lifetimes().next() {
        Some(own) => own.lifetime.clone(),
        None => {
            let fresh = Lifetime::new("'__s", Span::mixed_site());
            generics.params.insert(0, GenericParam::Lifetime(LifetimeParam::new(fresh.clone())));
            fresh
        }
    };
    let what = quote!(#p::LiveOut<#lifetime>);
    for field in item.fields().filter(|f| item.is_generic(f.ty())) {
        let bound = bound(field, &what);
        generics.make_where_clause().predicates.push(parse_quote!(#bound));
    }

    let (e, d) = (local("e"), local("d"));
    let encode = item.visit(
        |i| quote!(#e.word(#i);),
        |field| {
            let (ty, binding) = (field.ty(), &field.binding);
            quote_spanned!(field.span()=> <#ty as #what>::encode(#binding, #e);)
        },
    );
    let decode = decode(item, &what, &d);
    let methods = quote! {
        #[allow(unused_variables)]
        fn encode(&self, #e: &mut #p::Encoder) { #encode }
        #[allow(unused_variables)]
        fn decode(#d: &mut #p::Decoder<#lifetime>) -> Self { #decode }
    };
    item.implement_with(&what, &generics, &methods)
}

/// Returns the same type in another step, with its lifetime replaced. The resulting bounds on type parameters
/// are required of the whole type, where it is kept.
fn keep(item: &Item<'_>, p: &Path) -> TokenStream {
    let fresh = Lifetime::new("'__kept", Span::mixed_site());
    let mut generics = item.input.generics.clone();
    generics.params.insert(0, GenericParam::Lifetime(LifetimeParam::new(fresh.clone())));
    let arguments = item.input.generics.params.iter().map(|param| match param {
        GenericParam::Lifetime(_) => quote!(#fresh),
        GenericParam::Type(t) => {
            let ident = &t.ident;
            quote!(#ident)
        }
        GenericParam::Const(c) => {
            let ident = &c.ident;
            quote!(#ident)
        }
    });
    let name = &item.input.ident;
    let at = quote!(#name<#(#arguments),*>);
    generics.make_where_clause().predicates.push(parse_quote!(#at: #p::LiveOut<#fresh>));
    item.implement_with(&quote!(#p::Keep<#fresh>), &generics, &quote!(type At = #at;))
}

fn decode(item: &Item<'_>, what: &TokenStream, d: &syn::Ident) -> TokenStream {
    let last = item.variants.len() - 1;
    let arms = item.variants.iter().enumerate().map(|(i, variant)| {
        let lets = variant.fields.iter().map(|field| {
            let (ty, binding) = (field.ty(), &field.binding);
            quote_spanned!(field.span()=> let #binding = <#ty as #what>::decode(#d);)
        });
        let value = variant.with_bindings();
        let i = i as u64;
        let pattern = if usize::try_from(i) == Ok(last) { quote!(_) } else { quote!(#i) };
        quote!(#pattern => { #(#lets)* #value })
    });
    if item.is_enum {
        quote!(match #d.word() { #(#arms)* })
    } else {
        // A struct has one variant and writes no discriminant.
        quote!(match () { #(#arms)* })
    }
}

fn bound(field: &Field<'_>, what: &TokenStream) -> Option<TokenStream> {
    let ty = field.ty();
    Some(quote!(#ty: #what))
}

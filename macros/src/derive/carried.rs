//! `#[derive(Carried)]`: structs of values on the device that bodies of control flow return and carry.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::{Data, Type};

use super::{Code, Errors, Field, Item, local, parse, private};

pub(crate) fn derive_carried(tokens: TokenStream) -> TokenStream {
    let input = match parse(tokens) {
        Ok(input) => input,
        Err(errors) => return errors,
    };
    let mut errors = Errors::default();
    let refused = match &input.data {
        Data::Struct(_) => None,
        Data::Enum(data) => Some(("an enum", data.enum_token.to_token_stream())),
        Data::Union(data) => Some(("a union", data.union_token.to_token_stream())),
    };
    if let Some((what, token)) = refused {
        errors.push(
            Code::DeriveTarget,
            token,
            format!("`Carried` cannot be derived for {what}: the device cannot choose another variant"),
            "use a struct; a part that may be missing is an `Option`, in all bodies alike",
        );
        return errors.finish();
    }
    let Some(item) = Item::new(&input, "Carried", &mut errors) else { return errors.finish() };

    let p = private();
    let (to, next) = (local("to"), local("next"));
    let bound = |field: &Field<'_>| {
        let ty = field.ty();
        Some(quote!(#ty: #p::CarriedField))
    };
    let describe = item.visit(
        |_| TokenStream::new(),
        |field| {
            let (ty, binding) = (field.ty(), &field.binding);
            quote_spanned!(field.span()=> <#ty as #p::CarriedField>::describe(#binding, #to);)
        },
    );
    let replace = made(
        &item,
        |ty, binding, span| quote_spanned!(span=> <#ty as #p::CarriedField>::replace(#binding, #next)),
    );
    let share =
        made(&item, |ty, binding, span| quote_spanned!(span=> <#ty as #p::CarriedField>::share(#binding)));
    let sealed = item.implement(&quote!(#p::CarriedSealed), bound, &TokenStream::new());
    let carried = item.implement(
        &quote!(#p::Carried),
        bound,
        &quote! {
            #[allow(unused_variables)]
            fn describe(&self, #to: &mut #p::Description) { #describe }
            #[allow(unused_variables)]
            fn replace(self, #next: &mut #p::NextTensor<'_>) -> Self { #replace }
            fn share(&self) -> Self { #share }
        },
    );
    quote!(#sealed #carried)
}

/// A struct whose fields have these values, each of which is made of the type and the binding of a field of `self`.
fn made(item: &Item<'_>, value: impl Fn(&Type, &Ident, Span) -> TokenStream) -> TokenStream {
    let structs = item.variants.iter().map(|variant| {
        let pattern = variant.with_bindings();
        let fields = variant.fields.iter().map(|field| {
            let (member, value) = (&field.member, value(field.ty(), &field.binding, field.span()));
            quote!(#member: #value)
        });
        quote!(#pattern => Self { #(#fields),* })
    });
    quote!(match self { #(#structs)* })
}

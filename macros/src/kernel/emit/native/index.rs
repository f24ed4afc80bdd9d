//! The function of an index, with the runtime's types for views.

use proc_macro2::{Literal, Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::Ident;

use super::{Native, lang, outputs, ty};
use crate::{
    kernel::{
        model::{Header, Scalar, ViewCall},
        views::ViewOp,
    },
    krate::generated_at,
};

/// Returns the name of the argument that a function of an index takes besides its parameters.
fn context(at: Span) -> Ident {
    Ident::new("__views", generated_at(at))
}

/// `fn run(…)`: the views, the values, and the index.
pub(super) fn signature(header: &Header) -> TokenStream {
    let (lang, at) = (lang(), header.name.span());
    let parameters = header.inputs.iter().map(|input| {
        let (name, element) = (&input.name, ty(input.scalar, input.name.span()));
        let mutable = input.mutable.then(|| quote!(mut));
        match input.view {
            None => quote!(#mutable #name: #element),
            Some(rank) => {
                let rank = Literal::usize_unsuffixed(rank);
                quote!(#name: #lang::views::View<'_, #element, #rank>)
            }
        }
    });
    let names = header.index.iter().map(|place| {
        let (name, mutable) = (&place.name, place.mutable.then(|| quote!(mut)));
        quote!(#mutable #name)
    });
    let (context, index, rank) =
        (context(at), ty(Scalar::I32, at), Literal::usize_unsuffixed(header.index.len()));
    let output = outputs(header);
    quote! {
        fn run(#context: &#lang::rows::Context, #(#parameters,)* [#(#names),*]: [#index; #rank]) -> #output
    }
}

pub(super) fn function(header: &Header, native: &Native<'_>) -> TokenStream {
    let signature = signature(header);
    let block = native.statements(&native.body.block);
    // What is written first may be replaced.
    let replaced = header.written().map(|_| quote!(#[allow(unused_assignments)]));
    quote!(#replaced #[allow(clippy::too_many_arguments)] #signature { #block })
}

impl Native<'_> {
    pub(super) fn view(&self, call: &ViewCall, at: Span) -> TokenStream {
        let lang = &self.lang;
        let mut view = self.body.locals[call.view].name.clone();
        view.set_span(view.span().located_at(at));
        let index = call.index.iter().map(|index| {
            let tokens = self.expr(index);
            quote_spanned!(index.span=> #lang::views::place(#tokens))
        });
        let other = call.other.as_ref().map(|other| self.expr(other));
        let (context, axis) = (context(at), Literal::usize_unsuffixed(call.axis));
        match call.op {
            ViewOp::Dim => quote_spanned!(at=> #lang::views::dim(#view, #axis)),
            ViewOp::At => quote_spanned!(at=> #lang::views::at(#context, #view, [#(#index),*])),
            ViewOp::Set => quote_spanned!(at=> #lang::views::target(#context, #view, [#(#index),*])),
            ViewOp::AtOr => quote_spanned!(at=> #lang::views::at_or(#view, [#(#index),*], #other)),
        }
    }
}

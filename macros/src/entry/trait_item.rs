//! Traits: only lifetimes are filled.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{ItemTrait, TraitItem, TraitItemFn};

use crate::{
    analyze, check, device_flow,
    diag::Errors,
    entry::function,
    expand::{self, fallback},
    parse::{
        device, lifetimes,
        parameters::{self, Marks},
        referents,
    },
};

pub(crate) fn expand_trait(mut item: ItemTrait) -> TokenStream {
    let mut errors = Errors::default();
    for inner in &mut item.items {
        let TraitItem::Fn(method) = inner else { continue };
        let marks: Vec<Marks> =
            method.sig.inputs.iter_mut().map(|argument| parameters::take(argument, &mut errors)).collect();
        let boundaries = method.default.as_ref().is_some_and(analyze::has_boundaries);
        function::refuse_in_trait(&method.sig, &marks, boundaries, &mut errors);
        if boundaries {
            let body = fallback::body();
            method.default = syn::parse2(body).ok();
        }
    }
    lifetimes::fill_trait(&mut item);
    for inner in &mut item.items {
        let TraitItem::Fn(TraitItemFn { sig, default: Some(block), .. }) = inner else { continue };
        device::spread(block);
        if check::device::check(sig, block, &mut errors) {
            *block = syn::parse2(fallback::body()).unwrap_or_else(|_| syn::parse_quote!({}));
        } else {
            referents::written(sig, block);
            *block = expand::function::body(&device_flow::of_function(sig, block));
        }
    }
    let allow = fallback::allow(false);
    let errors = errors.finish();
    quote!(#allow #item #errors)
}

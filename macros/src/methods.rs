//! `#[graphable] impl`: every method is a graph, or an ordinary method whose lifetimes are filled.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::{ImplItem, ImplItemFn, ItemImpl, Type};

use crate::{
    diag::{Code, Errors},
    driver, fallback,
    function::{self, Unit},
    lifetimes,
    params::{self, Marks},
    signature::Owner,
};

pub(crate) fn expand(mut item: ItemImpl) -> TokenStream {
    lifetimes::fill_impl(&mut item);
    let owner =
        Owner { ty: (*item.self_ty).clone(), name: name(&item.self_ty), generics: item.generics.clone() };
    let is_trait = item.trait_.is_some();
    let mut siblings = TokenStream::new();
    for inner in &mut item.items {
        if let ImplItem::Fn(method) = inner {
            let (function, more) =
                if is_trait { trait_method(method, &owner) } else { inherent(method, &owner) };
            siblings.extend(more);
            *inner = ImplItem::Verbatim(function);
        }
    }
    quote!(#item #siblings)
}

fn inherent(method: &ImplItemFn, owner: &Owner) -> (TokenStream, TokenStream) {
    let expanded = function::expand(Unit {
        attrs: &method.attrs,
        vis: &method.vis,
        sig: method.sig.clone(),
        block: method.block.clone(),
        owner: Some(owner),
        helper: None,
        broken: None,
    });
    (expanded.function, expanded.siblings)
}

/// The signature of a trait's method is the trait's: only lifetimes are filled.
fn trait_method(method: &ImplItemFn, owner: &Owner) -> (TokenStream, TokenStream) {
    let mut method = method.clone();
    let mut errors = Errors::default();
    let marks: Vec<Marks> =
        method.sig.inputs.iter_mut().map(|argument| params::take(argument, &mut errors)).collect();
    refuse(&method.sig, &marks, driver::has_boundaries(&method.block), &mut errors);
    lifetimes::fill_fn(&mut method.sig, Some(&mut method.block), Some(&owner.generics));
    let (attrs, vis, sig) = (&method.attrs, &method.vis, &method.sig);
    let broken = !errors.is_empty();
    let body = if broken { fallback::body() } else { method.block.to_token_stream() };
    let (allow, defaultness) = (fallback::allow(broken), &method.defaultness);
    (quote!(#(#attrs)* #allow #vis #defaultness #sig #body), errors.finish())
}

/// Refuses what a trait's method cannot have.
pub(crate) fn refuse(sig: &syn::Signature, marks: &[Marks], boundaries: bool, errors: &mut Errors) {
    if boundaries {
        errors.push(
            Code::TraitMethod,
            &sig.ident,
            "a trait's method has no boundaries: its signature cannot carry the driver",
            "move the body to a function or an inherent method, and call that with `#[piecewise]`",
        );
    }
    for mark in marks.iter().filter_map(Marks::any) {
        let text = mark.to_token_stream();
        errors.push(
            Code::TraitMethod,
            mark,
            format!("a trait's method is no graph, and takes no `{text}`"),
            "remove it, or move the body to a function or an inherent method",
        );
    }
}

/// The last name of a type, for the names of siblings.
fn name(ty: &Type) -> String {
    match ty {
        Type::Path(path) => path.path.segments.last().map_or_else(String::new, |s| s.ident.to_string()),
        Type::Reference(r) => name(&r.elem),
        Type::Group(g) => name(&g.elem),
        Type::Paren(p) => name(&p.elem),
        _ => String::new(),
    }
}

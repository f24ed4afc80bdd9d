//! `#[graphable] impl`: every method is a graph, or an ordinary method whose lifetimes are filled in.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::{Expr, GenericArgument, Generics, ImplItem, ImplItemFn, ItemImpl, PathArguments, Type};

use crate::{
    analyze, check, device_flow,
    diag::Errors,
    entry::function::{self, Unit},
    expand::{self, fallback},
    parse::{
        device, lifetimes,
        parameters::{self, Marks},
        referents,
        signature::Owner,
    },
};

pub(crate) fn expand(mut item: ItemImpl) -> TokenStream {
    lifetimes::fill_impl(&mut item);
    let owner = Owner {
        ty: (*item.self_ty).clone(),
        name: name(&item.self_ty),
        arguments: arguments(&item.self_ty, &item.generics),
        generics: item.generics.clone(),
    };
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
        method.sig.inputs.iter_mut().map(|argument| parameters::take(argument, &mut errors)).collect();
    function::refuse_in_trait(&method.sig, &marks, analyze::has_boundaries(&method.block), &mut errors);
    lifetimes::fill_fn(&mut method.sig, Some(&mut method.block), Some(&owner.generics));
    device::spread(&mut method.block);
    check::device::check(&method.sig, &method.block, &mut errors);
    referents::written(&method.sig, &mut method.block);
    let (attrs, vis, sig) = (&method.attrs, &method.vis, &method.sig);
    let broken = !errors.is_empty();
    let body = if broken {
        fallback::body()
    } else {
        expand::function::body(&device_flow::of_function(sig, &method.block)).into_token_stream()
    };
    let (allow, defaultness) = (fallback::allow(broken), &method.defaultness);
    (quote!(#(#attrs)* #allow #vis #defaultness #sig #body), errors.finish())
}

/// Returns the arguments of a type that the `impl` does not leave open, by their last names: `f32` of
/// `Linear<f32>`. They distinguish the siblings of two such `impl`s.
fn arguments(ty: &Type, generics: &Generics) -> Vec<String> {
    let Some(PathArguments::AngleBracketed(all)) = last_segment(ty).map(|s| &s.arguments) else {
        return Vec::new();
    };
    let open = |ty: &Type| {
        let ident = if let Type::Path(path) = ty { path.path.get_ident() } else { None };
        ident.is_some_and(|i| {
            generics.type_params().any(|p| p.ident == *i) || generics.const_params().any(|p| p.ident == *i)
        })
    };
    let named = all.args.iter().flat_map(|argument| match argument {
        GenericArgument::Type(ty) if open(ty) => Vec::new(),
        GenericArgument::Type(ty) => {
            let own = Some(name(ty)).filter(|n| !n.is_empty());
            own.into_iter().chain(arguments(ty, generics)).collect()
        }
        GenericArgument::Const(Expr::Lit(lit)) => vec![literal(&lit.lit)],
        _ => Vec::new(),
    });
    named.filter(|n| !n.is_empty()).collect()
}

/// The digits, letters and so on of a literal.
fn literal(lit: &syn::Lit) -> String {
    lit.to_token_stream().to_string().chars().filter(|c| c.is_alphanumeric()).collect()
}

fn last_segment(ty: &Type) -> Option<&syn::PathSegment> {
    match ty {
        Type::Path(path) => path.path.segments.last(),
        Type::Group(g) => last_segment(&g.elem),
        Type::Paren(p) => last_segment(&p.elem),
        _ => None,
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

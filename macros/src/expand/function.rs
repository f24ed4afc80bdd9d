//! The function itself: its signature with the carrier of host code, and its call by the graph.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::{
    Attribute, Block, FnArg, GenericParam, Ident, Lifetime, LifetimeParam, Pat, PatType, Type, Visibility,
    parse_quote, visit_mut::VisitMut,
};

use super::{
    boundary, device_flow, fallback,
    graph_object::Run,
    host_code::{self, cx},
};
use crate::{
    krate::private,
    model::{DeviceCode, PlanItem},
    parse::{lifetimes, signature::Signature},
};

/// A function as it is emitted, and how its graph calls it.
pub(crate) struct Function {
    pub(crate) sig: syn::Signature,
    pub(crate) body: TokenStream,
    pub(crate) run: Run,
}

/// Returns an ordinary function whose lifetimes are filled in; without `body`, it is broken.
pub(crate) fn ordinary(
    attrs: &[Attribute],
    vis: &Visibility,
    sig: &syn::Signature,
    body: Option<&DeviceCode>,
) -> TokenStream {
    let allow = fallback::allow(body.is_none());
    let body = body_or_fallback(body);
    quote!(#(#attrs)* #allow #vis #sig #body)
}

/// Returns the body of a function without boundaries.
pub(crate) fn body(DeviceCode { block, flows }: &DeviceCode) -> Block {
    let mut block = block.clone();
    device_flow::Flows(flows).visit_block_mut(&mut block);
    block
}

fn body_or_fallback(code: Option<&DeviceCode>) -> TokenStream {
    code.map_or_else(fallback::body, |code| body(code).into_token_stream())
}

/// Returns a function whose whole body is one segment; without `body`, it is broken.
pub(crate) fn one_segment(
    signature: &Signature,
    sig: &syn::Signature,
    body: Option<&DeviceCode>,
    plan: &PlanItem,
) -> Function {
    let site = host_code::site(&signature.name, plan.location());
    let run = Run::Segment { site, callee: signature.callee.clone() };
    Function { sig: sig.clone(), body: body_or_fallback(body), run }
}

/// Returns a function with boundaries, with these statements after those of `opening`. Its executor is passed
/// together with the first argument, or as a separate one.
pub(crate) fn with_boundaries(
    signature: &Signature,
    sig: &syn::Signature,
    opening: &[syn::Stmt],
    statements: &TokenStream,
) -> Function {
    let (p, cx, step, callee) = (private(), cx(), &signature.step, &signature.callee);
    let mut sig = sig.clone();
    declare(&mut sig, std::slice::from_ref(step), signature);
    let statements = quote!(#(#opening)* #statements);
    let carrier = sig.inputs.iter().position(|a| matches!(a, FnArg::Typed(_)));
    let arguments = signature.params.iter().enumerate().map(|(i, param)| {
        let ident = &param.ident;
        let carries = Some(i) == carrier;
        if carries { quote!(#p::OnlyForFunctionsWithBoundaries(#cx, #ident)) } else { quote!(#ident) }
    });
    let arguments: Vec<TokenStream> = arguments.collect();
    let Some(carrier) = carrier else {
        // No parameter can carry the host code, so it is a separate parameter.
        sig.inputs.push(parse_quote!(#cx: #p::Piecewise<#step>));
        let run = Run::HostCode(quote!(#callee(#(#arguments,)* #cx)));
        return Function { sig, body: quote!({ #statements }), run };
    };
    let open = carried(&mut sig, carrier, signature);
    let run = Run::HostCode(quote!(#callee(#(#arguments),*)));
    Function { sig, body: quote!({ #open #statements }), run }
}

/// Makes the parameter at `carrier` carry the host code as well, and returns the statement that separates the
/// two.
fn carried(sig: &mut syn::Signature, carrier: usize, signature: &Signature) -> TokenStream {
    let types: Vec<Ident> = signature.generics.type_params().map(|p| p.ident.clone()).collect();
    let step = &signature.step;
    let declared = sig.generics.lifetimes().chain(&signature.lifetimes).map(|p| p.lifetime.ident.clone());
    let mut declared: Vec<Ident> = declared.chain([step.ident.clone()]).collect();
    let FnArg::Typed(argument) = &mut sig.inputs[carrier] else { return TokenStream::new() };
    let mut ty = (*argument.ty).clone();
    let names = lifetimes::name_elided(&mut ty);
    declared.extend(names.iter().map(|l| l.ident.clone()));
    let outlives = lifetimes::outlives(&ty, &declared, &types);
    let open = opened(argument, &ty, &signature.params[carrier].ident, signature);
    declare(sig, &names, signature);
    // An `impl Trait` argument does not imply the bounds that its parameters would. They are declared
    // together with the lifetime here: after a `where` of ours, rustc would tell users to write their own
    // bounds.
    match sig.generics.lifetimes_mut().find(|p| p.lifetime.ident == step.ident) {
        Some(declared) => declared.bounds.extend(names.iter().cloned()),
        None => {
            for name in &names {
                sig.generics.make_where_clause().predicates.push(parse_quote!(#step: #name));
            }
        }
    }
    // Nor the bounds that its references imply for their referents.
    let given: Vec<_> = names.iter().map(|name| (step.ident.to_string(), name.ident.to_string())).collect();
    for (long, short, predicate) in outlives {
        if !given.contains(&(long, short)) {
            sig.generics.make_where_clause().predicates.push(predicate);
        }
    }
    open
}

/// Gives the parameter `ident` the type that carries host code in addition to a `ty`, and returns the
/// statement that opens it.
fn opened(argument: &mut PatType, ty: &Type, ident: &Ident, signature: &Signature) -> TokenStream {
    let (p, cx, step) = (private(), cx(), &signature.step);
    let (graph, arguments) = (signature.sibling("Graph"), signature.type_arguments());
    *argument.ty = Type::Verbatim(quote!(impl #p::NeedsPiecewise<#step, #graph #arguments, #ty>));
    let pattern = argument.pat.clone();
    *argument.pat = Pat::Verbatim(quote!(#ident));
    let attrs = &argument.attrs;
    quote!(#(#attrs)* let (#cx, #pattern) = #p::NeedsPiecewise::open(#ident);)
}

/// Returns a method as `#[piecewise] Type::method(…)` calls it: the call does not show which argument is a
/// receiver, nor which one carries the host code, so that comes last.
pub(crate) fn by_path(signature: &Signature, sig: &syn::Signature) -> TokenStream {
    let (p, cx) = (private(), cx());
    let (vis, cfgs, step, callee) = (&signature.vis, &signature.cfgs, &signature.step, &signature.callee);
    let mut sig = sig.clone();
    declare(&mut sig, std::slice::from_ref(step), signature);
    sig.ident = boundary::by_path(&sig.ident);
    let mut carried = false;
    let mut arguments: Vec<TokenStream> = Vec::new();
    for (argument, param) in sig.inputs.iter_mut().zip(&signature.params) {
        let FnArg::Typed(typed) = argument else {
            arguments.push(quote!(self));
            continue;
        };
        let ident = &param.ident;
        typed.attrs.clear();
        *typed.pat = Pat::Verbatim(quote!(#ident));
        arguments.push(if carried {
            quote!(#ident)
        } else {
            quote!(#p::OnlyForFunctionsWithBoundaries(#cx, #ident))
        });
        carried = true;
    }
    if !carried {
        arguments.push(quote!(#cx));
    }
    sig.inputs.push(parse_quote!(#cx: #p::Piecewise<#step>));
    quote! {
        #(#cfgs)*
        #[doc(hidden)]
        #[allow(dead_code, unreachable_pub, clippy::all, clippy::pedantic)]
        #vis #sig {
            #callee(#(#arguments),*)
        }
    }
}

/// Adds lifetimes that neither the function nor its `impl` declares.
fn declare(sig: &mut syn::Signature, names: &[Lifetime], signature: &Signature) {
    for name in names.iter().rev() {
        let own = sig.generics.lifetimes().any(|p| p.lifetime.ident == name.ident);
        let outer = signature.outer_step && signature.step.ident == name.ident;
        if !own && !outer {
            sig.generics.lt_token.get_or_insert_with(Default::default);
            sig.generics.gt_token.get_or_insert_with(Default::default);
            sig.generics.params.insert(0, GenericParam::Lifetime(LifetimeParam::new(name.clone())));
        }
    }
}

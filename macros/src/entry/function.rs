//! `#[graphable]` on one function: what it is, the function that is emitted, its siblings.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::{
    Attribute, Block, FnArg, GenericParam, Ident, Lifetime, LifetimeParam, Pat, Type, Visibility,
    parse::{Parse, ParseStream},
    parse_quote,
    visit_mut::VisitMut,
};

use crate::{
    analyze::{self, Context},
    check::lints,
    diag::{Code, Errors},
    expand::{
        fallback,
        graph_object::{Form, Graph, Parts, local},
    },
    krate::private,
    parse::{
        attributes, instrument, lifetimes,
        parameter_kind::Kind,
        parameters::{self, Marks},
        signature::{Owner, Param, Signature},
        types,
    },
};

/// A function or method.
pub(crate) struct Unit<'a> {
    pub(crate) attrs: &'a [Attribute],
    pub(crate) vis: &'a Visibility,
    pub(crate) sig: syn::Signature,
    pub(crate) block: Block,
    pub(crate) owner: Option<&'a Owner>,
    /// `#[graphable(helper)]`.
    pub(crate) helper: Option<&'a Ident>,
    /// For a body that cannot be parsed: why. The block then stands for nothing.
    pub(crate) broken: Option<Errors>,
}

/// What becomes of it.
pub(crate) struct Expanded {
    pub(crate) function: TokenStream,
    /// Items beside it, and errors.
    pub(crate) siblings: TokenStream,
}

pub(crate) fn expand(unit: Unit<'_>) -> Expanded {
    let Unit { attrs, vis, mut sig, mut block, owner, helper, broken } = unit;
    let unparsed = broken.is_some();
    let mut errors = broken.unwrap_or_default();
    let marks: Vec<Marks> =
        sig.inputs.iter_mut().map(|argument| parameters::take(argument, &mut errors)).collect();
    lifetimes::fill_fn(&mut sig, Some(&mut block), owner.map(|o| &o.generics));
    let boundaries = analyze::has_boundaries(&block);
    if !boundaries {
        if !unparsed {
            analyze::check_without_boundaries(&block, &lint_context(&sig, None).params, &mut errors);
        }
        attributes::Keys.visit_block_mut(&mut block);
    }
    let mark = marks.iter().find_map(Marks::any);
    if let Some(helper) = helper {
        check_helper(helper, boundaries, mark, &mut errors);
    }
    let declared = boundaries || mark.is_some();
    let plain = helper.is_some() || !declared && owner.is_some();
    if plain && !unparsed {
        lints::check(&block, &lint_context(&sig, None), &mut errors);
    }
    if plain || !errors.is_empty() && !declared && !unparsed {
        return finish_helper(attrs, vis, &sig, &block, errors);
    }

    let mut problems = Errors::default();
    let signature = Signature::read(&sig, &marks, vis, attrs, owner, &mut problems);
    if !declared && (!problems.is_empty() || !signature.is_graph()) {
        return finish_helper(attrs, vis, &sig, &block, errors);
    }
    errors.append(problems);
    if !unparsed {
        let context = lint_context(&sig, Some(&signature));
        lints::check(&block, &context, &mut errors);
        if declared && !boundaries {
            lints::macros::check(&block.stmts, &mut errors);
            lints::effects::check(&block.stmts, &context.params, &mut errors);
        }
    }

    let (emitted, parts, run) = if boundaries {
        with_boundaries(&signature, &sig, &block, &mut errors)
    } else {
        (
            Emitted { sig: sig.clone(), body: block.to_token_stream() },
            plain_parts(&signature, &block),
            plain_run(&signature, &block),
        )
    };
    let form = match (errors.is_breaking(), declared) {
        (true, _) => Form::Broken,
        (false, true) => Form::Declared,
        (false, false) => Form::Possible,
    };
    let by_path = (boundaries && owner.is_some()).then(|| by_path(&signature, &sig));
    let Emitted { mut sig, mut body } = emitted;
    if form == Form::Broken {
        body = fallback::body();
        let ret = &signature.ret;
        sig.output = parse_quote!(-> #ret);
    }
    let graph = Graph { sig: &signature, form, parts, run }.emit();
    let allow = fallback::allow(form == Form::Broken);
    let errors = errors.finish();
    Expanded {
        function: quote!(#(#attrs)* #allow #vis #sig #body #by_path),
        siblings: quote!(#graph #errors),
    }
}

fn check_helper(helper: &Ident, boundaries: bool, mark: Option<&Attribute>, errors: &mut Errors) {
    if boundaries {
        let help = "remove `helper`, and call the function with `#[piecewise]`";
        errors.push(
            Code::Helper,
            helper,
            "a function with boundaries is not a helper: it needs the driver",
            help,
        );
    }
    if let Some(mark) = mark {
        let text = mark.to_token_stream();
        errors.push(
            Code::Helper,
            mark,
            format!("a helper's parameter does not take `{text}`"),
            "remove it, or `helper`",
        );
    }
}

/// An ordinary function whose lifetimes are filled.
fn finish_helper(
    attrs: &[Attribute],
    vis: &Visibility,
    sig: &syn::Signature,
    block: &Block,
    errors: Errors,
) -> Expanded {
    let broken = errors.is_breaking();
    let body = if broken { fallback::body() } else { block.to_token_stream() };
    let allow = fallback::allow(broken);
    Expanded { function: quote!(#(#attrs)* #allow #vis #sig #body), siblings: errors.finish() }
}

/// Names and types of the parameters, and what `#[dims]` says of them in a graph.
fn lint_context<'a>(sig: &'a syn::Signature, graph: Option<&'a Signature>) -> lints::Context<'a> {
    let named = sig.inputs.iter().filter_map(|argument| match argument {
        FnArg::Typed(typed) => match &*typed.pat {
            Pat::Ident(p) => Some((&p.ident, Some(&*typed.ty))),
            _ => None,
        },
        FnArg::Receiver(_) => None,
    });
    let named: Vec<(&Ident, Option<&Type>)> = named.collect();
    let dims = |ident: &Ident| {
        let param = graph?.params.iter().find(|p| p.ident == *ident)?;
        match (&param.dims, &param.kind) {
            (Some(dims), _) => Some(dims.iter().map(parameters::Dim::number).collect()),
            (None, Kind::HostScalar(_)) => Some(Vec::new()),
            _ => None,
        }
    };
    let tensors = named
        .iter()
        .filter(|(_, ty)| ty.is_some_and(lints::is_tensor_type))
        .map(|(ident, _)| lints::TensorParam { name: ident.to_string(), dims: dims(ident) });
    lints::Context {
        tensors: tensors.collect(),
        symbols: graph.map_or(&[], |g| &g.symbols),
        params: named.iter().map(|(ident, _)| *ident).collect(),
    }
}

struct Emitted {
    sig: syn::Signature,
    body: TokenStream,
}

/// One segment: the whole body.
fn plain_parts(signature: &Signature, block: &Block) -> Parts {
    let (p, site) = (private(), analyze::plain_site(block, &signature.name, 0));
    let live_ins = signature.params.iter().map(|p| p.ident.to_string());
    let item = quote! {
        #p::PlanItem::Segment { site: #site, live_ins: &[#(#live_ins),*], live_outs: &["the result"] }
    };
    Parts { items: vec![item], host_statement: None }
}

fn plain_run(signature: &Signature, block: &Block) -> TokenStream {
    let (site, callee) = (analyze::plain_site(block, &signature.name, 0), &signature.callee);
    let [cx, key] = ["__cx", "__k"].map(local);
    let idents = signature.params.iter().map(|p| &p.ident);
    let arguments = (0..signature.params.len()).map(|i| {
        let index = syn::Index::from(i);
        quote!(::core::clone::Clone::clone(#key.#index))
    });
    quote!(#cx.segment(#site, (#(&#idents,)*), |#key| #callee(#(#arguments),*)))
}

/// The driver, and how the graph calls it.
fn with_boundaries(
    signature: &Signature,
    sig: &syn::Signature,
    block: &Block,
    errors: &mut Errors,
) -> (Emitted, Parts, TokenStream) {
    let p = private();
    let cx = local("__cx");
    let this = Ident::new("self", proc_macro2::Span::call_site());
    let params = sig.inputs.iter().zip(&signature.params).map(|(argument, param)| match argument {
        FnArg::Receiver(_) => &this,
        FnArg::Typed(_) => &param.ident,
    });
    let mutable = sig.inputs.iter().filter_map(|argument| match argument {
        FnArg::Typed(typed) => match &*typed.pat {
            Pat::Ident(p) => p.mutability.is_some().then_some(&p.ident),
            _ => None,
        },
        FnArg::Receiver(_) => None,
    });
    let params: Vec<&Ident> = params.collect();
    let named = |wanted: &dyn Fn(&Param) -> bool| {
        let wanted = params.iter().zip(&signature.params).filter(|(_, p)| wanted(p));
        wanted.map(|(ident, _)| *ident).collect()
    };
    let context = Context {
        name: signature.name.clone(),
        ret: &signature.ret,
        step: &signature.step,
        // A struct of tensors may refer to state as well.
        holding: named(&|p| matches!(p.kind, Kind::Params | Kind::Output)),
        owned: named(&|p| matches!(p.kind, Kind::Key) && types::scalar(&p.ty).is_none()),
        host: named(&|p| matches!(p.kind, Kind::Params | Kind::Key)),
        mutable: mutable.collect(),
        params,
    };
    let (instrumented, block) = instrument::split(block);
    let host_code = analyze::expand(block, &context, errors);
    let parts = Parts { items: host_code.plan_items, host_statement: host_code.host_statement };

    let mut sig = sig.clone();
    declare(&mut sig, std::slice::from_ref(&signature.step), signature);
    let statements = host_code.body;
    let statements = quote!(#(#instrumented)* #statements);
    let idents = signature.params.iter().map(|p| &p.ident);
    let carrier = sig.inputs.iter().position(|a| matches!(a, FnArg::Typed(_)));
    let callee = &signature.callee;
    let arguments = idents.enumerate().map(|(i, ident)| {
        if Some(i) == carrier {
            quote!(#p::OnlyForFunctionsWithBoundaries(#cx, #ident))
        } else {
            quote!(#ident)
        }
    });
    let arguments: Vec<TokenStream> = arguments.collect();
    let step = &signature.step;
    let Some(carrier) = carrier else {
        // Nothing to carry the driver: it is a parameter of its own.
        sig.inputs.push(parse_quote!(#cx: #p::Driver<#step>));
        let run = quote!(#callee(#(#arguments,)* #cx));
        return (Emitted { sig, body: quote!({ #statements }) }, parts, run);
    };
    let (mut names, mut outlives) = (Vec::new(), Vec::new());
    let mut open = TokenStream::new();
    let types: Vec<Ident> = signature.generics.type_params().map(|p| p.ident.clone()).collect();
    let declared: Vec<Ident> = sig
        .generics
        .lifetimes()
        .chain(&signature.lifetimes)
        .map(|p| p.lifetime.ident.clone())
        .chain([signature.step.ident.clone()])
        .collect();
    if let FnArg::Typed(argument) = &mut sig.inputs[carrier] {
        let mut ty = (*argument.ty).clone();
        names = lifetimes::name_elided(&mut ty);
        let declared = [declared, names.iter().map(|l| l.ident.clone()).collect()].concat();
        outlives = lifetimes::outlives(&ty, &declared, &types);
        let graph = signature.sibling("Graph");
        let arguments = signature.type_arguments();
        *argument.ty = Type::Verbatim(quote!(impl #p::NeedsPiecewise<#step, #graph #arguments, #ty>));
        let pattern = argument.pat.clone();
        let ident = &signature.params[carrier].ident;
        *argument.pat = Pat::Verbatim(quote!(#ident));
        let attrs = &argument.attrs;
        open = quote!(#(#attrs)* let (#cx, #pattern) = #p::NeedsPiecewise::open(#ident););
    }
    declare(&mut sig, &names, signature);
    // An `impl Trait` argument does not imply the bounds that its parameters would. They stand with the lifetime where
    // it is declared here: behind a `where` of ours, rustc would tell users to write their own bounds.
    match sig.generics.lifetimes_mut().find(|p| p.lifetime.ident == step.ident) {
        Some(declared) => declared.bounds.extend(names.iter().cloned()),
        None => {
            for name in &names {
                sig.generics.make_where_clause().predicates.push(parse_quote!(#step: #name));
            }
        }
    }
    // Nor what its references say of what they refer to.
    let given = names.iter().map(|name| (step.ident.to_string(), name.ident.to_string()));
    let given: Vec<_> = given.collect();
    for (long, short, predicate) in outlives {
        if !given.contains(&(long, short)) {
            sig.generics.make_where_clause().predicates.push(predicate);
        }
    }
    let run = quote!(#callee(#(#arguments),*));
    (Emitted { sig, body: quote!({ #open #statements }) }, parts, run)
}

/// A method as `#[piecewise] Type::method(…)` calls it: which argument is a receiver, and which one takes the
/// driver, is not to be seen there, so the driver comes last.
fn by_path(signature: &Signature, sig: &syn::Signature) -> TokenStream {
    let (p, cx) = (private(), local("__cx"));
    let (vis, cfgs, step, callee) = (&signature.vis, &signature.cfgs, &signature.step, &signature.callee);
    let mut sig = sig.clone();
    declare(&mut sig, std::slice::from_ref(step), signature);
    sig.ident = analyze::by_path(&sig.ident);
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
    sig.inputs.push(parse_quote!(#cx: #p::Driver<#step>));
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

/// A function of which only the signature is understood.
struct Head {
    attrs: Vec<Attribute>,
    vis: Visibility,
    sig: syn::Signature,
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
    let mut errors = Errors::default();
    let help = "complete the function; until then its callers see its signature";
    errors.push_syntax(Code::Unparsable, error.clone(), help);
    let Ok(Head { attrs, vis, sig }) = syn::parse2(item) else { return errors.finish() };
    let block = syn::parse_quote!({});
    let unit = Unit { attrs: &attrs, vis: &vis, sig, block, owner: None, helper: None, broken: Some(errors) };
    let Expanded { function, siblings } = expand(unit);
    quote!(#function #siblings)
}

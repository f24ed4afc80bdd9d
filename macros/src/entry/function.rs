//! `#[graphable]` on one function: its kind, the emitted function, and its siblings.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote};
use syn::{
    Attribute, Block, FnArg, Ident, Pat, Type, Visibility,
    parse::{Parse, ParseStream},
    parse_quote,
    visit_mut::VisitMut,
};

use crate::{
    analyze,
    check::{host_code, lints, misplaced},
    diag::{Code, Errors},
    expand::{
        self, fallback,
        function::{self, Function},
        graph_object::{Form, Graph, Plan},
    },
    model::Header,
    parse::{
        attributes, hygiene, instrument, lifetimes,
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
    /// For a body that cannot be parsed: the errors. The block is then a placeholder.
    pub(crate) broken: Option<Errors>,
}

/// The result of expanding a function.
pub(crate) struct Expanded {
    pub(crate) function: TokenStream,
    /// Its sibling items, and errors.
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
            misplaced::check(&block, &lint_context(&sig, None).params, &mut errors);
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
    let ordinary = |errors: Errors| {
        let function = function::ordinary(attrs, vis, &sig, &block, errors.is_breaking());
        Expanded { function, siblings: errors.finish() }
    };
    if plain || !errors.is_empty() && !declared && !unparsed {
        return ordinary(errors);
    }
    let mut problems = Errors::default();
    let signature = Signature::read(&sig, &marks, vis, attrs, owner, &mut problems);
    if !declared && (!problems.is_empty() || !signature.is_graph()) {
        return ordinary(errors);
    }
    errors.append(problems);
    if !unparsed {
        let context = lint_context(&sig, Some(&signature));
        lints::check(&block, &context, &mut errors);
        if declared && !boundaries {
            lints::segment(&block.stmts, &context.params, &mut errors);
        }
    }
    let graph = GraphFunction { attrs, vis, sig: &sig, block: &block, signature: &signature };
    let (function, plan) = if boundaries { graph.with_boundaries(&mut errors) } else { graph.one_segment() };
    let form = match (errors.is_breaking(), declared) {
        (true, _) => Form::Broken,
        (false, true) => Form::Declared,
        (false, false) => Form::Possible,
    };
    let by_path = (boundaries && owner.is_some()).then(|| function::by_path(&signature, &sig));
    graph.finish(function, by_path, plan, form, errors)
}

/// A function that is a graph.
struct GraphFunction<'a> {
    attrs: &'a [Attribute],
    vis: &'a Visibility,
    sig: &'a syn::Signature,
    block: &'a Block,
    signature: &'a Signature,
}

impl GraphFunction<'_> {
    fn one_segment(&self) -> (Function, Plan) {
        let params = self.signature.params.iter().map(|p| p.ident.to_string());
        let item = analyze::one_segment(self.block, params);
        let function = function::one_segment(self.signature, self.sig, self.block, &item);
        (function, Plan { items: vec![item], host_statement: None })
    }

    fn with_boundaries(&self, errors: &mut Errors) -> (Function, Plan) {
        let Self { sig, signature, .. } = self;
        let this = Ident::new("self", Span::call_site());
        let header = header(sig, signature, &this);
        let (opening, block) = instrument::split(self.block);
        let renamed = hygiene::apart(block, &header.params);
        let block = renamed.as_ref().unwrap_or(block);
        let misplaced = misplaced::check(block, &header.params, errors);
        let code = analyze::host_code(block, &header, misplaced, errors);
        host_code::check(&code, &header.params, errors);
        // Of a function with errors only the signature is written.
        let statements = if errors.is_breaking() { TokenStream::new() } else { expand::body(&code, &header) };
        let function = function::with_boundaries(signature, sig, opening, &statements);
        (function, Plan { items: code.plan, host_statement: code.host_statement })
    }

    /// The function and its siblings; without its body where something is wrong with it.
    fn finish(
        &self,
        function: Function,
        by_path: Option<TokenStream>,
        plan: Plan,
        form: Form,
        errors: Errors,
    ) -> Expanded {
        let Self { attrs, vis, signature, .. } = self;
        let Function { mut sig, mut body, run } = function;
        if form == Form::Broken {
            body = fallback::body();
            let ret = &signature.ret;
            sig.output = parse_quote!(-> #ret);
        }
        let graph = Graph { sig: signature, form, plan, run }.emit();
        let allow = fallback::allow(form == Form::Broken);
        let errors = errors.finish();
        Expanded {
            function: quote!(#(#attrs)* #allow #vis #sig #body #by_path),
            siblings: quote!(#graph #errors),
        }
    }
}

/// Returns the parts of the signature that the body sees; `this` is `self`.
fn header<'a>(sig: &'a syn::Signature, signature: &'a Signature, this: &'a Ident) -> Header<'a> {
    let params = sig.inputs.iter().zip(&signature.params).map(|(argument, param)| match argument {
        FnArg::Receiver(_) => this,
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
    Header {
        name: signature.name.clone(),
        ret: &signature.ret,
        step: &signature.step,
        // A struct of tensors may refer to state as well.
        holding: named(&|p| matches!(p.kind, Kind::Params | Kind::Output)),
        owned: named(&|p| matches!(p.kind, Kind::Key) && types::scalar(&p.ty).is_none()),
        host: named(&|p| matches!(p.kind, Kind::Params | Kind::Key)),
        mutable: mutable.collect(),
        params,
    }
}

fn check_helper(helper: &Ident, boundaries: bool, mark: Option<&Attribute>, errors: &mut Errors) {
    if boundaries {
        let help = "remove `helper`, and call the function with `#[piecewise]`";
        errors.push(
            Code::Helper,
            helper,
            "a function with boundaries is not a helper: its host code runs on every call",
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

/// Returns names and types of the parameters, and their `#[dims]` in a graph.
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
        .filter(|(_, ty)| ty.is_some_and(types::is_tensor))
        .map(|(ident, _)| lints::TensorParam { name: ident.to_string(), dims: dims(ident) });
    lints::Context {
        tensors: tensors.collect(),
        symbols: graph.map_or(&[], |g| &g.symbols),
        params: named.iter().map(|(ident, _)| *ident).collect(),
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

/// For an item that cannot be parsed: returns the error, and as much of the item as is understood. A function
/// keeps its siblings, so that users of its graph get no errors.
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

//! `#[graphable]` on one function: its kind, the emitted function, and its siblings.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote};
use syn::{
    Attribute, Block, FnArg, Ident, Pat, Stmt, Type, Visibility,
    parse::{Parse, ParseStream},
    parse_quote,
    visit_mut::VisitMut,
};

use crate::{
    analyze,
    check::{self, host_code, lints, misplaced},
    device_flow,
    diag::{Code, Errors},
    expand::{
        self, fallback,
        function::{self, Function},
        graph_object::{Form, Graph, Plan},
    },
    model::{Header, HostCode, PlanItem},
    parse::{
        attributes, device, hygiene, instrument, item_attributes, lifetimes,
        parameter_kind::Kind,
        parameters::{self, Marks},
        referents,
        signature::{Owner, Param, Signature},
        surroundings::{self, Around},
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
    let mut errors = Errors::default();
    let item = Item::parse(unit, &mut errors);
    let Some(signature) = item.graph_signature(&mut errors) else { return item.ordinary(errors) };
    item.check(&signature, &mut errors);
    let this = Ident::new("self", Span::call_site());
    let header = header(&item.sig, &signature, &this);
    let analyzed = item.analyze(&signature, &header, &mut errors);
    let form = match (errors.is_breaking(), item.is_declared()) {
        (true, _) => Form::Broken,
        (false, true) => Form::Declared,
        (false, false) => Form::Possible,
    };
    item.emit(&signature, &header, analyzed, form, errors)
}

/// A function, and what is known of it without its signature's types.
struct Item<'a> {
    attrs: Vec<Attribute>,
    vis: &'a Visibility,
    sig: syn::Signature,
    block: Block,
    owner: Option<&'a Owner>,
    helper: Option<&'a Ident>,
    marks: Vec<Marks>,
    boundaries: bool,
    /// Set if the body could not be parsed.
    unparsed: bool,
    /// Set if control flow of the device is wrong, so its parts may not mean what they seem to.
    flow_is_wrong: bool,
    /// The item around it, if that has no attribute.
    around: Option<Around>,
    /// The names of attributes that it cannot have.
    misplaced: Vec<Ident>,
}

/// A body that was analyzed.
enum Analyzed<'a> {
    /// All of it is one segment.
    Segment(PlanItem),
    /// It has boundaries. `opening` are the statements of `#[instrument]` above it.
    HostCode { opening: &'a [Stmt], code: HostCode },
}

impl<'a> Item<'a> {
    /// Reads the attributes of the parameters, writes elided lifetimes, and looks for boundaries.
    fn parse(unit: Unit<'a>, errors: &mut Errors) -> Self {
        let Unit { attrs, vis, mut sig, mut block, owner, helper, broken } = unit;
        let unparsed = broken.is_some();
        errors.append(broken.unwrap_or_default());
        let mut attrs = attrs.to_vec();
        item_attributes::once(&mut attrs, errors);
        let misplaced = item_attributes::misplaced(&mut attrs, &sig.ident, errors);
        let around = if owner.is_none() { item_attributes::around(&sig, &block) } else { None };
        sig.inputs.iter().for_each(|argument| parameters::refuse_static(argument, errors));
        let marks = sig.inputs.iter_mut().map(|argument| parameters::take(argument, errors)).collect();
        let outer = owner.map(|o| &o.generics).or(around.as_ref().map(|a| &a.generics));
        lifetimes::fill_fn(&mut sig, Some(&mut block), outer);
        analyze::groups::open(&mut block);
        device::spread(&mut block);
        let flow_is_wrong = !unparsed && check::device::check(&sig, &block, errors);
        referents::written(&sig, &mut block);
        let boundaries = analyze::has_boundaries(&block);
        if !boundaries {
            if device::has_flow(&block)
                && let Some(apart) = hygiene::apart(&block, &lint_context(&sig, None).params)
            {
                block = apart;
            }
            if !unparsed {
                misplaced::check(&block, &lint_context(&sig, None).params, errors);
            }
            attributes::Keys.visit_block_mut(&mut block);
        }
        Self {
            attrs,
            vis,
            sig,
            block,
            owner,
            helper,
            marks,
            boundaries,
            unparsed,
            flow_is_wrong,
            around,
            misplaced,
        }
    }

    fn mark(&self) -> Option<&Attribute> {
        self.marks.iter().find_map(Marks::any)
    }

    /// Returns whether it says that it is a graph, by a boundary or a mark.
    fn is_declared(&self) -> bool {
        self.boundaries || self.mark().is_some()
    }

    /// Returns the signature of its graph; `None` if it has none.
    fn graph_signature(&self, errors: &mut Errors) -> Option<Signature> {
        if let Some(helper) = self.helper {
            check_helper(helper, self.boundaries, self.mark(), errors);
        }
        let declared = self.is_declared();
        // A graph cannot be an item of an `impl`; with an attribute of its own, the `impl` is the owner.
        if let Some(around) = self.around.as_ref().filter(|_| declared && self.helper.is_none()) {
            match around.kind {
                surroundings::Kind::Impl => refuse_lone(&self.sig, errors),
                surroundings::Kind::Trait => refuse_in_trait(&self.sig, &self.marks, self.boundaries, errors),
            }
        }
        if self.helper.is_some() || self.around.is_some() || !declared && self.owner.is_some() {
            if !self.unparsed {
                lints::check(&self.block, &lint_context(&self.sig, None), errors);
            }
            return None;
        }
        if !errors.is_empty() && !declared && !self.unparsed {
            return None;
        }
        let mut problems = Errors::default();
        let signature =
            Signature::read(&self.sig, &self.marks, self.vis, &self.attrs, self.owner, &mut problems);
        item_attributes::target_feature(&self.attrs, &mut problems);
        if !declared && (!problems.is_empty() || !signature.is_graph()) {
            return None;
        }
        errors.append(problems);
        signature.check_references(errors);
        Some(signature)
    }

    /// An ordinary function.
    fn ordinary(&self, errors: Errors) -> Expanded {
        let body = (!errors.is_breaking()).then(|| device_flow::of_function(&self.sig, &self.block));
        let function = function::ordinary(&self.attrs, self.vis, &self.sig, body.as_ref());
        let (imports, errors) = (self.imports(), errors.finish());
        Expanded { function, siblings: quote!(#imports #errors) }
    }

    /// See [`item_attributes::imports`]. What an `impl` with the attribute contains is not searched for by rustc.
    fn imports(&self) -> TokenStream {
        let free = self.owner.is_none() && self.around.is_none();
        item_attributes::imports(if free { &self.misplaced } else { &[] })
    }

    fn check(&self, signature: &Signature, errors: &mut Errors) {
        if self.unparsed {
            return;
        }
        let context = lint_context(&self.sig, Some(signature));
        lints::check(&self.block, &context, errors);
        if self.is_declared() && !self.boundaries {
            lints::segment(&self.block.stmts, &context.params, errors);
        }
    }

    fn analyze(&self, signature: &Signature, header: &Header<'_>, errors: &mut Errors) -> Analyzed<'_> {
        if !self.boundaries {
            let params = signature.params.iter().map(|p| p.ident.to_string());
            return Analyzed::Segment(analyze::one_segment(&self.block, params));
        }
        let (opening, block) = instrument::split(&self.block);
        let renamed = hygiene::apart(block, &header.params);
        let block = renamed.as_ref().unwrap_or(block);
        let misplaced = misplaced::check(block, &header.params, errors) || self.flow_is_wrong;
        let made = device_flow::made_in_arms(block, header);
        let code = analyze::host_code(made.as_ref().unwrap_or(block), header, misplaced, errors);
        host_code::check(&code, &header.params, errors);
        Analyzed::HostCode { opening, code }
    }

    /// Writes the function and its siblings; without its body where something is wrong with it.
    fn emit(
        &self,
        signature: &Signature,
        header: &Header<'_>,
        analyzed: Analyzed<'_>,
        form: Form,
        errors: Errors,
    ) -> Expanded {
        let Self { attrs, vis, sig, .. } = self;
        let broken = form == Form::Broken;
        let (function, plan) = match analyzed {
            Analyzed::Segment(item) => {
                let body = (!broken).then(|| device_flow::of_function(sig, &self.block));
                let function = function::one_segment(signature, sig, body.as_ref(), &item);
                (function, Plan { items: vec![item], host_statement: None })
            }
            Analyzed::HostCode { opening, code } => {
                // Of a function with errors only the signature is written.
                let statements = if broken { TokenStream::new() } else { expand::body(&code, header) };
                let function = function::with_boundaries(signature, sig, opening, &statements);
                (function, Plan { items: code.plan, host_statement: code.host_statement })
            }
        };
        let by_path = (self.boundaries && self.owner.is_some()).then(|| function::by_path(signature, sig));
        let Function { mut sig, mut body, run } = function;
        if broken {
            body = fallback::body();
            let ret = &signature.ret;
            sig.output = parse_quote!(-> #ret);
        }
        let graph = Graph { sig: signature, form, plan, run }.emit();
        let allow = fallback::allow(broken);
        let (imports, errors) = (self.imports(), errors.finish());
        Expanded {
            function: quote!(#(#attrs)* #allow #vis #sig #body #by_path),
            siblings: quote!(#graph #imports #errors),
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
        references: named(&|p| !matches!(p.kind, Kind::Key)),
        host: named(&|p| matches!(p.kind, Kind::Params | Kind::Key)),
        mutable: mutable.collect(),
        params,
    }
}

/// Rejects a method as a graph, if its `impl` has no attribute.
fn refuse_lone(sig: &syn::Signature, errors: &mut Errors) {
    let name = &sig.ident;
    let kind = if sig.receiver().is_some() { "a method" } else { "a function of an `impl`" };
    errors.push(
        Code::LoneMethod,
        name,
        format!("`{name}` is {kind}, and its graph, a type of its own, cannot be defined inside the `impl`"),
        "write `#[graphable] impl …` instead: the attribute then applies to every method",
    );
}

/// Rejects attributes that a trait method cannot have.
pub(crate) fn refuse_in_trait(sig: &syn::Signature, marks: &[Marks], boundaries: bool, errors: &mut Errors) {
    if boundaries {
        errors.push(
            Code::TraitMethod,
            &sig.ident,
            "a trait method cannot have boundaries: its signature cannot carry what its host code needs",
            "move the body to a function or an inherent method, and call that with `#[piecewise]`",
        );
    }
    for mark in marks.iter().filter_map(Marks::any) {
        let text = mark.to_token_stream();
        errors.push(
            Code::TraitMethod,
            mark,
            format!("a trait method is not a graph, and does not take `{text}`"),
            "remove it, or move the body to a function or an inherent method",
        );
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

//! The signature of a graph function: parameters and their kinds, dimensions, generics, result.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, format_ident, quote};
use syn::{
    Attribute, FnArg, GenericParam, Generics, Lifetime, LifetimeParam, Pat, ReturnType, Type, TypeParamBound,
    Visibility, WherePredicate, parse_quote,
    visit_mut::{self, VisitMut},
};

use crate::{
    diag::{Code, Errors},
    parse::{
        lifetimes,
        parameter_kind::{Kind, kind},
        parameters::{self, Dim, Marks},
        types::{first_type, impl_trait, plain, written},
    },
};

/// The most values that a key can hold.
const MAX_PARAMS: usize = 32;

/// One parameter.
pub(crate) struct Param {
    pub(crate) ident: Ident,
    pub(crate) ty: Type,
    pub(crate) kind: Kind,
    pub(crate) dims: Option<Vec<Dim>>,
}

/// The type that a method belongs to.
pub(crate) struct Owner {
    pub(crate) ty: Type,
    pub(crate) name: String,
    /// Arguments that are types and numbers, and not parameters of the `impl`.
    pub(crate) arguments: Vec<String>,
    pub(crate) generics: Generics,
}

impl Owner {
    /// Returns its form in messages.
    fn shown(&self) -> String {
        let Self { name, arguments, .. } = self;
        if arguments.is_empty() { name.clone() } else { format!("{name}<{}>", arguments.join(", ")) }
    }

    /// Returns the prefix of the names of siblings.
    fn prefix(&self) -> String {
        self.arguments.iter().fold(self.name.clone(), |prefix, a| prefix + &pascal(a))
    }
}

/// A graph function, as its siblings need it.
pub(crate) struct Signature {
    /// The user's name for it: `decode`, `Model::decode`.
    pub(crate) name: String,
    /// The prefix of the siblings' names.
    pub(crate) prefix: String,
    pub(crate) ident: Ident,
    pub(crate) vis: Visibility,
    pub(crate) cfgs: Vec<Attribute>,
    /// Type and const parameters, with those bounds that name no lifetime.
    pub(crate) generics: Generics,
    /// The other bounds.
    pub(crate) bounds: Vec<WherePredicate>,
    /// Lifetimes that the user declared, without the step's.
    pub(crate) lifetimes: Vec<LifetimeParam>,
    pub(crate) step: Lifetime,
    /// Set if the `impl` around the function declares it.
    pub(crate) outer_step: bool,
    pub(crate) params: Vec<Param>,
    pub(crate) symbols: Vec<String>,
    pub(crate) ret: Type,
    /// `T` of `Result<T>`.
    pub(crate) output: Type,
    /// Path of the function, with its type arguments.
    pub(crate) callee: TokenStream,
}

impl Signature {
    /// Reads a signature whose lifetimes are filled in. Errors are reported, and the rest is read as far as
    /// possible.
    pub(crate) fn read(
        sig: &syn::Signature,
        marks: &[Marks],
        vis: &Visibility,
        attrs: &[Attribute],
        owner: Option<&Owner>,
        errors: &mut Errors,
    ) -> Self {
        check_qualifiers(sig, errors);
        let step = lifetimes::step(sig, owner.map(|o| &o.generics));
        let all = owner.map(|o| &o.generics).into_iter().chain([&sig.generics]);
        let (generics, bounds, lifetimes) = split_generics(all, &step);
        let (ret, output) = result(sig, errors);
        let (name, prefix) = names(&sig.ident, owner);
        let outer_step =
            owner.is_some_and(|o| o.generics.lifetimes().any(|p| p.lifetime.ident == step.ident));
        let (params, symbols) = parameters(sig, marks, owner, &step, &generics, errors);
        let mut signature = Self {
            name,
            prefix,
            ident: sig.ident.clone(),
            vis: vis.clone(),
            cfgs: attrs.iter().filter(|a| a.path().is_ident("cfg")).cloned().collect(),
            generics,
            bounds,
            lifetimes,
            outer_step,
            step,
            params,
            symbols,
            ret,
            output,
            callee: callee(sig, owner),
        };
        if let Some(owner) = owner {
            signature.replace_self(&owner.ty);
        }
        signature
    }

    /// Parameters with a static buffer, in order: their place in this list is their index in the runtime.
    pub(crate) fn inputs(&self) -> impl Iterator<Item = &Param> {
        self.params.iter().filter(|p| p.kind.is_input())
    }

    /// Refuses a reference to an input that has to live as long as the step: a graph lends its inputs for the call. rustc
    /// suggests such references for functions without the attribute (E0106), and reports them at the attribute.
    ///
    /// Of a result that holds no tensor for certain, the step may be as short as the call, and rustc decides.
    pub(crate) fn check_references(&self, errors: &mut Errors) {
        let is_held = lifetimes::holds_tensor(&self.output, &self.step);
        for param in self.inputs() {
            let Type::Reference(reference) = plain(&param.ty) else { continue };
            let Some(lifetime) = &reference.lifetime else { continue };
            if lifetime.ident == "static" || is_held && lifetime.ident == self.step.ident {
                let (name, ty) = (&param.ident, written(&param.ty));
                errors.push(
                    Code::BorrowedForStep,
                    lifetime,
                    format!(
                        "`{name}` is borrowed for `{lifetime}`, and a graph borrows its inputs for one call"
                    ),
                    format!("write `{name}: {ty}`; the macro fills in the lifetime of the step"),
                );
            }
        }
    }

    /// A sibling's name.
    pub(crate) fn sibling(&self, suffix: &str) -> Ident {
        format_ident!("{}{suffix}", self.prefix, span = self.ident.span())
    }

    /// Names of the type and const parameters.
    pub(crate) fn type_names(&self) -> impl Iterator<Item = &Ident> {
        self.generics.params.iter().filter_map(|p| match p {
            GenericParam::Type(t) => Some(&t.ident),
            GenericParam::Const(c) => Some(&c.ident),
            GenericParam::Lifetime(_) => None,
        })
    }

    /// Type and const parameters, as arguments: `<T, N>`.
    pub(crate) fn type_arguments(&self) -> TokenStream {
        let names = self.type_names();
        quote!(<#(#names),*>)
    }

    /// Returns whether a function without our attributes can be a graph as well.
    pub(crate) fn is_graph(&self) -> bool {
        let unsized_param = self.generics.type_params().any(|p| p.bounds.iter().any(is_relaxed));
        self.inputs().next().is_some() && self.bounds.is_empty() && !unsized_param
    }

    /// `Self` means nothing outside the `impl`.
    fn replace_self(&mut self, ty: &Type) {
        struct Replace<'a>(&'a Type);
        impl VisitMut for Replace<'_> {
            fn visit_type_mut(&mut self, ty: &mut Type) {
                if let Type::Path(path) = ty
                    && path.qself.is_none()
                    && path.path.segments.first().is_some_and(|s| s.ident == "Self")
                {
                    let own = self.0;
                    let rest: Vec<_> = path.path.segments.iter().skip(1).collect();
                    *ty = if rest.is_empty() { own.clone() } else { parse_quote!(<#own> #(::#rest)*) };
                    return;
                }
                visit_mut::visit_type_mut(self, ty);
            }
        }
        let mut replace = Replace(ty);
        replace.visit_type_mut(&mut self.ret);
        replace.visit_type_mut(&mut self.output);
        replace.visit_generics_mut(&mut self.generics);
        for bound in &mut self.bounds {
            replace.visit_where_predicate_mut(bound);
        }
        for param in &mut self.params {
            replace.visit_type_mut(&mut param.ty);
            if let Kind::HostTensor(element) | Kind::HostScalar(element) | Kind::Device(element) =
                &mut param.kind
            {
                replace.visit_type_mut(element);
            }
        }
    }
}

/// Returns the user's name for a function, and the prefix of the names of its siblings.
fn names(ident: &Ident, owner: Option<&Owner>) -> (String, String) {
    let bare = ident.to_string().trim_start_matches("r#").to_owned();
    match owner {
        Some(o) => (format!("{}::{bare}", o.shown()), o.prefix() + &pascal(&bare)),
        // `_2d`: no identifier begins with a digit.
        None if pascal(&bare).starts_with(char::is_numeric) => (bare.clone(), format!("_{}", pascal(&bare))),
        None => (bare.clone(), pascal(&bare)),
    }
}

/// The parameters, and the symbols of their dimensions.
fn parameters(
    sig: &syn::Signature,
    marks: &[Marks],
    owner: Option<&Owner>,
    step: &Lifetime,
    generics: &Generics,
    errors: &mut Errors,
) -> (Vec<Param>, Vec<String>) {
    let mut symbols = Vec::new();
    let mut params = Vec::new();
    for (index, (argument, marks)) in sig.inputs.iter().zip(marks).enumerate() {
        params.push(match argument {
            FnArg::Receiver(receiver) => this(receiver, marks, owner, step, errors),
            FnArg::Typed(typed) => param(typed, marks, index, step, generics, &mut symbols, errors),
        });
    }
    for param in params.iter_mut().filter(|p| p.ident == sig.ident) {
        // Generated code calls the function where its parameters are in scope.
        param.ident.set_span(Span::mixed_site().located_at(param.ident.span()));
    }
    if params.len() > MAX_PARAMS {
        let help = "group parameters in a `#[derive(Params)]` struct, or tensors in one input";
        errors.push(
            Code::TooManyParameters,
            &sig.ident,
            format!("a graph has at most {MAX_PARAMS} parameters"),
            help,
        );
    }
    (params, symbols)
}

/// The path of the function, with its type arguments.
fn callee(sig: &syn::Signature, owner: Option<&Owner>) -> TokenStream {
    let types = sig.generics.params.iter().filter_map(|p| match p {
        GenericParam::Type(t) => Some(&t.ident),
        GenericParam::Const(c) => Some(&c.ident),
        GenericParam::Lifetime(_) => None,
    });
    let types: Vec<&Ident> = types.collect();
    let turbofish = (!types.is_empty()).then(|| quote!(::<#(#types),*>));
    let ident = &sig.ident;
    match owner.map(|owner| &owner.ty) {
        Some(ty) => quote!(<#ty>::#ident #turbofish),
        None => quote!(#ident #turbofish),
    }
}

fn is_relaxed(bound: &TypeParamBound) -> bool {
    matches!(bound, TypeParamBound::Trait(t) if !matches!(t.modifier, syn::TraitBoundModifier::None))
}

fn check_qualifiers(sig: &syn::Signature, errors: &mut Errors) {
    let mut refuse = |at: &dyn ToTokens, what: &str, reason: &str, help: &str| {
        errors.push(
            Code::Qualifier,
            at.to_token_stream(),
            format!("a graph function cannot be {what}: {reason}"),
            help,
        );
    };
    if let Some(token) = &sig.asyncness {
        refuse(token, "`async`", "a recording runs to its end", "remove `async`; reads wait by themselves");
    }
    if let Some(token) = &sig.constness {
        refuse(token, "`const`", "tensors exist at run time only", "remove `const`");
    }
    if let Some(token) = &sig.unsafety {
        refuse(token, "`unsafe`", "its graph is called from safe code", "remove `unsafe`");
    }
    if let Some(abi) = &sig.abi {
        refuse(abi, "`extern`", "its parameters are Rust types", "remove the ABI");
    }
    if let Some(variadic) = &sig.variadic {
        refuse(variadic, "variadic", "its parameters are part of the key", "take a slice of parameters");
    }
}

type Split = (Generics, Vec<WherePredicate>, Vec<LifetimeParam>);

/// Type and const parameters with the bounds that an `impl` can have; the other bounds; lifetimes.
fn split_generics<'a>(all: impl Iterator<Item = &'a Generics>, step: &Lifetime) -> Split {
    let mut generics = Generics::default();
    let mut bounds: Vec<WherePredicate> = Vec::new();
    let mut lifetimes = Vec::new();
    for one in all {
        for param in &one.params {
            match param {
                GenericParam::Lifetime(l) if l.lifetime.ident == step.ident => {}
                // Not every sibling with this lifetime declares the step's.
                GenericParam::Lifetime(l) if lifetimes::mentions(&l.bounds, step) => {
                    let mut l = l.clone();
                    let (lifetime, shorter) = (&l.lifetime, &l.bounds);
                    bounds.push(parse_quote!(#lifetime: #shorter));
                    l.bounds.clear();
                    l.colon_token = None;
                    lifetimes.push(l);
                }
                GenericParam::Lifetime(l) => lifetimes.push(l.clone()),
                GenericParam::Type(t) => {
                    let mut t = t.clone();
                    t.default = None;
                    t.eq_token = None;
                    if lifetimes::mentions_any(&t.bounds) {
                        let (ident, inline) = (&t.ident, &t.bounds);
                        bounds.push(parse_quote!(#ident: #inline));
                        t.bounds.clear();
                    }
                    generics.params.push(GenericParam::Type(t));
                }
                GenericParam::Const(c) => {
                    let mut c = c.clone();
                    c.default = None;
                    c.eq_token = None;
                    generics.params.push(GenericParam::Const(c));
                }
            }
        }
        for predicate in one.where_clause.iter().flat_map(|w| &w.predicates) {
            if lifetimes::mentions_any(predicate) {
                bounds.push(predicate.clone());
            } else {
                generics.make_where_clause().predicates.push(predicate.clone());
            }
        }
    }
    (generics, bounds, lifetimes)
}

/// The return type, and `T` of its `Result<T>`.
fn result(sig: &syn::Signature, errors: &mut Errors) -> (Type, Type) {
    let unit: Type = parse_quote!(());
    let ReturnType::Type(_, ret) = &sig.output else {
        let help = "end it with `-> Result<Tensor<f32>>`, or what it computes";
        errors.push(
            Code::ReturnType,
            &sig.ident,
            "a graph function returns a `Result<…>`: capture and replay can fail",
            help,
        );
        let krate = crate::krate::krate();
        return (parse_quote!(#krate::Result<()>), unit);
    };
    let output = match plain(ret) {
        Type::Path(path) => path.path.segments.last().filter(|s| s.ident == "Result").and_then(first_type),
        _ => None,
    };
    let Some(output) = output else {
        let text = written(ret);
        let alias =
            matches!(plain(ret), Type::Path(p) if p.path.segments.last().is_some_and(|s| is_alias(&s.ident)));
        let help = if alias {
            format!("spell it out: an alias such as `{text}` hides from the macro what the graph returns")
        } else {
            format!("write `Result<{text}>`, with any error type that has `From<graphable::Error>`")
        };
        errors.push(
            Code::ReturnType,
            ret,
            "a graph function returns a `Result<…>`, written like that: capture and replay can fail",
            help,
        );
        return ((**ret).clone(), unit);
    };
    if let Some(token) = impl_trait(&output) {
        errors.push(
            Code::ImplTrait,
            &token,
            "a graph function cannot have an `impl Trait` result: a replay must know which type to return",
            "name the type",
        );
        let krate = crate::krate::krate();
        return (parse_quote!(#krate::Result<()>), unit);
    }
    if !lifetimes::name_elided(&mut output.clone()).is_empty() {
        errors.push(
            Code::ReturnedReference,
            &output,
            "a graph returns values, not references",
            "return the tensor; a clone of it is cheap",
        );
        let krate = crate::krate::krate();
        return (parse_quote!(#krate::Result<()>), unit);
    }
    ((**ret).clone(), output)
}

/// Returns whether a type's name indicates an alias of `Result`.
fn is_alias(name: &Ident) -> bool {
    let name = name.to_string();
    name.ends_with("Result") || name.starts_with("Result")
}

/// `&self` as a parameter of the siblings.
fn this(
    receiver: &syn::Receiver,
    marks: &Marks,
    owner: Option<&Owner>,
    step: &Lifetime,
    errors: &mut Errors,
) -> Param {
    if let Some(mark) = marks.any() {
        errors.push(
            Code::MisplacedAttribute,
            mark,
            "`self` takes no attribute",
            "remove it: `&self` is a struct of parameters",
        );
    }
    let shared =
        receiver.reference.is_some() && receiver.mutability.is_none() && receiver.colon_token.is_none();
    if !shared {
        errors.push(
            Code::Receiver,
            receiver,
            "a graph method takes `&self`: a replay runs no host code that could change or consume it",
            "write `&self`; what changes on the device is a `State` field",
        );
    }
    let ident = Ident::new("this", Span::mixed_site());
    let in_step = owner.is_some_and(|o| lifetimes::mentions(&o.ty, step));
    let kind = if in_step { Kind::Output } else { Kind::Params };
    let lifetime = receiver.lifetime();
    Param { ident, ty: parse_quote!(&#lifetime Self), kind, dims: None }
}

fn param(
    typed: &syn::PatType,
    marks: &Marks,
    index: usize,
    step: &Lifetime,
    generics: &Generics,
    symbols: &mut Vec<String>,
    errors: &mut Errors,
) -> Param {
    let ident = match &*typed.pat {
        Pat::Ident(p) if p.by_ref.is_none() && p.subpat.is_none() => p.ident.clone(),
        other => {
            errors.push(
                Code::Pattern,
                other,
                "a graph function's parameters are plain names",
                match other {
                    Pat::Wild(_) => "give it a name, such as `_unused`",
                    _ => "take it apart in the body",
                },
            );
            format_ident!("__p{index}", span = Span::mixed_site())
        }
    };
    if let Some(cfg) = typed.attrs.iter().find(|a| a.path().is_ident("cfg") || a.path().is_ident("cfg_attr"))
    {
        errors.push(
            Code::ConditionalParameter,
            cfg,
            "`#[cfg]` on a parameter of a graph function",
            "write the function twice, each with a `#[cfg]`",
        );
    }
    let plain_name = matches!(&*typed.pat, Pat::Ident(_));
    let kind = if plain_name {
        kind(&ident, &typed.ty, marks, step, errors)
    } else {
        // One error is enough; the type becomes visible once it has a name.
        kind(&ident, &typed.ty, marks, step, &mut Errors::default())
    };
    let dims = marks.dims.as_ref().and_then(|attr| {
        if matches!(kind, Some(Kind::HostTensor(_) | Kind::Device(_)) | None) {
            return parameters::dims(attr, generics, symbols, errors);
        }
        errors.push(Code::DimsTarget, attr, "only tensors have `#[dims]`", "remove it");
        None
    });
    // For the signatures that a function with errors still gets.
    let unknown = if lifetimes::mentions(&*typed.ty, step) { Kind::Output } else { Kind::Key };
    Param { ident, ty: (*typed.ty).clone(), kind: kind.unwrap_or(unknown), dims }
}

/// `decode_step` as `DecodeStep`.
fn pascal(name: &str) -> String {
    name.split('_')
        .flat_map(|word| {
            let mut chars = word.chars();
            let first = chars.next().into_iter().flat_map(char::to_uppercase);
            first.chain(chars.as_str().chars()).collect::<Vec<char>>()
        })
        .collect()
}

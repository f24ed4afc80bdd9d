//! Elided tensor lifetimes: `Tensor<f32>` becomes `Tensor<'s, f32>`.
//!
//! All tensors of a function belong to one step, which elision cannot know.

use proc_macro2::Span;
use syn::{
    Block, GenericArgument, GenericParam, Generics, Ident, Item, ItemTrait, Lifetime, LifetimeParam,
    PathArguments, Receiver, ReturnType, Signature, Token, Type, WherePredicate,
    visit::{self, Visit},
    visit_mut::{self, VisitMut},
};

use super::types::plain;

/// Types whose first argument is the step's lifetime.
const WITH_ELEMENT: [&str; 3] = ["Tensor", "Scalar", "Ragged"];

/// Types of `std` that hold values of their arguments.
const HOLDERS: [&str; 3] = ["Vec", "Option", "Box"];

/// Types whose only argument is the step's lifetime.
const WITHOUT_ELEMENT: [&str; 4] = ["Scope", "Eager", "Capturable", "Step"];

/// Types of `std` whose `'_` is unrelated to tensors.
const FOREIGN: [&str; 13] = [
    "Cow",
    "Iter",
    "IterMut",
    "Chunks",
    "ChunksExact",
    "Chars",
    "Drain",
    "Ref",
    "RefMut",
    "MutexGuard",
    "Formatter",
    "Context",
    "Arguments",
];

/// Types that have none.
const WITHOUT_LIFETIME: [&str; 20] = [
    "bool", "char", "str", "String", "u8", "u16", "u32", "u64", "u128", "usize", "i8", "i16", "i32", "i64",
    "i128", "isize", "f32", "f64", "f16", "bf16",
];

/// Returns whether a type with this name has the step's lifetime as its first argument.
pub(crate) fn is_of_step(name: &Ident) -> bool {
    WITH_ELEMENT.iter().chain(&WITHOUT_ELEMENT).any(|t| name == t)
}

/// The lifetime that tensors of this signature have: one that its generics or `outer` ones declare as
/// `'s`, or that its tensors are written with; else a new `'s`.
pub(crate) fn step(sig: &Signature, outer: Option<&Generics>) -> Lifetime {
    let declared: Vec<_> =
        sig.generics.lifetimes().chain(outer.into_iter().flat_map(Generics::lifetimes)).collect();
    chosen(&declared, |written| written.visit_signature(sig))
}

fn chosen(declared: &[&LifetimeParam], visit: impl FnOnce(&mut Written)) -> Lifetime {
    if let Some(own) = declared.iter().find(|p| p.lifetime.ident == "s") {
        return own.lifetime.clone();
    }
    let mut written = Written { found: None, several: false };
    visit(&mut written);
    match written.found {
        Some(lifetime) if !written.several && declared.iter().any(|p| p.lifetime.ident == lifetime.ident) => {
            lifetime
        }
        _ => Lifetime::new("'s", Span::call_site()),
    }
}

/// Fills the lifetimes of a function, and declares the step's where it is used and not declared.
pub(crate) fn fill_fn(sig: &mut Signature, body: Option<&mut Block>, outer: Option<&Generics>) -> Lifetime {
    let step = step(sig, outer);
    let mut fill = Fill { step: step.clone(), anonymous: true, used: false };
    for input in &mut sig.inputs {
        fill.visit_fn_arg_mut(input);
    }
    fill.visit_return_type_mut(&mut sig.output);
    fill.visit_generics_mut(&mut sig.generics);
    if fill.used
        && let ReturnType::Type(_, ty) = &mut sig.output
        && let Some(value) = value_of(ty)
    {
        let known = sig.generics.type_params().chain(outer.into_iter().flat_map(Generics::type_params));
        let known = known.map(|p| p.ident.to_string()).collect();
        Elided { step: step.clone(), known }.visit_type_mut(value);
    }
    if fill.used
        && let Some(body) = body
    {
        // In a body `'_` is inferred, which is right.
        Fill { step: step.clone(), anonymous: false, used: false }.visit_block_mut(body);
    }
    if fill.used {
        declare(&mut sig.generics, outer, &step);
    }
    step
}

/// `T` of `Result<T>` and `Result<T, E>`.
fn value_of(ty: &mut Type) -> Option<&mut Type> {
    let Type::Path(path) = ty else { return None };
    let PathArguments::AngleBracketed(arguments) = &mut path.path.segments.last_mut()?.arguments else {
        return None;
    };
    arguments.args.iter_mut().find_map(|a| match a {
        GenericArgument::Type(ty) => Some(ty),
        _ => None,
    })
}

/// Lets rustc find the lifetime of `Out` in a result, if it has one that the tokens do not show.
///
/// In a function pointer type with one lifetime among its parameters, `Out` in its result stands for
/// `Out<'that>` if it has a lifetime. So it is written as the result of such a type.
struct Elided {
    step: Lifetime,
    /// Type parameters.
    known: Vec<String>,
}

impl Elided {
    fn may_have_a_lifetime(&self, ty: &syn::TypePath) -> bool {
        let mut segments = ty.path.segments.iter();
        let plain = ty.path.segments.iter().all(|s| s.arguments.is_none());
        let first = segments.next().map(|s| s.ident.to_string()).unwrap_or_default();
        let own = ty.path.segments.len() == 1 && WITHOUT_LIFETIME.contains(&first.as_str());
        plain && ty.qself.is_none() && first != "Self" && !own && !self.known.contains(&first)
    }
}

impl VisitMut for Elided {
    fn visit_type_mut(&mut self, ty: &mut Type) {
        match ty {
            Type::Path(path) if self.may_have_a_lifetime(path) => {
                let (step, private) = (&self.step, crate::krate::private());
                *ty = syn::parse_quote!(<fn(&#step ()) -> #path as #private::Returns>::Value);
            }
            // They have lifetimes of their own.
            Type::BareFn(_) | Type::TraitObject(_) | Type::ImplTrait(_) => {}
            other => visit_mut::visit_type_mut(self, other),
        }
    }
}

/// Fills the lifetimes of the header of an `impl`.
pub(crate) fn fill_impl(item: &mut syn::ItemImpl) {
    let step = Lifetime::new("'s", Span::call_site());
    let mut fill = Fill { step: step.clone(), anonymous: true, used: false };
    if let Some((_, path, _)) = &mut item.trait_ {
        fill.visit_path_mut(path);
    }
    fill.visit_type_mut(&mut item.self_ty);
    if fill.used {
        declare(&mut item.generics, None, &step);
    }
    if item.generics.lifetimes().any(|p| p.lifetime.ident == "s") {
        for inner in &mut item.items {
            if let syn::ImplItem::Type(inner) = inner {
                fill.visit_type_mut(&mut inner.ty);
            }
        }
    }
}

/// Fills in the lifetimes of a struct, enum, union or alias, and declares the step's. Returns false if there
/// is none to fill in.
pub(crate) fn fill_type(item: &mut Item) -> bool {
    let generics = match &*item {
        Item::Struct(i) => &i.generics,
        Item::Enum(i) => &i.generics,
        Item::Union(i) => &i.generics,
        Item::Type(i) => &i.generics,
        _ => return false,
    };
    let declared: Vec<_> = generics.lifetimes().collect();
    let step = match declared[..] {
        // As much as the type can mean.
        [only] => only.lifetime.clone(),
        _ => chosen(&declared, |written| written.visit_item(item)),
    };
    let mut fill = Fill { step: step.clone(), anonymous: true, used: false };
    let generics = match item {
        Item::Struct(i) => {
            fill.visit_fields_mut(&mut i.fields);
            &mut i.generics
        }
        Item::Enum(i) => {
            i.variants.iter_mut().for_each(|v| fill.visit_fields_mut(&mut v.fields));
            &mut i.generics
        }
        Item::Union(i) => {
            fill.visit_fields_named_mut(&mut i.fields);
            &mut i.generics
        }
        Item::Type(i) => {
            fill.visit_type_mut(&mut i.ty);
            &mut i.generics
        }
        _ => return false,
    };
    fill.visit_generics_mut(generics);
    if fill.used {
        declare(generics, None, &step);
    }
    fill.used
}

/// Returns whether a type's name is used without the lifetime that [`Fill`] would add.
pub(crate) fn is_elided(segment: &syn::PathSegment) -> bool {
    match &segment.arguments {
        PathArguments::None => WITHOUT_ELEMENT.iter().any(|t| segment.ident == t),
        PathArguments::AngleBracketed(given) => {
            let anonymous = |a: &GenericArgument| matches!(a, GenericArgument::Lifetime(l) if l.ident == "_");
            let named = |a: &GenericArgument| matches!(a, GenericArgument::Lifetime(l) if l.ident != "_");
            let tensor = WITH_ELEMENT.iter().any(|t| segment.ident == t);
            let foreign = FOREIGN.iter().any(|f| segment.ident == f);
            tensor && !given.args.iter().any(named) || !foreign && given.args.iter().any(anonymous)
        }
        PathArguments::Parenthesized(_) => false,
    }
}

/// Fills the lifetimes of the methods of a trait.
pub(crate) fn fill_trait(item: &mut ItemTrait) {
    let generics = item.generics.clone();
    for inner in &mut item.items {
        if let syn::TraitItem::Fn(method) = inner {
            fill_fn(&mut method.sig, method.default.as_mut(), Some(&generics));
        }
    }
}

fn declare(generics: &mut Generics, outer: Option<&Generics>, step: &Lifetime) {
    let known = |g: &Generics| g.lifetimes().any(|p| p.lifetime.ident == step.ident);
    if known(generics) || outer.is_some_and(known) {
        return;
    }
    generics.lt_token.get_or_insert_with(<Token![<]>::default);
    generics.gt_token.get_or_insert_with(<Token![>]>::default);
    generics.params.insert(0, GenericParam::Lifetime(LifetimeParam::new(step.clone())));
}

struct Fill {
    step: Lifetime,
    /// Set if `'_` is replaced as well.
    anonymous: bool,
    used: bool,
}

impl Fill {
    fn argument(&mut self) -> GenericArgument {
        self.used = true;
        GenericArgument::Lifetime(self.step.clone())
    }
}

impl VisitMut for Fill {
    /// A pointer to a function takes tensors of any step, so that it can be part of a key.
    fn visit_type_bare_fn_mut(&mut self, f: &mut syn::TypeBareFn) {
        if f.lifetimes.is_some() {
            return visit_mut::visit_type_bare_fn_mut(self, f);
        }
        let any = Lifetime::new("'any", Span::mixed_site());
        let mut fill = Fill { step: any.clone(), anonymous: self.anonymous, used: false };
        visit_mut::visit_type_bare_fn_mut(&mut fill, f);
        if fill.used {
            f.lifetimes = Some(syn::parse_quote!(for<#any>));
        }
    }

    fn visit_path_mut(&mut self, path: &mut syn::Path) {
        visit_mut::visit_path_mut(self, path);
        for segment in &mut path.segments {
            if let PathArguments::AngleBracketed(arguments) = &mut segment.arguments {
                let foreign = FOREIGN.iter().any(|f| segment.ident == f);
                for argument in &mut arguments.args {
                    let GenericArgument::Lifetime(lifetime) = argument else { continue };
                    if lifetime.ident == "_" && self.anonymous && !foreign {
                        lifetime.ident = Ident::new(&self.step.ident.to_string(), lifetime.ident.span());
                    }
                    self.used |= lifetime.ident == self.step.ident;
                }
            }
        }
    }

    fn visit_type_path_mut(&mut self, ty: &mut syn::TypePath) {
        visit_mut::visit_type_path_mut(self, ty);
        let Some(last) = ty.path.segments.last_mut() else { return };
        match &mut last.arguments {
            PathArguments::AngleBracketed(arguments)
                if WITH_ELEMENT.iter().any(|t| last.ident == t)
                    && !arguments.args.iter().any(|a| matches!(a, GenericArgument::Lifetime(_))) =>
            {
                let step = self.argument();
                arguments.args.insert(0, step);
            }
            // In a body rustc infers it, and the name may be the user's own.
            none @ PathArguments::None
                if self.anonymous && WITHOUT_ELEMENT.iter().any(|t| last.ident == t) =>
            {
                let step = self.argument();
                *none = PathArguments::AngleBracketed(syn::parse_quote!(<#step>));
            }
            _ => {}
        }
    }

    fn visit_item_mut(&mut self, _: &mut Item) {
        // An item cannot name the lifetimes of the function around it.
    }
}

/// The lifetime that tensors are written with.
struct Written {
    found: Option<Lifetime>,
    several: bool,
}

impl<'ast> Visit<'ast> for Written {
    fn visit_path_segment(&mut self, segment: &'ast syn::PathSegment) {
        if WITH_ELEMENT.iter().chain(&WITHOUT_ELEMENT).any(|t| segment.ident == t)
            && let PathArguments::AngleBracketed(arguments) = &segment.arguments
        {
            for argument in &arguments.args {
                let GenericArgument::Lifetime(lifetime) = argument else { continue };
                if lifetime.ident == "_" || lifetime.ident == "static" {
                    continue;
                }
                match &self.found {
                    Some(found) => self.several |= found.ident != lifetime.ident,
                    None => self.found = Some(lifetime.clone()),
                }
            }
        }
        visit::visit_path_segment(self, segment);
    }
}

/// Names the elided lifetimes of a type, `'__a0` and so on, for positions where eliding is not allowed.
/// Returns the names.
pub(crate) fn name_elided(ty: &mut Type) -> Vec<Lifetime> {
    struct Names(Vec<Lifetime>);
    impl Names {
        fn fresh(&mut self) -> Lifetime {
            let name = Lifetime::new(&format!("'__a{}", self.0.len()), Span::call_site());
            self.0.push(name.clone());
            name
        }
    }
    impl VisitMut for Names {
        fn visit_type_reference_mut(&mut self, reference: &mut syn::TypeReference) {
            if reference.lifetime.as_ref().is_none_or(|l| l.ident == "_") {
                reference.lifetime = Some(self.fresh());
            }
            visit_mut::visit_type_reference_mut(self, reference);
        }
        fn visit_generic_argument_mut(&mut self, argument: &mut GenericArgument) {
            match argument {
                GenericArgument::Lifetime(lifetime) if lifetime.ident == "_" => *lifetime = self.fresh(),
                other => visit_mut::visit_generic_argument_mut(self, other),
            }
        }
        // `Fn(&T)` and `fn(&T)` have lifetimes of their own.
        fn visit_parenthesized_generic_arguments_mut(&mut self, _: &mut syn::ParenthesizedGenericArguments) {}
        fn visit_type_bare_fn_mut(&mut self, _: &mut syn::TypeBareFn) {}
        fn visit_receiver_mut(&mut self, _: &mut Receiver) {}
    }
    let mut names = Names(Vec::new());
    names.visit_type_mut(ty);
    names.0
}

/// Returns the bounds that the references in a type imply for their referents, which rustc infers for a
/// parameter's type and for no other: in `&'a [&'b T]`, `'b: 'a`, `T: 'a` and `T: 'b`. Lifetimes and type
/// parameters other than the given ones are bound inside the type. Each bound has its two names.
pub(crate) fn outlives(
    ty: &Type,
    declared: &[Ident],
    types: &[Ident],
) -> Vec<(String, String, WherePredicate)> {
    struct Inside<'a> {
        declared: &'a [Ident],
        types: &'a [Ident],
        /// The references around.
        around: Vec<Lifetime>,
        found: Vec<(String, String, WherePredicate)>,
    }
    impl Inside<'_> {
        fn note(&mut self, long: &str, predicate: impl Fn(&Lifetime) -> WherePredicate) {
            for short in &self.around {
                let pair = (long.to_owned(), short.ident.to_string());
                if pair.0 != pair.1 && !self.found.iter().any(|(l, s, _)| *l == pair.0 && *s == pair.1) {
                    self.found.push((pair.0, pair.1, predicate(short)));
                }
            }
        }
    }
    impl<'ast> Visit<'ast> for Inside<'_> {
        fn visit_type_reference(&mut self, reference: &'ast syn::TypeReference) {
            let own = reference.lifetime.clone().filter(|l| self.declared.contains(&l.ident));
            if let Some(own) = &own {
                self.visit_lifetime(own);
                self.around.push(own.clone());
            }
            self.visit_type(&reference.elem);
            if own.is_some() {
                self.around.pop();
            }
        }
        fn visit_lifetime(&mut self, long: &'ast Lifetime) {
            if self.declared.contains(&long.ident) {
                self.note(&long.ident.to_string(), |short| syn::parse_quote!(#long: #short));
            }
        }
        fn visit_path(&mut self, path: &'ast syn::Path) {
            if let Some(first) = path.segments.first()
                && (self.types.contains(&first.ident) || first.ident == "Self")
            {
                let long = &first.ident;
                self.note(&long.to_string(), |short| syn::parse_quote!(#long: #short));
            }
            visit::visit_path(self, path);
        }
    }
    let mut inside = Inside { declared, types, around: Vec::new(), found: Vec::new() };
    inside.visit_type(ty);
    inside.found
}

/// Returns whether values of a type hold a tensor of this step, as far as the tokens leave no doubt.
pub(crate) fn holds_tensor(ty: &Type, step: &Lifetime) -> bool {
    match plain(ty) {
        Type::Tuple(tuple) => tuple.elems.iter().any(|ty| holds_tensor(ty, step)),
        Type::Array(array) => holds_tensor(&array.elem, step),
        Type::Path(path) => path.path.segments.last().is_some_and(|last| {
            let PathArguments::AngleBracketed(given) = &last.arguments else { return false };
            let is_tensor = WITH_ELEMENT.iter().any(|t| last.ident == t);
            let is_holder = HOLDERS.iter().any(|t| last.ident == t);
            given.args.iter().any(|argument| match argument {
                GenericArgument::Lifetime(lifetime) => is_tensor && lifetime.ident == step.ident,
                GenericArgument::Type(ty) => is_holder && holds_tensor(ty, step),
                _ => false,
            })
        }),
        _ => false,
    }
}

/// Returns whether `lifetime` occurs in the tokens.
pub(crate) fn mentions(tokens: &impl quote::ToTokens, lifetime: &Lifetime) -> bool {
    let mut tick = false;
    flat(tokens.to_token_stream()).into_iter().any(|tree| {
        let after_tick = std::mem::replace(
            &mut tick,
            matches!(&tree, proc_macro2::TokenTree::Punct(p) if p.as_char() == '\''),
        );
        after_tick && matches!(&tree, proc_macro2::TokenTree::Ident(i) if *i == lifetime.ident)
    })
}

/// Returns whether any lifetime occurs in the tokens.
pub(crate) fn mentions_any(tokens: &impl quote::ToTokens) -> bool {
    flat(tokens.to_token_stream())
        .iter()
        .any(|tree| matches!(tree, proc_macro2::TokenTree::Punct(p) if p.as_char() == '\''))
}

fn flat(tokens: proc_macro2::TokenStream) -> Vec<proc_macro2::TokenTree> {
    let mut all = Vec::new();
    for tree in tokens {
        if let proc_macro2::TokenTree::Group(group) = &tree {
            all.extend(flat(group.stream()));
        } else {
            all.push(tree);
        }
    }
    all
}

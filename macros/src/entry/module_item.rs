//! Types and modules, in which only lifetimes are filled in. An attribute on a module provides what a single
//! item cannot know: the lifetimes of the other types around it.

use std::collections::HashSet;

use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::{
    Attribute, GenericArgument, Generics, Ident, ImplItem, Item, ItemMod, PathArguments, Signature,
    TraitItem, TypePath, parse_quote,
    visit::{self, Visit},
    visit_mut::{self, VisitMut},
};

use crate::{
    analyze,
    krate::krate,
    parse::{
        lifetimes::{self, fill_type},
        parameters,
    },
};

/// A struct, enum, union or alias that holds tensors, with its lifetime. `None` if it holds none.
pub(crate) fn expand_type(mut item: Item) -> Option<TokenStream> {
    fill_type(&mut item).then(|| item.into_token_stream())
}

/// A module: every item as if `#[graphable]` stood on it, and types that hold tensors known by name.
pub(crate) fn expand_module(mut item: ItemMod) -> TokenStream {
    module(&mut item, &HashSet::new());
    item.into_token_stream()
}

fn module(item: &mut ItemMod, outer: &HashSet<String>) {
    let Some((_, items)) = &mut item.content else { return };
    let holders = holders(items, outer);
    for item in items {
        match item {
            Item::Mod(inner) if !is_marked(&inner.attrs) => module(inner, &holders),
            Item::Struct(_) | Item::Enum(_) | Item::Union(_) | Item::Type(_) => {
                // An attribute on the item itself finds the added lifetimes, and nothing left to fill in.
                Elided(&holders).visit_item_mut(item);
                fill_type(item);
            }
            Item::Fn(f) => {
                Elided(&holders).visit_signature_mut(&mut f.sig);
                let boundaries = analyze::has_boundaries(&f.block);
                mark(&mut f.attrs, Needs::of(&f.sig, boundaries), true);
            }
            Item::Impl(i) => {
                if let Some((_, path, _)) = &mut i.trait_ {
                    Elided(&holders).visit_path_mut(path);
                }
                Elided(&holders).visit_type_mut(&mut i.self_ty);
                Elided(&holders).visit_generics_mut(&mut i.generics);
                let mut needs = Needs::default();
                needs.visit_type(&i.self_ty);
                i.trait_.iter().for_each(|(_, path, _)| needs.visit_path(path));
                for inner in &mut i.items {
                    match inner {
                        ImplItem::Fn(method) => {
                            Elided(&holders).visit_signature_mut(&mut method.sig);
                            needs.add(&method.sig, analyze::has_boundaries(&method.block));
                        }
                        ImplItem::Type(ty) => Elided(&holders).visit_type_mut(&mut ty.ty),
                        _ => {}
                    }
                }
                mark(&mut i.attrs, needs, false);
            }
            Item::Trait(t) => {
                let mut needs = Needs::default();
                for inner in &mut t.items {
                    if let TraitItem::Fn(method) = inner {
                        Elided(&holders).visit_signature_mut(&mut method.sig);
                        needs.add(&method.sig, method.default.as_ref().is_some_and(analyze::has_boundaries));
                    }
                }
                mark(&mut t.attrs, needs, false);
            }
            _ => {}
        }
    }
}

/// Adds the attribute to an item that needs it and does not have one. A function without boundaries and marks
/// is a helper.
fn mark(attrs: &mut Vec<Attribute>, needs: Needs, function: bool) {
    if is_marked(attrs) || !(needs.tensors || needs.graph) {
        return;
    }
    let krate = krate();
    attrs.push(if function && !needs.graph {
        parse_quote!(#[#krate::graphable(helper)])
    } else {
        parse_quote!(#[#krate::graphable])
    });
}

fn is_marked(attrs: &[Attribute]) -> bool {
    attrs.iter().any(is_graphable)
}

fn is_graphable(attr: &Attribute) -> bool {
    attr.path().segments.last().is_some_and(|s| s.ident == "graphable")
}

/// The reasons why a signature needs the attribute.
#[derive(Default)]
struct Needs {
    /// It names tensors, or types that hold them.
    tensors: bool,
    /// It has boundaries, or marks on its parameters.
    graph: bool,
}

impl Needs {
    fn of(sig: &Signature, boundaries: bool) -> Self {
        let mut needs = Self::default();
        needs.add(sig, boundaries);
        needs
    }

    fn add(&mut self, sig: &Signature, boundaries: bool) {
        self.visit_signature(sig);
        self.graph |= boundaries || sig.inputs.iter().any(parameters::is_marked);
    }
}

impl<'ast> Visit<'ast> for Needs {
    fn visit_path(&mut self, path: &'ast syn::Path) {
        self.tensors |= path.segments.last().is_some_and(lifetimes::is_elided);
        visit::visit_path(self, path);
    }
}

/// Returns the names of types in these items that have one lifetime, or get one: those that hold tensors, and
/// those that hold such types.
fn holders(items: &[Item], outer: &HashSet<String>) -> HashSet<String> {
    let types: Vec<(&Ident, &Generics, &Item)> = items
        .iter()
        .filter_map(|item| match item {
            Item::Struct(i) => Some((&i.ident, &i.generics, item)),
            Item::Enum(i) => Some((&i.ident, &i.generics, item)),
            Item::Union(i) => Some((&i.ident, &i.generics, item)),
            Item::Type(i) => Some((&i.ident, &i.generics, item)),
            _ => None,
        })
        .collect();
    let mut found: HashSet<String> = outer
        .iter()
        .filter(|name| !types.iter().any(|(ident, ..)| *ident == name.as_str()))
        .cloned()
        .collect();
    loop {
        let before = found.len();
        for (ident, generics, item) in &types {
            let declared = generics.lifetimes().count();
            let holds = || {
                let mut item = (*item).clone();
                Elided(&found).visit_item_mut(&mut item);
                fill_type(&mut item)
            };
            if declared == 1 || declared == 0 && holds() {
                found.insert(ident.to_string());
            }
        }
        if found.len() == before {
            return found;
        }
    }
}

/// Writes `'_` where the name of a holder is used without a lifetime.
struct Elided<'a>(&'a HashSet<String>);

impl VisitMut for Elided<'_> {
    fn visit_type_path_mut(&mut self, ty: &mut TypePath) {
        visit_mut::visit_type_path_mut(self, ty);
        if ty.qself.is_some() || ty.path.segments.len() > 1 && !is_here(ty) {
            return;
        }
        let Some(last) = ty.path.segments.last_mut().filter(|s| self.0.contains(&s.ident.to_string())) else {
            return;
        };
        match &mut last.arguments {
            none @ PathArguments::None => *none = PathArguments::AngleBracketed(parse_quote!(<'_>)),
            PathArguments::AngleBracketed(given)
                if !given.args.iter().any(|a| matches!(a, GenericArgument::Lifetime(_))) =>
            {
                given.args.insert(0, parse_quote!('_));
            }
            _ => {}
        }
    }
}

/// `self::Name`, or `super::Name`.
fn is_here(ty: &TypePath) -> bool {
    let path = &ty.path;
    path.segments.len() == 2 && path.segments.first().is_some_and(|s| s.ident == "self" || s.ident == "super")
}

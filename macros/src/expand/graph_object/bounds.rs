//! The requirements on the types of a graph, reported once, at the user's tokens.
//!
//! The requirements of a declared graph are checked in the body of `call`, through facades whose methods
//! return something that always fits, so that no other line of it has an error of its own. A function that
//! may be meant only as a helper has these requirements as bounds, which are checked where its graph is
//! called; `for<'__t>` keeps rustc from checking a bound without type parameters at its definition. Element
//! types that the macro does not know are always such bounds, and are checked next to the graph.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::{Lifetime, PathArguments, Type, spanned::Spanned};

use super::{Form, Graph, element};
use crate::{
    krate::{krate, private},
    parse::{lifetimes, parameter_kind::Kind},
};

/// Types that need no bound as elements.
const ELEMENTS: [&str; 10] = ["f32", "f16", "bf16", "f64", "i32", "i64", "i8", "u32", "u8", "bool"];

impl Graph<'_> {
    /// The where clause of the `impl`s.
    pub(super) fn where_clause(&self) -> TokenStream {
        let given = self.sig.generics.where_clause.iter().flat_map(|w| &w.predicates);
        let krate = krate();
        let elements = self.unknown_elements().filter(|_| self.form != Form::Broken);
        let elements = elements.map(|element| quote!(for<'__t> #element: #krate::Element));
        quote!(where #(#given,)* #(#elements),*)
    }

    /// The where clause of `call`.
    pub(super) fn call_bounds(&self) -> TokenStream {
        let bounds = self.sig.bounds.iter();
        if self.form != Form::Possible {
            return quote!(where #(#bounds),*);
        }
        let (output, step, p) = (&self.sig.output, &self.sig.step, private());
        let lazy = self.lazy_bounds(None);
        quote!(where #(#bounds,)* #(#lazy,)* for<'__t> #output: #p::LiveOut<#step>)
    }

    /// The where clause of `capture_all`.
    pub(super) fn capture_bounds(&self) -> TokenStream {
        let (p, sig) = (private(), self.sig);
        let (step, output, ret) = (&sig.step, &sig.output, &sig.ret);
        let mut bounds = Vec::new();
        if self.form == Form::Possible {
            bounds = self.lazy_bounds(Some(step));
            bounds.push(quote!(for<#step> #output: #p::LiveOut<#step>));
        }
        if self.form != Form::Broken && self.has_own_error() {
            bounds.push(quote!(for<'__t, #step> <#ret as #p::TryError>::Error: ::core::fmt::Debug + 'static));
        }
        quote!(where #(#bounds),*)
    }

    /// Bounds on keys and the error. `step` is given where it is not declared.
    fn lazy_bounds(&self, step: Option<&Lifetime>) -> Vec<TokenStream> {
        let (k, p, ret) = (krate(), private(), &self.sig.ret);
        let keys = self.sig.params.iter().filter(|p| !p.kind.is_input()).map(|param| {
            if matches!(param.kind, Kind::Key) {
                let mut ty = param.ty.clone();
                let names = lifetimes::name_elided(&mut ty);
                return quote!(for<'__t, #(#names),*> #ty: #p::Key);
            }
            let (ty, names) = referent(&param.ty);
            quote!(for<'__t, #(#names),*> #ty: #p::LiveIn)
        });
        let mut all: Vec<TokenStream> = keys.collect();
        if self.has_own_error() {
            let step = step.iter();
            let needs = quote!(::core::convert::From<#k::Error>);
            all.push(quote!(for<'__t, #(#step),*> <#ret as #p::TryError>::Error: #needs));
        }
        all
    }

    /// Returns whether the result's error may be a different one than the runtime's: `Result<T, E>`, or an
    /// alias for which this is unknown.
    fn has_own_error(&self) -> bool {
        let Type::Path(path) = &self.sig.ret else { return true };
        let arguments = path.path.segments.last().map(|s| &s.arguments);
        self.form == Form::Possible
            || !matches!(arguments, Some(PathArguments::AngleBracketed(a)) if a.args.len() == 1)
    }

    /// Checks the elements of a declared graph that may not be any.
    pub(super) fn checks(&self) -> TokenStream {
        let unknown: Vec<&Type> = self.unknown_elements().collect();
        if self.form != Form::Declared || unknown.is_empty() {
            return TokenStream::new();
        }
        let (k, sig) = (krate(), self.sig);
        let elements = unknown
            .into_iter()
            .map(|element| quote_spanned!(span(element)=> let _ = <#element as #k::Element>::DTYPE;));
        let generics = &sig.generics.params;
        let given = sig.generics.where_clause.iter().flat_map(|w| &w.predicates);
        let cfgs = &sig.cfgs;
        quote! {
            #(#cfgs)*
            const _: () = {
                fn check<#generics>() where #(#given),* {
                    #(#elements)*
                }
            };
        }
    }

    /// Types of elements that need a bound.
    fn unknown_elements(&self) -> impl Iterator<Item = &Type> {
        let known = |element: &&Type| {
            ELEMENTS.iter().any(|name| matches!(element, Type::Path(p) if p.path.is_ident(name)))
        };
        self.sig.inputs().map(element).filter(move |element| !known(element))
    }
}

/// Returns whether a type is written as a reference.
pub(super) fn is_reference(ty: &Type) -> bool {
    !std::ptr::eq(ty, without_reference(ty))
}

pub(super) fn without_reference(ty: &Type) -> &Type {
    match ty {
        Type::Reference(r) => &r.elem,
        Type::Group(g) => without_reference(&g.elem),
        Type::Paren(p) => without_reference(&p.elem),
        other => other,
    }
}

/// `ty` without its reference, its elided lifetimes named, and their names.
fn referent(ty: &Type) -> (Type, Vec<Lifetime>) {
    let mut inner = without_reference(ty).clone();
    let names = lifetimes::name_elided(&mut inner);
    (inner, names)
}

pub(super) fn span(tokens: &impl ToTokens) -> Span {
    Span::mixed_site().located_at(tokens.span())
}

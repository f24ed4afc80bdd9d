//! What types of a graph must be, told once, on the user's tokens.
//!
//! Generated methods have these needs as bounds, which are due where the methods are used; `for<'__t>`
//! keeps rustc from judging a bound without type parameters where it stands. So their bodies are
//! silent, and one item checks everything on the types as the user wrote them. A function that may be
//! meant as a helper only has no such item.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::{Lifetime, PathArguments, Type, spanned::Spanned};

use super::{Form, Graph, element};
use crate::{
    krate::{krate, private, user_error},
    parse::lifetimes,
    parse::parameter_kind::Kind,
};

/// Types that need no bound as elements.
const ELEMENTS: [&str; 7] = ["f32", "f16", "bf16", "i32", "u32", "u8", "bool"];

impl Graph<'_> {
    /// The where clause of the `impl`s.
    pub(super) fn where_clause(&self) -> TokenStream {
        let given = self.sig.generics.where_clause.iter().flat_map(|w| &w.predicates);
        let krate = krate();
        let elements = self.sig.inputs().map(element).filter_map(|element| {
            let known = ELEMENTS.iter().any(|name| matches!(element, Type::Path(p) if p.path.is_ident(name)));
            (self.form != Form::Broken && !known).then(|| quote!(for<'__t> #element: #krate::Element))
        });
        quote!(where #(#given,)* #(#elements),*)
    }

    /// The where clause of `call`.
    pub(super) fn call_bounds(&self) -> TokenStream {
        let bounds = self.sig.bounds.iter();
        if self.form == Form::Broken {
            return quote!(where #(#bounds),*);
        }
        let (output, step, p) = (&self.sig.output, &self.sig.step, private());
        let lazy = self.lazy_bounds(None);
        quote!(where #(#bounds,)* #(#lazy,)* for<'__t> #output: #p::LiveOut<#step>)
    }

    /// The where clause of `capture_all`.
    pub(super) fn capture_bounds(&self) -> TokenStream {
        if self.form == Form::Broken {
            return TokenStream::new();
        }
        let (p, sig) = (private(), self.sig);
        let (step, output, ret) = (&sig.step, &sig.output, &sig.ret);
        let lazy = self.lazy_bounds(Some(step));
        let debug = self
            .has_own_error()
            .then(|| quote!(for<'__t, #step> <#ret as #p::TryError>::Error: ::core::fmt::Debug + 'static));
        let debug = debug.iter();
        quote!(where #(#lazy,)* for<#step> #output: #p::LiveOut<#step>, #(#debug),*)
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

    /// Whether the result's error may be another than the runtime's: `Result<T, E>`, or an alias of
    /// which it is not known.
    fn has_own_error(&self) -> bool {
        let Type::Path(path) = &self.sig.ret else { return true };
        let arguments = path.path.segments.last().map(|s| &s.arguments);
        self.form == Form::Possible
            || !matches!(arguments, Some(PathArguments::AngleBracketed(a)) if a.args.len() == 1)
    }

    /// Checks what a declared graph needs.
    pub(super) fn checks(&self) -> TokenStream {
        if self.form != Form::Declared {
            return TokenStream::new();
        }
        let (k, p, sig) = (krate(), private(), self.sig);
        let inputs = sig.inputs().map(|param| {
            let element = element(param);
            quote_spanned!(span(element)=> let _ = <#element as #k::Element>::DTYPE;)
        });
        let keys = sig.params.iter().filter_map(|param| {
            let ty = &param.ty;
            let inner = without_reference(ty);
            match param.kind {
                Kind::Params => Some(quote_spanned!(span(inner)=> <#inner as #p::GraphParams>::is_one();)),
                Kind::Output => Some(quote_spanned!(span(inner)=> <#inner as #p::GraphInput>::is_one();)),
                Kind::Key => Some(quote_spanned!(span(ty)=> <#ty as #p::GraphKey>::is_one();)),
                _ => None,
            }
        });
        let (output, ret, step) = (&sig.output, &sig.ret, &sig.step);
        let output = quote_spanned!(span(output)=> <#output as #p::GraphResult<#step>>::is_one(););
        let error = self.has_own_error().then(|| {
            let error = user_error(ret);
            quote_spanned!(span(ret)=> #error::is_one();)
        });
        let (cfgs, generics, bounds) = (&sig.cfgs, &sig.generics.params, &sig.bounds);
        let given = sig.generics.where_clause.iter().flat_map(|w| &w.predicates);
        let user_lifetimes = &sig.lifetimes;
        quote! {
            #(#cfgs)*
            #[allow(dead_code, clippy::all, clippy::pedantic)]
            const _: () = {
                fn check<#step, #(#user_lifetimes,)* #generics>() where #(#given,)* #(#bounds),* {
                    #(#inputs)*
                    #(#keys)*
                    #output
                    #error
                }
            };
        }
    }
}

fn without_reference(ty: &Type) -> &Type {
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

fn span(tokens: &impl ToTokens) -> Span {
    Span::mixed_site().located_at(tokens.span())
}

//! The function of a row, with the runtime's types for rows.

use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::Ident;

use super::{Native, lang, ty};
use crate::{
    kernel::{
        model::{Closure, Expr, Extent, Header, Kind, Pattern, RowCall, TypeId},
        rows::RowOp,
        types::Inferred,
    },
    krate::generated_at,
};

/// The argument of a function of a row besides its parameters.
fn context(at: Span) -> Ident {
    Ident::new("__row", generated_at(at))
}

/// The place of a result.
fn place(number: usize, at: Span) -> Ident {
    format_ident!("__result{number}", span = generated_at(at))
}

/// `fn run(…)`: the parameters of one row, and the places of its results.
pub(super) fn signature(header: &Header) -> TokenStream {
    let (lang, at) = (lang(), header.name.span());
    let parameters = header.inputs.iter().map(|input| {
        let (name, element) = (&input.name, ty(input.scalar, input.name.span()));
        let mutable = input.mutable.then(|| quote!(mut));
        match input.extent {
            Extent::One => quote!(#mutable #name: #element),
            Extent::Row => quote!(#name: #lang::rows::Input<'_, #element>),
        }
    });
    let results = header.outputs.iter().enumerate().map(|(i, output)| {
        let (place, element) = (place(i, at), ty(output.scalar, header.output_span));
        let stored = quote!(<#element as #lang::rows::Stored>::Raw);
        match output.extent {
            Extent::One => quote!(#place: &mut #stored),
            Extent::Row => quote!(#place: &mut [#stored]),
        }
    });
    let context = context(at);
    quote!(fn run(#context: &#lang::rows::Context, #(#parameters,)* #(#results),*))
}

pub(super) fn function(header: &Header, native: &Native<'_>) -> TokenStream {
    let signature = signature(header);
    let block = &native.body.block;
    let statements = block.statements.iter().map(|statement| native.statement(statement));
    let results = block.value.as_ref().map(|value| native.results(header, value));
    quote!(#[allow(clippy::too_many_arguments)] #signature { #(#statements)* #results })
}

impl Native<'_> {
    /// Puts the function's value where its results go.
    fn results(&self, header: &Header, value: &Expr) -> TokenStream {
        let (at, lang, count) = (header.name.span(), &self.lang, header.outputs.len());
        let put = |i: usize, value: TokenStream| {
            let place = place(i, at);
            match header.outputs[i].extent {
                Extent::One => quote!(#lang::rows::set(#place, #value);),
                Extent::Row => quote!(#lang::rows::put(#place, #value);),
            }
        };
        match &value.kind {
            _ if count == 1 => put(0, self.expr(value)),
            Kind::Tuple(parts) => parts.iter().enumerate().map(|(i, part)| put(i, self.expr(part))).collect(),
            _ => {
                let names: Vec<Ident> =
                    (0..count).map(|i| format_ident!("__value{i}", span = generated_at(at))).collect();
                let puts = names.iter().enumerate().map(|(i, name)| put(i, quote!(#name)));
                let value = self.expr(value);
                quote!(let (#(#names),*) = #value; #(#puts)*)
            }
        }
    }

    /// The value of a `let`: a row that is used more than once is computed once.
    pub(super) fn bound(&self, pattern: &Pattern, value: &Expr) -> TokenStream {
        let tokens = self.expr(value);
        match pattern {
            Pattern::One(Some(local)) if self.body.is_kept(*local, value) => {
                let lang = &self.lang;
                quote_spanned!(value.span=> &#lang::rows::keep(#tokens))
            }
            _ => tokens,
        }
    }

    pub(super) fn row(&self, call: &RowCall, at: Span) -> TokenStream {
        if let Some(columns) = &self.columns {
            return self.columns_row(columns, call, at);
        }
        let (lang, name) = (&self.lang, Ident::new(call.op.name(), at));
        let row = self.expr(&call.row);
        let context = (call.op == RowOp::At).then(|| {
            let context = context(at);
            quote!(#context,)
        });
        let values = call.values.iter().map(|value| self.expr(value));
        let closures = call.closures.iter().map(|closure| self.closure(closure));
        quote_spanned!(at=> #lang::rows::#name(#context #row #(, #values)* #(, #closures)*))
    }

    fn closure(&self, closure: &Closure) -> TokenStream {
        let (parameters, result, body) = self.closure_parts(closure);
        match result {
            Some(result) => quote_spanned!(closure.span=> |#(#parameters),*| #result { #body }),
            None => quote_spanned!(closure.span=> |#(#parameters),*| #body),
        }
    }

    /// Parameters, result type and body.
    pub(super) fn closure_parts(
        &self,
        closure: &Closure,
    ) -> (Vec<TokenStream>, Option<TokenStream>, TokenStream) {
        let parameters = closure.parameters.iter().map(|pattern| match pattern {
            Pattern::One(binding) => {
                let name = self.binding(*binding);
                let ty = binding.and_then(|local| self.known(self.body.locals[local].ty));
                ty.map_or(name.clone(), |ty| quote!(#name: #ty))
            }
            Pattern::Tuple(parts, _) => self.parts(parts),
        });
        let known = self.known(closure.body.ty).filter(|_| !closure.body.diverges());
        (parameters.collect(), known.map(|ty| quote!(-> #ty)), self.expr(&closure.body))
    }

    /// A type that needs no rustc.
    pub(super) fn known(&self, id: TypeId) -> Option<TokenStream> {
        match self.types.get(id) {
            Inferred::Scalar(scalar) => Some(ty(*scalar, generated_at(Span::call_site()))),
            Inferred::Tuple(parts) => {
                let parts: Option<Vec<TokenStream>> = parts.iter().map(|part| self.known(*part)).collect();
                parts.map(|parts| quote!((#(#parts),*)))
            }
            _ => None,
        }
    }
}

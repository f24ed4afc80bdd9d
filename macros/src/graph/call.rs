//! `call`: one call of a graph.

use proc_macro2::TokenStream;
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::{Lifetime, spanned::Spanned};

use super::{Form, Graph, element, local, referent, without_reference};
use crate::{
    krate::{krate, private},
    signature::{Kind, Param},
};

impl Graph<'_> {
    pub(super) fn call(&self) -> TokenStream {
        let (k, sig) = (krate(), self.sig);
        let step = &sig.step;
        let (user_lifetimes, ret) = (&sig.lifetimes, &sig.ret);
        let given = local("step");
        let where_clause = self.call_bounds();
        let body = if self.form == Form::Broken { quote!(::core::unreachable!()) } else { self.call_body() };
        let doc = format!("Calls `{}`: replays what is recorded, and records what is not.", sig.name);
        let hosts: Vec<Lifetime> = (0..sig.params.len())
            .filter(|&i| matches!(sig.params[i].kind, Kind::HostTensor(_)))
            .map(|i| Lifetime::new(&format!("'__h{i}"), proc_macro2::Span::call_site()))
            .collect();
        let params = |host: &dyn Fn(TokenStream) -> TokenStream| -> Vec<TokenStream> {
            let mut hosts = hosts.iter();
            let param = |param: &Param| {
                let (ident, ty) = (&param.ident, &param.ty);
                match &param.kind {
                    Kind::HostTensor(element) => {
                        let lifetime = hosts.next();
                        let slice = host(quote!(#k::HostSlice<#lifetime, #element>));
                        quote!(#ident: #slice)
                    }
                    Kind::HostScalar(element) => quote!(#ident: #element),
                    _ => quote!(#ident: #ty),
                }
            };
            sig.params.iter().map(param).collect()
        };
        let generics = quote!(<#step, #(#user_lifetimes,)* #(#hosts),*>);
        let public = params(&|slice| quote!(impl ::core::convert::Into<#slice>));
        let (outer, inner) = if hosts.is_empty() {
            (body, TokenStream::new())
        } else {
            // The body stands where it is compiled once: a segment's identity is a type, and must not
            // depend on whether the caller has an array or a slice.
            let given_params = params(&|slice| slice);
            let arguments = sig.params.iter().map(|param| {
                let ident = &param.ident;
                match &param.kind {
                    Kind::HostTensor(_) => quote!(::core::convert::Into::into(#ident)),
                    _ => quote!(#ident),
                }
            });
            (
                quote!(self.__call(#given, #(#arguments),*)),
                quote! {
                    fn __call #generics (&self, #given: &#k::Step<#step>, #(#given_params),*) -> #ret #where_clause {
                        #body
                    }
                },
            )
        };
        quote! {
            #[doc = #doc]
            ///
            /// # Errors
            /// Those of the function, and what goes wrong on the device.
            pub fn call #generics (&self, #given: &#k::Step<#step>, #(#public),*) -> #ret #where_clause {
                #outer
            }
            #inner
        }
    }

    /// Bounds of `call` that its `impl` cannot have, or that are only due when it is used.
    ///
    /// `for<'__t>` keeps a bound without type parameters from being checked where it stands.
    fn call_bounds(&self) -> TokenStream {
        let bounds = self.sig.bounds.iter();
        let (output, step, p) = (&self.sig.output, &self.sig.step, private());
        let lazy = self.lazy_bounds(None);
        let output = (self.form == Form::Possible).then(|| quote!(for<'__t> #output: #p::LiveOut<#step>));
        let output = output.iter();
        quote!(where #(#bounds,)* #(#lazy,)* #(#output),*)
    }

    /// What a function that may be a helper only needs as a graph. `step` is given where it is not
    /// declared.
    pub(super) fn lazy_bounds(&self, step: Option<&Lifetime>) -> Vec<TokenStream> {
        if self.form != Form::Possible {
            return Vec::new();
        }
        let (k, p, ret) = (krate(), private(), &self.sig.ret);
        let keys = self.sig.params.iter().filter(|p| !p.kind.is_input()).map(|param| {
            let (ty, names) = referent(&param.ty);
            quote!(for<'__t, #(#names),*> #ty: #p::LiveIn)
        });
        let step = step.iter();
        let error =
            quote!(for<'__t, #(#step),*> <#ret as #p::TryError>::Error: ::core::convert::From<#k::Error>);
        keys.chain([error]).collect()
    }

    fn call_body(&self) -> TokenStream {
        let (p, output) = (private(), &self.sig.output);
        let [step, inputs, block, frame, cx] = ["step", "__inputs", "__block", "__frame", "__cx"].map(local);
        let checks = self.checks();
        let give = self.sig.inputs().enumerate().map(|(i, param)| {
            let (ident, element) = (&param.ident, element(param));
            match &param.kind {
                Kind::HostTensor(_) => {
                    quote!(#inputs.host::<#element>(#i, #ident)?;)
                }
                Kind::HostScalar(_) => quote!(#inputs.scalar::<#element>(#i, #ident)?;),
                _ => quote!(#inputs.device::<#element>(#i, #ident)?;),
            }
        });
        let name = self.sig.sibling("HostBlock");
        let (scalars, lengths) = self.block_fields();
        let scalars = scalars.iter().map(|param| {
            let ident = &param.ident;
            quote!(#ident: #p::HostSlot::of(#ident),)
        });
        let lengths = lengths
            .iter()
            .enumerate()
            .map(|(i, ident)| quote!(#ident: #p::HostSlot::of(#inputs.symbol(#i)? as u32),));
        let keys = self.sig.params.iter().filter(|p| !p.kind.is_input()).map(|param| {
            let ident = &param.ident;
            quote!(&#ident,)
        });
        let bind = self.sig.inputs().enumerate().map(|(i, param)| {
            let (ident, element) = (&param.ident, element(param));
            let method = format_ident!(
                "{}",
                if matches!(param.kind, Kind::HostScalar(_)) { "host_scalar" } else { "tensor" }
            );
            quote!(let #ident = &#frame.#method::<#element>(#i, &self.buffers.#ident)?;)
        });
        let run = &self.run;
        quote! {
            #checks
            let mut #inputs = self.function.inputs(#step)?;
            #(#give)*
            let #block = #name { #(#scalars)* #(#lengths)* };
            let #frame = #inputs.enter(#p::bytemuck::bytes_of(&#block), (#(#keys)*))?;
            #(#bind)*
            #frame.run::<#output, _, _>(|#cx| #run)
        }
    }

    /// What a declared graph needs, checked on the user's types.
    fn checks(&self) -> TokenStream {
        if self.form != Form::Declared {
            return TokenStream::new();
        }
        let (k, p) = (krate(), private());
        let check = |param: &Param| {
            let ident = &param.ident;
            let ty = &param.ty;
            match &param.kind {
                Kind::Params => {
                    let inner = without_reference(ty);
                    Some(quote_spanned!(span(ty)=> __params::<#inner>(#ident);))
                }
                Kind::Key => Some(quote_spanned!(span(ty)=> __key::<#ty>(&#ident);)),
                _ => None,
            }
        };
        let checks: Vec<TokenStream> = self.sig.params.iter().filter_map(check).collect();
        if checks.is_empty() {
            return TokenStream::new();
        }
        quote! {
            fn __params<T: #k::Params + ?::core::marker::Sized>(_: &T) {}
            fn __key<T: #p::Key>(_: &T) {}
            #(#checks)*
        }
    }
}

fn span(tokens: &impl ToTokens) -> proc_macro2::Span {
    proc_macro2::Span::mixed_site().located_at(tokens.span())
}

//! `call`: one call of a graph.

use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::Lifetime;

use super::{Form, Graph, element, local};
use crate::{
    krate::{krate, private},
    parse::parameter_kind::Kind,
    parse::signature::Param,
};

impl Graph<'_> {
    pub(super) fn call(&self) -> TokenStream {
        let (k, sig) = (krate(), self.sig);
        let step = &sig.step;
        let (user_lifetimes, ret) = (&sig.lifetimes, &sig.ret);
        let given = self.own("step");
        let where_clause = self.call_bounds();
        let body = if self.form == Form::Broken { quote!(::core::unreachable!()) } else { self.call_body() };
        let doc = format!("Calls `{}`: replays what is recorded, and records what is not.", sig.name);
        let hosts: Vec<Lifetime> = (0..sig.params.len())
            .filter(|&i| matches!(sig.params[i].kind, Kind::HostTensor(_)))
            .map(|i| Lifetime::new(&format!("'__h{i}"), proc_macro2::Span::call_site()))
            .collect();
        let generics = quote!(<#step, #(#user_lifetimes,)* #(#hosts),*>);
        let public = self.given(&hosts, |slice| quote!(impl ::core::convert::Into<#slice>));
        let (outer, inner) = if hosts.is_empty() {
            (body, TokenStream::new())
        } else {
            // The body stands where it is compiled once: a segment's identity is a type, and must not
            // depend on whether the caller has an array or a slice.
            let given_params = self.given(&hosts, |slice| slice);
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
                    #[inline]
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
            #[inline]
            pub fn call #generics (&self, #given: &#k::Step<#step>, #(#public),*) -> #ret #where_clause {
                #outer
            }
            #inner
        }
    }

    /// The parameters of a call. A host tensor is what `host` makes of a slice, whose lifetimes are `hosts`.
    fn given(&self, hosts: &[Lifetime], host: impl Fn(TokenStream) -> TokenStream) -> Vec<TokenStream> {
        let k = krate();
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
        self.sig.params.iter().map(param).collect()
    }

    fn call_body(&self) -> TokenStream {
        let (p, output) = (private(), &self.sig.output);
        let step = self.own("step");
        let [inputs, block, call, cx] = ["__inputs", "__block", "__call", "__cx"].map(local);
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
        let scalars = self.scalars().map(|param| {
            let ident = &param.ident;
            quote!(#p::HostSlot::of(#ident),)
        });
        let sizes =
            (0..self.sig.symbols.len()).map(|i| quote!(#p::HostSlot::of(#inputs.symbol(#i)? as u32),));
        let keys = self.sig.params.iter().filter(|p| !p.kind.is_input()).map(|param| {
            let ident = &param.ident;
            quote_spanned!(ident.span()=> &#ident,)
        });
        let bind = self.sig.inputs().enumerate().map(|(i, param)| {
            let (ident, element) = (&param.ident, element(param));
            let method = format_ident!(
                "{}",
                if matches!(param.kind, Kind::HostScalar(_)) { "host_scalar" } else { "tensor" }
            );
            quote!(let #ident = &#call.#method::<#element>(#i, &self.buffers.#ident)?;)
        });
        let run = &self.run;
        quote! {
            let mut #inputs = self.function.inputs(#step)?;
            #(#give)*
            let #block: #name = [#(#scalars)* #(#sizes)*];
            let #call = #inputs.enter(#p::bytemuck::bytes_of(&#block), (#(#keys)*))?;
            #(#bind)*
            #call.run::<#output, _, _>(|#cx| #run)
        }
    }
}

//! `call`: one call of a graph.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::Lifetime;

use super::{Form, Graph, bounds, element, local};
use crate::{
    krate::{krate, private, user_error},
    parse::{parameter_kind::Kind, signature::Param},
};

/// The way in which a graph runs the function.
pub(crate) enum Run {
    /// The whole body is the segment of this place, a call of `callee`.
    Segment { site: TokenStream, callee: TokenStream },
    /// By this call, on bindings named like the parameters; `__cx` runs its segments.
    HostCode(TokenStream),
}

impl Graph<'_> {
    pub(super) fn call(&self) -> TokenStream {
        let (k, sig) = (krate(), self.sig);
        let (step, ret, user_lifetimes) = (&sig.step, &sig.ret, &sig.lifetimes);
        let given = self.own("step");
        let hosts: Vec<Lifetime> = (0..sig.params.len())
            .filter(|&i| matches!(sig.params[i].kind, Kind::HostTensor(_)))
            .map(|i| Lifetime::new(&format!("'__h{i}"), Span::call_site()))
            .collect();
        let mut slices = hosts.iter();
        let params = sig.params.iter().map(|param| {
            let (ident, ty) = (&param.ident, &param.ty);
            match &param.kind {
                Kind::HostTensor(element) => {
                    let lifetime = slices.next();
                    quote!(#ident: impl ::core::convert::Into<#k::HostSlice<#lifetime, #element>>)
                }
                Kind::HostScalar(element) => quote!(#ident: #element),
                _ => quote!(#ident: #ty),
            }
        });
        let params: Vec<TokenStream> = params.collect();
        let where_clause = self.call_bounds();
        let body =
            if self.form == Form::Broken { quote!(::core::unreachable!()) } else { self.call_body(&given) };
        let doc =
            format!("Calls `{}`: replays the segments that are recorded, and records the others.", sig.name);
        quote! {
            #[doc = #doc]
            ///
            /// # Errors
            /// Returns the errors of the function, and those of the device.
            #[inline]
            pub fn call<#step, #(#user_lifetimes,)* #(#hosts),*>(
                &self,
                #given: &#k::Step<#step>,
                #(#params),*
            ) -> #ret #where_clause {
                #body
            }
        }
    }

    fn call_body(&self, step: &Ident) -> TokenStream {
        let p = private();
        let [inputs, call] = ["__inputs", "__call"].map(local);
        let give = self.sig.inputs().enumerate().map(|(i, param)| {
            let ident = &param.ident;
            match &param.kind {
                Kind::HostTensor(_) => quote!(#inputs.host(#i, ::core::convert::Into::into(#ident));),
                Kind::HostScalar(_) => quote!(#inputs.scalar(#i, #ident);),
                _ => quote!(#inputs.device(#i, #ident);),
            }
        });
        let keys = self.keys().map(|param| self.enters(param));
        let bind = self.sig.inputs().enumerate().map(|(i, param)| {
            let (ident, element) = (&param.ident, element(param));
            let method =
                local(if matches!(param.kind, Kind::HostScalar(_)) { "host_scalar" } else { "tensor" });
            quote!(let #ident = &#call.#method::<#element>(#i);)
        });
        let (error, run) = (user_error(&self.sig.ret), self.run(&call));
        quote! {
            let mut #inputs = #p::Inputs::new(#step, self);
            #(#give)*
            #p::call(#inputs.enter((#(#keys,)*)), #error::convert, |#call| {
                #(#bind)*
                #run
            })
        }
    }

    /// Parameters that are parts of keys.
    pub(super) fn keys(&self) -> impl Iterator<Item = &Param> {
        self.sig.params.iter().filter(|p| !p.kind.is_input())
    }

    /// Returns how a parameter becomes a part of keys. An error about its type is reported there, once.
    pub(super) fn enters(&self, param: &Param) -> TokenStream {
        let (ident, ty) = (&param.ident, &param.ty);
        let inner = bounds::without_reference(ty);
        let shown = bounds::span(inner);
        let p = private();
        let (inner, by) = match param.kind {
            Kind::Key => (ty, quote_spanned!(shown=> #p::GraphKey)),
            Kind::Params if self.form == Form::Declared => (inner, quote_spanned!(shown=> #p::GraphParams)),
            _ => (inner, quote_spanned!(shown=> #p::GraphInput)),
        };
        let reference = if matches!(param.kind, Kind::Key) || !bounds::is_reference(ty) {
            quote!(&#ident)
        } else {
            quote!(#ident)
        };
        quote_spanned!(shown=> <#inner as #by>::enter(#reference))
    }

    /// Runs the function, and states how its result leaves.
    fn run(&self, call: &Ident) -> TokenStream {
        let (p, sig) = (private(), self.sig);
        let (output, step) = (&sig.output, &sig.step);
        let shown = bounds::span(output);
        let leave = quote_spanned!(shown=> <#output as #p::GraphResult<#step, _>>::leave);
        let (site, callee) = match &self.run {
            Run::Segment { site, callee } => (site, callee),
            Run::HostCode(run) => {
                let cx = local("__cx");
                return quote!(let #cx = #call.piecewise(); #leave(#run));
            }
        };
        let live_in = local("__k");
        let parts = sig.params.iter().map(|param| match param.kind.is_input() {
            true => param.ident.to_token_stream(),
            false => self.enters(param),
        });
        let arguments = sig.params.iter().enumerate().map(|(i, param)| {
            let index = syn::Index::from(i);
            match param.kind {
                Kind::Key => quote!(#live_in.#index.copy()),
                Kind::Params | Kind::Output if bounds::is_reference(&param.ty) => {
                    quote!(#live_in.#index.get())
                }
                Kind::Params | Kind::Output => quote!(::core::clone::Clone::clone(#live_in.#index.get())),
                _ => quote!(#live_in.#index),
            }
        });
        let error = user_error(&sig.ret);
        quote! {
            #error::whole(
                #call.body(),
                #call.piecewise(),
                #site,
                (#(#parts,)*),
                |#live_in| #leave(#callee(#(#arguments),*)),
            )
        }
    }
}

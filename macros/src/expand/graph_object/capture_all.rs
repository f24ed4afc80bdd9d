//! `capture_all`: recording for every bucket, before the first real call.

use proc_macro2::{Ident, TokenStream};
use quote::quote;

use super::{Form, Graph, local};
use crate::{
    krate::{krate, private},
    parse::{lifetimes::mentions, parameter_kind::Kind, signature::Param},
};

impl Graph<'_> {
    /// Nothing for a function that takes outputs of other functions, or keys that live as long as the
    /// step: they cannot be made up, as the steps are made here.
    pub(super) fn capture_all(&self) -> TokenStream {
        let sig = self.sig;
        let in_step = |p: &Param| !p.kind.is_input() && mentions(&p.ty, &sig.step);
        let made_up = |p: &Param| !matches!(p.kind, Kind::Output) && !in_step(p);
        if !sig.params.iter().all(made_up) || !sig.bounds.is_empty() {
            return TokenStream::new();
        }
        let (k, p) = (krate(), private());
        let lifetimes = &sig.lifetimes;
        let [rt, progress] = ["rt", "progress"].map(|name| self.own(name));
        let keys: Vec<_> = sig.params.iter().filter(|p| !p.kind.is_input()).collect();
        let params: Vec<TokenStream> = keys
            .iter()
            .map(|param| {
                let (ident, ty) = (&param.ident, &param.ty);
                quote!(#ident: #ty)
            })
            .collect();
        let idents: Vec<_> = keys.iter().map(|p| &p.ident).collect();
        let where_clause = self.capture_bounds();
        let with = if self.form == Form::Broken {
            quote!(::core::unreachable!())
        } else {
            self.synthetic_calls(&rt, &progress)
        };
        quote! {
            /// Records for every combination of bucket sizes, largest first: segments, then whole calls. Restores written state.
            ///
            /// # Errors
            /// Returns an error if a dimension has no buckets, errors that earlier calls left unread, and those of the calls.
            #[inline]
            pub fn capture_all<#(#lifetimes),*>(&self, #rt: &mut #k::Runtime, #(#params),*) -> #k::Result<()>
            #where_clause
            {
                self.capture_all_with(#rt, #(#idents,)* #p::silent)
            }

            /// Captures like `capture_all`, with the same errors, and reports its progress.
            #[inline]
            pub fn capture_all_with<#(#lifetimes),*>(
                &self,
                #rt: &mut #k::Runtime,
                #(#params,)*
                mut #progress: impl ::core::ops::FnMut(#k::CaptureProgress<'_>),
            ) -> #k::Result<()>
            #where_clause
            {
                #with
            }
        }
    }

    /// A call with inputs that are made up, for each combination of sizes.
    fn synthetic_calls(&self, rt: &Ident, progress: &Ident) -> TokenStream {
        let p = private();
        let [step, synthetic] = ["__given", "__synthetic"].map(local);
        let mut indices = 0usize..;
        let mut index = move || indices.next();
        let mut made = Vec::new();
        let mut arguments = Vec::new();
        for param in &self.sig.params {
            let Param { ident, kind, .. } = param;
            arguments.push(match kind {
                Kind::HostTensor(element) => {
                    let i = index();
                    made.push(quote!(let #ident = #synthetic.host::<#element>(#i)?;));
                    quote!(&#ident)
                }
                Kind::HostScalar(element) => {
                    let i = index();
                    quote!(#synthetic.scalar::<#element>(#i))
                }
                Kind::Device(element) => {
                    let i = index();
                    made.push(quote!(let #ident = #synthetic.device::<#element>(#step, #i)?;));
                    quote!(&#ident)
                }
                Kind::Key => {
                    let key = self.enters(param);
                    quote!(#key.copy())
                }
                Kind::Params | Kind::Output => quote!(#ident),
            });
        }
        quote! {
            #p::capture_all(
                self,
                #rt,
                &mut |#step, #synthetic| {
                    #(#made)*
                    #p::CaptureFailed::check(self.call(#step, #(#arguments),*))
                },
                &mut #progress,
            )
        }
    }
}

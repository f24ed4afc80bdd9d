//! What the runtime's builder makes a graph object of.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;

use super::{Form, Graph, dims, element, local, quiet};
use crate::{
    krate::{krate, private},
    parse::parameter_kind::Kind,
};

impl Graph<'_> {
    /// The builder's name, and what the builder needs.
    pub(super) fn builder(&self) -> TokenStream {
        let (vis, cfgs, quiet) = (&self.sig.vis, &self.sig.cfgs, quiet());
        let (k, p) = (krate(), private());
        let [graph, builder] = ["Graph", "GraphBuilder"].map(|s| self.sig.sibling(s));
        let (parameters, bounded, arguments) = (self.parameters(), self.bounded(), self.sig.type_arguments());
        let where_clause = self.where_clause();
        let name = &self.sig.name;
        let doc = format!("Options of a graph of `{name}`; made by [`{graph}::builder`].");
        let [rt, options] = ["rt", "options"].map(local);
        let build = self.build();
        quote! {
            #(#cfgs)*
            #[doc = #doc]
            #quiet
            #vis type #builder #parameters = #k::GraphBuilder<#graph #arguments>;
            #(#cfgs)*
            #quiet
            impl #bounded #p::BuildGraph for #graph #arguments #where_clause {
                #[inline]
                fn build(#rt: &mut #k::Runtime, #options: #p::Options) -> #k::Result<Self> {
                    #build
                }
            }
        }
    }

    fn build(&self) -> TokenStream {
        if self.form == Form::Broken {
            return quote!(::core::unreachable!());
        }
        let (k, p) = (krate(), private());
        let [graph, buffers] = ["Graph", "Buffers"].map(|s| self.sig.sibling(s));
        let arguments = self.sig.type_arguments();
        let (name, symbols) = (&self.sig.name, &self.sig.symbols);
        let [rt, options] = ["rt", "options"].map(local);
        let specs = self.sig.inputs().map(|param| {
            let element = element(param);
            let name = param.ident.to_string();
            let kind = local(match &param.kind {
                Kind::HostTensor(_) => "HostTensor",
                Kind::HostScalar(_) => "HostScalar",
                _ => "DeviceTensor",
            });
            let dims = dims(param);
            let dtype = quote_spanned!(element.span()=> <#element as #k::Element>::DTYPE);
            quote!(#p::InputSpec { name: #name, kind: #p::InputKind::#kind, dtype: #dtype, dims: #dims })
        });
        let fields = self.sig.inputs().enumerate().map(|(i, param)| {
            let ident = &param.ident;
            quote!(#ident: #p::StaticInput::new(&function, #i),)
        });
        quote! {
            let function = #p::GraphObject::new(
                #rt,
                #p::FunctionSpec {
                    name: #name,
                    plan: const { &#graph::#arguments::PLAN },
                    symbols: &[#(#symbols),*],
                    inputs: ::std::vec![#(#specs),*],
                },
                #options,
            )?;
            ::core::result::Result::Ok(#graph {
                buffers: #buffers { #(#fields)* _types: ::core::marker::PhantomData },
                function,
                _types: ::core::marker::PhantomData,
            })
        }
    }
}

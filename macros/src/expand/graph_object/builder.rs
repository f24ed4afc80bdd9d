//! The items from which the runtime's builder makes a graph object.

use proc_macro2::TokenStream;
use quote::quote;

use super::{Form, Graph, dims, element, local};
use crate::{
    krate::{krate, private},
    parse::parameter_kind::Kind,
};

impl Graph<'_> {
    /// The method that returns a builder.
    pub(super) fn builder(&self) -> TokenStream {
        let doc = format!("Returns the options of a graph of `{}`.", self.sig.name);
        let k = krate();
        let body =
            if self.form == Form::Broken { quote!(::core::unreachable!()) } else { self.new_builder() };
        quote! {
            #[doc = #doc]
            #[inline]
            pub fn builder() -> #k::GraphBuilder<Self> {
                #body
            }
        }
    }

    /// The builder's name.
    pub(super) fn builder_alias(&self) -> TokenStream {
        let (vis, cfgs, k) = (&self.sig.vis, &self.sig.cfgs, krate());
        let [graph, builder] = ["Graph", "GraphBuilder"].map(|s| self.sig.sibling(s));
        let (parameters, arguments) = (self.parameters(None), self.arguments(None));
        let doc = format!("Options of a graph of `{}`; made by [`{graph}::builder`].", self.sig.name);
        quote! {
            #(#cfgs)*
            #[doc = #doc]
            #[allow(dead_code, unreachable_pub)]
            #vis type #builder #parameters = #k::GraphBuilder<#graph #arguments>;
        }
    }

    fn new_builder(&self) -> TokenStream {
        let (k, p) = (krate(), private());
        let (name, symbols) = (&self.sig.name, &self.sig.symbols);
        let inputs = self.sig.inputs().map(|param| {
            let (name, element) = (param.ident.to_string(), element(param));
            let kind = local(match &param.kind {
                Kind::HostTensor(_) => "host",
                Kind::HostScalar(_) => "scalar",
                _ => "device",
            });
            let dims = dims(param);
            quote!(#p::InputSpec::#kind::<#element>(#name) #dims)
        });
        let new = match self.phantom() {
            Some(_) => quote!(|object| Self(object, ::core::marker::PhantomData)),
            None => quote!(Self),
        };
        quote! {
            #k::GraphBuilder::new(
                #name,
                &Self::PLAN,
                &[#(#symbols),*],
                const { &[#(#inputs),*] },
                #new,
            )
        }
    }
}

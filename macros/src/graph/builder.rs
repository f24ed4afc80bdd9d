//! The builder of a graph object.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;

use super::{Form, Graph, debug, dims, element, local, quiet};
use crate::{
    kinds::Kind,
    krate::{krate, private},
};

impl Graph<'_> {
    pub(super) fn builder(&self) -> TokenStream {
        let (vis, cfgs, quiet) = (&self.sig.vis, &self.sig.cfgs, quiet());
        let (k, p) = (krate(), private());
        let [graph, builder] = ["Graph", "GraphBuilder"].map(|s| self.sig.sibling(s));
        let (parameters, bounded, arguments) = (self.parameters(), self.bounded(), self.sig.type_arguments());
        let (where_clause, phantom) = (self.where_clause(), self.phantom());
        let name = &self.sig.name;
        // A generic parameter of the user's may have any name.
        let n = local("__N");
        let doc = format!("Options of a graph of `{name}`; made by [`{graph}::builder`].");
        let build = self.build();
        let debug = debug(&builder, &parameters, &arguments, cfgs);
        quote! {
            #(#cfgs)*
            #[doc = #doc]
            #[must_use]
            #quiet
            #vis struct #builder #parameters {
                options: #p::Options,
                _types: #phantom,
            }
            #debug
            #(#cfgs)*
            #quiet
            impl #bounded #builder #arguments #where_clause {
                /// Rounds a `#[dims]` symbol up to these sizes.
                pub fn bucket(mut self, symbol: &'static str, schedule: #k::Schedule) -> Self {
                    self.options.bucket(symbol, schedule);
                    self
                }

                /// How much becomes graphs; at first `Mode::Piecewise`.
                pub fn mode(mut self, mode: #k::Mode) -> Self {
                    self.options.mode(mode);
                    self
                }

                /// How calls are batches, for modes that tell these apart.
                pub fn batch(mut self, batching: #k::Batching) -> Self {
                    self.options.batch(batching);
                    self
                }

                /// Compares every `n`-th replay with what the code computes; 0, as at first, never.
                pub fn audit_every(mut self, n: u32) -> Self {
                    self.options.audit_every(n);
                    self
                }

                /// Makes errors of what would run without a graph otherwise.
                pub fn or_error(mut self, on: bool) -> Self {
                    self.options.or_error(on);
                    self
                }

                /// How often one segment is recorded for one shape before it runs without a graph.
                pub fn max_recordings(mut self, n: usize) -> Self {
                    self.options.max_recordings(n);
                    self
                }

                /// Sets limits: `.limits(|l| l.max_moves = 2)`.
                pub fn limits(mut self, set: impl ::core::ops::FnOnce(&mut #k::Limits)) -> Self {
                    self.options.limits(set);
                    self
                }

                /// Who decides what becomes a graph, in place of the limits alone.
                pub fn policy(mut self, policy: impl #k::Policy + 'static) -> Self {
                    self.options.policy(policy);
                    self
                }

                /// Only these sizes of some `#[dims]` symbols become graphs, after rounding up to buckets:
                /// `.capture_only(["B", "T"], [[1, 128], [8, 128]])`. All else runs without.
                pub fn capture_only<const #n: usize>(
                    mut self,
                    symbols: [&'static str; #n],
                    sizes: impl ::core::iter::IntoIterator<Item = [usize; #n]>,
                ) -> Self {
                    self.options.capture_only(symbols, sizes);
                    self
                }

                /// Whether calls become graphs at first; `set_enabled` changes it later.
                pub fn enabled(mut self, on: bool) -> Self {
                    self.options.enabled(on);
                    self
                }

                /// The graph, with memory for its inputs. Nothing is captured yet.
                ///
                /// # Errors
                /// Buckets and modes that do not fit the function, and what the device says.
                pub fn build(self, rt: &mut #k::Runtime) -> #k::Result<#graph #arguments> {
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
            let function = #p::Function::new(
                rt,
                #p::FunctionSpec {
                    name: #name,
                    plan: const { &#graph::#arguments::PLAN },
                    symbols: &[#(#symbols),*],
                    inputs: ::std::vec![#(#specs),*],
                },
                self.options,
            )?;
            ::core::result::Result::Ok(#graph {
                buffers: #buffers { #(#fields)* _types: ::core::marker::PhantomData },
                function,
                _types: ::core::marker::PhantomData,
            })
        }
    }
}

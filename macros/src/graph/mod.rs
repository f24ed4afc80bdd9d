//! The siblings of a graph function: graph object, builder, buffers, host block.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::{GenericParam, Type, spanned::Spanned};

use crate::{
    kinds::Kind,
    krate::{krate, private},
    params::Dim,
    signature::{Param, Signature},
};

mod bounds;
mod call;
mod capture;

/// What the methods of a graph object do.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// The function was declared a graph: what it needs is checked where it stands.
    Declared,
    /// It may be meant as a helper only: what a graph needs is checked where it is called as one.
    Possible,
    /// The function has errors: signatures only, so that its callers have no more.
    Broken,
}

/// Segments and boundaries of a function.
#[derive(Default)]
pub(crate) struct Parts {
    /// `PlanItem` expressions.
    pub(crate) items: Vec<TokenStream>,
    /// A `&Site` expression.
    pub(crate) host_statement: Option<TokenStream>,
}

/// Everything about one graph.
pub(crate) struct Graph<'a> {
    pub(crate) sig: &'a Signature,
    pub(crate) form: Form,
    pub(crate) parts: Parts,
    /// Runs the driver `__cx` on bindings named like the parameters.
    pub(crate) run: TokenStream,
}

/// A local of generated code.
pub(crate) fn local(name: &str) -> Ident {
    Ident::new(name, Span::mixed_site())
}

/// Items that users may or may not use.
fn quiet() -> TokenStream {
    quote!(#[allow(dead_code, unreachable_pub, unused_mut, unused_variables, clippy::all, clippy::pedantic)])
}

impl Graph<'_> {
    /// All sibling items.
    pub(crate) fn emit(&self) -> TokenStream {
        let structs = [self.graph(), self.buffers(), self.host_block(), self.builder(), self.checks()];
        quote!(#(#structs)*)
    }

    /// A parameter of a generated method beside the user's, whose names are locals of the same kind.
    fn own(&self, name: &str) -> Ident {
        let taken = self.sig.params.iter().any(|p| p.ident == name);
        if taken { local(&format!("__{name}")) } else { local(name) }
    }

    /// As parameters of a struct, without bounds: `<T, const N: usize>`.
    fn parameters(&self) -> TokenStream {
        let params = self.sig.generics.params.iter().filter_map(|p| match p {
            GenericParam::Type(t) => {
                let ident = &t.ident;
                Some(quote!(#ident))
            }
            GenericParam::Const(c) => {
                let (ident, ty) = (&c.ident, &c.ty);
                Some(quote!(const #ident: #ty))
            }
            GenericParam::Lifetime(_) => None,
        });
        quote!(<#(#params),*>)
    }

    /// As parameters of an `impl`, with bounds.
    fn bounded(&self) -> TokenStream {
        let params = &self.sig.generics.params;
        quote!(<#params>)
    }

    /// A field type that holds no value and uses every type parameter.
    fn phantom(&self) -> TokenStream {
        let types = self.sig.generics.type_params().map(|p| &p.ident);
        quote!(::core::marker::PhantomData<fn() -> (#(::core::marker::PhantomData<#types>,)*)>)
    }

    fn graph(&self) -> TokenStream {
        let (vis, cfgs, k, p, quiet) = (&self.sig.vis, &self.sig.cfgs, krate(), private(), quiet());
        let [graph, buffers, builder] = ["Graph", "Buffers", "GraphBuilder"].map(|s| self.sig.sibling(s));
        let (parameters, bounded, arguments) = (self.parameters(), self.bounded(), self.sig.type_arguments());
        let (where_clause, phantom) = (self.where_clause(), self.phantom());
        let name = &self.sig.name;
        let plan = self.plan();
        let call = self.call();
        let capture = self.capture();
        let docs = [
            format!("The graph of `{name}`: its recordings, and the memory of its inputs."),
            format!("Segments and boundaries of `{name}`. Print it."),
            format!("Options of a graph of `{name}`."),
        ];
        let [doc, doc_plan, doc_builder] = &docs;
        let debug = debug(&graph, &parameters, &arguments, cfgs);
        quote! {
            #(#cfgs)*
            #[doc = #doc]
            #quiet
            #vis struct #graph #parameters {
                function: #p::Function,
                buffers: #buffers #arguments,
                _types: #phantom,
            }
            #debug
            #(#cfgs)*
            #quiet
            impl #bounded #graph #arguments #where_clause {
                #[doc = #doc_plan]
                pub const PLAN: #p::Plan = #plan;

                #[doc = #doc_builder]
                pub fn builder() -> #builder #arguments {
                    #builder { options: ::core::default::Default::default(), _types: ::core::marker::PhantomData }
                }

                /// The memory of the inputs, which keeps its address from call to call.
                pub fn buffers(&self) -> &#buffers #arguments {
                    &self.buffers
                }

                /// By which the runtime's hooks know this object.
                pub fn id(&self) -> #k::GraphId {
                    self.function.id()
                }

                #call
                #capture
            }
        }
    }

    fn plan(&self) -> TokenStream {
        let (p, name, items) = (private(), &self.sig.name, &self.parts.items);
        let host_statement = match &self.parts.host_statement {
            Some(site) => quote!(::core::option::Option::Some(#site)),
            None => quote!(::core::option::Option::None),
        };
        quote! {
            #p::Plan {
                function: #name,
                file: ::core::file!(),
                items: &[#(#items),*],
                host_statement: #host_statement,
            }
        }
    }

    fn buffers(&self) -> TokenStream {
        let (vis, cfgs, p, quiet) = (&self.sig.vis, &self.sig.cfgs, private(), quiet());
        let buffers = self.sig.sibling("Buffers");
        let (parameters, arguments, phantom) = (self.parameters(), self.sig.type_arguments(), self.phantom());
        let doc = format!("Memory of the inputs of `{}`.", self.sig.name);
        let fields = self.sig.inputs().map(|param| {
            let (ident, element) = (&param.ident, element(param));
            let doc = format!("Memory of `{ident}`.");
            quote!(#[doc = #doc] pub #ident: #p::StaticInput<#element>,)
        });
        let debug = debug(&buffers, &parameters, &arguments, cfgs);
        quote! {
            #(#cfgs)*
            #[doc = #doc]
            #quiet
            #vis struct #buffers #parameters {
                #(#fields)*
                _types: #phantom,
            }
            #debug
        }
    }

    /// Names of the host block's fields: scalars, then sizes of symbols.
    fn block_fields(&self) -> (Vec<&Param>, Vec<Ident>) {
        let scalars: Vec<&Param> =
            self.sig.inputs().filter(|p| matches!(p.kind, Kind::HostScalar(_))).collect();
        let mut taken: Vec<String> = scalars.iter().map(|p| p.ident.to_string()).collect();
        let lengths = self.sig.symbols.iter().map(|symbol| {
            let mut name = format!("len_{}", symbol.trim_start_matches("r#").to_lowercase());
            while taken.contains(&name) {
                name.push('_');
            }
            taken.push(name.clone());
            format_ident!("{name}", span = Span::call_site())
        });
        let lengths = lengths.collect();
        (scalars, lengths)
    }

    fn host_block(&self) -> TokenStream {
        let (vis, cfgs, p, quiet) = (&self.sig.vis, &self.sig.cfgs, private(), quiet());
        let block = self.sig.sibling("HostBlock");
        let doc = format!("Host scalars and sizes of `{}`, as they travel to the device.", self.sig.name);
        let (scalars, lengths) = self.block_fields();
        let scalars = scalars.iter().map(|param| {
            let ident = &param.ident;
            let doc = format!("`{ident}`.");
            quote!(#[doc = #doc] pub #ident: #p::HostSlot,)
        });
        let lengths = lengths.iter().zip(&self.sig.symbols).map(|(ident, symbol)| {
            let doc = format!("Size of `{symbol}`, without padding.");
            quote!(#[doc = #doc] pub #ident: #p::HostSlot,)
        });
        let path = quote!(#p::bytemuck).to_string().replace(' ', "");
        quote! {
            #(#cfgs)*
            #[doc = #doc]
            #quiet
            #[derive(
                ::core::clone::Clone,
                ::core::marker::Copy,
                ::core::fmt::Debug,
                #p::bytemuck::Pod,
                #p::bytemuck::Zeroable,
            )]
            #[bytemuck(crate = #path)]
            #[repr(C)]
            #vis struct #block {
                #(#scalars)*
                #(#lengths)*
            }
        }
    }

    fn builder(&self) -> TokenStream {
        let (vis, cfgs, quiet) = (&self.sig.vis, &self.sig.cfgs, quiet());
        let (k, p) = (krate(), private());
        let [graph, builder] = ["Graph", "GraphBuilder"].map(|s| self.sig.sibling(s));
        let (parameters, bounded, arguments) = (self.parameters(), self.bounded(), self.sig.type_arguments());
        let (where_clause, phantom) = (self.where_clause(), self.phantom());
        let name = &self.sig.name;
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

                /// The graph, with memory for its inputs. Nothing is captured yet.
                ///
                /// # Errors
                /// Buckets that do not fit the function, and what the device says.
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

/// The element type of an input.
fn element(param: &Param) -> &Type {
    match &param.kind {
        Kind::HostTensor(element) | Kind::HostScalar(element) | Kind::Device(element) => element,
        Kind::Key | Kind::Params | Kind::Output => &param.ty,
    }
}

fn dims(param: &Param) -> TokenStream {
    let p = private();
    let Some(dims) = &param.dims else { return quote!(#p::DimsSpec::Unspecified) };
    let dims = dims.iter().map(|dim| match dim {
        Dim::Symbol(index) => quote!(#p::Dim::Symbol(#index)),
        Dim::Size(size) => quote!(#p::Dim::Const(#size)),
    });
    quote!(#p::DimsSpec::Some(const { &[#(#dims),*] }))
}

fn debug(
    name: &Ident,
    parameters: &TokenStream,
    arguments: &TokenStream,
    cfgs: &[syn::Attribute],
) -> TokenStream {
    let text = name.to_string();
    quote! {
        #(#cfgs)*
        impl #parameters ::core::fmt::Debug for #name #arguments {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                ::core::fmt::Formatter::debug_struct(f, #text).finish_non_exhaustive()
            }
        }
    }
}

//! The siblings of a graph function: graph object, builder, buffers, host block.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote};
use syn::{GenericParam, Type};

use crate::{
    kinds::Kind,
    krate::{krate, private},
    params::Dim,
    signature::{Param, Signature},
};

mod bounds;
mod builder;
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

                /// Whether calls become graphs, where mode and scope allow it.
                pub fn is_enabled(&self) -> bool {
                    self.function.is_enabled()
                }

                /// Switches graphs on or off, from the next call on.
                pub fn set_enabled(&self, on: bool) {
                    self.function.set_enabled(on);
                }

                /// The memory of the inputs, which keeps its address from call to call.
                pub fn buffers(&self) -> &#buffers #arguments {
                    &self.buffers
                }

                /// Which graph a batch gets, and what became of the builder's mode.
                pub fn dispatcher(&self) -> &#k::Dispatcher {
                    self.function.dispatcher()
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

//! The siblings of a graph function: graph object, builder, buffers, host block.

use proc_macro2::{Ident, Span, TokenStream};
use quote::quote;
use syn::{GenericParam, Type};

use super::{host_code, plan};
use crate::{
    krate::{krate, private},
    model::{Location, PlanItem},
    parse::parameter_kind::Kind,
    parse::parameters::Dim,
    parse::signature::{Param, Signature},
};

mod bounds;
mod builder;
mod call;
mod capture_all;

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
pub(crate) struct Plan {
    pub(crate) items: Vec<PlanItem>,
    pub(crate) host_statement: Option<Location>,
}

/// Everything about one graph.
pub(crate) struct Graph<'a> {
    pub(crate) sig: &'a Signature,
    pub(crate) form: Form,
    pub(crate) plan: Plan,
    /// Runs the host code `__cx` on bindings named like the parameters.
    pub(crate) run: TokenStream,
}

/// A local of generated code.
pub(crate) fn local(name: &str) -> Ident {
    Ident::new(name, Span::mixed_site())
}

/// Items that users may or may not use.
fn quiet() -> TokenStream {
    quote!(#[allow(dead_code, unreachable_pub, unused_mut, unused_variables, mismatched_lifetime_syntaxes, clippy::all, clippy::pedantic)])
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
        let (vis, cfgs, p, quiet) = (&self.sig.vis, &self.sig.cfgs, private(), quiet());
        let [graph, buffers] = ["Graph", "Buffers"].map(|s| self.sig.sibling(s));
        let (parameters, bounded, arguments) = (self.parameters(), self.bounded(), self.sig.type_arguments());
        let (where_clause, phantom) = (self.where_clause(), self.phantom());
        let doc = format!("The graph of `{}`: its recordings, and the memory of its inputs.", self.sig.name);
        let debug = debug(&graph, &parameters, &arguments, cfgs);
        let methods = [self.methods(), self.call(), self.capture_all()];
        quote! {
            #(#cfgs)*
            #[doc = #doc]
            #quiet
            #vis struct #graph #parameters {
                function: #p::GraphObject,
                buffers: #buffers #arguments,
                _types: #phantom,
            }
            #debug
            #(#cfgs)*
            #quiet
            impl #bounded #graph #arguments #where_clause {
                #(#methods)*
            }
        }
    }

    /// The plan, and what is the same for every graph object.
    fn methods(&self) -> TokenStream {
        let (k, p, name) = (krate(), private(), &self.sig.name);
        let [buffers, builder] = ["Buffers", "GraphBuilder"].map(|s| self.sig.sibling(s));
        let (arguments, plan) = (self.sig.type_arguments(), self.plan());
        let doc_plan = format!("Segments and boundaries of `{name}`. Print it.");
        let doc_builder = format!("Options of a graph of `{name}`.");
        quote! {
            #[doc = #doc_plan]
            pub const PLAN: #p::Plan = #plan;

            #[doc = #doc_builder]
            #[inline]
            pub fn builder() -> #builder #arguments {
                ::core::default::Default::default()
            }

            /// Whether calls become graphs, where mode and scope allow it.
            #[inline]
            pub fn is_enabled(&self) -> bool {
                self.function.is_enabled()
            }

            /// Switches graphs on or off, from the next call on.
            #[inline]
            pub fn set_enabled(&self, on: bool) {
                self.function.set_enabled(on);
            }

            /// The memory of the inputs, which keeps its address from call to call.
            #[inline]
            pub fn buffers(&self) -> &#buffers #arguments {
                &self.buffers
            }

            /// Which graph a batch gets, and what became of the builder's mode.
            #[inline]
            pub fn dispatcher(&self) -> &#k::Dispatcher {
                self.function.dispatcher()
            }

            /// By which the runtime's hooks know this object.
            #[inline]
            pub fn id(&self) -> #k::GraphId {
                self.function.id()
            }
        }
    }

    fn plan(&self) -> TokenStream {
        let (p, name) = (private(), &self.sig.name);
        let items = self.plan.items.iter().map(|item| plan::item(name, item));
        let host_statement = match &self.plan.host_statement {
            Some(location) => {
                let site = host_code::site(name, location);
                quote!(::core::option::Option::Some(#site))
            }
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

    /// Host scalars and sizes as they travel: an array, of which no type of its own has to be compiled.
    fn host_block(&self) -> TokenStream {
        let (vis, cfgs, p, quiet) = (&self.sig.vis, &self.sig.cfgs, private(), quiet());
        let block = self.sig.sibling("HostBlock");
        let scalars = self.scalars().map(|param| format!("`{}`", param.ident));
        let sizes = self.sig.symbols.iter().map(|symbol| format!("the size of `{symbol}`, without padding"));
        let slots: Vec<String> = scalars.chain(sizes).collect();
        let len = slots.len();
        let what = if slots.is_empty() { "none".to_owned() } else { slots.join(", ") };
        let doc =
            format!("Host scalars and sizes of `{}`, as they travel to the device: {what}.", self.sig.name);
        quote! {
            #(#cfgs)*
            #[doc = #doc]
            #quiet
            #vis type #block = [#p::HostSlot; #len];
        }
    }

    fn scalars(&self) -> impl Iterator<Item = &Param> {
        self.sig.inputs().filter(|p| matches!(p.kind, Kind::HostScalar(_)))
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
    // As `finish_non_exhaustive` writes it.
    let text = format!("{name} {{ .. }}");
    quote! {
        #(#cfgs)*
        impl #parameters ::core::fmt::Debug for #name #arguments {
            #[inline]
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                ::core::fmt::Formatter::write_str(f, #text)
            }
        }
    }
}

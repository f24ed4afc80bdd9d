//! The siblings of a graph function: graph object, builder, buffers.

use proc_macro2::{Ident, Span, TokenStream};
use quote::quote;
use syn::{GenericParam, Lifetime, Type};

use super::{host_code, plan};
use crate::{
    krate::{krate, private},
    model::{Location, PlanItem},
    parse::signature::{Param, Signature},
    parse::{parameter_kind::Kind, parameters::Dim},
};

mod bounds;
mod builder;
mod call;
mod capture_all;

pub(crate) use call::Run;

/// The lifetime of a borrow of a graph.
fn borrow() -> Lifetime {
    Lifetime::new("'g", Span::mixed_site())
}

/// A list in angle brackets.
fn listed(lifetime: Option<&Lifetime>, rest: impl Iterator<Item = TokenStream>) -> TokenStream {
    let all = lifetime.map(|lifetime| quote!(#lifetime)).into_iter().chain(rest);
    quote!(<#(#all),*>)
}

/// The form of a graph object's methods.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// The function was declared a graph: its requirements are checked at its definition.
    Declared,
    /// It may be meant only as a helper: the requirements of a graph are checked where it is called as one.
    Possible,
    /// The function has errors: only signatures are emitted, so that its callers get no further errors.
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
    pub(crate) run: Run,
}

/// A local of generated code.
pub(crate) fn local(name: &str) -> Ident {
    Ident::new(name, Span::mixed_site())
}

impl Graph<'_> {
    /// All sibling items.
    pub(crate) fn emit(&self) -> TokenStream {
        let items = [self.graph(), self.methods(), self.buffers(), self.builder_alias(), self.checks()];
        quote!(#(#items)*)
    }

    /// Lints about which a user could do nothing. Where the bodies are missing, nothing is used.
    fn quiet(&self) -> TokenStream {
        let unused = (self.form == Form::Broken).then(|| quote!(unused_mut, unused_variables,));
        quote! {
            #[allow(dead_code, unreachable_pub, #unused mismatched_lifetime_syntaxes)]
            #[allow(clippy::all, clippy::pedantic)]
        }
    }

    /// Returns a parameter of a generated method in addition to the user's, whose names are locals of the
    /// same kind.
    fn own(&self, name: &str) -> Ident {
        let taken = self.sig.params.iter().any(|p| p.ident == name);
        if taken { local(&format!("__{name}")) } else { local(name) }
    }

    /// Returns the parameters of a struct, without bounds, after a lifetime: `<'g, T, const N: usize>`.
    fn parameters(&self, lifetime: Option<&Lifetime>) -> TokenStream {
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
        listed(lifetime, params)
    }

    /// Returns the arguments, after a lifetime: `<'g, T, N>`.
    fn arguments(&self, lifetime: Option<&Lifetime>) -> TokenStream {
        listed(lifetime, self.sig.type_names().map(|name| quote!(#name)))
    }

    /// As parameters of an `impl`, with bounds.
    fn bounded(&self) -> TokenStream {
        let params = &self.sig.generics.params;
        quote!(<#params>)
    }

    /// A type that holds no value and uses every type parameter, where there are some.
    fn phantom(&self) -> Option<TokenStream> {
        let types: Vec<_> = self.sig.generics.type_params().map(|p| &p.ident).collect();
        let unused = quote!(::core::marker::PhantomData<fn() -> (#(::core::marker::PhantomData<#types>,)*)>);
        (!types.is_empty()).then_some(unused)
    }

    fn graph(&self) -> TokenStream {
        let (vis, cfgs, k, p) = (&self.sig.vis, &self.sig.cfgs, krate(), private());
        let (graph, parameters) = (self.sig.sibling("Graph"), self.parameters(None));
        let phantom = self.phantom().into_iter();
        let doc = format!("The graph of `{}`: its recordings, and the memory of its inputs.", self.sig.name);
        quote! {
            #(#cfgs)*
            #[doc = #doc]
            #[allow(dead_code, unreachable_pub)]
            #[derive(#p::Graph)]
            #vis struct #graph #parameters(#k::GraphObject, #(#phantom)*);
        }
    }

    /// Returns the methods that are specific to the function. All others are methods of the runtime's graph
    /// object.
    fn methods(&self) -> TokenStream {
        let (cfgs, quiet) = (&self.sig.cfgs, self.quiet());
        let (graph, bounded, arguments) = (self.sig.sibling("Graph"), self.bounded(), self.arguments(None));
        let (where_clause, plan) = (self.where_clause(), self.plan());
        let doc = format!("Segments and boundaries of `{}`. Print it.", self.sig.name);
        let p = private();
        let methods = [self.builder(), self.buffers_method(), self.call(), self.capture_all()];
        quote! {
            #(#cfgs)*
            #quiet
            impl #bounded #graph #arguments #where_clause {
                #[doc = #doc]
                pub const PLAN: #p::Plan = #plan;

                #(#methods)*
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
        let (vis, cfgs, k) = (&self.sig.vis, &self.sig.cfgs, krate());
        let [graph, buffers] = ["Graph", "Buffers"].map(|s| self.sig.sibling(s));
        let borrow = borrow();
        let parameters = self.parameters(Some(&borrow));
        let fields = self.tensors().map(|(_, param)| {
            let (ident, element) = (&param.ident, element(param));
            let doc = format!("The memory of `{ident}`.");
            quote!(#[doc = #doc] pub #ident: #k::StaticInput<#borrow, #element>,)
        });
        let doc =
            format!("The memory of the tensor inputs of `{}`; see [`{graph}::buffers`].", self.sig.name);
        let unused = self.unused_in_buffers().map(|unused| quote!(_unused: #unused)).into_iter();
        quote! {
            #(#cfgs)*
            #[doc = #doc]
            #[allow(dead_code, unreachable_pub)]
            #[derive(::core::fmt::Debug)]
            #vis struct #buffers #parameters {
                #(#fields)*
                #(#unused)*
            }
        }
    }

    /// Returns the type of a field that uses the parameters that no other field of the buffers uses.
    fn unused_in_buffers(&self) -> Option<TokenStream> {
        let borrow = borrow();
        match self.phantom() {
            Some(types) => Some(quote!(::core::marker::PhantomData<(&#borrow (), #types)>)),
            None if self.tensors().next().is_none() => Some(quote!(::core::marker::PhantomData<&#borrow ()>)),
            None => None,
        }
    }

    /// The method that returns views of the inputs' memory.
    fn buffers_method(&self) -> TokenStream {
        let (buffers, k) = (self.sig.sibling("Buffers"), krate());
        let arguments = self.arguments(Some(&Lifetime::new("'_", Span::mixed_site())));
        let fields = self.tensors().map(|(i, param)| {
            let ident = &param.ident;
            quote!(#ident: #k::StaticInput::new(self, #i),)
        });
        let unused =
            self.unused_in_buffers().map(|_| quote!(_unused: ::core::marker::PhantomData)).into_iter();
        quote! {
            /// Returns the memory of the tensor inputs, to fill it in place.
            #[inline]
            pub fn buffers(&self) -> #buffers #arguments {
                #buffers { #(#fields)* #(#unused)* }
            }
        }
    }

    /// Returns the inputs that have memory of their own, and their indices.
    fn tensors(&self) -> impl Iterator<Item = (usize, &Param)> {
        self.sig.inputs().enumerate().filter(|(_, p)| !matches!(p.kind, Kind::HostScalar(_)))
    }
}

/// The element type of an input.
fn element(param: &Param) -> &Type {
    match &param.kind {
        Kind::HostTensor(element) | Kind::HostScalar(element) | Kind::Device(element) => element,
        Kind::Key | Kind::Params | Kind::Output => &param.ty,
    }
}

/// Returns the `#[dims]` of an input, as a call on its specification.
fn dims(param: &Param) -> Option<TokenStream> {
    let p = private();
    let dims = param.dims.as_ref()?.iter().map(|dim| match dim {
        Dim::Symbol(index) => quote!(#p::Dim::Symbol(#index)),
        Dim::Size(size) => quote!(#p::Dim::Const(#size)),
    });
    Some(quote!(.dims(&[#(#dims),*])))
}

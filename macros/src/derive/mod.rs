//! The derives: `Params`, `GraphOutput`, `ConfigValue` and `Carried`.
//!
//! Each processes the fields of a struct or of every variant of an enum in order, so they share one model of
//! the input ([`Item`]) and one way to write a method that matches on it.

use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote};
use syn::{Data, DeriveInput, Ident, Member, Type, parse_quote, spanned::Spanned, visit::Visit};

use crate::{
    diag::{Code, Errors},
    krate::{krate, private},
};

mod attrs;
mod carried;
mod config;
mod graph;
mod load;
mod output;
mod params;

pub(crate) use carried::derive_carried;
pub(crate) use config::derive_config;
pub(crate) use graph::derive_graph;
pub(crate) use output::derive_output;
pub(crate) use params::derive_params;

/// A field: how to name it, and the binding that a generated method has for it.
struct Field<'a> {
    ast: &'a syn::Field,
    member: Member,
    binding: Ident,
    /// Place among all fields of the item.
    index: usize,
}

impl Field<'_> {
    fn ty(&self) -> &Type {
        &self.ast.ty
    }

    /// The field's name, or its index.
    fn name(&self) -> String {
        match &self.member {
            Member::Named(ident) => ident.to_string().trim_start_matches("r#").to_owned(),
            Member::Unnamed(index) => index.index.to_string(),
        }
    }

    /// Returns the span for errors about the field's type; names resolve as in generated code.
    fn span(&self) -> Span {
        Span::mixed_site().located_at(self.ty().span())
    }
}

/// A struct, or one variant of an enum.
struct Variant<'a> {
    /// `Self` or `Self::Name`.
    path: TokenStream,
    fields: Vec<Field<'a>>,
}

impl Variant<'_> {
    /// `Self { a: __f0, 1: __f1 }`: a pattern, and with the same bindings an expression.
    fn with_bindings(&self) -> TokenStream {
        let path = &self.path;
        let fields = self.fields.iter().map(|Field { member, binding, .. }| quote!(#member: #binding));
        quote!(#path { #(#fields),* })
    }
}

/// The input of a derive.
struct Item<'a> {
    input: &'a DeriveInput,
    is_enum: bool,
    variants: Vec<Variant<'a>>,
}

impl<'a> Item<'a> {
    /// `None` for a union, with an error.
    fn new(input: &'a DeriveInput, derive: &str, errors: &mut Errors) -> Option<Self> {
        let mut count = 0;
        let variants = match &input.data {
            Data::Struct(data) => {
                vec![Variant { path: quote!(Self), fields: fields(&data.fields, &mut count) }]
            }
            Data::Enum(data) => data
                .variants
                .iter()
                .map(|v| {
                    let name = &v.ident;
                    Variant { path: quote!(Self::#name), fields: fields(&v.fields, &mut count) }
                })
                .collect(),
            Data::Union(data) => {
                errors.push(
                    Code::DeriveTarget,
                    data.union_token,
                    format!("`{derive}` cannot be derived for a union"),
                    "use an enum",
                );
                return None;
            }
        };
        Some(Self { input, is_enum: matches!(input.data, Data::Enum(_)), variants })
    }

    fn fields(&self) -> impl Iterator<Item = &Field<'a>> {
        self.variants.iter().flat_map(|v| &v.fields)
    }

    /// Statements that run `each` for every field, on a reference to it; in an enum, `discriminant`
    /// with the variant's number first.
    fn visit(
        &self,
        discriminant: impl Fn(u64) -> TokenStream,
        each: impl Fn(&Field<'a>) -> TokenStream,
    ) -> TokenStream {
        if self.variants.is_empty() {
            return quote!(match *self {});
        }
        let arms = self.variants.iter().enumerate().map(|(i, variant)| {
            let pattern = variant.with_bindings();
            let discriminant = self.is_enum.then(|| discriminant(i as u64));
            let fields = variant.fields.iter().map(&each);
            quote!(#pattern => { #discriminant #(#fields)* })
        });
        quote!(match self { #(#arms)* })
    }

    /// Returns `impl … Trait for Type where …`, with `bound(field)` for every field whose type depends on a
    /// type parameter. Other bounds would be checked at the impl, with worse messages than at their use.
    fn implement(
        &self,
        what: &TokenStream,
        bound: impl Fn(&Field<'a>) -> Option<TokenStream>,
        body: &TokenStream,
    ) -> TokenStream {
        let mut generics = self.input.generics.clone();
        for field in self.fields().filter(|f| self.is_generic(f.ty())) {
            if let Some(bound) = bound(field) {
                generics.make_where_clause().predicates.push(parse_quote!(#bound));
            }
        }
        self.implement_with(what, &generics, body)
    }

    /// The same with the generics given; they may declare more than the type has.
    fn implement_with(
        &self,
        what: &TokenStream,
        generics: &syn::Generics,
        body: &TokenStream,
    ) -> TokenStream {
        let name = &self.input.ident;
        let (impl_generics, _, where_clause) = generics.split_for_impl();
        let (_, type_generics, _) = self.input.generics.split_for_impl();
        quote! {
            #[automatically_derived]
            impl #impl_generics #what for #name #type_generics #where_clause { #body }
        }
    }

    /// Returns whether `ty` names a type parameter. A type that names the item itself does not count, because
    /// it needs the trait that is being implemented.
    fn is_generic(&self, ty: &Type) -> bool {
        let (found, recursive) = self.names_in(ty);
        found && !recursive
    }

    /// Returns whether `ty` names the item itself.
    fn is_recursive(&self, ty: &Type) -> bool {
        self.names_in(ty).1
    }

    /// Returns whether `ty` names a type parameter, and whether it names the item.
    fn names_in(&self, ty: &Type) -> (bool, bool) {
        struct Search<'a> {
            input: &'a DeriveInput,
            found: bool,
            recursive: bool,
        }
        impl<'ast> Visit<'ast> for Search<'_> {
            fn visit_path(&mut self, path: &'ast syn::Path) {
                if let Some(first) = path.segments.first() {
                    self.found |= self.input.generics.type_params().any(|p| p.ident == first.ident);
                    self.recursive |= first.ident == "Self";
                }
                self.recursive |= path.segments.last().is_some_and(|s| s.ident == self.input.ident);
                syn::visit::visit_path(self, path);
            }
        }
        let mut search = Search { input: self.input, found: false, recursive: false };
        search.visit_type(ty);
        (search.found, search.recursive)
    }
}

fn fields<'a>(fields: &'a syn::Fields, count: &mut usize) -> Vec<Field<'a>> {
    let field = |(ast, member)| {
        let index = *count;
        *count += 1;
        Field { ast, member, binding: local(&format!("f{index}")), index }
    };
    fields.iter().zip(fields.members()).map(field).collect()
}

/// Returns `__name`, which the user's code does not use.
fn local(name: &str) -> Ident {
    format_ident!("__{name}", span = Span::mixed_site())
}

/// The parsed input, or its syntax errors as tokens.
fn parse(tokens: TokenStream) -> Result<DeriveInput, TokenStream> {
    syn::parse2(tokens).map_err(|error| {
        let mut errors = Errors::default();
        errors.push_syntax(Code::Unparsable, error, "a derive applies to a struct or an enum");
        errors.finish()
    })
}

#[cfg(test)]
mod tests;

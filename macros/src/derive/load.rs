//! `#[params(config = …)]`: loading a struct by tensor name, and saving it under the same names.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::{GenericArgument, Ident, PathArguments, Type};

use super::{
    Code, Errors, Field, Item,
    attrs::{Args, ParamsAttr, Role},
    local, private,
};

/// The way in which one field is loaded and saved.
pub(super) struct FieldPlan {
    /// An expression of type `Option<field type>`.
    value: TokenStream,
    /// A statement that saves the field, which is bound by reference; nothing if it does not come from the file.
    save: TokenStream,
    /// The bound that it needs if the field's type depends on a type parameter.
    bound: Option<TokenStream>,
}

impl FieldPlan {
    /// Of a field that is not in the file.
    fn made(value: TokenStream, bound: Option<TokenStream>) -> Self {
        Self { value, save: TokenStream::new(), bound }
    }
}

/// Reports attributes that state how to load a struct which is not loaded.
pub(super) fn check_unused(roles: &[Role], errors: &mut Errors) {
    let unused = roles.iter().find_map(|role| match role {
        Role::Config(attr, Some(_)) | Role::Param(attr, _) | Role::State(attr, _) => Some(attr),
        Role::Config(_, None) | Role::Plain | Role::Broken => None,
    });
    if let Some(attr) = unused {
        errors.push(
            Code::FieldRole,
            attr,
            "this says how the field is loaded, but the struct is not loaded by name",
            "add `#[params(config = YourConfig)]` to the struct, or remove this attribute",
        );
    }
}

/// Returns how every field is loaded; `None` if something does not fit.
pub(super) fn plan(
    item: &Item<'_>,
    own: &ParamsAttr,
    roles: &[Role],
    errors: &mut Errors,
) -> Option<Vec<FieldPlan>> {
    if item.is_enum {
        errors.push(
            Code::FieldRole,
            &own.attr,
            "an enum is not loaded by name: nothing says which variant to take",
            "load the structs of its variants, and choose in your code",
        );
        return None;
    }
    // Every field is looked at before a missing plan ends it.
    let plans: Vec<_> =
        item.fields().map(|field| plan_field(field, own, &roles[field.index], errors)).collect();
    plans.into_iter().collect()
}

fn plan_field(field: &Field<'_>, own: &ParamsAttr, role: &Role, errors: &mut Errors) -> Option<FieldPlan> {
    match role {
        Role::Config(_, Some(value)) => {
            Some(FieldPlan::made(quote!(::core::option::Option::Some(#value)), None))
        }
        Role::Config(attr, None) => {
            errors.push(
                Code::LoadIncomplete,
                attr,
                "the source of this field's value is missing",
                format!("write it: `#[config(config.{})]`", field.name()),
            );
            None
        }
        Role::Broken => None,
        Role::State(attr, args) => plan_state(field, attr, args, errors),
        Role::Param(attr, args) => plan_param(field, own, attr.to_token_stream(), args, errors),
        Role::Plain if last_segment(field.ty()).is_some_and(|s| s.ident == "PhantomData") => {
            Some(FieldPlan::made(quote!(::core::option::Option::Some(::core::marker::PhantomData)), None))
        }
        Role::Plain => plan_param(field, own, field.ty().to_token_stream(), &Args::default(), errors),
    }
}

fn plan_state(field: &Field<'_>, attr: impl ToTokens, args: &Args, errors: &mut Errors) -> Option<FieldPlan> {
    let Some(shape) = &args.shape else {
        errors.push(
            Code::LoadIncomplete,
            attr,
            "state needs a shape",
            "write `#[state(shape = [config.rows, config.width])]`",
        );
        return None;
    };
    let (p, l, n, name) = (private(), local("l"), local("n"), field.name());
    let one = |ty: &Type, name: TokenStream| quote_spanned!(field.span()=> <#ty as #p::LoadState>::load_state(#l, #name, &(#shape)));
    let Some(len) = &args.len else {
        let ty = field.ty();
        return Some(FieldPlan::made(one(ty, quote!(#name)), Some(quote!(#ty: #p::LoadState))));
    };
    let inner = inner(field, "Vec", "len", errors)?;
    let (template, value) = (format!("{name}.{{}}"), one(inner, n.to_token_stream()));
    let list = quote!(#l.list::<#inner>(#template, #len, |#l, #n| #value));
    Some(FieldPlan::made(list, Some(quote!(#inner: #p::LoadState))))
}

fn plan_param(
    field: &Field<'_>,
    own: &ParamsAttr,
    at: TokenStream,
    args: &Args,
    errors: &mut Errors,
) -> Option<FieldPlan> {
    let name = name(field, args, errors)?;
    check_type(field, &at, args, errors)?;
    let item = item(field, args, errors)?;
    let (l, n, s, i) = (local("l"), local("n"), local("s"), local("i"));
    let item_name = if args.len.is_some() { n.to_token_stream() } else { quote!(#name) };
    let One { load, save, bound } = one(field, own, item, &item_name, args, errors)?;
    let binding = &field.binding;
    let (value, save) = match (&args.len, &args.optional) {
        (Some(len), _) => (
            quote!(#l.list::<#item>(#name, #len, |#l, #n| #load)),
            quote!(#s.list::<#item>(#name, #binding, |#s, #n, #i| #save);),
        ),
        (None, Some(_)) => (
            quote!(#l.optional::<#item>(#name, |#l| #load)),
            quote!(#s.optional::<#item>(#name, #binding, |#s, #i| #save);),
        ),
        (None, None) => (load, quote!({ let #i = #binding; #save; })),
    };
    Some(FieldPlan { value, save, bound })
}

/// Returns the type of what is loaded: that of the field, or of what it contains.
fn item<'a>(field: &'a Field<'a>, args: &Args, errors: &mut Errors) -> Option<&'a Type> {
    match (&args.len, &args.optional) {
        (Some(_), Some(optional)) => {
            errors.push(
                Code::LoadContradiction,
                optional,
                "a list is not optional",
                "a list that may be absent has the length 0: put that into `len = …`",
            );
            None
        }
        (Some(_), None) => inner(field, "Vec", "len", errors),
        (None, Some(_)) => inner(field, "Option", "optional", errors),
        (None, None) => Some(field.ty()),
    }
}

/// One tensor, or one struct of a field.
struct One {
    load: TokenStream,
    /// Saves `__i`.
    save: TokenStream,
    bound: Option<TokenStream>,
}

fn one(
    field: &Field<'_>,
    own: &ParamsAttr,
    item: &Type,
    name: &TokenStream,
    args: &Args,
    errors: &mut Errors,
) -> Option<One> {
    let (p, l, s, i) = (private(), local("l"), local("s"), local("i"));
    let nested = quote_spanned!(field.span()=> #s.nested::<#item>(#name, #i));
    Some(match (&args.shape, &args.config) {
        (Some(_), Some(config)) => {
            errors.push(
                Code::LoadContradiction,
                config,
                "`config = …` is for a struct of its own, `shape = …` for one tensor",
                "remove one of the two",
            );
            return None;
        }
        (Some(shape), None) => One {
            load: quote_spanned!(field.span()=> <#item as #p::LoadParam>::load_param(#l, #name, &(#shape))),
            save: quote_spanned!(field.span()=> <#item as #p::LoadParam>::save_param(#i, #s, #name)),
            bound: Some(quote!(#item: #p::LoadParam)),
        },
        (None, None) => {
            let (config, own) = (config(), &own.config);
            One {
                load: quote_spanned!(field.span()=> #l.nested::<#item>(#name, #config)),
                save: nested,
                bound: Some(quote!(#item: #p::LoadParams<Config = #own>)),
            }
        }
        // The config's type is not known here, so nothing can be asked of a generic field.
        (None, Some(config)) => One {
            load: quote_spanned!(field.span()=> #l.nested::<#item>(#name, &(#config))),
            save: nested,
            bound: None,
        },
    })
}

/// Returns the name of the tensor, or the prefix of a struct's names: as given, or that of the field.
fn name(field: &Field<'_>, args: &Args, errors: &mut Errors) -> Option<String> {
    let Some(given) = &args.name else {
        return match (&field.member, &args.len) {
            (syn::Member::Named(_), None) => Some(field.name()),
            (syn::Member::Named(_), Some(_)) => Some(format!("{}.{{}}", field.name())),
            (syn::Member::Unnamed(_), _) => {
                errors.push(
                    Code::LoadIncomplete,
                    field.ty(),
                    "a tuple field has no name to load it by",
                    "give one: `#[param(\"name\", …)]`",
                );
                None
            }
        };
    };
    let (value, holes) = (given.value(), given.value().matches("{}").count());
    match (&args.len, holes) {
        (None, 0) | (Some(_), 1) => Some(value),
        (Some(_), _) => {
            errors.push(
                Code::LoadContradiction,
                given,
                "the name of a list holds `{}` once, for the index",
                format!("write `\"{value}.{{}}\"`, for example"),
            );
            None
        }
        (None, _) => {
            errors.push(
                Code::LoadContradiction,
                given,
                "`{}` stands for an index, and this is not a list",
                "add `len = …`, on a field of type `Vec`",
            );
            None
        }
    }
}

/// Reports fields whose type shows that an argument is missing.
fn check_type(field: &Field<'_>, at: &TokenStream, args: &Args, errors: &mut Errors) -> Option<()> {
    let ty = last_segment(field.ty()).map(|s| s.ident.to_string()).unwrap_or_default();
    let (message, help) = match ty.as_str() {
        "Param" if args.shape.is_none() => {
            ("a parameter needs a shape", "write `#[param(\"name\", shape = [config.rows, config.width])]`")
        }
        "State" => (
            "state is not loaded, it starts at zero",
            "write `#[state(shape = [config.rows, config.width])]`",
        ),
        "Vec" if args.len.is_none() => {
            ("the number of items is missing", "write `#[param(\"layers.{}\", len = config.layers)]`")
        }
        "Option" if args.optional.is_none() => {
            ("nothing says that this may be absent", "write `#[param(\"name\", optional, …)]`")
        }
        _ => return Some(()),
    };
    errors.push(Code::LoadIncomplete, at, message, help);
    None
}

/// The `T` of a field of type `Vec<T>` or `Option<T>`.
fn inner<'a>(field: &Field<'a>, container: &str, argument: &str, errors: &mut Errors) -> Option<&'a Type> {
    let ty: &'a Type = &field.ast.ty;
    let found = last_segment(ty).filter(|s| s.ident == container).and_then(|s| match &s.arguments {
        PathArguments::AngleBracketed(arguments) => arguments.args.iter().find_map(|a| match a {
            GenericArgument::Type(inner) => Some(inner),
            _ => None,
        }),
        _ => None,
    });
    if found.is_none() {
        errors.push(
            Code::LoadContradiction,
            ty,
            format!("`{argument}` belongs on a field of type `{container}<…>`"),
            format!("make it a `{container}`, spelled out, or remove `{argument}`"),
        );
    }
    found
}

fn last_segment(ty: &Type) -> Option<&syn::PathSegment> {
    match ty {
        Type::Path(path) => path.path.segments.last(),
        _ => None,
    }
}

/// The name under which the user's expressions find the config.
fn config() -> Ident {
    Ident::new("config", Span::call_site())
}

/// The impl; without a plan (after errors) one that loads and saves nothing.
pub(super) fn expand(item: &Item<'_>, own: &ParamsAttr, plan: Option<Vec<FieldPlan>>) -> TokenStream {
    let (p, l, s, config_type, config) = (private(), local("l"), local("s"), &own.config, config());
    let save = plan.as_ref().map(|plan| {
        item.visit(
            |_| TokenStream::new(),
            |field| {
                let (binding, save) = (&field.binding, &plan[field.index].save);
                if save.is_empty() { quote!(let _ = #binding;) } else { save.clone() }
            },
        )
    });
    let body = match &plan {
        None => quote!(::core::option::Option::None),
        Some(plan) => {
            // Every field is tried before any failure ends the function.
            let lets = item.fields().zip(plan).map(|(Field { binding, ast, .. }, plan)| {
                let (ty, value) = (&ast.ty, &plan.value);
                quote!(let #binding: ::core::option::Option<#ty> = #value;)
            });
            let values = item.fields().map(|Field { member, binding, .. }| quote!(#member: #binding?));
            quote!(#(#lets)* ::core::option::Option::Some(Self { #(#values),* }))
        }
    };
    item.implement(
        &quote!(#p::LoadParams),
        |field| plan.as_ref().and_then(|plan| plan[field.index].bound.clone()),
        &quote! {
            type Config = #config_type;
            #[allow(unused_variables)]
            fn load(#l: &mut #p::Loader<'_>, #config: &Self::Config) -> ::core::option::Option<Self> { #body }
            #[allow(unused_variables)]
            fn save(&self, #s: &mut #p::Exporter) { #save }
        },
    )
}

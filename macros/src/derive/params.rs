//! `#[derive(Params)]`: every field is in the key, parameters can be listed, and with
//! `#[params(config = …)]` the struct is loaded by tensor name.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};

use super::{
    Errors, Field, Item,
    attrs::{self, Role},
    krate, load, local, parse, private,
};

pub(crate) fn derive_params(tokens: TokenStream) -> TokenStream {
    let input = match parse(tokens) {
        Ok(input) => input,
        Err(errors) => return errors,
    };
    let mut errors = Errors::default();
    let Some(item) = Item::new(&input, "Params", &mut errors) else { return errors.finish() };
    let own = attrs::item(&input, &mut errors);
    let roles: Vec<Role> = item.fields().map(|f| attrs::field(f.ast, &mut errors)).collect();
    let load = match &own {
        Some(own) => load::plan(&item, own, &roles, &mut errors),
        None => {
            load::check_unused(&roles, &mut errors);
            None
        }
    };

    // With errors the impls are still there, without looking at the fields, so that the struct's
    // users see nothing but these errors.
    let (p, checked) = (private(), errors.is_empty());
    let key = key(&item, &roles, checked);
    let visit = visit(&item, &roles, checked);
    let load = match (&own, load) {
        (Some(own), plan) => load::expand(&item, own, plan.filter(|_| checked)),
        (None, _) => TokenStream::new(),
    };
    let errors = errors.finish();
    // Eager code can choose which of them enters a segment, but not its contents.
    let device = item.implement(
        &quote!(#p::DeviceValue),
        |field| checked.then(|| bound(&roles, field)),
        &TokenStream::new(),
    );
    quote!(#errors #key #visit #device #load)
}

fn is_config(roles: &[Role], field: &Field<'_>) -> bool {
    matches!(roles[field.index], Role::Config(..))
}

fn bound(roles: &[Role], field: &Field<'_>) -> TokenStream {
    let (p, ty) = (private(), field.ty());
    if is_config(roles, field) { quote!(#ty: #p::ConfigValue) } else { quote!(#ty: #p::ParamField) }
}

fn key(item: &Item<'_>, roles: &[Role], checked: bool) -> TokenStream {
    let (p, k) = (private(), local("k"));
    let body = checked.then(|| {
        item.visit(
            |i| quote!(#k.word(#i);),
            |field| {
                let (ty, binding) = (field.ty(), &field.binding);
                if is_config(roles, field) {
                    quote_spanned!(field.span()=> <#ty as #p::ConfigValue>::config_key(#binding, #k);)
                } else {
                    quote_spanned!(field.span()=> <#ty as #p::ParamField>::field_key(#binding, #k);)
                }
            },
        )
    });
    item.implement(
        &quote!(#p::LiveIn),
        |field| checked.then(|| bound(roles, field)),
        &quote!(#[inline] #[allow(unused_variables)] fn write_key(&self, #k: &mut #p::KeyWriter) { #body }),
    )
}

fn visit(item: &Item<'_>, roles: &[Role], checked: bool) -> TokenStream {
    let (krate, p, v) = (krate(), private(), local("v"));
    let body = checked.then(|| {
        item.visit(
            |_| TokenStream::new(),
            |field| {
                let (name, ty, binding) = (field.name(), field.ty(), &field.binding);
                if is_config(roles, field) {
                    quote!(let _ = #binding;)
                } else {
                    quote_spanned!(field.span()=> #v.field(#name, |#v| <#ty as #p::ParamField>::field_params(#binding, #v));)
                }
            },
        )
    });
    item.implement(
        &quote!(#krate::Params),
        |field| checked.then(|| bound(roles, field)),
        &quote!(#[allow(unused_variables)] fn visit_params(&self, #v: &mut #p::ParamVisitor) { #body }),
    )
}

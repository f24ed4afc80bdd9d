//! The helper attributes: `#[params]` on a struct; `#[param]`, `#[state]` and `#[config]` on fields.

use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::{
    Attribute, DeriveInput, Expr, Ident, LitStr, Meta, Token, Type,
    parse::{ParseStream, Parser},
};

use super::{Code, Errors};
use crate::diag::nearest;

/// The source of a field's value, and its part in the key.
pub(super) enum Role {
    /// A parameter, state or struct of them, without an attribute.
    Plain,
    /// The attribute was rejected; no further errors are reported about the field.
    Broken,
    /// `#[config]`, `#[config(expr)]`.
    Config(Attribute, Option<Expr>),
    /// `#[param(…)]`.
    Param(Attribute, Args),
    /// `#[state(…)]`.
    State(Attribute, Args),
}

/// The arguments of `#[param]` and `#[state]`.
#[derive(Default)]
pub(super) struct Args {
    pub(super) name: Option<LitStr>,
    pub(super) shape: Option<Expr>,
    pub(super) len: Option<Expr>,
    pub(super) config: Option<Expr>,
    pub(super) optional: Option<Ident>,
}

/// `#[params(config = Type)]`.
pub(super) struct ParamsAttr {
    pub(super) attr: Attribute,
    pub(super) config: Type,
}

/// The attribute on the type itself.
pub(super) fn item(input: &DeriveInput, errors: &mut Errors) -> Option<ParamsAttr> {
    let mut found = None;
    for attr in &input.attrs {
        if attr.path().is_ident("params") {
            if found.is_some() {
                errors.push(Code::RepeatedAttribute, attr, "`#[params]` is given twice", "merge the two");
                continue;
            }
            let parsed = attr.parse_args_with(|input: ParseStream<'_>| params_args(input, errors));
            if let Some(config) = parsed_or_report(parsed, "write `#[params(config = YourConfig)]`", errors) {
                found = Some(ParamsAttr { attr: attr.clone(), config });
            }
        } else if ["param", "state", "config"].iter().any(|name| attr.path().is_ident(name)) {
            let name = attr.path().to_token_stream();
            errors.push(
                Code::MisplacedAttribute,
                attr,
                format!("`#[{name}]` belongs on a field"),
                "the struct takes `#[params(config = …)]`",
            );
        }
    }
    found
}

/// Returns the result of a parser, and reports a syntax error. `None` was already reported.
fn parsed_or_report<T>(parsed: syn::Result<Option<T>>, help: &str, errors: &mut Errors) -> Option<T> {
    parsed.unwrap_or_else(|error| {
        errors.push_syntax(Code::AttributeArguments, error, help);
        None
    })
}

/// Skips the rest of arguments of which one is refused.
fn skip<T>(input: ParseStream<'_>) -> syn::Result<Option<T>> {
    input.parse::<TokenStream>()?;
    Ok(None)
}

fn params_args(input: ParseStream<'_>, errors: &mut Errors) -> syn::Result<Option<Type>> {
    let key: Ident = input.parse()?;
    if key != "config" {
        unknown(&key, "params", &["config"], errors);
        return skip(input);
    }
    input.parse::<Token![=]>()?;
    let config = input.parse()?;
    input.parse::<Option<Token![,]>>()?;
    Ok(Some(config))
}

/// The attributes of a field.
pub(super) fn field(field: &syn::Field, errors: &mut Errors) -> Role {
    let mut role = Role::Plain;
    for attr in &field.attrs {
        let new = if attr.path().is_ident("config") {
            config(attr, errors)
        } else if attr.path().is_ident("param") {
            args(attr, "param", &["shape", "len", "config", "optional"], errors)
                .map(|a| Role::Param(attr.clone(), a))
        } else if attr.path().is_ident("state") {
            args(attr, "state", &["shape", "len"], errors).map(|a| Role::State(attr.clone(), a))
        } else if attr.path().is_ident("params") {
            errors.push(
                Code::MisplacedAttribute,
                attr,
                "`#[params]` belongs on the struct",
                "a field takes `#[param(\"name\", …)]`",
            );
            None
        } else {
            continue;
        };
        if !matches!(role, Role::Plain) {
            errors.push(
                Code::FieldRole,
                attr,
                "a field has one of `#[param]`, `#[state]` and `#[config]`, once",
                "remove one",
            );
        }
        role = new.unwrap_or(Role::Broken);
    }
    role
}

fn config(attr: &Attribute, errors: &mut Errors) -> Option<Role> {
    let value = match &attr.meta {
        Meta::Path(_) => None,
        Meta::List(list) => {
            Some(parsed_or_report(list.parse_args().map(Some), "write `#[config(expression)]`", errors)?)
        }
        Meta::NameValue(_) => {
            errors.push(
                Code::AttributeArguments,
                attr,
                "`#[config = …]` is not a form of this attribute",
                "write `#[config(expression)]`",
            );
            return None;
        }
    };
    Some(Role::Config(attr.clone(), value))
}

fn args(attr: &Attribute, name: &str, allowed: &[&str], errors: &mut Errors) -> Option<Args> {
    match &attr.meta {
        Meta::Path(_) => Some(Args::default()),
        Meta::List(list) => {
            let parser = |input: ParseStream<'_>| parse_args(input, name, allowed, errors);
            let parsed = parser.parse2(list.tokens.clone());
            let forms: Vec<String> = allowed.iter().map(|a| format!("`{a}`")).collect();
            parsed_or_report(parsed, &format!("`#[{name}(…)]` takes {}", forms.join(", ")), errors)
        }
        Meta::NameValue(_) => {
            errors.push(
                Code::AttributeArguments,
                attr,
                format!("`#[{name} = …]` is not a form of this attribute"),
                format!("write `#[{name}(…)]`"),
            );
            None
        }
    }
}

fn parse_args(
    input: ParseStream<'_>,
    attribute: &str,
    allowed: &[&str],
    errors: &mut Errors,
) -> syn::Result<Option<Args>> {
    let mut args = Args::default();
    while !input.is_empty() {
        if input.peek(LitStr) {
            let name: LitStr = input.parse()?;
            if attribute != "param" || args.name.is_some() {
                let message = format!("`#[{attribute}]` takes no name here");
                errors.push(Code::AttributeArguments, name, message, "remove it");
                return skip(input);
            }
            args.name = Some(name);
        } else {
            let key: Ident = input.parse()?;
            if !allowed.iter().any(|a| key == a) {
                unknown(&key, attribute, allowed, errors);
                return skip(input);
            }
            if key == "optional" {
                args.optional = Some(key);
            } else {
                input.parse::<Token![=]>()?;
                let value: Expr = input.parse()?;
                let slot = match key.to_string().as_str() {
                    "shape" => &mut args.shape,
                    "len" => &mut args.len,
                    _ => &mut args.config,
                };
                if slot.replace(value).is_some() {
                    errors.push(
                        Code::RepeatedAttribute,
                        &key,
                        format!("`{key}` is given twice"),
                        "remove one",
                    );
                    return skip(input);
                }
            }
        }
        if !input.is_empty() {
            input.parse::<Token![,]>()?;
        }
    }
    Ok(Some(args))
}

fn unknown(key: &Ident, attribute: &str, allowed: &[&str], errors: &mut Errors) {
    let text = key.to_string();
    let help = match nearest(&text, allowed) {
        Some(near) => format!("did you mean `{near}`?"),
        None => {
            let list: Vec<String> = allowed.iter().map(|a| format!("`{a}`")).collect();
            format!("it takes {}", list.join(", "))
        }
    };
    errors.push(Code::UnknownArgument, key, format!("`#[{attribute}]` has no argument `{text}`"), help);
}

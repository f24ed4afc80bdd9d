//! The helper attributes: `#[params]` on a struct; `#[param]`, `#[state]` and `#[config]` on fields.

use quote::ToTokens;
use syn::{
    Attribute, DeriveInput, Expr, Ident, LitStr, Meta, Token, Type,
    parse::{ParseStream, Parser},
};

use super::Errors;

/// Where a field's value comes from, and what it is in the key.
pub(super) enum Role {
    /// A parameter, state or struct of them, without an attribute.
    Plain,
    /// An attribute that was refused; more is not to be said about the field.
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
                errors.push(attr, "`#[params]` is given twice", "merge the two");
                continue;
            }
            match attr.parse_args_with(params_args) {
                Ok(config) => found = Some(ParamsAttr { attr: attr.clone(), config }),
                Err(e) => errors.combine(e),
            }
        } else if ["param", "state", "config"].iter().any(|name| attr.path().is_ident(name)) {
            let name = attr.path().to_token_stream();
            errors.push(
                attr,
                format!("`#[{name}]` belongs on a field"),
                "the struct takes `#[params(config = …)]`",
            );
        }
    }
    found
}

fn params_args(input: ParseStream<'_>) -> syn::Result<Type> {
    let key: Ident = input.parse()?;
    if key != "config" {
        return Err(unknown(&key, "params", &["config"]));
    }
    input.parse::<Token![=]>()?;
    let config = input.parse()?;
    input.parse::<Option<Token![,]>>()?;
    Ok(config)
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
            errors.push(attr, "`#[params]` belongs on the struct", "a field takes `#[param(\"name\", …)]`");
            None
        } else {
            continue;
        };
        if !matches!(role, Role::Plain) {
            errors.push(
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
        Meta::List(list) => match list.parse_args() {
            Ok(value) => Some(value),
            Err(e) => {
                errors.combine(e);
                return None;
            }
        },
        Meta::NameValue(_) => {
            errors.push(
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
    let parser = |input: ParseStream<'_>| parse_args(input, name, allowed);
    let parsed = match &attr.meta {
        Meta::Path(_) => Ok(Args::default()),
        Meta::List(list) => parser.parse2(list.tokens.clone()),
        Meta::NameValue(_) => {
            errors.push(
                attr,
                format!("`#[{name} = …]` is not a form of this attribute"),
                format!("write `#[{name}(…)]`"),
            );
            return None;
        }
    };
    parsed.map_err(|e| errors.combine(e)).ok()
}

fn parse_args(input: ParseStream<'_>, attribute: &str, allowed: &[&str]) -> syn::Result<Args> {
    let mut args = Args::default();
    while !input.is_empty() {
        if input.peek(LitStr) {
            let name: LitStr = input.parse()?;
            if attribute != "param" || args.name.is_some() {
                let message = format!("`#[{attribute}]` takes no name here\nhelp: remove it");
                return Err(syn::Error::new_spanned(name, message));
            }
            args.name = Some(name);
        } else {
            let key: Ident = input.parse()?;
            if !allowed.iter().any(|a| key == a) {
                return Err(unknown(&key, attribute, allowed));
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
                    return Err(syn::Error::new_spanned(
                        &key,
                        format!("`{key}` is given twice\nhelp: remove one"),
                    ));
                }
            }
        }
        if !input.is_empty() {
            input.parse::<Token![,]>()?;
        }
    }
    Ok(args)
}

fn unknown(key: &Ident, attribute: &str, allowed: &[&str]) -> syn::Error {
    let text = key.to_string();
    let list = allowed.iter().map(|a| format!("`{a}`")).collect::<Vec<_>>().join(", ");
    let help = match allowed.iter().min_by_key(|a| distance(&text, a)) {
        Some(near) if distance(&text, near) <= 2 => format!("did you mean `{near}`?"),
        _ => format!("it takes {list}"),
    };
    syn::Error::new_spanned(key, format!("`#[{attribute}]` has no argument `{text}`\nhelp: {help}"))
}

/// Edit distance.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, &y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

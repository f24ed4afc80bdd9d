//! Our attributes on parameters: `#[host]`, `#[key]` and `#[dims(…)]`.

use quote::ToTokens;
use syn::{
    Attribute, Expr, FnArg, GenericArgument, Generics, Lifetime, Lit, Meta, PathArguments, Stmt, Token,
    punctuated::Punctuated,
    visit::{self, Visit},
};

use super::{lifetimes, types};
use crate::diag::{Code, Errors, nearest};

const OURS: [&str; 3] = ["host", "key", "dims"];

/// Attributes that rustc allows on parameters.
const RUSTC: [&str; 9] = ["allow", "cfg", "cfg_attr", "deny", "doc", "expect", "forbid", "warn", "must_use"];

/// The attributes of one parameter.
#[derive(Default)]
pub(crate) struct Marks {
    pub(crate) host: Option<Attribute>,
    pub(crate) key: Option<Attribute>,
    pub(crate) dims: Option<Attribute>,
}

impl Marks {
    /// Any of them, for an error.
    pub(crate) fn any(&self) -> Option<&Attribute> {
        self.host.as_ref().or(self.key.as_ref()).or(self.dims.as_ref())
    }
}

/// One entry of `#[dims]`.
pub(crate) enum Dim {
    /// Index of a symbol of the function.
    Symbol(usize),
    /// A constant.
    Size(Expr),
}

impl Dim {
    /// The size, where it is a number.
    pub(crate) fn number(&self) -> Option<usize> {
        match self {
            Self::Size(Expr::Lit(lit)) => match &lit.lit {
                Lit::Int(int) => int.base10_parse().ok(),
                _ => None,
            },
            _ => None,
        }
    }
}

/// Returns whether a parameter has one of our attributes.
pub(crate) fn is_marked(argument: &FnArg) -> bool {
    let attrs = match argument {
        FnArg::Receiver(receiver) => &receiver.attrs,
        FnArg::Typed(typed) => &typed.attrs,
    };
    attrs.iter().any(|attr| OURS.iter().any(|ours| attr.path().is_ident(ours)))
}

/// Rejects tensors that are said to outlive every step.
pub(crate) fn refuse_static(argument: &FnArg, errors: &mut Errors) {
    struct Find<'a>(Option<&'a Lifetime>);
    impl<'a> Visit<'a> for Find<'a> {
        fn visit_path_segment(&mut self, segment: &'a syn::PathSegment) {
            if lifetimes::is_of_step(&segment.ident)
                && let PathArguments::AngleBracketed(arguments) = &segment.arguments
                && let Some(GenericArgument::Lifetime(first)) = arguments.args.first()
                && first.ident == "static"
            {
                self.0 = Some(first);
            }
            visit::visit_path_segment(self, segment);
        }
    }
    let FnArg::Typed(typed) = argument else { return };
    let mut find = Find(None);
    find.visit_type(&typed.ty);
    if let Some(found) = find.0 {
        let (name, ty) = (typed.pat.to_token_stream(), types::written(&typed.ty));
        errors.push(
            Code::GraphInput,
            found,
            format!(
                "`{name}` is said to live for `'static`, and everything on the device ends with its step"
            ),
            format!("write `{name}: {ty}`"),
        );
    }
}

/// Takes our attributes off a parameter.
pub(crate) fn take(argument: &mut FnArg, errors: &mut Errors) -> Marks {
    let attrs = match argument {
        FnArg::Receiver(receiver) => &mut receiver.attrs,
        FnArg::Typed(typed) => &mut typed.attrs,
    };
    let mut marks = Marks::default();
    attrs.retain(|attr| {
        let Some(name) = attr.path().get_ident().map(ToString::to_string) else { return true };
        let slot = match name.as_str() {
            "host" => &mut marks.host,
            "key" => &mut marks.key,
            "dims" => &mut marks.dims,
            "eager" | "piecewise" => {
                errors.push(
                    Code::MisplacedAttribute,
                    attr,
                    format!("`#[{name}]` belongs on an expression"),
                    "a parameter takes `#[host]`, `#[key]` and `#[dims(…)]`",
                );
                return false;
            }
            other => {
                if !RUSTC.contains(&other)
                    && let Some(known) = nearest(other, &OURS)
                {
                    let help = format!("did you mean `#[{known}]`?");
                    errors.push(
                        Code::UnknownAttribute,
                        attr,
                        format!("a parameter has no attribute `#[{other}]`"),
                        help,
                    );
                    return false;
                }
                return true;
            }
        };
        if slot.is_some() {
            errors.push(Code::RepeatedAttribute, attr, format!("`#[{name}]` is given twice"), "remove one");
        } else if name != "dims" && !matches!(attr.meta, Meta::Path(_)) {
            errors.push(
                Code::AttributeArguments,
                attr,
                format!("`#[{name}]` takes no arguments"),
                format!("write `#[{name}]`"),
            );
            *slot = Some(attr.clone());
        } else {
            *slot = Some(attr.clone());
        }
        false
    });
    marks
}

/// The entries of `#[dims(…)]`; symbols that are new are added to `symbols`.
pub(crate) fn dims(
    attr: &Attribute,
    generics: &Generics,
    symbols: &mut Vec<String>,
    errors: &mut Errors,
) -> Option<Vec<Dim>> {
    let help = "write one entry per dimension: a symbol such as `B`, or a constant such as `64` or `{WIDTH}`";
    let Meta::List(list) = &attr.meta else {
        errors.push(Code::DimsEntry, attr, "`#[dims]` names the dimensions", help);
        return None;
    };
    let entries = match list.parse_args_with(Punctuated::<Expr, Token![,]>::parse_terminated) {
        Ok(entries) => entries,
        Err(error) => {
            errors.push_span(Code::DimsEntry, error.span(), format!("`#[dims]`: {error}"), help);
            return None;
        }
    };
    let mut all = Vec::new();
    for entry in entries {
        all.push(dim(entry, generics, symbols, errors)?);
    }
    Some(all)
}

fn dim(entry: Expr, generics: &Generics, symbols: &mut Vec<String>, errors: &mut Errors) -> Option<Dim> {
    match &entry {
        Expr::Path(path) if path.qself.is_none() => {
            let Some(ident) = path.path.get_ident() else { return Some(Dim::Size(entry)) };
            if generics.const_params().any(|p| p.ident == *ident) {
                return Some(Dim::Size(entry));
            }
            let name = ident.to_string();
            let index = symbols.iter().position(|s| *s == name).unwrap_or_else(|| {
                symbols.push(name);
                symbols.len() - 1
            });
            Some(Dim::Symbol(index))
        }
        Expr::Lit(lit) => match &lit.lit {
            Lit::Int(int) if matches!(int.suffix(), "" | "usize") => Some(Dim::Size(entry)),
            _ => {
                errors.push(
                    Code::DimsEntry,
                    &entry,
                    "a dimension is a number of elements",
                    "write an integer, such as `64`",
                );
                None
            }
        },
        Expr::Infer(_) => {
            errors.push(
                Code::DimsEntry,
                &entry,
                "`_` is not a dimension",
                "name it with a symbol, such as `N`: any size matches",
            );
            None
        }
        Expr::Closure(_) | Expr::Assign(_) | Expr::Range(_) | Expr::Tuple(_) | Expr::Array(_) => {
            let text = entry.to_token_stream();
            errors.push(
                Code::DimsEntry,
                &entry,
                format!("`{text}` is not a dimension"),
                "write a symbol, an integer or `{CONSTANT}`",
            );
            None
        }
        // The braces only keep a constant's name from being a symbol.
        Expr::Block(block) => match block.block.stmts.as_slice() {
            [Stmt::Expr(inner, None)] => Some(Dim::Size(inner.clone())),
            _ => Some(Dim::Size(entry)),
        },
        _ => Some(Dim::Size(entry)),
    }
}

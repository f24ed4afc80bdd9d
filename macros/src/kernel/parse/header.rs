//! The parts of a kernel before its body.

use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::{Attribute, FnArg, Ident, ItemFn, Meta, Pat, ReturnType, Type, spanned::Spanned};

use crate::{
    diag::{Code, Errors},
    kernel::model::{Header, Input, Scalar},
};

/// Parameters that a kernel can have, and results.
const MOST_INPUTS: usize = 16;
const MOST_OUTPUTS: usize = 4;

/// The signature; `None` where it cannot be an operation's.
pub(in crate::kernel) fn header(args: &TokenStream, item: &ItemFn, errors: &mut Errors) -> Option<Header> {
    let before = errors.count();
    if !args.is_empty() {
        let help = "write `#[kernel]`: one element of each input in, one element of each output out";
        errors.push(Code::KernelItem, args, "`#[kernel]` has no such argument", help);
    }
    qualifiers(item, errors);
    // The names of types mean something else there.
    if errors.count() > before && !item.sig.generics.params.is_empty() {
        return None;
    }
    let inputs = inputs(item, errors);
    let outputs = outputs(item, errors);
    if errors.count() > before {
        return None;
    }
    let (conditions, attrs) =
        item.attrs.iter().cloned().map(allowed).partition(|attr| attr.path().is_ident("cfg"));
    Some(Header {
        attrs,
        conditions,
        vis: item.vis.clone(),
        name: item.sig.ident.clone(),
        inputs,
        outputs,
        output_span: item.sig.output.span(),
    })
}

/// The attribute; of `#[expect(…)]`, `#[allow(…)]`: what is generated may lack what the function has.
fn allowed(mut attr: Attribute) -> Attribute {
    if attr.path().is_ident("expect")
        && let Meta::List(list) = &mut attr.meta
    {
        list.path = Ident::new("allow", list.path.span()).into();
    }
    attr
}

fn qualifiers(item: &ItemFn, errors: &mut Errors) {
    let sig = &item.sig;
    let mut refuse = |at: &dyn ToTokens, what: &str, help: &str| {
        errors.push(Code::KernelItem, at.to_token_stream(), format!("a kernel cannot be {what}"), help);
    };
    if let Some(token) = &sig.asyncness {
        refuse(token, "`async`", "remove `async`");
    }
    if let Some(token) = &sig.constness {
        refuse(token, "`const`", "remove `const`: both devices run it");
    }
    if let Some(token) = &sig.unsafety {
        refuse(token, "`unsafe`", "remove `unsafe`: a kernel has nothing but values");
    }
    if let Some(abi) = &sig.abi {
        refuse(abi, "`extern`", "remove the ABI");
    }
    if !sig.generics.params.is_empty() {
        let help = "write `f32` for floats: the operation takes tensors of every float type; write a separate kernel for other types";
        refuse(&sig.generics, "generic", help);
    }
    if let Some(clause) = &sig.generics.where_clause {
        refuse(clause, "generic", "remove the `where` clause");
    }
    if let Some(variadic) = &sig.variadic {
        refuse(variadic, "variadic", "list the parameters");
    }
}

fn inputs(item: &ItemFn, errors: &mut Errors) -> Vec<Input> {
    let list = &item.sig.inputs;
    if list.is_empty() {
        let help = "give it a parameter, such as `x: f32`; a tensor of one value is `ops::full`";
        errors.push(Code::KernelItem, &item.sig.ident, "a kernel without parameters has no shape", help);
    }
    if let Some(extra) = list.iter().nth(MOST_INPUTS) {
        let message = format!("a kernel has at most {MOST_INPUTS} parameters");
        errors.push(Code::KernelItem, extra, message, "compute part of it in a kernel of its own");
    }
    let mut inputs: Vec<Input> = Vec::new();
    for argument in list {
        let Some(input) = input(argument, errors) else { continue };
        // rustc would report it for a function that no longer exists.
        if inputs.iter().any(|other| other.name == input.name) {
            let message = format!("two parameters are called `{}`", input.name);
            errors.push(Code::KernelItem, &input.name, message, "rename one of them");
        }
        inputs.push(input);
    }
    inputs
}

fn input(argument: &FnArg, errors: &mut Errors) -> Option<Input> {
    let FnArg::Typed(typed) = argument else {
        let help = "make it a function of its own, whose parameters are the values that it needs";
        errors.push(Code::KernelItem, argument, "a kernel cannot be a method", help);
        return None;
    };
    if let Some(attr) = typed.attrs.first() {
        let help = "remove it: the caller of the operation decides what is a tensor (`&x`) and what is a number (`0.1`)";
        errors.push(Code::KernelItem, attr, "an attribute on a parameter of a kernel", help);
    }
    // In the order of the tokens, as rustc lists errors.
    let name = name(&typed.pat, errors);
    let scalar = scalar(&typed.ty, errors);
    let (name, mutable) = name?;
    Some(Input { name, mutable, scalar: scalar? })
}

/// Returns the name of a parameter, and if it may change.
fn name(pat: &Pat, errors: &mut Errors) -> Option<(Ident, bool)> {
    match pat {
        Pat::Ident(pat) if pat.by_ref.is_none() && pat.subpat.is_none() => {
            Some((pat.ident.clone(), pat.mutability.is_some()))
        }
        other => {
            errors.push(Code::KernelItem, other, "a parameter of a kernel is a name", "write `x: f32`");
            None
        }
    }
}

fn outputs(item: &ItemFn, errors: &mut Errors) -> Vec<Scalar> {
    let ReturnType::Type(_, ty) = &item.sig.output else {
        let help = "write `-> f32`; several results are a tuple, `-> (f32, u32)`";
        errors.push(Code::KernelItem, &item.sig.ident, "a kernel without a result", help);
        return Vec::new();
    };
    match peeled(ty) {
        Type::Tuple(tuple) if tuple.elems.len() < 2 => {
            let help = "write the type itself, `-> f32`; several results are a tuple, `-> (f32, u32)`";
            errors.push(Code::KernelItem, tuple, "a kernel's result is a value, or a tuple of several", help);
            Vec::new()
        }
        Type::Tuple(tuple) => {
            if let Some(extra) = tuple.elems.iter().nth(MOST_OUTPUTS) {
                let message = format!("a kernel has at most {MOST_OUTPUTS} results");
                errors.push(Code::KernelItem, extra, message, "compute part of it in a kernel of its own");
            }
            tuple.elems.iter().filter_map(|ty| scalar(ty, errors)).collect()
        }
        ty => scalar(ty, errors).into_iter().collect(),
    }
}

fn peeled(ty: &Type) -> &Type {
    match ty {
        Type::Paren(inner) => peeled(&inner.elem),
        Type::Group(inner) => peeled(&inner.elem),
        other => other,
    }
}

/// One of the language's types; anything else is refused.
pub(super) fn scalar(ty: &Type, errors: &mut Errors) -> Option<Scalar> {
    let name = match peeled(ty) {
        Type::Path(path) if path.qself.is_none() => path.path.get_ident().map(Ident::to_string),
        _ => None,
    };
    let found = name.as_deref().and_then(Scalar::named);
    if found.is_none() {
        let shown = crate::diag::shortened(ty).replace(" < ", "<").replace(" >", ">");
        errors.push(
            Code::KernelType,
            ty,
            format!("kernels have no type `{shown}`"),
            instead(ty, name.as_deref()),
        );
    }
    found
}

fn instead(ty: &Type, name: Option<&str>) -> &'static str {
    match (ty, name) {
        (_, Some("f64" | "f16" | "bf16" | "f128")) => {
            "write `f32`: floats are computed in it, whatever the type of the tensors"
        }
        (_, Some("usize" | "u64" | "u16" | "u128")) => "write `u32`",
        (_, Some("isize" | "i64" | "i16" | "i8" | "i128")) => "write `i32`",
        (_, Some("char")) => "write `u32`",
        (Type::Reference(_), _) => {
            "write the value's type, such as `f32`: a kernel sees one element at a time"
        }
        _ => {
            "write `f32`, `i32`, `u32`, `u8` or `bool`: a kernel computes one element from the elements at its place"
        }
    }
}

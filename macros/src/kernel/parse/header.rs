//! The parts of a kernel before its body.

use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::{Attribute, FnArg, Ident, ItemFn, Meta, Pat, ReturnType, Type, spanned::Spanned};

use super::{index, written};
use crate::{
    diag::{Code, Errors},
    kernel::model::{Extent, Form, Header, Input, Output, Scalar},
};

/// Parameters that a kernel can have, and results.
const MOST_INPUTS: usize = 16;
const MOST_OUTPUTS: usize = 4;

/// The signature; `None` where it cannot be an operation's.
pub(in crate::kernel) fn header(args: &TokenStream, item: &ItemFn, errors: &mut Errors) -> Option<Header> {
    let before = errors.count();
    let form = form(args, errors);
    qualifiers(item, errors);
    // The names of types mean something else there.
    if errors.count() > before && !item.sig.generics.params.is_empty() {
        return None;
    }
    let inputs = inputs(item, form, errors);
    let index = if form == Form::Index { index::index(item, errors) } else { Vec::new() };
    let outputs = match inputs.iter().find(|input| input.is_written) {
        Some(state) => written::outputs(item, state, errors),
        None => outputs(item, form, errors),
    };
    if errors.count() > before {
        return None;
    }
    let (conditions, attrs) =
        item.attrs.iter().cloned().map(allowed).partition(|attr| attr.path().is_ident("cfg"));
    Some(Header {
        attrs,
        conditions,
        vis: item.vis.clone(),
        form,
        name: item.sig.ident.clone(),
        inputs,
        index,
        outputs,
        output_span: item.sig.output.span(),
    })
}

/// Returns the form that the attribute's arguments request.
fn form(args: &TokenStream, errors: &mut Errors) -> Form {
    match &*args.to_string() {
        "" => Form::Elements,
        "rows" => Form::Rows,
        "reduce" => Form::Reduce,
        "index" => Form::Index,
        _ => {
            let help = "write `#[kernel]` for one element of each tensor at a time, `#[kernel(rows)]` for a row of each, `#[kernel(reduce)]` for single values of rows along any dimension, or `#[kernel(index)]` for values at computed indices";
            errors.push(Code::KernelItem, args, "`#[kernel]` has no such argument", help);
            Form::Elements
        }
    }
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

fn inputs(item: &ItemFn, form: Form, errors: &mut Errors) -> Vec<Input> {
    let list = &item.sig.inputs;
    if list.is_empty() && form != Form::Index {
        let help = "give it a parameter, such as `x: f32`; a tensor of one value is `ops::full`";
        errors.push(Code::KernelItem, &item.sig.ident, "a kernel without parameters has no shape", help);
    }
    if let Some(extra) = list.iter().nth(MOST_INPUTS) {
        let message = format!("a kernel has at most {MOST_INPUTS} parameters");
        errors.push(Code::KernelItem, extra, message, "compute part of it in a kernel of its own");
    }
    let mut inputs: Vec<Input> = Vec::new();
    // The index is not an input.
    for argument in list.iter().filter(|argument| form != Form::Index || !index::is_index(argument)) {
        let Some(input) = input(argument, form, errors) else { continue };
        // rustc would report it for a function that no longer exists.
        if inputs.iter().any(|other| other.name == input.name) {
            let message = format!("two parameters are called `{}`", input.name);
            errors.push(Code::KernelItem, &input.name, message, "rename one of them");
        }
        inputs.push(input);
    }
    written::check(&inputs, errors);
    let draws = inputs.iter().any(|input| input.scalar == Scalar::Random);
    let mut values = inputs.iter().filter(|input| input.scalar.is_stored());
    // A kernel of random numbers and numbers alone is passed the shape.
    let has_tensor = || inputs.iter().any(|input| input.scalar.is_stored() && !input.is_key);
    if let (Some(first), true) = (values.next(), form != Form::Index)
        && first.is_key
        && first.extent == Extent::One
        && (!draws || has_tensor())
    {
        let help = "move it behind a parameter that is a tensor, which determines the step and the shape";
        errors.push(Code::KernelItem, &first.name, "the first parameter of a kernel is a tensor", help);
    }
    let is_row = |input: &Input| input.extent == Extent::Row;
    let has_length = inputs.iter().any(|input| is_row(input) && input.scalar.is_stored());
    if form.has_rows() && !has_length && inputs.len() == list.len() && !list.is_empty() {
        let (message, help) = match inputs.iter().any(is_row) {
            true => (
                "a kernel of rows whose only rows are random numbers",
                "give it a row of a tensor, such as `x: Row<f32>`: random numbers are as many as a row has values",
            ),
            false => (
                "a kernel of rows without a row",
                "give it a parameter such as `x: Row<f32>`; without one, it is a `#[kernel]`",
            ),
        };
        errors.push(Code::KernelItem, &item.sig.ident, message, help);
    }
    inputs
}

fn input(argument: &FnArg, form: Form, errors: &mut Errors) -> Option<Input> {
    let FnArg::Typed(typed) = argument else {
        let help = "make it a function of its own, whose parameters are the values that it needs";
        errors.push(Code::KernelItem, argument, "a kernel cannot be a method", help);
        return None;
    };
    let is_key = is_key(&typed.attrs, errors);
    // In the order of the tokens, as rustc lists errors.
    let name = name(&typed.pat, errors);
    let written = index::written(&typed.ty).filter(|_| form == Form::Index);
    let ty = match form {
        Form::Index => index::parameter(written.unwrap_or(&typed.ty), errors)
            .map(|(scalar, view)| (scalar, Extent::One, view)),
        _ => extent(&typed.ty, form, errors).map(|(scalar, extent)| (scalar, extent, None)),
    };
    let (name, mutable) = name?;
    let (scalar, extent, view) = ty?;
    if scalar == Scalar::Random {
        check_random(&typed.ty, view.is_some(), is_key.filter(|_| extent == Extent::One), errors);
    }
    if mutable && view.is_some() {
        let help = match written {
            Some(_) => "remove this `mut`; `set` writes values of the view",
            None => "remove `mut`: views are read, and the result is the value of the function",
        };
        errors.push(Code::KernelRow, &typed.pat, "a view cannot be changed", help);
    }
    if mutable && extent == Extent::Row {
        let help = "remove `mut`: rows are read, and `map` makes a new one";
        errors.push(Code::KernelRow, &typed.pat, "a row cannot be changed", help);
    }
    if let (Some(key), true) = (is_key, view.is_some() || extent == Extent::Row) {
        let help = "remove `#[key]`: only a number is part of a recording's key, such as `n: u32`";
        errors.push(Code::KernelItem, key, "a `#[key]` parameter of a kernel is a number", help);
    }
    let (is_written, is_key) = (written.is_some(), is_key.is_some());
    Some(Input { name, mutable, scalar, extent, view, is_written, is_key })
}

/// Refuses a random number where there is none.
fn check_random(ty: &Type, is_view: bool, key: Option<&Attribute>, errors: &mut Errors) {
    if is_view {
        let help = "write `r: Random`: each element has a random number of its own";
        errors.push(Code::KernelType, ty, "a random number is a value", help);
    } else if let Some(key) = key {
        let help = "remove `#[key]`: the operation takes an `&Rng`, from which each call draws";
        errors.push(Code::KernelItem, key, "a random number is not a `#[key]`", help);
    }
}

/// The `#[key]` of a parameter. Any other attribute is refused.
fn is_key<'a>(attrs: &'a [Attribute], errors: &mut Errors) -> Option<&'a Attribute> {
    let (keys, others): (Vec<_>, Vec<_>) =
        attrs.iter().partition(|attr| matches!(&attr.meta, Meta::Path(path) if path.is_ident("key")));
    if let Some(attr) = others.first().or_else(|| keys.get(1)) {
        let help = "remove it: the caller of the operation decides what is a tensor (`&x`) and what is a number (`0.1`); a number that every call passes as such takes `#[key]`";
        errors.push(Code::KernelItem, attr, "an attribute on a parameter of a kernel", help);
    }
    keys.first().copied()
}

/// Returns the name of a parameter, and if it may change.
pub(super) fn name(pat: &Pat, errors: &mut Errors) -> Option<(Ident, bool)> {
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

fn outputs(item: &ItemFn, form: Form, errors: &mut Errors) -> Vec<Output> {
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
            tuple.elems.iter().filter_map(|ty| output(ty, form, errors)).collect()
        }
        ty => output(ty, form, errors).into_iter().collect(),
    }
}

fn output(ty: &Type, form: Form, errors: &mut Errors) -> Option<Output> {
    let (scalar, extent) = extent(ty, form, errors)?;
    if !scalar.is_stored() {
        let help = "return what it becomes, such as `r.uniform()`, which is an `f32`";
        errors.push(Code::KernelType, ty, "no tensor has random numbers as elements", help);
        return None;
    }
    if form == Form::Reduce && extent == Extent::Row {
        let help = "write `#[kernel(rows)]`, which works along the last dimension, or return single values";
        errors.push(Code::KernelItem, ty, "a reduction returns no rows", help);
    }
    Some(Output { scalar, extent })
}

/// A type of the language, or a row of one.
fn extent(ty: &Type, form: Form, errors: &mut Errors) -> Option<(Scalar, Extent)> {
    match row(ty) {
        None => Some((scalar(ty, errors)?, Extent::One)),
        Some(element) if form.has_rows() => Some((scalar(element, errors)?, Extent::Row)),
        Some(_) => {
            let help = "write `#[kernel(rows)]`, or the type of one element, such as `f32`";
            errors.push(Code::KernelType, ty, "a `#[kernel]` sees one element at a time, not rows", help);
            None
        }
    }
}

/// `T` of `Row<T>`.
pub(super) fn row(ty: &Type) -> Option<&Type> {
    let Type::Path(path) = peeled(ty) else { return None };
    let segment = path.path.segments.last().filter(|segment| segment.ident == "Row")?;
    match &segment.arguments {
        syn::PathArguments::AngleBracketed(arguments) if arguments.args.len() == 1 => {
            match &arguments.args[0] {
                syn::GenericArgument::Type(element) => Some(element),
                _ => None,
            }
        }
        _ => None,
    }
}

pub(super) fn peeled(ty: &Type) -> &Type {
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
        (_, Some("f16" | "bf16" | "f128")) => {
            "write `f32`: floats are computed in it, whatever the type of the tensors"
        }
        (_, Some("usize" | "u64" | "u16" | "u128")) => "write `u32`",
        (_, Some("isize" | "i16" | "i128")) => "write `i32` or `i64`",
        (_, Some("char")) => "write `u32`",
        _ if index::view(ty).is_some() => {
            "write `#[kernel(index)]`, whose parameters can be views, or the type of one element, such as `f32`"
        }
        (Type::Reference(_), _) => {
            "write the value's type, such as `f32`: a kernel sees one element at a time"
        }
        _ => {
            "write `f32`, `f64`, `i8`, `i32`, `i64`, `u8`, `u32` or `bool`: a kernel computes one element from the elements at its place"
        }
    }
}

//! The signature of a kernel of indices: its views, and the index, which is its last parameter.

use syn::{
    Expr, ExprLit, FnArg, GenericArgument, Ident, ItemFn, Lit, Pat, PatType, PathArguments, Type,
    spanned::Spanned,
};

use super::header::{name, peeled, row, scalar};
use crate::{
    diag::{Code, Errors, shortened},
    kernel::{
        model::{Place, Scalar},
        views,
    },
    krate::generated_at,
};

/// Dimensions of a tensor.
const MOST_DIMENSIONS: usize = 6;

/// Returns whether an argument is the index, or looks like it.
pub(super) fn is_index(argument: &FnArg) -> bool {
    let FnArg::Typed(typed) = argument else { return false };
    matches!(peeled(&typed.ty), Type::Array(_)) || matches!(&*typed.pat, Pat::Slice(_))
}

/// The names of the index.
pub(super) fn index(item: &ItemFn, errors: &mut Errors) -> Vec<Place> {
    let last = item.sig.inputs.last().filter(|last| is_index(last));
    if let (None, Some(early)) = (last, item.sig.inputs.iter().find(|argument| is_index(argument))) {
        let help = "move it to the end of the parameters";
        errors.push(Code::KernelItem, early, "the index of a kernel is its last parameter", help);
        return Vec::new();
    }
    let Some(FnArg::Typed(typed)) = last else {
        let help = "write it as the last parameter: `[i, j]: [i32; 2]` for results of two dimensions";
        errors.push(Code::KernelItem, &item.sig.ident, "a kernel of indices without an index", help);
        return Vec::new();
    };
    let Some(rank) = rank(typed, errors) else { return Vec::new() };
    let Pat::Slice(slice) = &*typed.pat else {
        let help = format!("write `{}: [i32; {rank}]`", views::index(rank));
        errors.push(
            Code::KernelItem,
            &typed.pat,
            "the index of a kernel has a name for each dimension",
            help,
        );
        return Vec::new();
    };
    if slice.elems.len() != rank {
        let message = format!("there are {} names for {rank} indices", slice.elems.len());
        errors.push(
            Code::KernelItem,
            slice,
            message,
            format!("write `{}`, or another number of indices", views::index(rank)),
        );
        return Vec::new();
    }
    slice.elems.iter().enumerate().filter_map(|(i, pat)| place(i, pat, errors)).collect()
}

/// Number of dimensions that `[i32; N]` says.
fn rank(typed: &PatType, errors: &mut Errors) -> Option<usize> {
    const HELP: &str = "write `[i, j]: [i32; 2]` for results of two dimensions";
    let Type::Array(array) = peeled(&typed.ty) else {
        errors.push(Code::KernelType, &typed.ty, "the index of a kernel is an array of `i32`", HELP);
        return None;
    };
    let element = match peeled(&array.elem) {
        Type::Path(path) if path.qself.is_none() => path.path.get_ident().map(Ident::to_string),
        _ => None,
    };
    if element.as_deref().and_then(Scalar::named) != Some(Scalar::I32) {
        let help = "write `i32`, which differences of indices fit in; convert where another type is needed: `i as u32`";
        errors.push(Code::KernelType, &array.elem, "the index of a kernel is an array of `i32`", help);
        return None;
    }
    match number(&array.len) {
        Some(rank) if (1..=MOST_DIMENSIONS).contains(&rank) => Some(rank),
        _ => {
            let message = format!("results of a kernel have 1 to {MOST_DIMENSIONS} dimensions");
            errors.push(Code::KernelItem, &array.len, message, HELP);
            None
        }
    }
}

fn place(i: usize, pat: &Pat, errors: &mut Errors) -> Option<Place> {
    if let Pat::Wild(wild) = pat {
        let name = Ident::new(&format!("__index{i}"), generated_at(wild.span()));
        return Some(Place { name, mutable: false });
    }
    let (name, mutable) = name(pat, errors)?;
    Some(Place { name, mutable })
}

/// A number, perhaps from a macro.
pub(super) fn number(expr: &Expr) -> Option<usize> {
    match expr {
        Expr::Group(inner) => number(&inner.expr),
        Expr::Paren(inner) => number(&inner.expr),
        Expr::Lit(ExprLit { lit: Lit::Int(int), .. }) => int.base10_parse().ok(),
        _ => None,
    }
}

/// The type of another parameter: a view with its number of dimensions, or a value.
pub(super) fn parameter(ty: &Type, errors: &mut Errors) -> Option<(Scalar, Option<usize>)> {
    const HELP: &str = "write `View<f32, 2>` for a tensor of two dimensions";
    if row(ty).is_some() {
        errors.push(Code::KernelType, ty, "a kernel of indices has views, not rows", HELP);
        return None;
    }
    if let Some(arguments) = view(ty) {
        let [Some(GenericArgument::Type(element)), Some(GenericArgument::Const(rank)), None] = arguments
        else {
            let message = "a view has the type of its elements and a number of dimensions";
            errors.push(Code::KernelType, ty, message, HELP);
            return None;
        };
        let scalar = scalar(element, errors)?;
        let Some(rank) = number(rank).filter(|rank| (1..=MOST_DIMENSIONS).contains(rank)) else {
            let message = format!("a view has 1 to {MOST_DIMENSIONS} dimensions");
            let help = "write `View<f32, 2>`, or `f32` for a single value";
            errors.push(Code::KernelType, rank, message, help);
            return None;
        };
        return Some((scalar, Some(rank)));
    }
    match peeled(ty) {
        Type::Reference(_) | Type::Slice(_) => refuse_type(ty, HELP, errors),
        Type::Path(path) if path.path.segments.last().is_some_and(|s| s.ident == "Tensor") => {
            refuse_type(ty, HELP, errors)
        }
        _ => Some((scalar(ty, errors)?, None)),
    }
}

fn refuse_type<T>(ty: &Type, help: &str, errors: &mut Errors) -> Option<T> {
    let shown = shortened(ty).replace(" < ", "<").replace(" >", ">");
    errors.push(Code::KernelType, ty, format!("kernels have no type `{shown}`"), help);
    None
}

/// `View<…>` of `&mut View<…>`, a state that the kernel writes.
pub(super) fn written(ty: &Type) -> Option<&Type> {
    let Type::Reference(reference) = peeled(ty) else { return None };
    (reference.mutability.is_some() && view(&reference.elem).is_some()).then_some(&reference.elem)
}

/// The first arguments of `View<…>`.
pub(super) fn view(ty: &Type) -> Option<[Option<&GenericArgument>; 3]> {
    let Type::Path(path) = peeled(ty) else { return None };
    let segment = path.path.segments.last().filter(|segment| segment.ident == "View")?;
    let PathArguments::AngleBracketed(arguments) = &segment.arguments else { return Some([None; 3]) };
    let mut arguments = arguments.args.iter();
    Some([arguments.next(), arguments.next(), arguments.next()])
}

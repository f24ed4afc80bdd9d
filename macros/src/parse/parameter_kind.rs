//! The kind of a parameter in a graph, and rejected parameters.

use proc_macro2::Ident;
use quote::ToTokens;
use syn::{GenericArgument, Lifetime, PathArguments, Type};

use crate::{
    diag::{Code, Errors},
    parse::{
        lifetimes,
        parameters::Marks,
        types::{impl_trait, named, plain, scalar, written},
    },
};

/// The kind of a parameter, with the element type of a tensor or scalar.
pub(crate) enum Kind {
    HostTensor(Type),
    HostScalar(Type),
    Device(Type),
    /// A host value, compared on every call.
    Key,
    /// A reference to a struct of parameters.
    Params,
    /// A reference to something else that is made in a step: an output of another function.
    Output,
}

impl Kind {
    /// Returns whether it has a static buffer.
    pub(crate) fn is_input(&self) -> bool {
        matches!(self, Self::HostTensor(_) | Self::HostScalar(_) | Self::Device(_))
    }
}

/// Types that stay with the caller.
const HANDLES: [&str; 10] = [
    "Step",
    "Runtime",
    "Device",
    "Eager",
    "Capturable",
    "CudaStream",
    "CudaContext",
    "CudaDevice",
    "CudaGraph",
    "CudaEvent",
];

/// Collections of the host that are part of no key, whatever they hold.
const COLLECTIONS: [&str; 8] =
    ["HashMap", "HashSet", "BTreeMap", "BTreeSet", "VecDeque", "BinaryHeap", "IndexMap", "LinkedList"];

/// Types with interior mutability. `Cell` is missing, because a user may have a recurrent cell with that
/// name.
const INTERIOR: [&str; 7] = ["RefCell", "Mutex", "RwLock", "OnceCell", "OnceLock", "LazyCell", "LazyLock"];

/// The kind of a parameter; an error when there is none.
pub(crate) fn kind(
    ident: &Ident,
    ty: &Type,
    marks: &Marks,
    step: &Lifetime,
    errors: &mut Errors,
) -> Option<Kind> {
    if let (Some(_), Some(key)) = (&marks.host, &marks.key) {
        let help = "keep `#[host]` for a value refreshed on every call, `#[key]` for one recording per value";
        errors.push(Code::RepeatedAttribute, key, "a parameter is `#[host]` or `#[key]`", help);
        return None;
    }
    if let Some(token) = impl_trait(ty) {
        errors.push(
            Code::ImplTrait,
            &token,
            "a graph function cannot have an `impl Trait` parameter",
            "name the type, or a type parameter",
        );
        return None;
    }
    let ty = plain(ty);
    let inner = match ty {
        Type::Reference(r) => Some(plain(&r.elem)),
        _ => None,
    };
    if handle(ident, inner.unwrap_or(ty), errors) {
        return None;
    }
    if changing(ident, ty, errors) {
        return None;
    }
    if let Some(host) = &marks.host {
        return host_kind(ident, host, ty, inner, errors);
    }
    if marks.key.is_some() {
        return key_kind(ident, ty, inner, errors);
    }
    let Some(inner) = inner else {
        by_value(ident, ty, errors);
        return None;
    };
    if let Some(element) = named(inner, "Tensor") {
        return Some(Kind::Device(element));
    }
    if is_host(inner) {
        host_data(ident, ty, inner, errors);
        return None;
    }
    Some(if lifetimes::mentions(inner, step) { Kind::Output } else { Kind::Params })
}

/// Refuses a `&mut`, if the type is one.
fn changing(ident: &Ident, ty: &Type, errors: &mut Errors) -> bool {
    let Type::Reference(r) = ty else { return false };
    let Some(token) = &r.mutability else { return false };
    let (message, help) = match named(&r.elem, "Tensor") {
        Some(_) => ("tensors never change", format!("take `{ident}: &Tensor<…>` and return the new tensor")),
        None => (
            "a replay runs no host code, so nothing changes through `&mut`",
            format!("take `{ident}: &…`, and hold what changes on the device in a `State` field"),
        ),
    };
    let message = format!("a graph function cannot have a `&mut` parameter: {message}");
    errors.push(Code::MutParameter, token, message, help);
    true
}

fn host_kind(
    ident: &Ident,
    host: &syn::Attribute,
    ty: &Type,
    inner: Option<&Type>,
    errors: &mut Errors,
) -> Option<Kind> {
    let element = |name| inner.and_then(|t| named(t, name));
    if let Some(element) = element("Tensor") {
        return Some(Kind::HostTensor(element));
    }
    if let Some(element) = element("Scalar") {
        return Some(Kind::HostScalar(element));
    }
    let help = match (scalar(inner.unwrap_or(ty)), inner.and_then(elements)) {
        (Some(element), _) => {
            format!("write `#[host] {ident}: &Scalar<{element}>`; the call takes a plain `{element}`")
        }
        (None, Some(element)) => {
            format!("write `#[host] {ident}: &Tensor<{element}>`; the call takes a slice")
        }
        (None, None) => format!("write `#[host] {ident}: &Tensor<…>`; the call takes a slice"),
    };
    errors.push(
        Code::HostParameter,
        host,
        "`#[host]` data arrives in a tensor or scalar on the device",
        help,
    );
    None
}

fn key_kind(ident: &Ident, ty: &Type, inner: Option<&Type>, errors: &mut Errors) -> Option<Kind> {
    // Parameters of a function are not held; the types decide which functions can be keys.
    if matches!(plain(ty), Type::BareFn(_)) {
        return Some(Kind::Key);
    }
    if let Some(what) = ["Tensor", "Scalar"].iter().find(|n| named(inner.unwrap_or(ty), n).is_some()) {
        let help =
            format!("remove `#[key]` from `{ident}`: a tensor's shape and address are compared anyway");
        let message = format!("a `{what}` is not a `#[key]`: what it holds is on the device");
        errors.push(Code::KeyMisuse, ty, message, help);
        return None;
    }
    if holds_tensor(ty) {
        let text = written(inner.unwrap_or(ty));
        let message =
            format!("`{ident}` holds a tensor, and is not a `#[key]`: what it holds is on the device");
        let help = format!("write `{ident}: &{text}`: shapes and addresses are compared anyway");
        errors.push(Code::KeyMisuse, ty, message, help);
        return None;
    }
    if let Some(float) = float(ty) {
        let (holder, element) = match scalar(ty) {
            Some(element) => ("Scalar", element),
            None => ("Tensor", float.as_str()),
        };
        errors.push(
            Code::FloatKey,
            ty,
            format!(
                "`{ident}` holds `{float}`, and a float is not a `#[key]`: every value would need a new recording"
            ),
            format!(
                "write `#[host] {ident}: &{holder}<{element}>`, refreshed on every call, or make it a `#[config]` field of a \
                 `#[derive(Params)]` struct"
            ),
        );
        return None;
    }
    match inner {
        Some(inner) if !matches!(inner, Type::Path(p) if p.path.is_ident("str")) => {
            let owned = match inner {
                Type::Slice(s) => format!("Vec<{}>", written(&s.elem)),
                other => written(other),
            };
            let help = format!("write `#[key] {ident}: {owned}`");
            errors.push(Code::KeyMisuse, ty, "a `#[key]` is passed by value", help);
            None
        }
        _ => Some(Kind::Key),
    }
}

/// Rejects a value that must remain with the caller; returns whether it was one.
fn handle(ident: &Ident, ty: &Type, errors: &mut Errors) -> bool {
    let Type::Path(path) = ty else { return false };
    let Some(at) = path.path.segments.last().map(|s| &s.ident) else { return false };
    let name = at.to_string();
    if !HANDLES.contains(&name.as_str()) {
        return false;
    }
    let help = match name.as_str() {
        "Step" => {
            "remove it: `call` takes the step; constructors take a tensor's `scope()`, and results are read after the call"
        }
        "Eager" => "remove it: a region that reads says so itself, `#[eager(cx)] cx.read(&t)?`",
        "Capturable" => {
            "remove it: a region that launches work of its own says so itself, `#[eager(cx, support = Always)] cx.call(op)…`"
        }
        "Runtime" | "Device" => {
            "remove it: operations find their runtime by their tensors, and constructors take a tensor's `scope()`"
        }
        _ => {
            "remove it: the runtime records and launches; in an `#[eager]` region, work on a stream of your own is yours to order"
        }
    };
    let message =
        format!("`{ident}: {name}` is a handle, which no segment can use: a replay runs no host code");
    // Not the whole type: its lifetime may have been filled in, and then it has no position.
    errors.push(Code::Handle, at, message, help);
    true
}

fn by_value(ident: &Ident, ty: &Type, errors: &mut Errors) {
    if let Some(element) = scalar(ty) {
        let text = written(ty);
        let host = format!("`#[host] {ident}: &Scalar<{element}>` for a value refreshed on every call");
        let help = match float(ty) {
            Some(_) => format!(
                "write {host}; a constant of the model is a `#[config]` field of a `#[derive(Params)]` struct"
            ),
            None => format!("write `#[key] {ident}: {text}` for one recording per value, or {host}"),
        };
        let message = format!("`{ident}` is a host value: a recording would keep its first value forever");
        errors.push(Code::BareScalar, ty, message, help);
        return;
    }
    let text = written(ty);
    let message = format!("`{ident}: {text}` is passed by value, and cannot be part of a key");
    if is_host(ty) {
        errors.push(Code::ByValue, ty, message, host_help(ident, ty));
        return;
    }
    let (message, help) = if named(ty, "Tensor").is_some() || named(ty, "Scalar").is_some() {
        (
            format!("`{ident}` is passed by value"),
            format!("tensors are passed by reference: `{ident}: &{text}`"),
        )
    } else if holds_tensor(ty) {
        (message, format!("pass it by reference: `{ident}: &{text}`"))
    } else {
        (
            message,
            format!(
                "pass parameters by reference (`{ident}: &{text}`), host values as `#[key] {ident}: {text}`"
            ),
        )
    };
    errors.push(Code::ByValue, ty, message, help);
}

/// Returns whether a type contains a collection that cannot be a key.
fn is_unordered(ty: &Type) -> bool {
    let text = written(ty);
    ["VecDeque", "BinaryHeap", "IndexMap", "LinkedList", "HashSet"].iter().any(|name| text.contains(name))
}

/// Returns whether a type holds a tensor or scalar of the device.
fn holds_tensor(ty: &Type) -> bool {
    fn search(tokens: proc_macro2::TokenStream) -> bool {
        tokens.into_iter().any(|t| match t {
            proc_macro2::TokenTree::Ident(i) => i == "Tensor" || i == "Scalar",
            proc_macro2::TokenTree::Group(g) => search(g.stream()),
            _ => false,
        })
    }
    search(ty.to_token_stream())
}

fn host_data(ident: &Ident, ty: &Type, inner: &Type, errors: &mut Errors) {
    let (text, help) = (written(ty), host_help(ident, inner));
    let message = format!("`{ident}: {text}` is host data: a recording would keep its first contents");
    errors.push(Code::HostCollection, ty, message, help);
}

/// Returns how to pass host data.
fn host_help(ident: &Ident, inner: &Type) -> String {
    if let Some(element) = scalar(inner) {
        let host = format!("`#[host] {ident}: &Scalar<{element}>` for a value refreshed on every call");
        match float(inner) {
            Some(_) => format!("write {host}"),
            None => {
                format!("write `#[key] {ident}: {}` for one recording per value, or {host}", written(inner))
            }
        }
    } else if let Some(element) = elements(inner) {
        let host = format!("`#[host] {ident}: &Tensor<{element}>`, which takes a slice at each call");
        match float(inner) {
            Some(_) => format!("write {host}"),
            None => {
                let owned = match inner {
                    Type::Slice(s) => format!("Vec<{}>", written(&s.elem)),
                    other => written(other),
                };
                format!("write {host}, or `#[key] {ident}: {owned}` for one recording per value")
            }
        }
    } else if matches!(inner, Type::Path(p) if p.path.is_ident("str") || p.path.is_ident("String")) {
        format!(
            "write `#[key] {ident}: {}` for one recording per value",
            written(inner).replace("str", "&str")
        )
    } else if is_interior(inner) {
        format!(
            "hold what changes on the device in a `State`, and pass what `{ident}` holds as `#[key]` or `#[host]`"
        )
    } else if float(inner).is_none() && !is_unordered(inner) {
        format!("write `#[key] {ident}: {}` for one recording per value", written(inner))
    } else {
        format!(
            "take out of `{ident}` what the function needs and pass that as `#[key]` or `#[host]`; settings go in \
             `#[config]` fields of a `#[derive(Params)]` struct"
        )
    }
}

/// The device element for the elements of a slice, array or vector of numbers.
fn elements(ty: &Type) -> Option<&'static str> {
    match plain(ty) {
        Type::Slice(s) => scalar(&s.elem),
        Type::Array(a) => scalar(&a.elem),
        ty => scalar(&named(ty, "Vec")?),
    }
}

/// Returns whether a type consists only of plain host values.
fn is_host(ty: &Type) -> bool {
    match plain(ty) {
        Type::Slice(s) => is_host(&s.elem),
        Type::Array(a) => is_host(&a.elem),
        Type::Reference(r) => is_host(&r.elem),
        Type::Tuple(t) => !t.elems.is_empty() && t.elems.iter().all(is_host),
        Type::Path(path) => {
            let Some(last) = path.path.segments.last() else { return false };
            let holds_host = || match &last.arguments {
                PathArguments::AngleBracketed(a) => {
                    a.args.iter().all(|a| matches!(a, GenericArgument::Type(t) if is_host(t)))
                }
                _ => false,
            };
            scalar(ty).is_some()
                || ["str", "String"].iter().any(|n| path.path.is_ident(n))
                || COLLECTIONS.iter().any(|n| last.ident == n)
                || is_interior(ty)
                || ["Vec", "Option", "Box", "Arc", "Rc"].iter().any(|n| last.ident == n) && holds_host()
        }
        _ => false,
    }
}

fn is_interior(ty: &Type) -> bool {
    let Type::Path(path) = plain(ty) else { return false };
    path.path.segments.last().is_some_and(|s| names_interior(&s.ident))
}

/// Returns whether a type's name is that of one with interior mutability, in the standard library; `Cell` is not among them.
pub(crate) fn names_interior(name: &Ident) -> bool {
    INTERIOR.iter().any(|n| name == n)
        || name.to_string().strip_prefix("Atomic").is_some_and(|rest| {
            ["Bool", "Ptr", "U8", "U16", "U32", "U64", "Usize", "I8", "I16", "I32", "I64", "Isize"]
                .contains(&rest)
        })
}

/// The first float type in a type.
pub(crate) fn float(ty: &Type) -> Option<String> {
    fn search(tokens: proc_macro2::TokenStream) -> Option<String> {
        tokens.into_iter().find_map(|t| match t {
            proc_macro2::TokenTree::Ident(i) => {
                let text = i.to_string();
                ["f16", "bf16", "f32", "f64"].contains(&text.as_str()).then_some(text)
            }
            proc_macro2::TokenTree::Group(g) => search(g.stream()),
            _ => None,
        })
    }
    search(ty.to_token_stream())
}

//! The `#[graphable]` attribute and derives.
//!
//! Built with `cfg(graphable_library)`, by the package `macro-tests`, this is an ordinary library: the same
//! functions over tokens of `proc_macro2`, for the fuzzer, pinned expansions and benchmarks, which cannot
//! link a proc-macro crate.

#![cfg_attr(graphable_library, allow(clippy::useless_conversion, reason = "they convert in the macro crate"))]

#[cfg(not(graphable_library))]
use proc_macro::TokenStream;
#[cfg(graphable_library)]
use proc_macro2::TokenStream;

mod analyze;
mod check;
mod derive;
mod diag;
mod entry;
mod expand;
mod krate;
mod model;
mod parse;

/// Turns a function over tensors into graphs that are recorded once and replayed.
///
/// Beside `fn decode` it makes `DecodeGraph` with `builder()`, `call`, `capture_all` and `PLAN`, its
/// builder, and the structs of its inputs. Parameters are
///
/// - `#[host] t: &Tensor<T>`: a slice at the call, copied to the device on every call;
/// - `#[host] n: &Scalar<T>`: a plain value at the call, likewise;
/// - `#[key] n: usize`: a host value, one recording for each;
/// - `t: &Tensor<T>`: a tensor on the device;
/// - `model: &Model`: a `#[derive(Params)]` struct, used where it is.
///
/// `#[dims(B, 64)]` on a tensor says what its dimensions are: constants are checked, symbols agree
/// between inputs and can have buckets. A name is a symbol; a constant is written `{WIDTH}`.
///
/// In the body, `#[eager]` marks an expression that runs on every call, between graphs, and
/// `#[piecewise]` a call of another function with such boundaries. `#[eager(cx)]` gives it the capability to
/// read device data, `#[eager(support = Always)]` lets full mode capture it. `#[eager(early)]` says that it is
/// independent of the device work directly above it, and runs it before; `#[eager(late)]` of that below, and runs it
/// behind: the work around it becomes one graph. Its errors are then seen in that order too, and what is
/// made early takes memory while that work runs.
///
/// A function without boundaries and attributes stays an ordinary function, whose tensors all get the
/// lifetime of the step; `#[graphable(helper)]` keeps it at that. On an `impl`, methods are treated in
/// the same way (`Model::decode` gets `ModelDecodeGraph`, and `run` of an `impl Linear<f32>`
/// `LinearF32RunGraph`); on a `trait`, only lifetimes are filled.
///
/// On a `struct`, `enum` or `type` that holds tensors it writes their lifetime and declares it: `struct Kv { k: Tensor<f32> }`
/// becomes `struct Kv<'s> { k: Tensor<'s, f32> }`, which other items name `Kv<'_>`; it stands above the derives. On a module (`#[graphable] mod model { … }`)
/// every item is treated as if the attribute stood on it, functions without boundaries and marks are helpers, and the
/// types of the module that hold tensors are named without a lifetime. So rustc's error E0106, `missing lifetime specifier`,
/// has one remedy: the attribute.
#[cfg_attr(not(graphable_library), proc_macro_attribute)]
pub fn graphable(args: TokenStream, item: TokenStream) -> TokenStream {
    entry::expand(args.into(), item.into()).into()
}

/// Makes a struct or enum of parameters usable in segments: every field is part of the key.
///
/// Fields are `Param`, `State`, structs of these, and options, vectors, arrays and pointers of
/// them. Host fields are marked `#[config]` and compared by value.
///
/// With `#[params(config = Config)]` on the struct it is also loaded by tensor name. Expressions in
/// the attributes see `config: &Config`:
///
/// - `#[param("name", shape = [config.rows, 4])]` on a `Param`; the name defaults to the field's;
/// - `#[param("name", optional, shape = […])]` on an `Option<Param>`;
/// - `#[param("prefix")]` on a struct that is loaded itself, with the same config or `config = expr`;
/// - `#[param("layers.{}", len = config.layers)]` on a `Vec`;
/// - `#[state(shape = […])]` on a `State`, which starts at zero, or with `len = …` on a `Vec` of them;
/// - `#[config(expr)]` on a host field.
#[cfg_attr(not(graphable_library), proc_macro_derive(Params, attributes(params, param, state, config)))]
pub fn derive_params(input: TokenStream) -> TokenStream {
    derive::derive_params(input.into()).into()
}

/// Makes a struct or enum of tensors and host values an output: it can leave a segment and enter the
/// next one. It has at most one lifetime, that of its tensors.
#[cfg_attr(not(graphable_library), proc_macro_derive(GraphOutput))]
pub fn derive_graph_output(input: TokenStream) -> TokenStream {
    derive::derive_output(input.into()).into()
}

/// Makes a struct or enum of plain host values usable as a `#[config]` field: compared by value, floats
/// by their bits.
#[cfg_attr(not(graphable_library), proc_macro_derive(ConfigValue))]
pub fn derive_config_value(input: TokenStream) -> TokenStream {
    derive::derive_config(input.into()).into()
}

/// For generated code: what stands in for an item whose `#[cfg]`s are to be settled; see `parse/cfg.rs`.
#[doc(hidden)]
#[cfg_attr(not(graphable_library), proc_macro_derive(Configured))]
pub fn derive_configured(input: TokenStream) -> TokenStream {
    entry::expand_settled(input.into()).into()
}

/// For generated code: ends what is left of an item that was expanded elsewhere.
#[doc(hidden)]
#[cfg_attr(not(graphable_library), proc_macro_attribute)]
pub fn configured(_args: TokenStream, _item: TokenStream) -> TokenStream {
    TokenStream::new()
}

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
mod device_flow;
mod diag;
mod entry;
mod expand;
mod facts;
mod kernel;
mod krate;
mod model;
mod parse;

/// Turns a function over tensors into graphs that are recorded once and replayed.
///
/// In addition to `fn decode`, it generates `DecodeGraph` with `builder()`, `call`, `capture_all` and `PLAN`,
/// its builder, and the structs of its inputs. Parameters are
///
/// - `#[host] t: &Tensor<T>`: the caller passes a slice, which is copied to the device on every call;
/// - `#[host] n: &Scalar<T>`: the caller passes a plain value, which is copied likewise;
/// - `#[key] n: usize`: a host value, with one recording for each value;
/// - `t: &Tensor<T>`: a tensor on the device;
/// - `model: &Model`: a `#[derive(Params)]` struct, used in place.
///
/// `#[dims(B, 64)]` on a tensor declares its dimensions: constants are checked, and symbols must agree
/// between inputs and can have buckets. A name is a symbol; write a constant as `{WIDTH}`.
///
/// In the body, `#[eager]` marks an expression that runs on every call, between graphs, and `#[piecewise]`
/// marks a call of another function with such boundaries. `#[eager(cx)]` binds a capability to read device
/// data, and `#[eager(support = Always)]` lets full mode capture the expression; `#[eager(cx, support = Always)]`
/// binds a capability that launches work of your own and reads nothing. `#[eager(early)]` declares
/// that the expression is independent of the device work directly above it, and runs it before that work;
/// `#[eager(late)]` does the same for the work directly below, and runs the expression after it. The
/// surrounding work then becomes one graph. Errors are also reported in the new order, and a value that is
/// created early occupies memory while that work runs.
///
/// `#[device]` leaves the decision of an `if`, a `while` or a `match` to the device: the predicate is a `Scalar<bool>`, or a
/// tensor of rank 0, the index of a `match` is such an `i32` or `u32`. The control flow becomes a node of the graph.
/// Variables that the bodies assign are carried; `let y = #[device] if p { a } else { b };` has a value. `#[device(limit = n)]`
/// bounds the rounds of a `while` by a `u32` of the host, which is part of the key if it is not a constant. The host describes every body once, so a body changes nothing on the host, and nothing
/// jumps out of it.
///
/// A function without boundaries and attributes remains an ordinary function, whose tensors all get the
/// lifetime of the step; `#[graphable(helper)]` enforces this. On an `impl`, methods are treated in the same
/// way (`Model::decode` gets `ModelDecodeGraph`, and `run` of an `impl Linear<f32>` gets
/// `LinearF32RunGraph`); on a `trait`, only lifetimes are filled in.
///
/// On a `struct`, `enum` or `type` that holds tensors, it adds and declares their lifetime:
/// `struct Kv { k: Tensor<f32> }` becomes `struct Kv<'s> { k: Tensor<'s, f32> }`, which other items name
/// `Kv<'_>`; place it above the derives. On a module (`#[graphable] mod model { … }`), every item is treated
/// as if it had the attribute, functions without boundaries and marks are helpers, and the types of the
/// module that hold tensors are named without a lifetime. The remedy for rustc's error E0106,
/// `missing lifetime specifier`, is therefore always the attribute.
#[cfg_attr(not(graphable_library), proc_macro_attribute)]
pub fn graphable(args: TokenStream, item: TokenStream) -> TokenStream {
    entry::expand(args.into(), item.into()).into()
}

/// Turns a function on single values into an operation on tensors, on every device.
///
/// `#[kernel] fn silu_mul(gate: f32, up: f32) -> f32 { gate / (1.0 + (-gate).exp()) * up }` generates the
/// operation `silu_mul(&gate, &up)?`, which returns a tensor. It is compiled as Rust for the CPU and
/// translated to CUDA C++ for GPUs. `f32` stands for every float element type but `f64`: the tensors' own type is
/// read and written, and computations are in `f32`. Shapes broadcast like those of `ops::add`. The first argument
/// is a tensor; each further one is a tensor, a scalar, a parameter or state, or a number, which becomes a
/// constant of the recording. Several results are returned as a tuple.
///
/// A kernel can use `f32`, `f64`, `i32`, `i64`, `i8`, `u32`, `u8` and `bool`, and random numbers (`r: Random`); arithmetic, comparisons and logic; `let`,
/// assignments, `if`, `match` on integers, `for` over ranges of constants, `break`, `continue` and `return`;
/// `as`, the methods of numbers, constants, and calls of other kernels. On both devices,
///
/// - `f32` follows IEEE 754, including subnormals, and only `mul_add` rounds once for two operations.
///   Functions such as `exp` are accurate to 4 units in the last place. All NaNs are one: `to_bits` returns
///   `0x7fc00000` for each;
/// - integers wrap, also in debug builds; `x / 0` is 0 and `x % 0` is `x`; a shift uses its number of places
///   modulo the bits.
///
/// `#[kernel(rows)]` works on rows along the last dimension instead: a parameter `x: Row<f32>` has `map`, `zip`, `sum`,
/// `max`, `argmax`, `fold` and others, and results are rows or single values; `r: Row<Random>` is a random number for each
/// value. `#[kernel(reduce)]` reduces rows along any
/// dimension, the operation's last argument, to single values.
///
/// `#[kernel(index)]` computes each element of the results from its index, the last parameter `[i, j]: [i32; 2]`: a parameter
/// `x: View<f32, 2>` is a tensor of two dimensions, read by `x.at([i, j])`, which reports an index out of range, or
/// `x.at_or([i, j], 0.0)`. The operation's last argument is the shape of the results.
///
/// `silu_mul::scalar(1.0, 2.0)` computes one element, and `silu_mul::cuda_source()` returns the text for
/// GPUs.
#[cfg_attr(not(graphable_library), proc_macro_attribute)]
pub fn kernel(args: TokenStream, item: TokenStream) -> TokenStream {
    kernel::expand(&args.into(), item.into()).into()
}

/// Makes a struct or enum of parameters usable in segments: every field becomes part of the key.
///
/// Fields can be `Param`, `State`, structs of these, and options, vectors, arrays and pointers of them. Host
/// fields are marked `#[config]` and compared by value.
///
/// With `#[params(config = Config)]` on the struct, it can also be loaded by tensor name. Expressions in the
/// attributes can use `config: &Config`:
///
/// - `#[param("name", shape = [config.rows, 4])]` on a `Param`; the name defaults to that of the field;
/// - `#[param("name", optional, shape = […])]` on an `Option<Param>`;
/// - `#[param("prefix")]` on a struct that is itself loadable, with the same config or `config = expr`;
/// - `#[param("layers.{}", len = config.layers)]` on a `Vec`;
/// - `#[state(shape = […])]` on a `State`, which is initially zero, or with `len = …` on a `Vec` of them;
/// - `#[config(expr)]` on a host field.
#[cfg_attr(not(graphable_library), proc_macro_derive(Params, attributes(params, param, state, config)))]
pub fn derive_params(input: TokenStream) -> TokenStream {
    derive::derive_params(input.into()).into()
}

/// Makes a struct or enum of tensors and host values an output: it can leave a segment and enter the next
/// one. It can have at most one lifetime, that of its tensors.
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

/// Makes a struct of values on the device carried: bodies of `#[device]` control flow and of `control` return it, and loops
/// carry it. Every field is a tensor, a scalar, or a tuple, an array, a vector or an option of them, or another such struct.
/// With `Clone`, a variable of the type can be assigned in bodies.
#[cfg_attr(not(graphable_library), proc_macro_derive(Carried))]
pub fn derive_carried(input: TokenStream) -> TokenStream {
    derive::derive_carried(input.into()).into()
}

/// For generated code: the derive of a graph's type, which shows the methods of the graph object that it contains.
#[doc(hidden)]
#[cfg_attr(not(graphable_library), proc_macro_derive(Graph))]
pub fn derive_graph(input: TokenStream) -> TokenStream {
    derive::derive_graph(input.into()).into()
}

/// For generated code: the derive of the helper item whose `#[cfg]`s are evaluated; see `parse/cfg.rs`.
#[doc(hidden)]
#[cfg_attr(not(graphable_library), proc_macro_derive(Configured))]
pub fn derive_configured(input: TokenStream) -> TokenStream {
    entry::expand_configured(input.into()).into()
}

/// For generated code: removes the remains of an item that was expanded elsewhere.
#[doc(hidden)]
#[cfg_attr(not(graphable_library), proc_macro_attribute)]
pub fn configured(_args: TokenStream, _item: TokenStream) -> TokenStream {
    TokenStream::new()
}

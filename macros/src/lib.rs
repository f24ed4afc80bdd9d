//! The `#[graphable]` attribute and derives.

use proc_macro::TokenStream;

mod derive;
mod diag;
#[allow(dead_code, reason = "wired by the attribute in the next commit")]
mod driver;
mod krate;

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
#[proc_macro_derive(Params, attributes(params, param, state, config))]
pub fn derive_params(input: TokenStream) -> TokenStream {
    derive::derive_params(input.into()).into()
}

/// Makes a struct or enum of tensors and host values an output: it can leave a segment and enter the
/// next one. It has at most one lifetime, that of its tensors.
#[proc_macro_derive(GraphOutput)]
pub fn derive_graph_output(input: TokenStream) -> TokenStream {
    derive::derive_output(input.into()).into()
}

/// Makes a struct or enum of plain host values usable as a `#[config]` field: compared by value, floats
/// by their bits.
#[proc_macro_derive(ConfigValue)]
pub fn derive_config_value(input: TokenStream) -> TokenStream {
    derive::derive_config(input.into()).into()
}

//! Loading models by tensor name, and saving them.
//!
//! `#[derive(Params)]` with `#[params(config = …)]` generates the loading code from the fields' attributes:
//!
//! ```
//! use graphable::{
//!     load::{self, TensorMap},
//!     prelude::*,
//! };
//!
//! struct Config {
//!     hidden: usize,
//!     eps: f32,
//! }
//!
//! #[derive(Params)]
//! #[params(config = Config)]
//! struct Mlp {
//!     #[param("up.weight", shape = [4 * config.hidden, config.hidden])]
//!     up: Param<f32>,
//! }
//!
//! #[derive(Params)]
//! #[params(config = Config)]
//! struct Layer {
//!     #[param("self_attn.q_proj.weight", shape = [config.hidden, config.hidden])]
//!     q: Param<f32>,
//!     #[param("mlp")] // a struct of its own; names get the prefix `mlp.`
//!     mlp: Mlp,
//!     #[config(config.eps)]
//!     eps: f32,
//! }
//!
//! # fn main() -> Result<()> {
//! let rt = Runtime::new(Device::cpu())?;
//! let mut source = TensorMap::new(); // or `SafeTensors::open(path)?`
//! source.insert("self_attn.q_proj.weight", &[2, 2], &[0.0f32; 4])?;
//! source.insert("mlp.up.weight", &[8, 2], &[0.0f32; 16])?;
//! let layer: Layer = load::load(&rt, &source, &Config { hidden: 2, eps: 1e-5 })?;
//! assert_eq!((layer.q.shape(), layer.mlp.up.shape(), layer.eps), (&[2, 2][..], &[8, 2][..], 1e-5));
//! # Ok(())
//! # }
//! ```
//!
//! [`Eager::save`](crate::Eager::save) writes such a model to a file that can be loaded again.
//!
//! All mismatches between model and file are collected before anything is reported. [`SafeTensors`] reads files, folders and
//! sharded ones, into memory or mapped; [`QuantizedTensors`] also those whose weights are quantised.

pub(crate) mod exporter;
mod loader;
mod map;
mod nearest;
#[cfg(feature = "safetensors")]
mod quantized;
#[cfg(feature = "safetensors")]
pub(crate) mod safetensors;
mod source;

pub use crate::backend::cpu::MappedFile;
pub use exporter::Exporter;
pub use loader::{LoadParam, LoadParams, LoadState, Loader, load};
pub use map::TensorMap;
#[cfg(feature = "safetensors")]
#[cfg_attr(docsrs, doc(cfg(feature = "safetensors")))]
pub use quantized::{PackedTensor, Packing, Quantization, QuantizedTensors};
#[cfg(feature = "safetensors")]
#[cfg_attr(docsrs, doc(cfg(feature = "safetensors")))]
pub use safetensors::SafeTensors;
pub use source::{HostBlocks, HostTensor, TensorSource};

/// Joins the names of a struct and of a field.
fn joined(prefix: &str, name: &str) -> String {
    match (prefix, name) {
        ("", name) => name.into(),
        (prefix, "") => prefix.into(),
        (prefix, name) => format!("{prefix}.{name}"),
    }
}

/// Returns whether a tensor has that name, or one below it.
fn is_at_or_below(name: &str, tensor: &str) -> bool {
    tensor.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

//! Loading models by tensor name.
//!
//! `#[derive(Params)]` with `#[params(config = …)]` writes the loading code from the fields'
//! attributes:
//!
//! ```ignore
//! #[derive(Params)]
//! #[params(config = LlamaConfig)]
//! struct Layer {
//!     #[param("self_attn.q_proj.weight", shape = [config.hidden, config.hidden])]
//!     q: Param<f32>,
//!     #[param("mlp")]                     // a struct of its own; names get the prefix `mlp.`
//!     mlp: Mlp,
//!     #[config(config.eps)]
//!     eps: f32,
//! }
//! ```
//!
//! All mismatches between model and file are found before anything is reported.

mod loader;
mod map;
mod nearest;
#[cfg(feature = "safetensors")]
mod safetensors;
mod source;

pub use loader::{LoadParam, LoadParams, LoadState, Loader, load};
pub use map::TensorMap;
#[cfg(feature = "safetensors")]
#[cfg_attr(docsrs, doc(cfg(feature = "safetensors")))]
pub use safetensors::SafeTensors;
pub use source::{HostTensor, TensorSource};

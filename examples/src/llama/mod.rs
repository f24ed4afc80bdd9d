//! A chat model of the Llama architecture.

mod config;
mod device_loop;
mod model;
mod session;
mod stored;

pub use config::Config;
pub use model::{
    DecodeGraph, DecodeLoopGraph, KvCache, Llama, PrefillGraph, Turn, decode, decode_loop, prefill,
};
pub use session::{Answer, Language, Session};

use crate::gguf::Gguf;

/// The float type that most weights of a file are stored as; `None` if most are stored in quantised blocks.
pub fn stored(file: &Gguf) -> Option<graphable::DType> {
    let infos = file.tensor_names().filter_map(|name| file.tensor_info(name));
    stored::most(infos.map(|info| (info.ty.float(), info.shape.as_slice())))
}

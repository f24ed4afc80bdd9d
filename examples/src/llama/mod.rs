//! A chat model of the Llama architecture.

mod config;
mod device_loop;
mod model;
mod session;

pub use config::Config;
pub use model::{
    DecodeGraph, DecodeLoopGraph, KvCache, Llama, PrefillGraph, Turn, decode, decode_loop, prefill,
};
pub use session::{Answer, Language, Session};

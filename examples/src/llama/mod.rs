//! A chat model of the Llama architecture.

mod config;
mod model;
mod session;

pub use config::Config;
pub use model::{DecodeGraph, KvCache, Llama, PrefillGraph, Turn, decode, prefill};
pub use session::{Answer, Language, Session};

//! A chat model of the Llama architecture and its relatives.

mod adapters;
mod config;
mod device_loop;
mod language;
mod model;
mod names;
mod session;

pub use adapters::{AdapterFile, Adapters};
pub use config::Config;
pub use language::Language;
pub use model::{
    DecodeGraph, DecodeLoopGraph, KvCache, Llama, PrefillGraph, Turn, decode, decode_loop, prefill,
};
pub use names::hugging_face as hugging_face_name;
pub use session::{Answer, Session};

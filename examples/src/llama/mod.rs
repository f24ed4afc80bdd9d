//! A chat model of the Llama architecture and its relatives.

mod adapters;
mod config;
mod device_loop;
mod language;
mod model;
mod names;
mod score;
mod session;

pub use adapters::{AdapterFile, Adapters};
pub use config::{Activation, Config, Family};
pub(crate) use config::{DIVISORS, StoredRope, StoredScaling};
pub use language::Language;
pub use model::{
    DecodeGraph, DecodeLoopGraph, KvCache, Llama, PrefillGraph, Turn, decode, decode_loop, prefill,
};
pub use names::hugging_face as hugging_face_name;
pub(crate) use score::IGNORED;
pub use score::{ScoreGraph, Scorer, score};
pub use session::{Answer, Session};

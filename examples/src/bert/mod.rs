//! A sentence encoder of the BERT architecture.

mod config;
mod model;
mod session;

pub use config::Config;
pub use model::{Bert, EncodeGraph, encode};
pub use session::Encoder;

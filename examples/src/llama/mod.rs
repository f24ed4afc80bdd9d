//! A chat model of the Llama architecture.

mod config;

pub use config::Config;

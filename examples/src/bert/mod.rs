//! A sentence encoder of the BERT architecture.

mod config;

pub use config::Config;

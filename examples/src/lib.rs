//! Real models on graphable: a chat model, a sentence embedder and a detector of speech.
//!
//! The binaries are thin: `generate` chats with SmolLM2, `convert` writes a chat model in another format, `perplexity` measures one, `embed` compares sentences with MiniLM,
//! `listen` finds speech with Silero's detector, and `tree` shows what a runtime holds.
//! What they do lives in these modules, which are also the documentation of how a model is written.

pub mod audio;
pub mod bert;
pub mod branchy;
pub mod chat;
pub mod checkpoint;
pub mod cli;
pub mod convert;
mod elements;
pub mod embed;
mod error;
pub mod fetch;
pub mod generate;
pub mod gguf;
pub mod listen;
pub mod llama;
pub mod perplexity;
mod progress;
pub mod report;
pub mod sampling;
pub mod sentence;
pub mod silero;
pub mod small;
pub mod timeline;
pub mod tokenizer;
pub mod tree;

pub use error::{Error, Result};

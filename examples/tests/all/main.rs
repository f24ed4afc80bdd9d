//! Tests of the examples' library, in one binary because linking the tokenizers takes long.

mod adapters;
mod allocations;
mod answers;
mod commands;
mod configs;
mod convert;
mod damaged;
mod embeddings;
mod families;
mod fetch;
mod folders;
mod gguf;
mod gguf_builder;
mod gpu;
mod listen;
mod loading;
mod long;
mod memory;
mod minilm;
mod quantized;
mod reference;
mod smollm2;
mod tiny;
mod tokenizer;
mod types;

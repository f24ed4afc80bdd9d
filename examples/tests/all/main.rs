//! Tests of the examples' library, in one binary because linking the tokenizers takes long.

mod configs;
mod fetch;
mod gguf;
mod gguf_builder;
mod minilm;
mod reference;
mod smollm2;
mod tiny;
mod tokenizer;

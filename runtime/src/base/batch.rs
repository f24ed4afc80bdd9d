//! The properties of a batch on which the choice of its graph depends.

use std::fmt;

/// The batch of a call, as far as the choice of its graph depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct BatchDescriptor {
    /// The number of new tokens of all sequences together, without padding; at least 1.
    pub num_tokens: usize,
    /// Set if every sequence has [`Batching::query_len`](crate::Batching::query_len) new tokens: one, unless
    /// there are draft tokens.
    pub uniform_decode: bool,
    /// The number of adapters (LoRA) in use; see [`Batching::adapters`](crate::Batching::adapters).
    pub adapters: usize,
}

impl BatchDescriptor {
    /// Describes any batch: prompts, or prompts and decodes together.
    pub fn mixed(num_tokens: usize) -> Self {
        Self { num_tokens, uniform_decode: false, adapters: 0 }
    }

    /// Describes a batch in which every sequence has [`Batching::query_len`](crate::Batching::query_len) new
    /// tokens.
    pub fn decode(num_tokens: usize) -> Self {
        Self { num_tokens, uniform_decode: true, adapters: 0 }
    }

    /// Sets the number of adapters in use.
    #[must_use]
    pub fn with_adapters(self, adapters: usize) -> Self {
        Self { adapters, ..self }
    }
}

impl fmt::Display for BatchDescriptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { num_tokens, uniform_decode, adapters } = self;
        write!(f, "{num_tokens} tokens, {}", if *uniform_decode { "uniform decode" } else { "mixed" })?;
        if *adapters > 0 {
            write!(f, ", {adapters} adapters")?;
        }
        Ok(())
    }
}

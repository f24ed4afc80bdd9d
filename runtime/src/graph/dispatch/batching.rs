//! A builder's description of the batches of a graph's calls.

use crate::{BatchSizes, Error, Result};

/// Describes the batches of a graph's calls: the `#[dims]` symbols that count tokens and requests, the query
/// length of a decode, and other properties that distinguish recordings. Passed to a builder with
/// `.batch(..)`.
///
/// Without it, the tokens of a graph are the only symbol with buckets, if there is one, and decodes have one
/// token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batching {
    pub(crate) tokens: Option<&'static str>,
    pub(crate) requests: Option<&'static str>,
    pub(crate) query_len: usize,
    pub(crate) max_requests: Option<usize>,
    pub(crate) adapters: Vec<usize>,
    pub(crate) sizes: Option<BatchSizes>,
}

impl Default for Batching {
    fn default() -> Self {
        Self {
            tokens: None,
            requests: None,
            query_len: 1,
            max_requests: None,
            adapters: Vec::new(),
            sizes: None,
        }
    }
}

impl Batching {
    /// Describes calls whose tokens are counted by this `#[dims]` symbol.
    pub fn of(tokens: &'static str) -> Self {
        Self { tokens: Some(tokens), ..Self::default() }
    }

    /// Sets the sizes of the token symbol, instead of `.bucket(..)`.
    #[must_use]
    pub fn sizes(self, sizes: BatchSizes) -> Self {
        Self { sizes: Some(sizes), ..self }
    }

    /// Sets the `#[dims]` symbol that counts sequences. A call whose batch is not declared counts as a
    /// uniform decode if it has one token per sequence and [`query_len`](Self::query_len) is 1. Longer
    /// queries cannot be inferred from sizes: declare the batch with [`Step::batch`](crate::Step::batch), or
    /// it counts as mixed, with the reason [`UnknownBatch`](crate::FallbackReason::UnknownBatch).
    ///
    /// In the single graph of a uniform decode, the symbol is padded to as many sequences as the padded
    /// tokens make up, so it needs its own buckets if the tokens have buckets.
    #[must_use]
    pub fn requests(self, symbol: &'static str) -> Self {
        Self { requests: Some(symbol), ..self }
    }

    /// Sets the number of new tokens of each sequence in a uniform decode: 1, plus the number of draft
    /// tokens.
    #[must_use]
    pub fn query_len(self, tokens: usize) -> Self {
        Self { query_len: tokens, ..self }
    }

    /// Sets the maximum number of sequences in a batch; larger uniform decodes are not captured as one graph.
    #[must_use]
    pub fn max_requests(self, requests: usize) -> Self {
        Self { max_requests: Some(requests), ..self }
    }

    /// Makes recordings for each of these numbers of adapters; a batch uses the smallest sufficient one.
    /// Without this, adapters make no difference.
    #[must_use]
    pub fn adapters(self, counts: impl IntoIterator<Item = usize>) -> Self {
        let mut adapters: Vec<usize> = counts.into_iter().collect();
        adapters.sort_unstable();
        adapters.dedup();
        Self { adapters, ..self }
    }

    /// Checks it against the symbols of the function.
    pub(crate) fn check(&self, function: &str, known: &[&'static str]) -> Result<()> {
        let wrong = |reason: String| Err(Error::Config { what: format!("`batch` of `{function}`"), reason });
        for symbol in [self.tokens, self.requests].into_iter().flatten() {
            if !known.contains(&symbol) {
                let all = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                return wrong(format!("there is no `#[dims]` symbol `{symbol}`; it has {all}"));
            }
        }
        if self.tokens == self.requests && self.tokens.is_some() && self.query_len != 1 {
            return wrong("one symbol cannot count tokens and sequences of several tokens".into());
        }
        if self.requests.is_some() && self.tokens.is_none() {
            return wrong(
                "sequences are counted, and tokens are not; name their symbol in `Batching::of`".into(),
            );
        }
        if self.query_len == 0 {
            return wrong("a query of 0 tokens holds nothing; it has at least 1".into());
        }
        if self.max_requests == Some(0) {
            return wrong("a batch of 0 sequences holds nothing; it has at least 1".into());
        }
        Ok(())
    }
}

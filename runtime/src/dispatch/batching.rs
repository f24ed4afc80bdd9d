//! How a graph's calls are batches: what its builder says.

use crate::{BatchSizes, Error, Result};

/// How the calls of a graph are batches: which `#[dims]` symbols count tokens and requests, how long a decode's
/// query is, and what else recordings are told apart by. Given to a builder with `.batch(..)`.
///
/// A graph without it has as tokens the only symbol that has buckets, if there is one, and decodes of one token.
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
    /// Calls whose tokens are counted by this `#[dims]` symbol.
    pub fn of(tokens: &'static str) -> Self {
        Self { tokens: Some(tokens), ..Self::default() }
    }

    /// The sizes of the tokens' symbol, in place of `.bucket(..)`.
    #[must_use]
    pub fn sizes(self, sizes: BatchSizes) -> Self {
        Self { sizes: Some(sizes), ..self }
    }

    /// The `#[dims]` symbol that counts sequences. A call for which nobody says what its batch is counts as a
    /// uniform decode when it has one token a sequence and [`query_len`](Self::query_len) is 1. Longer queries
    /// cannot be told from sizes: say it by [`Step::batch`](crate::Step::batch), or the batch counts as mixed, for
    /// the reason [`UnknownBatch`](crate::FallbackReason::UnknownBatch).
    ///
    /// In one graph of a uniform decode it is padded to as many sequences as the padded tokens make; so it needs
    /// buckets of its own where the tokens have some.
    #[must_use]
    pub fn requests(self, symbol: &'static str) -> Self {
        Self { requests: Some(symbol), ..self }
    }

    /// New tokens of a sequence in a uniform decode: 1, and as many more as are drafted ahead.
    #[must_use]
    pub fn query_len(self, tokens: usize) -> Self {
        Self { query_len: tokens, ..self }
    }

    /// A batch has at most that many sequences; larger uniform decodes are not captured as one graph.
    #[must_use]
    pub fn max_requests(self, requests: usize) -> Self {
        Self { max_requests: Some(requests), ..self }
    }

    /// Recordings are made for each of these counts of adapters, and a batch takes the smallest that is enough.
    /// Without them adapters make no difference.
    #[must_use]
    pub fn adapters(self, counts: impl IntoIterator<Item = usize>) -> Self {
        let mut adapters: Vec<usize> = counts.into_iter().collect();
        adapters.sort_unstable();
        adapters.dedup();
        Self { adapters, ..self }
    }

    /// Checks it against the function's symbols.
    pub(crate) fn check(&self, function: &str, known: &[&'static str]) -> Result<()> {
        let wrong = |why: String| Err(Error::Config { what: format!("`batch` of `{function}`"), why });
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

//! The choice of a graph for a batch, from the mode, the batch, and the support of the boundaries.

use std::{borrow::Cow, mem::discriminant};

use crate::{BatchDescriptor, Error, Mode, ModeSet, Result, Schedule, base::reason::FallbackReason};

mod batch;
mod batch_sizes;
mod batching;
pub(crate) mod buckets;
mod mode_name;
pub(crate) mod plan_report;
mod resolve;
#[cfg(test)]
mod tests;

pub use batch::{BatchGuard, BatchKey};
pub use batch_sizes::BatchSizes;
pub use batching::Batching;
pub use resolve::{Capability, Resolution};

/// The graph chosen for a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Dispatch {
    /// `None`, `Piecewise` or `Full`.
    pub mode: Mode,
    /// Its padded sizes; `None` in mode `None`.
    pub key: Option<BatchKey>,
    /// The reasons why it did not get a higher mode, in the order in which they were found.
    pub reasons: Vec<FallbackReason>,
}

/// One ahead-of-time capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Capture {
    /// `Piecewise` or `Full`.
    pub mode: Mode,
    /// The sizes for which it is captured.
    pub key: BatchKey,
}

/// Chooses the graph of a batch. Each graph object has one (`graph.dispatcher()`), which its calls use; a
/// scheduler can query it before it makes the call.
///
/// ```
/// use graphable::*;
///
/// let batching = Batching::of("T").sizes(BatchSizes::up_to_budget(2048).max_requests(128));
/// let capability = Capability::new(Support::UniformBatch, true, true);
/// let dispatcher = Dispatcher::new(Mode::FullAndPiecewise, capability, &batching)?;
///
/// let decode = dispatcher.dispatch(&BatchDescriptor::decode(5), ModeSet::ALL)?;
/// assert_eq!((decode.mode, decode.key.map(|k| k.num_tokens)), (Mode::Full, Some(8)));
/// let mixed = dispatcher.dispatch(&BatchDescriptor::mixed(200), ModeSet::ALL)?;
/// assert_eq!((mixed.mode, mixed.key.map(|k| k.num_tokens)), (Mode::Piecewise, Some(200)));
/// let too_large = dispatcher.dispatch(&BatchDescriptor::mixed(1000), ModeSet::ALL)?;
/// assert_eq!((too_large.mode, too_large.key), (Mode::None, None));
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Dispatcher {
    function: &'static str,
    capability: Capability,
    resolution: Resolution,
    /// The symbol that counts tokens.
    symbol: &'static str,
    query_len: usize,
    max_requests: Option<usize>,
    /// The sizes of all batches; without them, each batch has its own size.
    sizes: Option<Schedule>,
    /// The sizes of uniform decodes, if these have separate graphs.
    decode_sizes: Option<Schedule>,
    adapters: Vec<usize>,
}

impl Dispatcher {
    /// Creates a dispatcher for a function of this capability whose batches have these sizes.
    ///
    /// # Errors
    /// Returns [`Error::Config`] for an impossible mode ([`Capability::resolve`]), and for sizes of which
    /// none remain.
    pub fn new(mode: Mode, capability: Capability, batching: &Batching) -> Result<Self> {
        let sizes = match (&batching.sizes, mode) {
            (None, _) | (_, Mode::None) => None,
            (Some(sizes), mode) => Some(sizes.schedule(mode, batching.query_len)?),
        };
        Self::with("dispatch", mode, capability, batching, sizes)
    }

    /// Creates the dispatcher of a function, with the sizes from its builder.
    pub(crate) fn with(
        function: &'static str,
        mode: Mode,
        capability: Capability,
        batching: &Batching,
        sizes: Option<Schedule>,
    ) -> Result<Self> {
        let &Batching { query_len, max_requests, .. } = batching;
        let symbols: Vec<&'static str> = batching.tokens.into_iter().chain(batching.requests).collect();
        batching.check(function, &symbols)?;
        let resolution = capability.resolve(mode, query_len)?;
        let decode_sizes = match &sizes {
            Some(all) if resolution.mode.is_dual() => {
                Some(batch_sizes::for_decodes(all, query_len, max_requests)?)
            }
            // A policy may choose a pair of modes for one call; that there are no sizes is an error then.
            Some(all) => batch_sizes::for_decodes(all, query_len, max_requests).ok(),
            None => None,
        };
        Ok(Self {
            function,
            capability,
            resolution,
            symbol: batching.tokens.unwrap_or("the number of tokens"),
            query_len,
            max_requests,
            sizes,
            decode_sizes,
            adapters: batching.adapters.clone(),
        })
    }

    /// Returns how the requested mode was resolved.
    pub fn resolution(&self) -> &Resolution {
        &self.resolution
    }

    /// Returns the mode in which batches are dispatched.
    pub fn mode(&self) -> Mode {
        self.resolution.mode
    }

    /// Returns the number of new tokens per sequence in a uniform decode.
    pub fn query_len(&self) -> usize {
        self.query_len
    }

    /// Returns whether calls differ by their batch in that resolution.
    pub(crate) fn looks_at_batches(&self, r: &Resolution) -> bool {
        r.asked.is_dual() || r.mode.is_dual() || !self.adapters.is_empty()
    }

    /// Resolves a mode, either the builder's or one that a policy chose for a call.
    pub(crate) fn resolve(&self, asked: Mode) -> Result<Cow<'_, Resolution>> {
        if asked == self.resolution.asked {
            return Ok(Cow::Borrowed(&self.resolution));
        }
        self.capability.resolve(asked, self.query_len).map(Cow::Owned)
    }

    /// Returns the highest mode that the graph's mode, the batch and the caller allow: `Full` before
    /// `Piecewise` before `None`. Tokens are padded to the next size; above the largest size there is no
    /// graph.
    ///
    /// # Errors
    /// Returns [`Error::Argument`] for an empty batch, and for a uniform decode that does not consist of
    /// whole queries; [`Error::NoAllowedMode`] if none of the allowed modes is possible.
    pub fn dispatch(&self, batch: &BatchDescriptor, allowed: ModeSet) -> Result<Dispatch> {
        self.dispatch_in(&self.resolution, batch, allowed)
    }

    /// Like [`dispatch`](Self::dispatch), in a different mode.
    pub(crate) fn dispatch_in(
        &self,
        r: &Resolution,
        batch: &BatchDescriptor,
        allowed: ModeSet,
    ) -> Result<Dispatch> {
        self.check(batch)?;
        if let (true, Some(all), None) = (r.mode.is_dual(), &self.sizes, &self.decode_sizes) {
            batch_sizes::for_decodes(all, self.query_len, self.max_requests)?;
        }
        let (wanted, got) = (r.asked.part(batch.uniform_decode), r.mode.part(batch.uniform_decode));
        let mut reasons = Vec::new();
        if got.rank() < wanted.rank() {
            reasons.extend(r.reason.clone());
        } else if got == Mode::None && r.asked != Mode::None {
            reasons.push(FallbackReason::MixedBatch);
        }
        let next = match got {
            // Segments are captured for mixed batches, and also serve decodes.
            Mode::Full if r.mode.mixed() == Mode::Piecewise => &[Mode::Full, Mode::Piecewise][..],
            Mode::Full => &[Mode::Full],
            Mode::Piecewise => &[Mode::Piecewise],
            _ => &[],
        };
        for &mode in next {
            if !allowed.contains(mode) {
                reasons.push(FallbackReason::NotAllowed { mode });
                continue;
            }
            match self.fit(mode, r.mode.is_dual(), batch) {
                Ok(key) => return Ok(Dispatch { mode, key: Some(key), reasons }),
                // A batch that is too large for both reports this once, for the larger.
                Err(reason) => {
                    reasons.retain(|w| discriminant(w) != discriminant(&reason));
                    reasons.push(reason);
                }
            }
        }
        if allowed.contains(Mode::None) {
            return Ok(Dispatch { mode: Mode::None, key: None, reasons });
        }
        Err(Error::NoAllowedMode { function: self.function, batch: *batch, allowed, reason: reasons.pop() })
    }

    fn check(&self, batch: &BatchDescriptor) -> Result<()> {
        let BatchDescriptor { num_tokens, uniform_decode, .. } = *batch;
        let wrong = |reason: String| Err(Error::Argument { op: self.function, reason });
        if num_tokens == 0 {
            return wrong("a batch of 0 tokens has nothing to do; leave the call out".into());
        }
        if uniform_decode && !num_tokens.is_multiple_of(self.query_len) {
            return wrong(format!(
                "{num_tokens} tokens are not a uniform decode of {} per sequence; use `BatchDescriptor::mixed`",
                self.query_len
            ));
        }
        Ok(())
    }

    /// Returns the sizes to which a batch is padded in that mode, or the reason why there are none. With
    /// `apart`, uniform decodes have separate graphs.
    fn fit(&self, mode: Mode, apart: bool, batch: &BatchDescriptor) -> Result<BatchKey, FallbackReason> {
        let uniform = mode == Mode::Full && apart && batch.uniform_decode;
        let num_tokens = match self.sizes_of(uniform) {
            None => batch.num_tokens,
            Some(sizes) => sizes.round_up(batch.num_tokens).ok_or(FallbackReason::OverLargestBucket {
                symbol: self.symbol,
                size: batch.num_tokens,
                largest: sizes.largest(),
            })?,
        };
        let largest = self.adapters.last().copied();
        let adapters = match (largest, self.adapters.iter().find(|&&n| n >= batch.adapters)) {
            (None, _) => 0,
            (Some(_), Some(&enough)) => enough,
            (Some(largest), None) => {
                return Err(FallbackReason::OverMostAdapters { adapters: batch.adapters, largest });
            }
        };
        Ok(self.key(mode, uniform, (num_tokens, adapters)))
    }

    fn sizes_of(&self, uniform: bool) -> Option<&Schedule> {
        self.decode_sizes.as_ref().filter(|_| uniform).or(self.sizes.as_ref())
    }

    fn key(&self, mode: Mode, uniform: bool, (num_tokens, adapters): (usize, usize)) -> BatchKey {
        let num_reqs = match (mode, uniform) {
            (Mode::Full, true) => Some(num_tokens.div_ceil(self.query_len)),
            // Nothing is known about the sequences, except that each has at least one token.
            (Mode::Full, false) => Some(num_tokens.min(self.max_requests.unwrap_or(num_tokens))),
            _ => None,
        };
        BatchKey { num_tokens, adapters, num_reqs, uniform }
    }

    /// Returns all ahead-of-time captures in order: segments before whole calls, each from the largest size
    /// to the smallest, and from the most adapters to none. Empty if batches have no sizes.
    pub fn captures(&self) -> Vec<Capture> {
        let counts = if self.adapters.is_empty() { &[0][..] } else { &self.adapters };
        let mut all = Vec::new();
        for mode in self.kinds() {
            let uniform = mode == Mode::Full && self.mode().is_dual();
            let sizes = self.sizes_of(uniform).map_or(&[][..], Schedule::sizes);
            for &num_tokens in sizes.iter().rev() {
                let keys = counts.iter().rev().map(|&n| self.key(mode, uniform, (num_tokens, n)));
                all.extend(keys.map(|key| Capture { mode, key }));
            }
        }
        all
    }

    /// The modes other than `None` that batches can get, in the order of capture.
    pub(crate) fn kinds(&self) -> Vec<Mode> {
        let (decode, mixed) = (self.mode().decode(), self.mode().mixed());
        let mut kinds: Vec<Mode> = [mixed, decode].into_iter().filter(|m| *m != Mode::None).collect();
        kinds.dedup();
        kinds
    }

    /// The sizes for which calls of that kind are captured; `None` if any size is possible.
    pub(crate) fn capture_sizes(&self, mode: Mode) -> Option<&Schedule> {
        self.sizes_of(mode == Mode::Full && self.mode().is_dual())
    }

    /// The numbers of adapters that are distinguished; empty if adapters make no difference.
    pub(crate) fn adapters(&self) -> &[usize] {
        &self.adapters
    }
}

//! What `capture_all` records: every combination of sizes, for every kind of batch.

use std::{cmp::Reverse, iter};

use super::Function;
use crate::{BatchDescriptor, Error, Mode, ModeSet, Result, dispatch::Said};

/// One call of `capture_all`.
#[derive(Debug)]
pub(super) struct Job {
    /// How much of the call is recorded.
    pub(super) mode: Mode,
    /// One size for each symbol.
    pub(super) sizes: Vec<usize>,
    /// Its batch, where that makes a difference.
    pub(super) said: Option<Said>,
}

impl Function {
    /// In the order of capture: segments before whole calls, each from large to small and from the most adapters to
    /// none.
    pub(super) fn jobs(&self) -> Result<Vec<Job>> {
        let resolution = self.dispatcher.resolution();
        let looks = self.dispatcher.looks_at_batches(resolution);
        let counts = if self.tells_adapters_apart() { self.dispatcher.adapters() } else { &[0] };
        let mut kinds = self.dispatcher.kinds();
        if self.options.or_error && resolution.asked == Mode::Full {
            // A mixed batch, which would have to run piecewise, is an error then.
            kinds.retain(|mode| *mode == Mode::Full || !resolution.mode.is_dual());
        }
        let mut jobs = Vec::new();
        for mode in kinds {
            let decode = mode == Mode::Full && resolution.mode.is_dual();
            for sizes in self.combinations(mode, decode)? {
                let tokens = self.tokens.map_or(self.dispatcher.query_len(), |i| sizes[i]);
                let batch =
                    if decode { BatchDescriptor::decode(tokens) } else { BatchDescriptor::mixed(tokens) };
                jobs.extend(counts.iter().rev().map(|&adapters| Job {
                    mode,
                    sizes: sizes.clone(),
                    said: looks.then_some(Said {
                        batch: batch.with_adapters(adapters),
                        allowed: ModeSet::ALL,
                        ahead: true,
                    }),
                }));
            }
        }
        Ok(jobs)
    }

    /// All combinations of sizes, largest first; for uniform decodes, those that one can have.
    fn combinations(&self, mode: Mode, decode: bool) -> Result<Vec<Vec<usize>>> {
        let mut all: Vec<Vec<usize>> = vec![Vec::new()];
        for (index, (&symbol, schedule)) in self.spec.symbols.iter().zip(&self.schedules).enumerate() {
            let of_batch =
                self.dispatcher.capture_sizes(mode).filter(|_| decode && self.tokens == Some(index));
            let listed = || self.listed.iter().find_map(|l| l.sizes_of(symbol));
            let sizes = of_batch.or(schedule.as_ref()).map(|s| s.sizes().to_vec()).or_else(listed);
            let by_tokens = decode && self.requests == Some(index) && self.tokens != Some(index);
            let sizes = match sizes {
                // As many as the tokens make; set below, when the tokens of the combination are known.
                _ if by_tokens => vec![0],
                Some(sizes) => sizes,
                None => {
                    return Err(Error::Config {
                        what: format!("`{}`", self.spec.name),
                        why: format!(
                            "`capture_all` needs sizes of {symbol}: `.bucket(\"{symbol}\", Schedule::default())`"
                        ),
                    });
                }
            };
            let with = |size: usize| {
                all.iter().map(move |rest| rest.iter().copied().chain(iter::once(size)).collect())
            };
            all = sizes.into_iter().flat_map(with).collect();
        }
        if decode && let (Some(tokens), Some(requests)) = (self.tokens, self.requests) {
            for sizes in &mut all {
                sizes[requests] = sizes[tokens] / self.dispatcher.query_len();
            }
        }
        all.retain(|sizes| self.listed.iter().all(|l| l.allows(self.spec.symbols, sizes)));
        all.sort_by_key(|sizes| Reverse(sizes.iter().fold(1usize, |n, &size| n.saturating_mul(size))));
        Ok(all)
    }
}

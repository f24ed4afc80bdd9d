//! The calls that `capture_all` records: every combination of sizes, for every kind of batch.

use std::cmp::Reverse;

use super::GraphObject;
use crate::{BatchDescriptor, Error, Mode, ModeSet, Result, runtime::scopes::Said};

/// Above this number of captures a warning is logged: they take minutes and gigabytes.
pub(super) const MANY: usize = 1 << 10;
/// Above this number of captures, an error is returned.
const MOST: usize = 1 << 16;
/// The maximum number of combinations that are examined if most of them are not listed.
const MOST_LOOKED_AT: usize = 1 << 24;

/// One call of `capture_all`.
#[derive(Debug)]
pub(super) struct Job {
    /// The part of the call that is recorded.
    pub(super) mode: Mode,
    /// One size for each symbol.
    pub(super) sizes: Vec<usize>,
    /// Its batch, if that makes a difference.
    pub(super) said: Option<Said>,
}

impl GraphObject {
    /// Returns the calls in the order of capture: segments before whole calls, each from large to small and
    /// from the most adapters to none.
    pub(super) fn jobs(&self) -> Result<Vec<Job>> {
        let resolution = self.dispatcher.resolution();
        let looks = self.dispatcher.looks_at_batches(resolution);
        let counts = if self.tells_adapters_apart() { self.dispatcher.adapters() } else { &[0] };
        let mut kinds = self.dispatcher.kinds();
        if self.options.deny_fallback && resolution.asked == Mode::Full {
            // A mixed batch, which would have to run piecewise, is then an error.
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

    /// Returns all combinations of sizes, largest first; for uniform decodes, those that a decode can have.
    fn combinations(&self, mode: Mode, decode: bool) -> Result<Vec<Vec<usize>>> {
        let mut axes: Vec<Vec<usize>> = Vec::new();
        for (index, (&symbol, schedule)) in self.spec.symbols.iter().zip(&self.schedules).enumerate() {
            let of_batch =
                self.dispatcher.capture_sizes(mode).filter(|_| decode && self.tokens == Some(index));
            let listed = || self.listed.iter().find_map(|l| l.sizes_of(symbol));
            let sizes = of_batch.or(schedule.as_ref()).map(|s| s.sizes().to_vec()).or_else(listed);
            let by_tokens = decode && self.requests == Some(index) && self.tokens != Some(index);
            let sizes = match sizes {
                // As many as the tokens make up; set below, when the tokens of the combination are known.
                _ if by_tokens => vec![0],
                Some(sizes) => sizes,
                None => {
                    return Err(Error::Config {
                        what: format!("`{}`", self.spec.name),
                        reason: format!(
                            "`capture_all` needs sizes of {symbol}: `.bucket(\"{symbol}\", Schedule::default())`"
                        ),
                    });
                }
            };
            axes.push(sizes);
        }
        let count = axes.iter().fold(1usize, |n, sizes| n.saturating_mul(sizes.len()));
        if count > MOST_LOOKED_AT {
            return Err(self.too_many(&axes));
        }
        let mut all = Vec::new();
        for nth in 0..count {
            let mut sizes = combination(&axes, nth);
            if decode && let (Some(tokens), Some(requests)) = (self.tokens, self.requests) {
                sizes[requests] = sizes[tokens] / self.dispatcher.query_len();
            }
            if self.listed.iter().all(|l| l.allows(self.spec.symbols, &sizes)) {
                all.push(sizes);
            }
            if all.len() > MOST {
                return Err(self.too_many(&axes));
            }
        }
        all.sort_by_key(|sizes| Reverse(sizes.iter().fold(1usize, |n, &size| n.saturating_mul(size))));
        Ok(all)
    }

    fn too_many(&self, axes: &[Vec<usize>]) -> Error {
        let of = |(symbol, sizes): (&&str, &Vec<usize>)| format!("{} of {symbol}", sizes.len());
        let all: Vec<String> = self.spec.symbols.iter().zip(axes).map(of).collect();
        Error::Config {
            what: format!("`capture_all` of `{}`", self.spec.name),
            reason: format!(
                "its sizes ({}) make more than {MOST} combinations, and each is captured; give schedules with fewer \
                 sizes, or list the combinations that occur (`capture_only`)",
                all.join(", ")
            ),
        }
    }
}

/// Returns the `nth` combination; the first symbol changes fastest.
fn combination(axes: &[Vec<usize>], mut nth: usize) -> Vec<usize> {
    let pick = |sizes: &Vec<usize>| {
        let size = sizes[nth % sizes.len()];
        nth /= sizes.len();
        size
    };
    axes.iter().map(pick).collect()
}

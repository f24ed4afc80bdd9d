//! The sizes for which batches are captured, by default and within a budget, as a [`Schedule`].

use crate::{Error, Mode, Result, Schedule};

/// The default for the largest captured size.
const CEILING: usize = 512;

/// Generated sizes end here; larger ones must be listed.
const MOST: usize = 1 << 20;

/// Determines the sizes for which batches are captured: listed sizes, or sizes up to a maximum, but never
/// more than a batch can have.
///
/// Sizes count tokens, padding included.
///
/// ```
/// use graphable::{BatchSizes, Mode};
///
/// // At most 128 sequences and 2048 tokens a batch.
/// let sizes = BatchSizes::up_to_budget(2048).max_requests(128);
/// assert_eq!(sizes.schedule(Mode::Full, 1)?.largest(), 256);
/// // What is listed is all there is.
/// let listed = BatchSizes::up_to_budget(8).sizes([4, 1, 2, 15]);
/// assert_eq!(listed.schedule(Mode::Full, 1)?.sizes(), [1, 2, 4]);
/// # Ok::<(), graphable::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchSizes {
    budget: usize,
    sizes: Option<Vec<usize>>,
    max: Option<usize>,
    requests: Option<usize>,
    multiple: usize,
}

impl BatchSizes {
    /// Sizes for batches of at most this many tokens.
    pub fn up_to_budget(tokens: usize) -> Self {
        Self { budget: tokens, sizes: None, max: None, requests: None, multiple: 1 }
    }

    /// Uses only these sizes; those above the budget are dropped.
    #[must_use]
    pub fn sizes(self, sizes: impl IntoIterator<Item = usize>) -> Self {
        Self { sizes: Some(sizes.into_iter().take(MOST + 1).collect()), ..self }
    }

    /// Sets the maximum size. If sizes are listed, it must be the largest of them.
    #[must_use]
    pub fn max(self, size: usize) -> Self {
        Self { max: Some(size), ..self }
    }

    /// Limits a batch to this many sequences: the largest size is then that of twice their decodes, up to
    /// 512, and a batch of all sequences has a size of its own.
    #[must_use]
    pub fn max_requests(self, requests: usize) -> Self {
        Self { requests: Some(requests), ..self }
    }

    /// Restricts sizes to multiples of `n`.
    #[must_use]
    pub fn multiple_of(self, n: usize) -> Self {
        Self { multiple: n, ..self }
    }

    /// Returns the sizes for a mode in which a decode has `query_len` new tokens per sequence.
    ///
    /// Without a list, the sizes are 1, 2, 4, multiples of 8 below 256 and multiples of 16 from there, up to
    /// the maximum; the budget, if it does not exceed the maximum; and, if no maximum is given, the sizes of
    /// decodes of 1, 2, 4, … sequences. Mode `None` has no sizes.
    ///
    /// # Errors
    /// Returns [`Error::Config`] for a list or a maximum that leaves no size, for a list that does not end
    /// with the maximum, and for a multiple or a query length of 0.
    pub fn schedule(&self, mode: Mode, query_len: usize) -> Result<Schedule> {
        if mode == Mode::None {
            return Ok(Schedule::new([]));
        }
        let wrong = |reason: String| Err(Error::Config { what: "batch sizes".into(), reason });
        if self.multiple == 0 || query_len == 0 {
            return wrong("a multiple or a query of 0 tokens holds nothing; both start at 1".into());
        }
        if self.max == Some(0) {
            return wrong("a maximum of 0 captures nothing; use `Mode::None` for that".into());
        }
        if self.sizes.is_none() && self.max.is_some_and(|max| max.min(self.budget) > MOST) {
            return wrong(format!("a maximum above {MOST} makes too many sizes; list those that you want"));
        }
        let fits = |n: &usize| *n > 0 && *n <= self.budget && n.is_multiple_of(self.multiple);
        let schedule = match &self.sizes {
            Some(list) if list.is_empty() => {
                return wrong("an empty list captures nothing; use `Mode::None` for that".into());
            }
            Some(list) if list.len() > MOST => {
                return wrong(format!("more than {MOST} sizes are listed, and each is captured; list fewer"));
            }
            Some(list) if list.contains(&0) => {
                return wrong("a size of 0 holds nothing; sizes start at 1".into());
            }
            Some(list) => Schedule::new(list.iter().copied().filter(fits)),
            None => Schedule::new(self.made(query_len).into_iter().filter(fits)),
        };
        if schedule.sizes().is_empty() {
            let Self { budget, multiple, .. } = self;
            return wrong(format!(
                "no size is left within the budget of {budget} tokens that is a multiple of {multiple}; list a \
                 smaller one"
            ));
        }
        let largest = schedule.largest();
        match self.max {
            Some(max) if self.sizes.is_some() && max != largest => wrong(format!(
                "the largest listed size within the budget is {largest}, and the maximum {max}; leave one of \
                 them out"
            )),
            _ => Ok(schedule),
        }
    }

    /// Returns the sizes up to the maximum if none are listed.
    fn made(&self, query_len: usize) -> Vec<usize> {
        let decodes = self.requests.map(|n| n.saturating_mul(query_len));
        let default = decodes.map_or(CEILING, |tokens| tokens.saturating_mul(2).min(CEILING));
        let max = self.max.unwrap_or(default).min(self.budget);
        let mut sizes = grid(max);
        sizes.push(self.budget);
        if let (None, Some(requests)) = (self.max, self.requests) {
            let counts = if query_len == 1 { Vec::new() } else { grid(requests.min(CEILING)) };
            let all = counts.into_iter().chain([requests]);
            sizes.extend(all.map(|n| n.saturating_mul(query_len)));
        }
        sizes.retain(|&n| n <= max);
        sizes
    }
}

/// 1, 2, 4, multiples of 8 below 256, and multiples of 16 from there.
fn grid(max: usize) -> Vec<usize> {
    let steps = (8..256).step_by(8).chain((256..=max.max(256)).step_by(16));
    [1, 2, 4].into_iter().chain(steps).filter(|&n| n <= max).collect()
}

/// Returns the sizes for uniform decodes: each rounded up to whole queries, none above the largest size or
/// above that of `max_requests` sequences.
pub(super) fn for_decodes(all: &Schedule, query_len: usize, max_requests: Option<usize>) -> Result<Schedule> {
    let most = max_requests.map_or(usize::MAX, |n| n.saturating_mul(query_len)).min(all.largest());
    let whole = all.sizes().iter().map(|n| n.div_ceil(query_len).saturating_mul(query_len));
    let mut sizes: Vec<usize> = whole.filter(|&n| n <= most).collect();
    // The size of a batch of all sequences may be between two of the sizes.
    sizes.extend(max_requests.map(|n| n.saturating_mul(query_len)).filter(|&n| n > 0 && n <= all.largest()));
    if sizes.is_empty() {
        return Err(Error::Config {
            what: format!("sizes for decodes of {query_len} tokens a sequence"),
            reason: format!(
                "no multiple of {query_len} is within the largest size, {}; add one, or lower the query length",
                all.largest()
            ),
        });
    }
    Ok(Schedule::new(sizes))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One configuration: listed sizes, maximum, multiple, budget, mode, and the largest size, or `None` if
    /// an error is expected.
    type Case = (Option<&'static [usize]>, Option<usize>, usize, usize, Mode, Option<usize>);

    fn sizes((list, max, multiple, budget, mode, _): &Case) -> Result<Schedule> {
        let mut sizes =
            BatchSizes::up_to_budget(*budget).max_requests(128.min(*budget)).multiple_of(*multiple);
        if let Some(list) = list {
            sizes = sizes.sizes(list.iter().copied());
        }
        if let Some(max) = max {
            sizes = sizes.max(*max);
        }
        sizes.schedule(*mode, 1)
    }

    #[test]
    fn every_configuration() {
        const ON: Mode = Mode::FullAndPiecewise;
        const OFF: Mode = Mode::None;
        let few: &[usize] = &[1, 2, 4];
        let more: &[usize] = &[1, 2, 4, 15];
        let cases: [Case; 13] = [
            (None, None, 1, 2048, ON, Some(256)),
            (Some(few), Some(4), 1, 2048, ON, Some(4)),
            (Some(few), Some(8), 1, 2048, ON, None),
            (Some(&[1, 256]), None, 1, 2048, ON, Some(256)),
            (Some(&[]), None, 1, 2048, OFF, Some(0)),
            (None, Some(0), 1, 2048, OFF, Some(0)),
            // Truncated to the last step.
            (None, Some(257), 1, 2048, ON, Some(256)),
            // The budget itself is a size, on a step or not.
            (None, Some(2048), 1, 257, ON, Some(257)),
            (Some(more), None, 1, 2048, ON, Some(15)),
            (Some(more), None, 2, 2048, ON, Some(4)),
            (Some(more), None, 1, 8, ON, Some(4)),
            (Some(&[]), None, 1, 2048, ON, None),
            (None, Some(0), 1, 2048, ON, None),
        ];
        for case in cases {
            let got = sizes(&case);
            assert_eq!(got.as_ref().ok().map(Schedule::largest), case.5, "{case:?}: {got:?}");
        }
    }

    #[test]
    fn refusals_say_why() {
        let at = |set: fn(BatchSizes) -> BatchSizes, query_len, words: &str| {
            let error = set(BatchSizes::up_to_budget(100)).schedule(Mode::Piecewise, query_len).unwrap_err();
            assert!(matches!(error, Error::Config { .. }));
            assert!(error.to_string().contains(words), "{error}");
        };
        at(
            |s| s.sizes([1, 2]).max(8),
            1,
            "the largest listed size within the budget is 2, and the maximum 8",
        );
        at(|s| s.sizes([]), 1, "use `Mode::None`");
        at(|s| s.max(0), 1, "use `Mode::None`");
        at(|s| s.sizes([0, 4]), 1, "sizes start at 1");
        at(|s| s.sizes([101]), 1, "within the budget of 100 tokens");
        at(|s| s.sizes([7]).multiple_of(2), 1, "a multiple of 2");
        at(|s| s.multiple_of(0), 1, "both start at 1");
        at(|s| s, 0, "both start at 1");
    }

    #[test]
    fn lists_are_sorted_once_each() {
        let listed = BatchSizes::up_to_budget(64).sizes([8, 2, 8, 65, 1]).schedule(Mode::Full, 1).unwrap();
        assert_eq!(listed.sizes(), [1, 2, 8]);
    }

    /// Numbers of sizes and the last two, by sequences and tokens a query.
    #[test]
    fn steps_up_to_the_default_maximum() {
        for (requests, query_len, count, last) in [
            (8, 1, 5, [8, 16]),
            (101, 1, 29, [192, 200]),
            (128, 1, 35, [248, 256]),
            (256, 1, 51, [496, 512]),
            (512, 17, 55, [496, 512]),
        ] {
            let sizes = BatchSizes::up_to_budget(8192).max_requests(requests);
            let sizes = sizes.schedule(Mode::FullAndPiecewise, query_len).unwrap();
            let sizes = sizes.sizes();
            assert_eq!((sizes.len(), &sizes[sizes.len() - 2..]), (count, &last[..]), "{requests}: {sizes:?}");
        }
        let odd = BatchSizes::up_to_budget(8192).max_requests(101).schedule(Mode::Full, 1).unwrap();
        assert!(odd.sizes().contains(&101), "a batch of all sequences");
        let drafts = BatchSizes::up_to_budget(8192).max_requests(512).schedule(Mode::Full, 17).unwrap();
        assert!([17, 34, 68, 136, 272, 408].iter().all(|n| drafts.sizes().contains(n)), "{drafts:?}");
    }

    #[test]
    fn decodes_are_whole_queries() {
        let all = Schedule::new([1, 2, 4, 8, 15]);
        let decodes = |query_len, most| for_decodes(&all, query_len, most).map(|s| s.sizes().to_vec());
        assert_eq!(decodes(1, None).unwrap(), [1, 2, 4, 8, 15]);
        assert_eq!(decodes(3, None).unwrap(), [3, 6, 9, 15]);
        assert_eq!(decodes(3, Some(2)).unwrap(), [3, 6]);
        assert_eq!(decodes(1, Some(5)).unwrap(), [1, 2, 4, 5], "a batch of all five");
        let error = decodes(16, None).unwrap_err();
        assert!(error.to_string().contains("no multiple of 16 is within the largest size, 15"), "{error}");
    }
}

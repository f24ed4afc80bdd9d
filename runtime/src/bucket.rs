//! Bucket schedules: the sizes that a `#[dims]` symbol is rounded up to.

use crate::{Error, Result};

/// Sizes to capture, ascending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    sizes: Vec<usize>,
}

impl Default for Schedule {
    /// Up to 512: 1, 2, 4, then 8 to 256 by 8, then 272 to 512 by 16 (51 sizes).
    fn default() -> Self {
        Self::up_to(512)
    }
}

impl Schedule {
    /// The given sizes, in any order. They are checked when the graph is built.
    pub fn new(sizes: impl IntoIterator<Item = usize>) -> Self {
        let mut sizes: Vec<usize> = sizes.into_iter().collect();
        sizes.sort_unstable();
        sizes.dedup();
        Self { sizes }
    }

    /// 1, 2, 4, then every 8th to 256, then every 16th; all up to `max`, which is included.
    pub fn up_to(max: usize) -> Self {
        let fixed = [1, 2, 4].into_iter();
        let sizes = fixed.chain((8..=256).step_by(8)).chain((272..=max.max(272)).step_by(16));
        Self::new(sizes.filter(|&s| s <= max).chain([max]))
    }

    /// Powers of two up to `max`, which is included.
    pub fn powers_of_two(max: usize) -> Self {
        Self::new(
            std::iter::successors(Some(1usize), |s| s.checked_mul(2)).take_while(|&s| s <= max).chain([max]),
        )
    }

    /// The sizes, ascending.
    pub fn sizes(&self) -> &[usize] {
        &self.sizes
    }

    /// The largest size; 0 for an empty schedule, which no graph accepts.
    pub fn largest(&self) -> usize {
        self.sizes.last().copied().unwrap_or(0)
    }

    /// The smallest size that holds `n`.
    pub fn round_up(&self, n: usize) -> Option<usize> {
        self.sizes.get(self.sizes.partition_point(|&s| s < n)).copied()
    }

    pub(crate) fn check(&self, symbol: &str) -> Result<()> {
        let why = match self.sizes.first() {
            None => "a schedule needs at least one size",
            Some(0) => "a bucket of 0 holds nothing; sizes start at 1",
            Some(_) => return Ok(()),
        };
        Err(Error::Config { what: format!("buckets of `{symbol}`"), why: why.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_sizes() {
        let s = Schedule::default();
        assert_eq!(s.sizes().len(), 51);
        assert_eq!(&s.sizes()[..5], [1, 2, 4, 8, 16]);
        assert_eq!(&s.sizes()[49..], [496, 512]);
        assert_eq!(Schedule::up_to(3).sizes(), [1, 2, 3]);
        assert_eq!(Schedule::up_to(300).sizes().last(), Some(&300));
    }

    #[test]
    fn rounding() {
        let s = Schedule::new([8, 2, 2, 32]);
        assert_eq!([0, 1, 2, 3, 8, 9, 32].map(|n| s.round_up(n)), [2, 2, 2, 8, 8, 32, 32].map(Some));
        assert_eq!(s.round_up(33), None);
        assert!(Schedule::new([0, 4]).check("B").is_err());
        assert!(Schedule::new([]).check("B").is_err());
        assert_eq!(Schedule::powers_of_two(12).sizes(), [1, 2, 4, 8, 12]);
    }
}

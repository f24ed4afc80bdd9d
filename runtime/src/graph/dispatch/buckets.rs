//! Buckets: the sizes that a `#[dims]` symbol is rounded up to, as users state them in a [`Schedule`].
//! A batch gets one of them from [`Dispatcher`](crate::Dispatcher), in `mod.rs`; without a batch, `graph/choose.rs` chooses
//! one for each size.

use crate::{Error, Result};

/// A batch of several items, returned by [`Schedule::pack`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Packed {
    /// Indices of its items.
    pub items: Vec<usize>,
    /// The sum of their sizes.
    pub total: usize,
    /// The smallest size of the schedule that holds them; `None` for a single item above the largest size.
    pub size: Option<usize>,
}

/// The maximum number of sizes in a schedule. Each is at least one recording.
const MOST: usize = 1 << 20;
/// The maximum number of sizes that [`Schedule::up_to`] generates between a power of two and the next.
const UP_TO_STEPS: usize = 4096;

/// The buckets of a `#[dims]` symbol: the sizes to capture, ascending. A call is padded to the smallest that holds it.
#[doc(alias = "bucket")]
#[doc(alias = "buckets")]
#[doc(alias = "padding")]
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
    /// Creates a schedule of the given sizes, in any order. They are checked when the graph is built; more
    /// than 1,048,576 sizes are an error then, and no more than that are taken from the iterator.
    pub fn new(sizes: impl IntoIterator<Item = usize>) -> Self {
        let mut sizes: Vec<usize> = sizes.into_iter().take(MOST + 1).collect();
        sizes.sort_unstable();
        sizes.dedup();
        Self { sizes }
    }

    /// Returns the schedule 1, 2, 4, then multiples of 8 up to 256, then multiples of 16, up to and including `max`.
    ///
    /// This is meant for decodes, where every row of padding is expensive: 275 sizes for 4096. For prompts,
    /// [`prefill`](Self::prefill) has fewer. Above 65,536 the steps grow, so that there are 4096 sizes
    /// between a power of two and the next.
    pub fn up_to(max: usize) -> Self {
        Self::stepped(max, |from| match from {
            0..256 => 8,
            _ => (prev_power_of_two(from) / UP_TO_STEPS).max(16),
        })
    }

    /// Sizes in growing steps up to and including `max`: 1, 2, 4, then multiples of 8 up to 64, multiples of
    /// 16 up to 256, and from there eight sizes between a power of two and the next. For 4096, these are 55
    /// sizes.
    ///
    /// Padding is fewer than 8 rows up to 64, fewer than 16 up to 256, and above that less than an eighth of
    /// the real rows.
    ///
    /// ```
    /// use graphable::Schedule;
    ///
    /// let prompts = Schedule::prefill(4096);
    /// assert_eq!(prompts.sizes().len(), 55);
    /// assert_eq!(prompts.round_up(1025), Some(1152));
    /// ```
    pub fn prefill(max: usize) -> Self {
        Self::stepped(max, |from| match from {
            0..64 => 8,
            64..256 => 16,
            _ => prev_power_of_two(from) / 8,
        })
    }

    /// 1, 2, 4, 8, and from there each size plus its `step`, up to and including `max`.
    fn stepped(max: usize, step: impl Fn(usize) -> usize) -> Self {
        let steps = std::iter::successors(Some(8usize), |&from| from.checked_add(step(from)));
        let sizes = [1, 2, 4].into_iter().chain(steps).take_while(|&size| size <= max);
        Self::new(sizes.chain([max]))
    }

    /// Powers of two up to and including `max`.
    pub fn powers_of_two(max: usize) -> Self {
        Self::new(
            std::iter::successors(Some(1usize), |s| s.checked_mul(2)).take_while(|&s| s <= max).chain([max]),
        )
    }

    /// Returns the sizes, ascending.
    pub fn sizes(&self) -> &[usize] {
        &self.sizes
    }

    /// Returns the largest size; 0 for an empty schedule, which every graph rejects.
    pub fn largest(&self) -> usize {
        self.sizes.last().copied().unwrap_or(0)
    }

    /// Returns the smallest size that holds `n`.
    pub fn round_up(&self, n: usize) -> Option<usize> {
        self.sizes.get(self.sizes.partition_point(|&s| s < n)).copied()
    }

    /// Packs items of which a batch can hold several (such as the images of an encoder) into few batches:
    /// smallest first, with at most `most` items each and none above the largest size. An item that is too
    /// large by itself has its own batch, which runs without a graph.
    ///
    /// `items` contains the size of each item. Every item is in one batch; items of size 0 take no space.
    ///
    /// ```
    /// use graphable::Schedule;
    ///
    /// let batches = Schedule::powers_of_two(8).pack(&[6, 20, 1, 2, 3], 8);
    /// let of = |i: usize| (batches[i].items.clone(), batches[i].total, batches[i].size);
    /// assert_eq!(of(0), (vec![2, 3, 4], 6, Some(8)));
    /// assert_eq!(of(1), (vec![0], 6, Some(8)));
    /// assert_eq!(of(2), (vec![1], 20, None)); // above the largest size
    /// ```
    pub fn pack(&self, items: &[usize], most: usize) -> Vec<Packed> {
        let mut order: Vec<usize> = (0..items.len()).collect();
        order.sort_by_key(|&i| items[i]);
        let mut batches: Vec<Packed> = Vec::new();
        for item in order {
            let size = items[item];
            match batches.last_mut() {
                Some(batch)
                    if batch.items.len() < most.max(1)
                        && batch.total.checked_add(size).is_some_and(|total| total <= self.largest()) =>
                {
                    batch.items.push(item);
                    batch.total += size;
                }
                _ => batches.push(Packed { items: vec![item], total: size, size: None }),
            }
        }
        for batch in &mut batches {
            batch.size = self.round_up(batch.total);
        }
        batches
    }

    pub(crate) fn check(&self, symbol: &str) -> Result<()> {
        let reason = match self.sizes.first() {
            None => "a schedule needs at least one size".to_owned(),
            Some(0) => "a bucket of 0 holds nothing; sizes start at 1".to_owned(),
            Some(_) if self.sizes.len() > MOST => {
                format!("there are more than {MOST} sizes, and each is a recording; let the steps grow")
            }
            Some(_) => return Ok(()),
        };
        Err(Error::Config { what: format!("buckets of `{symbol}`"), reason })
    }
}

/// The largest power of two that is at most `n`, which must not be 0.
fn prev_power_of_two(n: usize) -> usize {
    1 << n.ilog2()
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
    fn a_schedule_is_never_larger_than_memory() {
        // Every 16th up to 65536, as ever.
        let s = Schedule::up_to(70_000);
        assert!(s.sizes().windows(2).all(|w| w[1] - w[0] <= 16));
        assert_eq!(Schedule::up_to(4096).sizes().len(), 275);
        for max in [1 << 36, (1 << 36) + 1, usize::MAX - 1, usize::MAX] {
            let s = Schedule::up_to(max);
            assert_eq!((s.largest(), s.round_up(max)), (max, Some(max)));
            assert!(s.sizes().len() < 4096 * 64, "{} sizes up to {max}", s.sizes().len());
            s.check("B").unwrap();
            assert!(Schedule::prefill(max).sizes().len() < 8 * 64);
            assert_eq!(Schedule::powers_of_two(max).largest(), max);
        }
        // A schedule with too many sizes is an error of the graph that uses it.
        let error = Schedule::new(1..).check("B").unwrap_err().to_string();
        assert!(error.contains("more than 1048576 sizes"), "{error}");
        Schedule::new(1..=1 << 20).check("B").unwrap();
    }

    #[test]
    fn prefill_sizes() {
        let s = Schedule::prefill(4096);
        assert_eq!(s.sizes().len(), 55);
        assert_eq!(&s.sizes()[..5], [1, 2, 4, 8, 16]);
        assert_eq!(Schedule::prefill(100).sizes(), [1, 2, 4, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 100]);
        assert_eq!((Schedule::prefill(1).sizes(), Schedule::prefill(0).sizes()), (&[1][..], &[0][..]));
        for n in 1..=4096 {
            let padding = s.round_up(n).unwrap() - n;
            let bound = match n {
                1..=64 => padding < 8,
                65..=256 => padding < 16,
                _ => padding * 8 < n,
            };
            assert!(bound, "{padding} rows of padding for {n}");
        }
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

    #[test]
    fn packing() {
        let s = Schedule::powers_of_two(8);
        let pack = |items: &[usize], most| -> Vec<(Vec<usize>, usize, Option<usize>)> {
            s.pack(items, most).into_iter().map(|p| (p.items, p.total, p.size)).collect()
        };
        assert_eq!(pack(&[], 4), []);
        assert_eq!(pack(&[3, 2], 4), [(vec![1, 0], 5, Some(8))]);
        // The budget, then the number of items, closes a batch.
        assert_eq!(pack(&[5, 4, 4], 4), [(vec![1, 2], 8, Some(8)), (vec![0], 5, Some(8))]);
        assert_eq!(pack(&[1; 5], 2).iter().map(|b| b.0.len()).collect::<Vec<_>>(), [2, 2, 1]);
        assert_eq!(pack(&[1, 1], 0), [(vec![0], 1, Some(1)), (vec![1], 1, Some(1))]);
        // Too large, alone or together.
        assert_eq!(pack(&[9, 1, 30], 4), [(vec![1], 1, Some(1)), (vec![0], 9, None), (vec![2], 30, None)]);
        assert_eq!(pack(&[usize::MAX, usize::MAX], 4).len(), 2);
        // Every item is in one batch, and no batch of several is above the largest size.
        let items: Vec<usize> = (0..40).map(|i| (i * 7) % 11).collect();
        let batches = s.pack(&items, 3);
        let mut all: Vec<usize> = batches.iter().flat_map(|b| b.items.clone()).collect();
        all.sort_unstable();
        assert_eq!(all, (0..40).collect::<Vec<_>>());
        assert!(batches.iter().all(|b| b.items.len() == 1 || (b.total <= 8 && b.items.len() <= 3)));
    }
}

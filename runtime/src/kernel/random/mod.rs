//! Random numbers: [`Random`], a type of the language of kernels.
//!
//! [`philox`](philox::philox) makes the bits, from a generator's seed, the number of the call and the number of the
//! element. [`draws`] says which numbers a launch takes, and [`advance`] has the operations that change a generator.
//! `random.cuh` is the same for GPUs.

pub(crate) mod advance;
pub(crate) mod draws;
pub(crate) mod philox;

use self::philox::{philox, words};
use crate::RngState;

/// The source of random numbers in CUDA C++.
#[cfg(feature = "cuda")]
pub(super) const NUMBERS: &str = include_str!("random.cuh");

/// 2^-32.
const UNIT: f32 = 1.0 / 4_294_967_296.0;

/// The random number of one element: 64 bits that no other element and no other call has, as a parameter of a
/// [kernel](macro@crate::kernel). In kernels of rows, `Random` is a number for each row, and `Row<Random>` one for each value.
///
/// The kernel decides what it becomes. Its methods are functions of the bits, so calling one twice returns the same
/// value; a kernel that needs independent numbers has a parameter for each.
///
/// ```
/// use graphable::prelude::*;
///
/// /// Noise that grows with the value.
/// #[kernel]
/// fn noisy(x: f32, r: Random, sigma: f32) -> f32 {
///     x + x.abs() * sigma * r.normal()
/// }
///
/// let mut rt = Runtime::new(Device::cpu())?;
/// let rng = Rng::new(&rt, 7)?;
/// let step = rt.step()?;
/// let y = noisy(&step.tensor(&[2], &[0.0f32, 1.0])?, &rng, 0.1)?;
/// let z = noisy::scalar(1.0, graphable::Random::at(graphable::RngState { seed: 7, counter: 0 }, 1), 0.1);
/// assert_eq!(step.read(&y)?, [0.0, z]);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Random {
    first: u32,
    second: u32,
}

impl Random {
    /// Returns the number that element `index` has in the call that a generator in this state makes next. `index`
    /// counts the elements of the result in row-major order, without padding; for kernels of rows, the rows or all of their
    /// values.
    ///
    /// Its bits are two words of Philox 4x32-10, whose key is the seed and whose counter is `index / 2` and the number
    /// of the call, lower words first: words 0 and 1 for an even index, 2 and 3 for an odd one.
    #[must_use]
    pub fn at(state: RngState, index: u64) -> Self {
        Self::of_block(block(state, index / 2), index)
    }

    /// Without a bit.
    pub(super) const NOTHING: Self = Self { first: 0, second: 0 };

    /// The number of an element whose block of words is known.
    #[inline]
    pub(super) fn of_block(block: [u32; 4], index: u64) -> Self {
        let [a, b, c, d] = block;
        if index.is_multiple_of(2) { Self::of(a, b) } else { Self::of(c, d) }
    }

    #[inline]
    pub(super) fn of(first: u32, second: u32) -> Self {
        Self { first, second }
    }

    /// The first and the second word.
    #[inline]
    pub(super) fn words(self) -> (u32, u32) {
        (self.first, self.second)
    }

    /// Returns 32 random bits, the first word.
    #[inline]
    #[must_use]
    pub fn bits(self) -> u32 {
        self.first
    }

    /// Returns 32 further random bits, the second word.
    #[inline]
    #[must_use]
    pub fn more_bits(self) -> u32 {
        self.second
    }

    /// Returns a number of `[0, 1)`, a multiple of 2⁻²⁴: the upper 24 of [`bits`](Self::bits).
    #[inline]
    #[must_use]
    pub fn uniform(self) -> f32 {
        (self.first >> 8) as f32 * (1.0 / 16_777_216.0)
    }

    /// Returns a whole number of `[0, n)`, or 0 if `n` is 0. No number is more probable than another by more than
    /// `n` / 2⁶⁴.
    #[inline]
    #[must_use]
    pub fn below(self, n: u32) -> u32 {
        let n = u64::from(n);
        let carried = (u64::from(self.second) * n) >> 32;
        ((u64::from(self.first) * n + carried) >> 32) as u32
    }

    /// Returns a number of the normal distribution with mean 0 and variance 1, by the method of Box and Muller. Its
    /// magnitude is at most 6.8.
    #[inline]
    #[must_use]
    pub fn normal(self) -> f32 {
        let radius = (-2.0 * ((self.first as f32 + 0.5) * UNIT).ln()).sqrt();
        radius * (std::f32::consts::TAU * (self.second as f32 * UNIT)).cos()
    }

    /// Returns a number of the exponential distribution with rate 1: positive, finite, and as fine near 0 as it is
    /// far out.
    #[inline]
    #[must_use]
    pub fn exponential(self) -> f32 {
        let far = self.first >= 1 << 31;
        let (first, second) = if far { (!self.first, !self.second) } else { (self.first, self.second) };
        // The distance of all 64 bits from the nearer end, of which each has a half, in (0, 0.5].
        let tail = first as f32 * UNIT + (second as f32 + 0.5) * (UNIT * UNIT);
        if far { -tail.ln() } else { -(-tail).ln_1p() }
    }

    /// Returns a number of the Gumbel distribution, `-ln` of [`exponential`](Self::exponential); finite.
    ///
    /// The index of the largest sum of a logit and such a number is a sample of the softmax of the logits.
    #[inline]
    #[must_use]
    pub fn gumbel(self) -> f32 {
        -self.exponential().ln()
    }
}

/// The words of two elements of a call.
#[inline]
fn block(state: RngState, block: u64) -> [u32; 4] {
    let ([low, high], [call, above]) = (words(block), words(state.counter));
    philox([low, high, call, above], words(state.seed))
}

#[cfg(test)]
mod tests;

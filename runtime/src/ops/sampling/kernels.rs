//! The kernels of sampling.
//!
//! Which tokens a filter keeps, and which token is chosen, must not depend on the device. So nothing here uses a function
//! whose last bits do: powers are computed by [`of::power`], and sums of rows have one order. Thresholds and places are found
//! by bisection, two bits at a time. The sums that it compares are those of the same row with some values replaced by zero,
//! added in the same order, so they grow with the number of values however they are rounded.

/// The token of a row without a logit that is a number above `-inf`: `u32::MAX`.
///
/// [`scatter_rows`](crate::ops::scatter_rows) and [`mark_tokens`](crate::ops::mark_tokens) skip it;
/// [`embedding`](crate::ops::embedding) reports it as an index out of range.
pub const NO_TOKEN: u32 = u32::MAX;

pub(super) mod of {
    use std::f32::consts::LOG2_E;

    use super::NO_TOKEN;
    use crate::kernel;

    /// `e^x` for `x <= 0`, and 0 for NaN; 0 where the result would be subnormal. The function of `kernel/exp.rs`.
    #[kernel]
    pub(in crate::ops::sampling) fn power(x: f32) -> f32 {
        let shifted = x * LOG2_E + 12_582_912.0;
        let n = shifted - 12_582_912.0;
        let r = (x - n * 0.693_359_4) - n * -2.121_944_4e-4;
        let mut q = 0.001_392_621_3;
        q = q * r + 0.008_363_203;
        q = q * r + 0.041_666_556;
        q = q * r + 0.166_665_76;
        q = q * r + 0.5;
        let power = q * (r * r) + r + 1.0;
        let scale = f32::from_bits((shifted.to_bits() << 23).wrapping_add(0x3f80_0000));
        if x >= -87.33 { power * scale } else { 0.0 }
    }

    /// The probability of a logit, relative to that of the largest one.
    #[kernel]
    pub(in crate::ops::sampling) fn weight(x: f32, max: f32) -> f32 {
        if x == max { 1.0 } else { power(x - max) }
    }

    /// A number that is larger for larger logits, and 0 for NaN. Both zeros are equal.
    #[kernel]
    pub(in crate::ops::sampling) fn key(x: f32) -> u32 {
        let bits = if x == 0.0 { 0u32 } else { x.to_bits() };
        let key = if bits >> 31 == 1 { !bits } else { bits | 0x8000_0000 };
        if x.is_nan() { 0 } else { key }
    }

    #[kernel(rows)]
    pub(in crate::ops::sampling) fn repetition_penalty(
        x: Row<f32>,
        seen: Row<bool>,
        penalty: f32,
    ) -> Row<f32> {
        let counts = penalty > 0.0 && penalty.is_finite();
        x.zip(seen).map(|(v, seen)| {
            let penalized = if v > 0.0 { v / penalty } else { v * penalty };
            if seen && counts { penalized } else { v }
        })
    }

    #[kernel(rows)]
    pub(in crate::ops::sampling) fn presence_penalty(x: Row<f32>, seen: Row<bool>, penalty: f32) -> Row<f32> {
        let counts = penalty.is_finite();
        x.zip(seen).map(|(v, seen)| if seen && counts { v - penalty } else { v })
    }

    /// The largest logit, and the first token that has it.
    #[kernel(rows)]
    pub(in crate::ops::sampling) fn best(x: Row<f32>) -> (f32, u32) {
        (x.max(), x.argmax())
    }

    /// Divided by the temperature, after the largest is subtracted, so that nothing overflows. (Reductions in the same kernel
    /// would need more registers than a thread has.)
    #[kernel(rows)]
    pub(in crate::ops::sampling) fn temperature(
        x: Row<f32>,
        temperature: f32,
        max: f32,
        best: u32,
    ) -> Row<f32> {
        x.enumerate().map(|(i, v)| {
            let divided = if v == max { 0.0 } else { (v - max) / temperature };
            let kept = if temperature > 0.0 { v > f32::NEG_INFINITY } else { i == best && v == max };
            if kept && max > f32::NEG_INFINITY { divided } else { f32::NEG_INFINITY }
        })
    }

    #[kernel(rows)]
    pub(in crate::ops::sampling) fn top_k(x: Row<f32>, k: u32) -> Row<f32> {
        let keys = x.map(|v| key(v));
        // The largest key that `k` keys are not below.
        let mut least = 0u32;
        for step in 0..16 {
            let (known, place) = (least, 30 - 2 * step as u32);
            let (a, b, c) = (known + (1u32 << place), known + (2u32 << place), known + (3u32 << place));
            let (of_a, of_b, of_c) = keys.fold(
                (0u32, 0u32, 0u32),
                |(of_a, of_b, of_c), key| {
                    (
                        of_a + if key >= a { 1 } else { 0 },
                        of_b + if key >= b { 1 } else { 0 },
                        of_c + if key >= c { 1 } else { 0 },
                    )
                },
                |(a, b, c), (d, e, f)| (a + d, b + e, c + f),
            );
            if of_c >= k {
                least = c;
            } else if of_b >= k {
                least = b;
            } else if of_a >= k {
                least = a;
            }
        }
        let lowest = if k == 0 || k >= x.len() { 0 } else { least };
        x.map(|v| if key(v) >= lowest && !v.is_nan() { v } else { f32::NEG_INFINITY })
    }

    #[kernel(rows)]
    pub(in crate::ops::sampling) fn top_p(x: Row<f32>, p: f32) -> Row<f32> {
        let max = x.max();
        let weights = x.map(|v| weight(v, max));
        let needed = p * weights.sum();
        // The largest number that weights of that total are not below. They are positive, so their bits are in their order.
        let mut least = 0u32;
        for step in 0..15 {
            let (known, place) = (least, 28 - 2 * step as u32);
            let (a, b, c) = (known + (1u32 << place), known + (2u32 << place), known + (3u32 << place));
            let (of_a, of_b, of_c) = weights.fold(
                (0.0, 0.0, 0.0),
                |(of_a, of_b, of_c), w| {
                    let bits = w.to_bits();
                    (
                        of_a + if bits >= a { w } else { 0.0 },
                        of_b + if bits >= b { w } else { 0.0 },
                        of_c + if bits >= c { w } else { 0.0 },
                    )
                },
                |(a, b, c), (d, e, f)| (a + d, b + e, c + f),
            );
            if of_c >= needed {
                least = c;
            } else if of_b >= needed {
                least = b;
            } else if of_a >= needed {
                least = a;
            }
        }
        let (all, lowest) = (!(p < 1.0), least);
        x.map(|v| {
            let kept = all || v == max || weight(v, max).to_bits() >= lowest;
            if kept && !v.is_nan() { v } else { f32::NEG_INFINITY }
        })
    }

    #[kernel(rows)]
    pub(in crate::ops::sampling) fn min_p(x: Row<f32>, p: f32) -> Row<f32> {
        let max = x.max();
        x.map(|v| {
            let kept = !(p > 0.0) || v == max || weight(v, max) >= p;
            if kept && !v.is_nan() { v } else { f32::NEG_INFINITY }
        })
    }

    #[kernel(rows)]
    pub(in crate::ops::sampling) fn greedy(x: Row<f32>) -> u32 {
        if x.max() > f32::NEG_INFINITY { x.argmax() } else { NO_TOKEN }
    }

    /// The first token such that it and those before it have more than this part of the total. `steps` is half the number of
    /// the binary digits of tokens.
    #[kernel(rows)]
    pub(in crate::ops::sampling) fn choose(x: Row<f32>, uniform: f32, #[key] steps: u32) -> u32 {
        let max = x.max();
        let weights = x.map(|v| weight(v, max));
        // Below 1, and 0 for NaN: the total is never reached.
        let part = uniform.max(0.0).min(0.999_999_94) * weights.sum();
        let places = weights.enumerate();
        // The largest number of tokens at the front that have no more than this part.
        let mut before = 0u32;
        for step in 0..steps {
            let (known, place) = (before, 2 * (steps - 1 - step as u32));
            let (a, b, c) = (known + (1u32 << place), known + (2u32 << place), known + (3u32 << place));
            let (of_a, of_b, of_c) = places.fold(
                (0.0, 0.0, 0.0),
                |(of_a, of_b, of_c), (i, w)| {
                    (
                        of_a + if i < a { w } else { 0.0 },
                        of_b + if i < b { w } else { 0.0 },
                        of_c + if i < c { w } else { 0.0 },
                    )
                },
                |(a, b, c), (d, e, f)| (a + d, b + e, c + f),
            );
            if of_c <= part {
                before = c;
            } else if of_b <= part {
                before = b;
            } else if of_a <= part {
                before = a;
            }
        }
        if max > f32::NEG_INFINITY { before } else { NO_TOKEN }
    }

    /// The middle of one of 2^23 equal parts of the numbers from 0 to 1: exact, and never an end.
    #[kernel]
    pub(in crate::ops::sampling) fn middle(r: Random) -> f32 {
        ((r.bits() >> 9) as f32 + 0.5) * (1.0 / 8_388_608.0)
    }

    /// The logarithm of the probability of a token.
    #[kernel(rows)]
    pub(in crate::ops::sampling) fn token_log_probs(x: Row<f32>, token: u32) -> f32 {
        let max = x.max();
        let total = x.map(|v| weight(v, max)).sum();
        let logit = x.at(if token == NO_TOKEN { 0 } else { token });
        if token == NO_TOKEN || !(logit > f32::NEG_INFINITY) {
            f32::NEG_INFINITY
        } else {
            (if logit == max { 0.0 } else { logit - max }) - total.ln()
        }
    }

    /// The largest logit, and the logarithm of the total of all weights.
    #[kernel(rows)]
    pub(in crate::ops::sampling) fn total(x: Row<f32>) -> (f32, f32) {
        let max = x.max();
        (max, x.map(|v| weight(v, max)).sum().ln())
    }

    /// The logarithms of the probabilities of all tokens.
    #[kernel(rows)]
    pub(in crate::ops::sampling) fn log_probs(x: Row<f32>, max: f32, total: f32) -> Row<f32> {
        x.map(|v| {
            let of_max = if v == max { 0.0 } else { v - max };
            if v > f32::NEG_INFINITY { of_max - total } else { f32::NEG_INFINITY }
        })
    }

    /// The place of the token of each row in a state whose rows are `stride` apart and have `size` tokens; none if there is no
    /// such token.
    #[kernel(index)]
    pub(in crate::ops::sampling) fn place(
        tokens: View<u32, 1>,
        size: u32,
        stride: u32,
        [row]: [i32; 1],
    ) -> u32 {
        let token = tokens.at([row]);
        if token < size { row as u32 * stride + token } else { NO_TOKEN }
    }
}

#[cfg(test)]
mod tests {
    use super::of;
    use crate::kernel::exp::exp_of_negative;

    /// What sampling computes on a GPU by this text is what the CPU's other operations compute.
    #[test]
    fn powers_are_those_of_other_operations() {
        for i in 0..1_100_000u32 {
            let x = i as f32 * -1e-4;
            assert_eq!(of::power::scalar(x).to_bits(), exp_of_negative(x).to_bits(), "{x}");
        }
        assert_eq!([f32::NEG_INFINITY, f32::MIN, f32::NAN].map(of::power::scalar), [0.0; 3]);
    }
}

//! Searches for the scale, or the scale and the minimum, of a group of values: those whose integers give the values back with the
//! smallest sum of squared errors.
//!
//! The error as a function of the scale has many local minima, one for each set of integers. A search looks at scales around the one
//! at which the values just fill the range of the integers; for each, the best scale for the integers that it leads to follows by
//! least squares. The best of them is improved by turns, as Lloyd's quantiser is: integers for the scale, the scale for the
//! integers (S. P. Lloyd, "Least squares quantization in PCM", 1982), until nothing changes.

use crate::quantized::small::IQ4_NL_VALUES;

/// The distance by which the largest value may exceed the end of the range, in steps between integers. Where it does, it is cut off, which
/// makes the steps of all others smaller.
const BEYOND: [f32; 16] =
    [-0.9, -0.7, -0.5, -0.35, -0.2, -0.1, 0.0, 0.1, 0.2, 0.35, 0.5, 0.7, 0.9, 1.2, 1.5, 1.8];
/// Turns of improvement, at most.
const TURNS: usize = 6;
/// Sums are added up in so many parts, which vector instructions compute at once. Groups are whole multiples.
const LANES: usize = 8;

/// The nearest integer, half to even; of numbers below 2^22, as all here are. `f32::round` is a call without SSE4.1.
fn nearest(v: f32) -> f32 {
    const SHIFT: f32 = 12_582_912.0;
    (v + SHIFT) - SHIFT
}

/// The value of the largest size, with its sign.
pub(super) fn largest(values: &[f32]) -> f32 {
    values.iter().fold(0.0f32, |most, &v| if v.abs() > most.abs() { v } else { most })
}

/// Sums over values of what `terms` gives for each.
pub(super) fn sums<const N: usize>(values: &[f32], terms: impl Fn(f32) -> [f32; N]) -> [f32; N] {
    let mut parts = [[0.0f32; LANES]; N];
    for values in values.chunks_exact(LANES) {
        for (lane, &v) in values.iter().enumerate() {
            for (parts, term) in parts.iter_mut().zip(terms(v)) {
                parts[lane] += term;
            }
        }
    }
    parts.map(|parts| parts.iter().sum())
}

/// The values `s * q - m` for integers `q` of a range.
#[derive(Clone, Copy)]
pub(super) struct Grid {
    s: f32,
    m: f32,
    /// `1 / s`; 0 if there is no scale.
    inverse: f32,
    range: [f32; 2],
}

impl Grid {
    pub(super) fn new(s: f32, m: f32, range: [f32; 2]) -> Self {
        Self { s, m, inverse: if s == 0.0 { 0.0 } else { 1.0 / s }, range }
    }

    /// The integer whose value is nearest to `v`.
    pub(super) fn integer(self, v: f32) -> f32 {
        nearest(((v + self.m) * self.inverse).clamp(self.range[0], self.range[1]))
    }

    /// The sum of squared errors.
    pub(super) fn error(self, values: &[f32]) -> f32 {
        let [error] = sums(values, |v| {
            let off = self.s * self.integer(v) - self.m - v;
            [off * off]
        });
        error
    }
}

/// The scale `s` for which `s * q` are nearest to `values`, with integers `q` that `integer` gives for values over the scale.
///
/// `range` is that of the integers, and `step` is what lies between two at its ends.
fn by_integers(values: &[f32], range: [f32; 2], step: f32, integer: impl Fn(f32) -> f32) -> f32 {
    let most = largest(values);
    if most == 0.0 {
        return 0.0;
    }
    // What the squared error is less than the sum of squares, and the scale that has it.
    let fit = |inverse: f32| {
        let [product, square] = sums(values, |v| {
            let q = integer(v * inverse);
            [v * q, q * q]
        });
        if square > 0.0 { (product * (product / square), product / square) } else { (0.0, 0.0) }
    };
    let mut best = (0.0, 0.0);
    for end in range {
        for beyond in BEYOND {
            let found = fit((end + beyond * step * end.signum()) / most);
            if found.0 > best.0 {
                best = found;
            }
        }
    }
    for _ in 0..TURNS {
        let found = fit(1.0 / best.1);
        if found.0 > best.0 {
            best = found;
        } else {
            break;
        }
    }
    best.1
}

/// The scale of values that become integers of `range`, of which the first is below 0.
pub(super) fn scale(values: &[f32], range: [f32; 2]) -> f32 {
    by_integers(values, range, 1.0, |v| nearest(v.clamp(range[0], range[1])))
}

/// The scale of values that become places in [`IQ4_NL_VALUES`].
pub(super) fn table_scale(values: &[f32]) -> f32 {
    let [first, .., last] = IQ4_NL_VALUES;
    // The value that is nearest is the first one, and all gaps between neighbours whose middle is below.
    let value = |v: f32| {
        let gaps = IQ4_NL_VALUES.array_windows().map(|[a, b]| {
            let (a, b) = (f32::from(*a), f32::from(*b));
            if 2.0 * v > a + b { b - a } else { 0.0 }
        });
        f32::from(first) + gaps.sum::<f32>()
    };
    by_integers(values, [first, last].map(f32::from), 23.0, value)
}

/// The place of the value of [`IQ4_NL_VALUES`] that is nearest.
pub(super) fn place(v: f32) -> usize {
    IQ4_NL_VALUES.array_windows().filter(|[a, b]| 2.0 * v > f32::from(*a) + f32::from(*b)).count()
}

/// The scale `s` and the minimum `m`, neither negative, for which `s * q - m` are nearest to `values`, with integers `q` from 0 to
/// `limit`.
pub(super) fn scale_and_minimum(values: &[f32], limit: f32) -> (f32, f32) {
    // A minimum that is subtracted cannot be above 0.
    let least = values.iter().fold(0.0f32, |least, &v| least.min(v));
    let most = values.iter().fold(f32::NEG_INFINITY, |most, &v| most.max(v));
    if most <= least {
        return (0.0, -least);
    }
    let n = values.len() as f32;
    let [sum] = sums(values, |v| [v]);
    // The error but for the sum of squares, and the scale and the minimum that have it.
    let fit = |inverse: f32, least: f32| {
        let [products, squares, integers] = sums(values, |v| {
            let q = nearest(((v - least) * inverse).clamp(0.0, limit));
            [v * q, q * q, q]
        });
        let spread = n * squares - integers * integers;
        let mut s = if spread > 0.0 { (n * products - sum * integers) / spread } else { 0.0 };
        let mut least = (sum - s * integers) / n;
        if least > 0.0 {
            (s, least) = (if squares > 0.0 { products / squares } else { 0.0 }, 0.0);
        }
        s = s.max(0.0);
        let error =
            s * (s * squares - 2.0 * products + 2.0 * least * integers) + least * (n * least - 2.0 * sum);
        (error, s, least)
    };
    let mut best = (f32::INFINITY, 0.0, least);
    for beyond in BEYOND {
        let inverse = (limit + beyond) / (most - least);
        // What is beyond the range is cut off at one end, or half of it at both, or at the other.
        let cuts = if beyond > 0.0 { &[0.0, 0.5, 1.0][..] } else { &[0.0] };
        for cut in cuts {
            let found = fit(inverse, least + cut * beyond / inverse);
            if found.0 < best.0 {
                best = found;
            }
        }
    }
    for _ in 0..TURNS {
        let found = fit(1.0 / best.1, best.2);
        if found.0 < best.0 {
            best = found;
        } else {
            break;
        }
    }
    (best.1, -best.2)
}

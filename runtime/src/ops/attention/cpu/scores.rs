//! The keys that a query sees, and the changes of its scores.

use std::ops::Range;

use super::super::operation::{AlibiKind, MaskKind, Variant, nearest_power};
use crate::backend::cpu::kernels::real::{Real, Strided};

/// The mask and the variant, with the data of those that have some.
#[derive(Clone, Copy)]
pub(super) struct Scores<'a, T> {
    pub(super) kind: MaskKind,
    /// Factor of the products.
    pub(super) scale: f32,
    pub(super) variant: Variant,
    /// Lengths `B` or positions `B, T`.
    pub(super) limits: Option<Strided<'a, u32>>,
    /// `B, Hq, T, S`
    pub(super) bias: Option<Strided<'a, T>>,
    /// `Hq`
    pub(super) slopes: Option<Strided<'a, f32>>,
    /// `Hq`
    pub(super) sinks: Option<Strided<'a, T>>,
    /// The number of keys; those after them are padding.
    pub(super) real: usize,
    /// Numbers of queries, keys and query heads.
    pub(super) sizes: [usize; 3],
}

impl<T: Real> Scores<'_, T> {
    fn limit(&self, index: &[usize]) -> usize {
        self.limits.map_or(0, |view| view.data[view.layout.offset_of(index)] as usize)
    }

    /// Returns the position of query `(b, t)`.
    fn position(&self, b: usize, t: usize) -> i64 {
        let [times, keys, _] = self.sizes;
        match self.kind {
            MaskKind::None | MaskKind::Causal => t as i64 + keys as i64 - times as i64,
            MaskKind::Lengths => t as i64,
            MaskKind::Positions => self.limit(&[b, t]) as i64,
        }
    }

    /// Returns the keys that query `(b, t)` sees: those of the mask, without a window the first ones.
    pub(super) fn visible(&self, b: usize, t: usize) -> Range<usize> {
        let [times, keys, _] = self.sizes;
        let end = match self.kind {
            MaskKind::None => keys,
            MaskKind::Causal => (t + 1 + keys).saturating_sub(times),
            MaskKind::Lengths => self.limit(&[b]).min(keys).min(self.real),
            MaskKind::Positions => self.limit(&[b, t]).saturating_add(1).min(keys).min(self.real),
        };
        let Some((left, right)) = self.variant.window else { return 0..end };
        let position = self.position(b, t);
        let start = (position - i64::from(left)).clamp(0, end as i64) as usize;
        let after = (position + i64::from(right) + 1).clamp(start as i64, end as i64) as usize;
        start..after
    }

    /// Makes scaled products of query `(b, t)` of `head` and the keys from `first` on scores.
    pub(super) fn adjust(&self, scores: &mut [f32], (b, t, head): (usize, usize, usize), first: usize) {
        if let Some(cap) = self.variant.soft_cap {
            scores.iter_mut().for_each(|s| *s = cap * (*s / cap).tanh());
        }
        if let Some(bias) = self.bias
            && !scores.is_empty()
        {
            let (start, step) = (bias.layout.offset_of(&[b, head, t, first]), bias.layout.strides()[3]);
            for (i, score) in scores.iter_mut().enumerate() {
                *score += bias.data[start + i * step].widen();
            }
        }
        if self.variant.alibi != AlibiKind::None {
            let (slope, position) = (self.slope(head), self.position(b, t));
            for (i, score) in scores.iter_mut().enumerate() {
                *score -= slope * ((first + i) as i64 - position).abs() as f32;
            }
        }
    }

    fn slope(&self, head: usize) -> f32 {
        if let Some(given) = self.slopes {
            return given.data[given.layout.offset_of(&[head])];
        }
        let lower = nearest_power(self.sizes[2]);
        match head < lower {
            true => (-8.0 * (head + 1) as f32 / lower as f32).exp2(),
            // Every second slope of twice as many heads.
            false => (-4.0 * (2 * (head - lower) + 1) as f32 / lower as f32).exp2(),
        }
    }

    /// Returns the score of `head` that has no key.
    pub(super) fn sink(&self, head: usize) -> Option<f32> {
        self.sinks.map(|sinks| sinks.data[sinks.layout.offset_of(&[head])].widen())
    }
}

//! Products for several rows of activations: four rows of weights at a time, taken apart once, so that each vector holds a sum of each of
//! them, and nothing is added across a vector.

use std::arch::aarch64::*;

use super::{
    FOUR, load_run,
    unpack::{self, Four},
};
use crate::backend::cpu::kernels::quantized::{
    Activations, LANES, RUN,
    activations::{self, Runs},
    formats::{groups, has_minima, has_small_groups},
};

/// Rows of weights of a tile.
const COLUMNS: usize = FOUR;
/// A run of each row of a tile.
#[derive(Clone, Copy)]
struct Run {
    /// Of the first half of the run, and of the second: four neighbours of each row, and the next four.
    words: [[int8x16_t; FOUR]; 2],
    /// Of the first half of the run, and of the second, if those have scales of their own.
    scales: [float32x4_t; 2],
    /// Likewise, in formats with minima.
    minima: [float32x4_t; 2],
}

impl Run {
    #[target_feature(enable = "neon")]
    fn none() -> Self {
        let numbers = [vdupq_n_f32(0.0); 2];
        Self { words: [[vdupq_n_s8(0); FOUR]; 2], scales: numbers, minima: numbers }
    }
}

/// A row of activations, eight runs at a time.
#[derive(Clone, Copy)]
struct Row<'a> {
    integers: &'a [[activations::Run; LANES]],
    facts: &'a [Runs],
}

impl<'a> Row<'a> {
    fn new(activations: &'a Activations, row: usize) -> Self {
        Self { integers: activations.integers(row).as_chunks().0, facts: activations.runs(row) }
    }

    /// The first so many eights. With the length that the compiler sees here, it checks no index below that.
    #[inline]
    fn first(self, eights: usize) -> Self {
        Self { integers: &self.integers[..eights], facts: &self.facts[..eights] }
    }
}

/// Writes the functions of one set of instructions, which multiply `$rows` rows of activations with a tile at a time.
macro_rules! tiles {
    ($module:ident, $features:tt, $rows:literal) => {
        pub(super) mod $module {
            use super::{
                super::products::$module::{half_of_four, whole_of_four},
                *,
            };

            #[target_feature(enable = $features)]
            pub(in super::super) fn some_rows<const F: u8>(
                weights: &[u8],
                activations: &Activations,
                to: &mut [f32],
            ) {
                let rows = activations.rows();
                let columns = to.len() / rows;
                let bytes = weights.len() / columns;
                let runs = activations.width() / RUN;
                let mut tile = vec![[Run::none(); LANES]; runs.div_ceil(LANES)];
                for first in (0..columns).step_by(COLUMNS) {
                    let count = COLUMNS.min(columns - first);
                    let weights = &weights[first * bytes..][..count * bytes];
                    fill::<F>(weights, count, runs, &mut tile);
                    let mut row = 0;
                    while row < rows {
                        let to = &mut to[row * columns + first..];
                        row += match rows - row {
                            1 => write::<F, 1>(&tile, activations, row, to, count, columns),
                            2 | 3 => write::<F, 2>(&tile, activations, row, to, count, columns),
                            _ => write::<F, $rows>(&tile, activations, row, to, count, columns),
                        };
                    }
                }
            }

            /// Writes the products of `count` rows of a tile and `R` rows of activations, and returns `R`. Row `i` of the result begins at
            /// `to[i * stride]`.
            #[target_feature(enable = $features)]
            fn write<const F: u8, const R: usize>(
                tile: &[[Run; LANES]],
                activations: &Activations,
                first: usize,
                to: &mut [f32],
                count: usize,
                stride: usize,
            ) -> usize {
                let mut rows = [Row::new(activations, first); R];
                for r in 1..R {
                    rows[r] = Row::new(activations, first + r);
                }
                let mut s = [[vdupq_n_f32(0.0); R]; LANES];
                for (place, sums) in s.iter_mut().enumerate() {
                    let runs = (activations.width() / RUN + LANES - 1 - place) / LANES;
                    *sums = sums_of::<F, R>(&tile[..runs], &rows, place);
                }
                for r in 0..R {
                    let even = vaddq_f32(vaddq_f32(s[0][r], s[4][r]), vaddq_f32(s[2][r], s[6][r]));
                    let odd = vaddq_f32(vaddq_f32(s[1][r], s[5][r]), vaddq_f32(s[3][r], s[7][r]));
                    let all = floats(vaddq_f32(even, odd));
                    to[r * stride..][..count].copy_from_slice(&all[..count]);
                }
                R
            }

            /// The sums of every eighth run. Those of one place at a time fit in registers, whatever `R` is.
            #[target_feature(enable = $features)]
            #[inline]
            fn sums_of<const F: u8, const R: usize>(
                tile: &[[Run; LANES]],
                rows: &[Row<'_>; R],
                place: usize,
            ) -> [float32x4_t; R] {
                let mut rows = *rows;
                for r in 0..R {
                    rows[r] = rows[r].first(tile.len());
                }
                let mut sums = [vdupq_n_f32(0.0); R];
                for (i, runs) in tile.iter().enumerate() {
                    let run = &runs[place];
                    for r in 0..R {
                        let p = load_run(&rows[r].integers[i][place]);
                        let products = if has_small_groups(F) {
                            [half_of_four(&run.words[0], p[0]), half_of_four(&run.words[1], p[1])]
                        } else {
                            [whole_of_four::<F>(&run.words, p); 2]
                        };
                        sums[r] = add_terms::<F>(run, products, &rows[r].facts[i], place, sums[r]);
                    }
                }
                sums
            }
        }
    };
}

// Products take more registers here.
tiles!(base, "neon", 2);
tiles!(dotprod, "neon,dotprod", 4);

/// Adds a term for each group, given the products of each.
#[target_feature(enable = "neon")]
#[inline]
fn add_terms<const F: u8>(
    run: &Run,
    products: [int32x4_t; 2],
    facts: &Runs,
    place: usize,
    mut sums: float32x4_t,
) -> float32x4_t {
    let scale = facts.scales[place];
    for (group, product) in products.iter().enumerate().take(const { groups(F) }) {
        let mut term = vmulq_f32(vmulq_n_f32(run.scales[group], scale), vcvtq_f32_s32(*product));
        if has_minima(F) {
            let mut of_group = facts.sums[group][place];
            if !has_small_groups(F) {
                of_group += facts.sums[1][place];
            }
            term = vsubq_f32(term, vmulq_n_f32(run.minima[group], scale * of_group as f32));
        }
        sums = vaddq_f32(sums, term);
    }
    sums
}

/// Takes so many rows of so many runs apart. What stands in the places of others is of no use.
#[target_feature(enable = "neon")]
fn fill<const F: u8>(weights: &[u8], count: usize, runs: usize, tile: &mut [[Run; LANES]]) {
    let bytes = weights.len() / count;
    let weight = |row: usize| &weights[row.min(count - 1) * bytes..][..bytes];
    let rows = [weight(0), weight(1), weight(2), weight(3)];
    for (i, to) in tile.iter_mut().enumerate() {
        let [a, b, c, d] = rows;
        if runs - i * LANES < LANES {
            let last = [
                unpack::last::<F>(a, i),
                unpack::last::<F>(b, i),
                unpack::last::<F>(c, i),
                unpack::last::<F>(d, i),
            ];
            join::<F>(&last, to);
        } else {
            let all = [
                unpack::eight::<F>(a, i),
                unpack::eight::<F>(b, i),
                unpack::eight::<F>(c, i),
                unpack::eight::<F>(d, i),
            ];
            join::<F>(&all, to);
        }
    }
}

/// Eight runs of each row become eight runs of a tile.
#[target_feature(enable = "neon")]
#[inline]
fn join<const F: u8>(rows: &[[Four; 2]; COLUMNS], to: &mut [Run; LANES]) {
    for (place, runs) in to.as_chunks_mut::<FOUR>().0.iter_mut().enumerate() {
        let [a, b, c, d] = [&rows[0][place], &rows[1][place], &rows[2][place], &rows[3][place]];
        for half in 0..2 {
            for (i, run) in runs.iter_mut().enumerate() {
                let of = |four: &Four| vreinterpretq_f32_s8(four.integers[i][half]);
                let words = transposed(of(a), of(b), of(c), of(d));
                for (to, word) in run.words[half].iter_mut().zip(words) {
                    *to = vreinterpretq_s8_f32(word);
                }
            }
        }
        for group in 0..const { groups(F) } {
            let scales = transposed(a.scales[group], b.scales[group], c.scales[group], d.scales[group]);
            let minima = transposed(a.minima[group], b.minima[group], c.minima[group], d.minima[group]);
            for (i, run) in runs.iter_mut().enumerate() {
                run.scales[group] = scales[i];
                if has_minima(F) {
                    run.minima[group] = minima[i];
                }
            }
        }
    }
}

/// Vector `i` has place `i` of each of four vectors.
#[target_feature(enable = "neon")]
#[inline]
fn transposed(a: float32x4_t, b: float32x4_t, c: float32x4_t, d: float32x4_t) -> [float32x4_t; FOUR] {
    let (ac, bd) = (vzipq_f32(a, c), vzipq_f32(b, d));
    let (low, high) = (vzipq_f32(ac.0, bd.0), vzipq_f32(ac.1, bd.1));
    [low.0, low.1, high.0, high.1]
}

#[target_feature(enable = "neon")]
#[inline]
fn floats(vector: float32x4_t) -> [f32; FOUR] {
    let mut floats = [0.0; FOUR];
    // SAFETY: it writes four floats, for which there is room.
    unsafe { vst1q_f32(floats.as_mut_ptr(), vector) };
    floats
}

//! Tiles of 16 rows of weights.

use std::arch::x86_64::*;

use super::transposed;
use crate::{
    BlockFormat,
    backend::cpu::kernels::quantized::{
        Activations, LANES, RUN, WORDS,
        formats::{
            INT4, IQ4_NL, Q2_K, Q3_K, Q4_0, Q4_1, Q4_K, Q5_0, Q5_1, Q5_K, Q6_K, Q8_0, has_minima,
            has_small_groups, of_format, offset,
        },
        x86::vnni,
    },
};

/// Rows of weights of a tile.
const COLUMNS: usize = 16;
/// Rows of activations from which on taking weights apart is worth it.
const MANY: usize = 6;
/// Rows of activations that a tile is multiplied with at a time.
const ROWS: usize = 2;

/// Calls a function of what the terms of a format are made of, which are constants of it: parts of a run that have scales, and
/// whether there are minima. It is compiled for these four instead of for every format.
macro_rules! of_terms {
    ($format:expr, $function:ident, $rows:expr, $arguments:tt) => {
        match (has_small_groups($format), has_minima($format)) {
            (false, false) => $function::<1, false, $rows> $arguments,
            (false, true) => $function::<1, true, $rows> $arguments,
            (true, false) => $function::<2, false, $rows> $arguments,
            (true, true) => $function::<2, true, $rows> $arguments,
        }
    };
}

/// A run of each row of a tile.
#[derive(Clone, Copy)]
struct Run {
    /// Four neighbours of each row, and the next four, with their offsets.
    words: [__m512i; WORDS],
    /// Of the first half of the run, and of the second, if those have scales of their own.
    scales: [__m512; 2],
    minima: [__m512; 2],
}

/// [`multiply`](super::super::multiply).
#[target_feature(enable = "avx2,f16c,avx512f,avx512vl,avx512vnni")]
pub(in super::super) fn multiply(
    format: BlockFormat,
    weights: &[u8],
    activations: &Activations,
    to: &mut [f32],
) {
    let columns = to.len() / activations.rows();
    if activations.rows() < MANY || columns < COLUMNS {
        return vnni::multiply(format, weights, activations, to);
    }
    of_format!(format, tiles(weights, columns, activations, to));
}

#[target_feature(enable = "avx2,f16c,avx512f,avx512vl,avx512vnni")]
fn tiles<const F: u8>(weights: &[u8], columns: usize, activations: &Activations, to: &mut [f32]) {
    let bytes = weights.len() / columns;
    let whole = columns / COLUMNS * COLUMNS;
    let mut tile = Vec::new();
    // What the offsets of the weights add to a product is that often the sum of the activations.
    let of_sum = if offset(F) > 0 { -(1 << offset(F)) } else { 0 };
    for first in (0..whole).step_by(COLUMNS) {
        fill::<F>(&weights[first * bytes..][..COLUMNS * bytes], activations.width() / RUN, &mut tile);
        for row in (0..activations.rows()).step_by(ROWS) {
            let mut write = |i: usize, sums: __m512| {
                let high = _mm512_extractf64x4_pd::<1>(_mm512_castps_pd(sums));
                let halves = [_mm512_castps512_ps256(sums), _mm256_castpd_ps(high)];
                let sums: [f32; COLUMNS] = bytemuck::cast(halves);
                to[(row + i) * columns + first..][..COLUMNS].copy_from_slice(&sums);
            };
            if activations.rows() - row == 1 {
                of_terms!(F, dots, 1, (&tile, activations, row, of_sum))
                    .into_iter()
                    .enumerate()
                    .for_each(|(i, sums)| write(i, sums));
            } else {
                of_terms!(F, dots, ROWS, (&tile, activations, row, of_sum))
                    .into_iter()
                    .enumerate()
                    .for_each(|(i, sums)| write(i, sums));
            }
        }
    }
    if whole < columns {
        let to = &mut to[whole..];
        vnni::columns_of::<F>(&weights[whole * bytes..], columns - whole, activations, to, columns);
    }
}

/// Takes 16 rows of so many runs apart.
#[target_feature(enable = "avx2,f16c,avx512f,avx512vl,avx512vnni")]
fn fill<const F: u8>(weights: &[u8], runs: usize, tile: &mut Vec<Run>) {
    let bytes = weights.len() / COLUMNS;
    let (none, nothing) = (_mm256_setzero_ps(), _mm256_setzero_si256());
    tile.clear();
    for at in (0..runs).step_by(LANES) {
        // Each of two halves of the tile, for the first eight rows and the others.
        let mut integers = [[[nothing; LANES]; 2]; LANES];
        let mut scales = [[[none; LANES]; 2]; 2];
        let mut minima = [[[none; LANES]; 2]; 2];
        for row in 0..COLUMNS {
            let (half, place) = (row / LANES, row % LANES);
            let eight = vnni::eight::<F>(&weights[row * bytes..][..bytes], at / LANES);
            for (integers, of_row) in integers.iter_mut().zip(eight.integers) {
                integers[half][place] = of_row;
            }
            for group in 0..2 {
                scales[group][half][place] = eight.scales[group];
                minima[group][half][place] = eight.minima[group];
            }
        }
        let scales = [floats(&scales[0]), floats(&scales[1])];
        let minima = [floats(&minima[0]), floats(&minima[1])];
        for run in 0..LANES.min(runs - at) {
            tile.push(Run {
                words: joined(&integers[run]),
                scales: [scales[0][run], scales[1][run]],
                minima: [minima[0][run], minima[1][run]],
            });
        }
    }
}

/// Vector `i` has element `i` of each of 16 vectors of eight.
#[target_feature(enable = "avx2,avx512f")]
#[inline]
fn joined(rows: &[[__m256i; LANES]; 2]) -> [__m512i; LANES] {
    let (low, high) = (transposed(&rows[0]), transposed(&rows[1]));
    let mut all = [_mm512_setzero_si512(); LANES];
    for i in 0..LANES {
        all[i] = _mm512_inserti64x4::<1>(_mm512_castsi256_si512(low[i]), high[i]);
    }
    all
}

/// As [`joined`], of floats.
#[target_feature(enable = "avx2,avx512f")]
#[inline]
fn floats(rows: &[[__m256; LANES]; 2]) -> [__m512; LANES] {
    let joined = joined(bytemuck::cast_ref(rows));
    let mut all = [_mm512_setzero_ps(); LANES];
    for i in 0..LANES {
        all[i] = _mm512_castsi512_ps(joined[i]);
    }
    all
}

/// The products of a tile and `R` rows of activations, whose sums count `of_sum` times.
#[target_feature(enable = "avx2,f16c,avx512f,avx512vl,avx512vnni")]
fn dots<const GROUPS: usize, const MINIMA: bool, const R: usize>(
    tile: &[Run],
    activations: &Activations,
    first: usize,
    of_sum: i32,
) -> [__m512; R] {
    let mut sums = [[_mm512_setzero_ps(); LANES]; R];
    // Indices that are constants keep the sums in registers.
    macro_rules! add {
        ($of:expr, $i:expr, $($run:literal)*) => {{
            let mut runs = [&activations.runs(first)[$i]; R];
            let mut others = [&activations.integers(first)[$i * LANES..][..LANES]; R];
            for r in 1..R {
                runs[r] = &activations.runs(first + r)[$i];
                others[r] = &activations.integers(first + r)[$i * LANES..][..LANES];
            }
            $(if let Some(of) = $of.get($run) {
                for r in 0..R {
                    let of_halves = [runs[r].sums[0][$run], runs[r].sums[1][$run]];
                    let (scale, others) = (runs[r].scales[$run], &others[r][$run]);
                    sums[r][$run] =
                        add_run::<GROUPS, MINIMA>(of, others, scale, of_halves, of_sum, sums[r][$run]);
                }
            })*
        }};
    }
    let (eights, rest) = tile.as_chunks::<LANES>();
    for (i, eight) in eights.iter().enumerate() {
        add!(eight, i, 0 1 2 3 4 5 6 7);
    }
    if !rest.is_empty() {
        add!(rest, eights.len(), 0 1 2 3 4 5 6);
    }
    let mut totals = [_mm512_setzero_ps(); R];
    for (total, s) in totals.iter_mut().zip(&sums) {
        let even = _mm512_add_ps(_mm512_add_ps(s[0], s[4]), _mm512_add_ps(s[2], s[6]));
        let odd = _mm512_add_ps(_mm512_add_ps(s[1], s[5]), _mm512_add_ps(s[3], s[7]));
        *total = _mm512_add_ps(even, odd);
    }
    totals
}

/// Adds the terms of a run.
///
/// Words are counted by a constant: the compiler leaves an iterator of some of them a function, which would be called for each.
#[target_feature(enable = "avx2,f16c,avx512f,avx512vl,avx512vnni")]
#[inline]
fn add_run<const GROUPS: usize, const MINIMA: bool>(
    run: &Run,
    others: &[i32; WORDS],
    scale: f32,
    of_halves: [i32; 2],
    of_sum: i32,
    mut sums: __m512,
) -> __m512 {
    let scale = _mm512_set1_ps(scale);
    for group in 0..GROUPS {
        let of_group = if GROUPS == 2 { of_halves[group] } else { of_halves[0] + of_halves[1] };
        // Formats with minima have no offsets.
        let mut product = _mm512_set1_epi32(if MINIMA { 0 } else { of_group * of_sum });
        for i in 0..const { WORDS / GROUPS } {
            let word = group * const { WORDS / GROUPS } + i;
            product = _mm512_dpbusd_epi32(product, run.words[word], _mm512_set1_epi32(others[word]));
        }
        let mut term = _mm512_mul_ps(_mm512_mul_ps(run.scales[group], scale), _mm512_cvtepi32_ps(product));
        if MINIMA {
            let of_group = _mm512_mul_ps(scale, _mm512_set1_ps(of_group as f32));
            term = _mm512_sub_ps(term, _mm512_mul_ps(run.minima[group], of_group));
        }
        sums = _mm512_add_ps(sums, term);
    }
    sums
}

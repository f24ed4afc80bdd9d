//! Tiles of eight rows of weights.
//!
//! Products of two bytes each are added up in 16 bits as long as they fit: eight times in formats of four bits, four and two
//! times with five and six bits. Formats of eight bits add each in 32 bits.

use std::arch::x86_64::*;

use super::{transposed, transposed_floats};
use crate::{
    BlockFormat,
    backend::cpu::kernels::quantized::{
        Activations, LANES, RUN, WORDS,
        activations::{self, Runs},
        formats::{
            INT4, IQ4_NL, Q2_K, Q3_K, Q4_0, Q4_1, Q4_K, Q5_0, Q5_1, Q5_K, Q6_K, Q8_0, groups, has_minima,
            has_small_groups, is_wide, of_format, offset,
        },
        x86::avx2,
    },
};

/// Rows of weights of a tile.
const COLUMNS: usize = 8;
/// Rows of activations from which on taking weights apart is worth it.
const MANY: usize = 8;
/// Rows of activations that a tile is multiplied with at a time.
const ROWS: usize = 4;

/// A run of each row of a tile.
#[derive(Clone, Copy)]
struct Run {
    /// Four neighbours of each row, and the next four, with their offsets unless they are of eight bits.
    words: [__m256i; WORDS],
    /// Of the first half of the run, and of the second, if those have scales of their own.
    scales: [__m256; 2],
    minima: [__m256; 2],
}

/// [`multiply`](super::super::multiply).
#[target_feature(enable = "avx2,f16c")]
pub(in super::super) fn multiply(
    format: BlockFormat,
    weights: &[u8],
    activations: &Activations,
    to: &mut [f32],
) {
    let columns = to.len() / activations.rows();
    if activations.rows() < MANY || columns < COLUMNS {
        return avx2::multiply(format, weights, activations, to);
    }
    of_format!(format, tiles(weights, columns, activations, to));
}

#[target_feature(enable = "avx2,f16c")]
fn tiles<const F: u8>(weights: &[u8], columns: usize, activations: &Activations, to: &mut [f32]) {
    let bytes = weights.len() / columns;
    let whole = columns / COLUMNS * COLUMNS;
    let mut tile = Vec::new();
    for first in (0..whole).step_by(COLUMNS) {
        fill::<F>(&weights[first * bytes..][..COLUMNS * bytes], activations.width() / RUN, &mut tile);
        let (mut row, rows) = (0, activations.rows());
        while row < rows {
            let to = &mut to[row * columns + first..];
            row += match rows - row {
                1 => dots::<F, 1>(&tile, activations, row, columns, to),
                2 | 3 => dots::<F, 2>(&tile, activations, row, columns, to),
                _ => dots::<F, ROWS>(&tile, activations, row, columns, to),
            };
        }
    }
    if whole < columns {
        let to = &mut to[whole..];
        avx2::columns_of::<F>(&weights[whole * bytes..], columns - whole, activations, to, columns);
    }
}

/// Takes eight rows of so many runs apart.
#[target_feature(enable = "avx2,f16c")]
fn fill<const F: u8>(weights: &[u8], runs: usize, tile: &mut Vec<Run>) {
    let bytes = weights.len() / COLUMNS;
    let (none, nothing) = (_mm256_setzero_ps(), _mm256_setzero_si256());
    tile.clear();
    for at in (0..runs).step_by(LANES) {
        let mut integers = [[nothing; COLUMNS]; LANES];
        let mut scales = [[none; COLUMNS]; 2];
        let mut minima = [[none; COLUMNS]; 2];
        for row in 0..COLUMNS {
            let eight = avx2::eight::<F>(&weights[row * bytes..][..bytes], at / LANES);
            for (integers, of_row) in integers.iter_mut().zip(eight.integers) {
                integers[row] = of_row;
            }
            for group in 0..2 {
                scales[group][row] = eight.scales[group];
                minima[group][row] = eight.minima[group];
            }
        }
        let scales = [transposed_floats(&scales[0]), transposed_floats(&scales[1])];
        let minima = [transposed_floats(&minima[0]), transposed_floats(&minima[1])];
        for run in 0..LANES.min(runs - at) {
            tile.push(Run {
                words: transposed(&integers[run]),
                scales: [scales[0][run], scales[1][run]],
                minima: [minima[0][run], minima[1][run]],
            });
        }
    }
}

/// Writes the products of a tile and `R` rows of activations, of which row `i` begins at `to[i * stride]`, and returns `R`.
#[target_feature(enable = "avx2,f16c")]
fn dots<const F: u8, const R: usize>(
    tile: &[Run],
    activations: &Activations,
    first: usize,
    stride: usize,
    to: &mut [f32],
) -> usize {
    let mut sums = [[_mm256_setzero_ps(); R]; LANES];
    for (i, eight) in tile.chunks(LANES).enumerate() {
        let mut of_runs = [OfRuns::NONE; R];
        let mut others: [&[activations::Run]; R] = [&[]; R];
        for r in 0..R {
            of_runs[r] = OfRuns::new::<F>(&activations.runs(first + r)[i]);
            others[r] = &activations.integers(first + r)[i * LANES..][..LANES];
        }
        for (run, (of, sums)) in eight.iter().zip(&mut sums).enumerate() {
            add_run::<F, R>(of, &others, run, &of_runs, sums);
        }
    }
    for r in 0..R {
        let two = [_mm256_add_ps(sums[0][r], sums[4][r]), _mm256_add_ps(sums[2][r], sums[6][r])];
        let even = _mm256_add_ps(two[0], two[1]);
        let two = [_mm256_add_ps(sums[1][r], sums[5][r]), _mm256_add_ps(sums[3][r], sums[7][r])];
        let odd = _mm256_add_ps(two[0], two[1]);
        let sum: [f32; COLUMNS] = bytemuck::cast(_mm256_add_ps(even, odd));
        to[r * stride..][..COLUMNS].copy_from_slice(&sum);
    }
    R
}

/// The contribution of eight runs of a row of activations, whatever the weight.
#[derive(Clone, Copy)]
struct OfRuns {
    scales: [f32; LANES],
    /// For each group: what the offsets of the weight added to its product, with the other sign.
    offsets: [[i32; LANES]; 2],
    /// For each group: the sum of its activations.
    sums: [[f32; LANES]; 2],
}

impl OfRuns {
    const NONE: Self = Self { scales: [0.0; LANES], offsets: [[0; LANES]; 2], sums: [[0.0; LANES]; 2] };

    #[target_feature(enable = "avx2,f16c")]
    #[inline]
    fn new<const F: u8>(runs: &Runs) -> Self {
        let mut sums: [__m256i; 2] = bytemuck::cast(runs.sums);
        if !has_small_groups(F) {
            sums[0] = _mm256_add_epi32(sums[0], sums[1]);
        }
        let scales: __m256 = bytemuck::cast(runs.scales);
        let mut all = Self { scales: runs.scales, ..Self::NONE };
        for (group, sum) in sums.into_iter().enumerate().take(groups(F)) {
            if offset(F) > 0 && !is_wide(F) {
                let added = _mm256_sll_epi32(sum, _mm_cvtsi32_si128(offset(F) as i32));
                all.offsets[group] = bytemuck::cast(_mm256_sub_epi32(_mm256_setzero_si256(), added));
            }
            if has_minima(F) {
                all.sums[group] = bytemuck::cast(_mm256_mul_ps(scales, _mm256_cvtepi32_ps(sum)));
            }
        }
        all
    }
}

/// Adds the terms of a run of each row.
#[target_feature(enable = "avx2,f16c")]
#[inline]
fn add_run<const F: u8, const R: usize>(
    run: &Run,
    others: &[&[activations::Run]; R],
    at: usize,
    of_runs: &[OfRuns; R],
    sums: &mut [__m256; R],
) {
    let count = const { WORDS / groups(F) };
    for group in 0..const { groups(F) } {
        let mut products = [_mm256_setzero_si256(); R];
        for r in 0..R {
            products[r] = _mm256_set1_epi32(of_runs[r].offsets[group][at]);
        }
        let words = &run.words[group * count..][..count];
        let mut of_group: [&[i32]; R] = [&[]; R];
        for r in 0..R {
            of_group[r] = &others[r][at][group * count..][..count];
        }
        match const { (fitting(F), groups(F)) } {
            (0, _) => add_wide(words, &of_group, &mut products),
            (2, _) => add_narrow::<2, R>(words, &of_group, &mut products),
            (4, _) | (_, 2) => add_narrow::<4, R>(words, &of_group, &mut products),
            _ => add_narrow::<8, R>(words, &of_group, &mut products),
        }
        for r in 0..R {
            let scale = _mm256_mul_ps(run.scales[group], _mm256_set1_ps(of_runs[r].scales[at]));
            let mut term = _mm256_mul_ps(scale, _mm256_cvtepi32_ps(products[r]));
            if has_minima(F) {
                let of_group = _mm256_set1_ps(of_runs[r].sums[group][at]);
                term = _mm256_sub_ps(term, _mm256_mul_ps(run.minima[group], of_group));
            }
            sums[r] = _mm256_add_ps(sums[r], term);
        }
    }
}

/// The number of sums of two products that are sure to fit in 16 bits with a sign; 0 if none is.
const fn fitting(format: u8) -> usize {
    let largest = match format {
        Q8_0 | IQ4_NL => return 0,
        Q6_K => 63,
        Q5_0 | Q5_1 | Q5_K => 31,
        _ => 15,
    };
    let mut count = WORDS;
    while count * 2 * largest * 127 > i16::MAX as usize {
        count /= 2;
    }
    count
}

/// Adds the products of words of integers without a sign, of which `N` fit in 16 bits.
#[target_feature(enable = "avx2,f16c")]
#[inline]
fn add_narrow<const N: usize, const R: usize>(
    words: &[__m256i],
    others: &[&[i32]; R],
    products: &mut [__m256i; R],
) {
    for (i, words) in words.as_chunks::<N>().0.iter().enumerate() {
        let mut small = [_mm256_setzero_si256(); R];
        for (word, &integers) in words.iter().enumerate() {
            for (small, others) in small.iter_mut().zip(others) {
                let two = _mm256_maddubs_epi16(integers, _mm256_set1_epi32(others[i * N + word]));
                *small = _mm256_add_epi16(*small, two);
            }
        }
        for (product, small) in products.iter_mut().zip(small) {
            *product = _mm256_add_epi32(*product, _mm256_madd_epi16(small, _mm256_set1_epi16(1)));
        }
    }
}

/// Adds the products of words of integers with a sign, which goes to the activations; these are never -128.
#[target_feature(enable = "avx2,f16c")]
#[inline]
fn add_wide<const R: usize>(words: &[__m256i], others: &[&[i32]; R], products: &mut [__m256i; R]) {
    for (word, &integers) in words.iter().enumerate() {
        let sizes = _mm256_abs_epi8(integers);
        for (product, others) in products.iter_mut().zip(others) {
            let others = _mm256_sign_epi8(_mm256_set1_epi32(others[word]), integers);
            let two = _mm256_maddubs_epi16(sizes, others);
            *product = _mm256_add_epi32(*product, _mm256_madd_epi16(two, _mm256_set1_epi16(1)));
        }
    }
}

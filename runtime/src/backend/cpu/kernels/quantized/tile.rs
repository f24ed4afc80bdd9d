//! The products of `plain.rs` for many rows of activations: 16 rows of weights at a time, taken apart once, so that each vector
//! holds a sum of each of them, and nothing is added across a vector.
//!
//! The integers of a run are exact, and its terms are added to the sum that `plain.rs` says, so the bits are the same.

use std::arch::x86_64::*;

use super::{
    Activations, LANES, RUN, WORDS,
    x86::{
        IQ4_NL, Q2_K, Q3_K, Q4_0, Q4_1, Q4_K, Q5_0, Q5_1, Q5_K, Q6_K, Q8_0, has_minima, has_small_groups,
        of_format, offset, vnni,
    },
};
use crate::BlockFormat;

/// Rows of weights of a tile.
const COLUMNS: usize = 16;
/// Rows of activations from which on taking weights apart is worth it.
const MANY: usize = 6;
/// Rows of activations that a tile is multiplied with at a time.
const ROWS: usize = 2;

/// A run of each row of a tile.
#[derive(Clone, Copy)]
struct Run {
    /// Four neighbours of each row, and the next four, with their offsets.
    words: [__m512i; WORDS],
    /// Of the first half of the run, and of the second, if those have scales of their own.
    scales: [__m512; 2],
    minima: [__m512; 2],
}

/// [`multiply`](super::multiply).
#[target_feature(enable = "avx2,f16c,avx512f,avx512vl,avx512vnni")]
pub(super) fn multiply(format: BlockFormat, weights: &[u8], activations: &Activations, to: &mut [f32]) {
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
                dots::<F, 1>(&tile, activations, row)
                    .into_iter()
                    .enumerate()
                    .for_each(|(i, sums)| write(i, sums));
            } else {
                dots::<F, ROWS>(&tile, activations, row)
                    .into_iter()
                    .enumerate()
                    .for_each(|(i, sums)| write(i, sums));
            }
        }
    }
    if whole < columns {
        let write = |row: usize, column: usize, sum: f32| to[row * columns + whole + column] = sum;
        vnni::columns_of::<F>(&weights[whole * bytes..], columns - whole, activations, write);
    }
}

/// Takes 16 rows of so many runs apart.
#[target_feature(enable = "avx2,f16c,avx512f,avx512vl,avx512vnni")]
fn fill<const F: u8>(weights: &[u8], runs: usize, tile: &mut Vec<Run>) {
    let bytes = weights.len() / COLUMNS;
    tile.clear();
    for (i, at) in (0..runs).step_by(LANES).enumerate() {
        let eights: [_; COLUMNS] = std::array::from_fn(|row| {
            let weight = &weights[row * bytes..][..bytes];
            match runs - at {
                1 => vnni::eight::<F, 1>(weight, i),
                2 => vnni::eight::<F, 2>(weight, i),
                3 => vnni::eight::<F, 3>(weight, i),
                4 => vnni::eight::<F, 4>(weight, i),
                5 => vnni::eight::<F, 5>(weight, i),
                6 => vnni::eight::<F, 6>(weight, i),
                7 => vnni::eight::<F, 7>(weight, i),
                _ => vnni::eight::<F, LANES>(weight, i),
            }
        });
        let numbers = |of: &dyn Fn(usize) -> __m256| transposed(|row| _mm256_castps_si256(of(row)));
        let scales = [numbers(&|row| eights[row].scales[0]), numbers(&|row| eights[row].scales[1])];
        let minima = [numbers(&|row| eights[row].minima[0]), numbers(&|row| eights[row].minima[1])];
        for run in 0..LANES.min(runs - at) {
            tile.push(Run {
                words: transposed(|row| eights[row].integers[run]),
                scales: scales.map(|scales| _mm512_castsi512_ps(scales[run])),
                minima: minima.map(|minima| _mm512_castsi512_ps(minima[run])),
            });
        }
    }
}

/// Vector `i` has element `i` of each of 16 vectors of eight.
#[target_feature(enable = "avx2,avx512f")]
#[inline]
fn transposed(row: impl Fn(usize) -> __m256i) -> [__m512i; LANES] {
    let eight = |first: usize| {
        let r: [__m256i; LANES] = std::array::from_fn(|i| row(first + i));
        let pairs = [
            _mm256_unpacklo_epi32(r[0], r[1]),
            _mm256_unpackhi_epi32(r[0], r[1]),
            _mm256_unpacklo_epi32(r[2], r[3]),
            _mm256_unpackhi_epi32(r[2], r[3]),
            _mm256_unpacklo_epi32(r[4], r[5]),
            _mm256_unpackhi_epi32(r[4], r[5]),
            _mm256_unpacklo_epi32(r[6], r[7]),
            _mm256_unpackhi_epi32(r[6], r[7]),
        ];
        let fours = |a: usize| {
            [
                _mm256_unpacklo_epi64(pairs[a], pairs[a + 2]),
                _mm256_unpackhi_epi64(pairs[a], pairs[a + 2]),
                _mm256_unpacklo_epi64(pairs[a + 1], pairs[a + 3]),
                _mm256_unpackhi_epi64(pairs[a + 1], pairs[a + 3]),
            ]
        };
        let (top, bottom) = (fours(0), fours(4));
        std::array::from_fn::<_, LANES, _>(|i| match i {
            0..4 => _mm256_permute2x128_si256::<0x20>(top[i], bottom[i]),
            _ => _mm256_permute2x128_si256::<0x31>(top[i - 4], bottom[i - 4]),
        })
    };
    let (low, high) = (eight(0), eight(8));
    std::array::from_fn(|i| _mm512_inserti64x4::<1>(_mm512_castsi256_si512(low[i]), high[i]))
}

/// The products of a tile and `R` rows of activations.
#[target_feature(enable = "avx2,f16c,avx512f,avx512vl,avx512vnni")]
#[inline]
fn dots<const F: u8, const R: usize>(tile: &[Run], activations: &Activations, first: usize) -> [__m512; R] {
    let integers: [_; R] = std::array::from_fn(|i| activations.integers(first + i));
    let runs: [_; R] = std::array::from_fn(|i| activations.runs(first + i));
    let mut sums = [[_mm512_setzero_ps(); LANES]; R];
    let (eights, rest) = tile.as_chunks::<LANES>();
    // Indices that are constants keep the sums in registers.
    macro_rules! add {
        ($of:expr, $i:expr, $($run:literal)*) => {
            $(if let Some(of) = $of.get($run) {
                for r in 0..R {
                    let others = &integers[r][$i * LANES + $run];
                    let (scale, of_halves) = (runs[r][$i].scales[$run], runs[r][$i].sums.map(|sums| sums[$run]));
                    sums[r][$run] = add_run::<F>(of, others, scale, of_halves, sums[r][$run]);
                }
            })*
        };
    }
    for (i, eight) in eights.iter().enumerate() {
        add!(eight, i, 0 1 2 3 4 5 6 7);
    }
    let i = eights.len();
    add!(rest, i, 0 1 2 3 4 5 6);
    sums.map(|s| {
        let four: [_; 4] = std::array::from_fn(|i| _mm512_add_ps(s[i], s[i + 4]));
        _mm512_add_ps(_mm512_add_ps(four[0], four[2]), _mm512_add_ps(four[1], four[3]))
    })
}

/// Adds the terms of a run.
#[target_feature(enable = "avx2,f16c,avx512f,avx512vl,avx512vnni")]
#[inline]
fn add_run<const F: u8>(
    run: &Run,
    others: &[i32; WORDS],
    scale: f32,
    of_halves: [i32; 2],
    mut sums: __m512,
) -> __m512 {
    let scale = _mm512_set1_ps(scale);
    let groups = if has_small_groups(F) { 2 } else { 1 };
    for group in 0..groups {
        let of_group = if groups == 2 { of_halves[group] } else { of_halves[0] + of_halves[1] };
        let offset = if offset(F) > 0 { -(of_group << offset(F)) } else { 0 };
        let mut product = _mm512_set1_epi32(offset);
        let (first, count) = (group * WORDS / 2, WORDS / groups);
        for (word, other) in run.words.iter().zip(others).skip(first).take(count) {
            product = _mm512_dpbusd_epi32(product, *word, _mm512_set1_epi32(*other));
        }
        let mut term = _mm512_mul_ps(_mm512_mul_ps(run.scales[group], scale), _mm512_cvtepi32_ps(product));
        if has_minima(F) {
            let of_group = _mm512_mul_ps(scale, _mm512_set1_ps(of_group as f32));
            term = _mm512_sub_ps(term, _mm512_mul_ps(run.minima[group], of_group));
        }
        sums = _mm512_add_ps(sums, term);
    }
    sums
}

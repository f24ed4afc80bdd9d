//! The products of `plain.rs` for many rows of activations: as many rows of weights at a time as a vector has places, taken apart
//! once, so that each vector holds a sum of each of them, and nothing is added across a vector.
//!
//! The integers of a run are exact, and its terms are added to the sum that `plain.rs` says, so the bits are the same.

use std::arch::x86_64::*;

use super::LANES;

pub(super) mod avx2;
pub(super) mod avx512;

/// Vector `i` has element `i` of each of eight vectors.
///
/// Here and in the rest of this folder, loops stand where closures would be shorter: a function of the library that calls a closure
/// is compiled without the instructions of the closure, and neither becomes part of its caller.
#[target_feature(enable = "avx2")]
#[inline]
fn transposed(r: &[__m256i; LANES]) -> [__m256i; LANES] {
    let low = [_mm256_unpacklo_epi32(r[0], r[1]), _mm256_unpacklo_epi32(r[2], r[3])];
    let high = [_mm256_unpackhi_epi32(r[0], r[1]), _mm256_unpackhi_epi32(r[2], r[3])];
    let top = fours(low, high);
    let low = [_mm256_unpacklo_epi32(r[4], r[5]), _mm256_unpacklo_epi32(r[6], r[7])];
    let high = [_mm256_unpackhi_epi32(r[4], r[5]), _mm256_unpackhi_epi32(r[6], r[7])];
    let bottom = fours(low, high);
    let mut all = [_mm256_setzero_si256(); LANES];
    for i in 0..4 {
        all[i] = _mm256_permute2x128_si256::<0x20>(top[i], bottom[i]);
        all[i + 4] = _mm256_permute2x128_si256::<0x31>(top[i], bottom[i]);
    }
    all
}

/// Joins pairs of rows to fours.
#[target_feature(enable = "avx2")]
#[inline]
fn fours(low: [__m256i; 2], high: [__m256i; 2]) -> [__m256i; 4] {
    [
        _mm256_unpacklo_epi64(low[0], low[1]),
        _mm256_unpackhi_epi64(low[0], low[1]),
        _mm256_unpacklo_epi64(high[0], high[1]),
        _mm256_unpackhi_epi64(high[0], high[1]),
    ]
}

/// As [`transposed`], of floats.
#[target_feature(enable = "avx2")]
#[inline]
fn transposed_floats(rows: &[__m256; LANES]) -> [__m256; LANES] {
    bytemuck::cast(transposed(bytemuck::cast_ref(rows)))
}

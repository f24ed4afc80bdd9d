//! The products of `plain.rs` with the vector instructions of x86: eight runs of a row of blocks at a time, whose products become
//! one vector of eight sums.
//!
//! The bits are those of plain code. Integer products are exact. They multiply bytes without a sign, those of the weight, and bytes
//! with a sign; where the weight has negative integers, an offset is added to each, and taken from the sum again as often as the
//! activations say ([`offset`]). The instructions of AVX2 add two products in 16 bits, where an offset of 128 would not fit; so integers of
//! eight bits give their signs to the activations there: at most `2 * 128 * 127`. Floats are multiplied and added one operation at
//! a time, never fused.

use std::arch::x86_64::*;

use super::{
    Activations, LANES, RUN,
    activations::{Run, Runs},
    formats::{
        INT4, IQ4_NL, LARGEST, Q2_K, Q3_K, Q4_0, Q4_1, Q4_K, Q5_0, Q5_1, Q5_K, Q6_K, Q8_0, bytes,
        bytes_of_eight, has_minima, has_small_groups, is_wide, of_format, offset, part, q2_scales_and_minima,
        q3_scales, q4_scales_and_minima, runs,
    },
    total,
};
use crate::{BlockFormat, quantized::IQ4_NL_VALUES};

/// Rows of activations that are multiplied with a block while its integers are in registers.
const ROWS: usize = 2;

/// A row of activations.
#[derive(Clone, Copy)]
struct Row<'a> {
    integers: &'a [Run],
    runs: &'a [Runs],
}

/// Eight runs of a row of blocks.
pub(super) struct Eight {
    /// With their offsets, if they are [`biased`].
    pub(super) integers: [__m256i; LANES],
    /// Of the first half of each run, and of the second, if those have scales of their own.
    pub(super) scales: [__m256; 2],
    /// Likewise, in formats with minima.
    pub(super) minima: [__m256; 2],
}

/// Prefetches the weights that are multiplied soon after the `bytes` at `at`, whether they are of this row or of the next ones. By
/// itself, the machine prefetches too little of bytes that take so long to multiply, and nothing beyond the end of a page.
#[inline]
fn prefetch(weights: &[u8], at: usize, bytes: usize) {
    const LINE: usize = 64;
    /// Half of a page: SmolLM2 decodes 1.4 times as fast as without it, in Q8_0 and in Q4_1.
    const AHEAD: usize = 2048;
    for line in (0..bytes).step_by(LINE) {
        let place = weights.as_ptr().wrapping_add(at + AHEAD + line);
        // SAFETY: it is a hint, which reads nothing that the program sees, at any address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(place.cast()) };
    }
}

/// Writes the functions of one set of instructions. `$biased` says whether wide integers get an offset, too; the expression
/// multiplies 32 bytes without a sign and 32 with a sign, and adds each four neighbours.
macro_rules! kernels {
    ($module:ident, $features:tt, $biased:expr, |$u:ident, $s:ident| $product:expr) => {
        pub(super) mod $module {
            use super::*;

            /// [`multiply`](super::super::multiply).
            #[target_feature(enable = $features)]
            pub(in super::super) fn multiply(
                format: BlockFormat,
                weights: &[u8],
                activations: &Activations,
                to: &mut [f32],
            ) {
                let columns = to.len() / activations.rows();
                of_format!(format, columns_of(weights, columns, activations, to, columns));
            }

            /// Multiplies so many rows of weights. Of the sums, row `i` begins at `to[i * stride]`.
            #[target_feature(enable = $features)]
            #[inline]
            pub(in super::super) fn columns_of<const F: u8>(
                weights: &[u8],
                columns: usize,
                activations: &Activations,
                to: &mut [f32],
                stride: usize,
            ) {
                let rows = activations.rows();
                for first in (0..rows).step_by(ROWS) {
                    let to = &mut to[first * stride..];
                    match rows - first {
                        1 => some_rows::<F, 1>(weights, columns, activations, first, to, stride),
                        _ => some_rows::<F, ROWS>(weights, columns, activations, first, to, stride),
                    }
                }
            }

            #[target_feature(enable = $features)]
            fn some_rows<const F: u8, const R: usize>(
                weights: &[u8],
                columns: usize,
                activations: &Activations,
                first: usize,
                to: &mut [f32],
                stride: usize,
            ) {
                let bytes = weights.len() / columns;
                let rows: [Row<'_>; R] = std::array::from_fn(|i| Row {
                    integers: activations.integers(first + i),
                    runs: activations.runs(first + i),
                });
                for column in 0..columns {
                    let weight = &weights[column * bytes..][..bytes];
                    let mut sums = [_mm256_setzero_ps(); R];
                    let all = activations.width() / RUN;
                    for (i, at) in (0..all).step_by(LANES).enumerate() {
                        prefetch(weight, i * const { bytes_of_eight(F) }, const { bytes_of_eight(F) });
                        // What is behind the last run is zero and changes no sum.
                        match all - at {
                            1 | 2 if runs(F) == 1 => add::<F, 2, R>(weight, &rows, i, &mut sums),
                            3 | 4 if runs(F) == 1 => add::<F, 4, R>(weight, &rows, i, &mut sums),
                            _ => add::<F, LANES, R>(weight, &rows, i, &mut sums),
                        }
                    }
                    for (i, sums) in sums.into_iter().enumerate() {
                        to[i * stride + column] = total(bytemuck::cast(sums));
                    }
                }
            }

            /// Adds runs `8 * i..8 * i + N` of a row of blocks, multiplied with each row.
            #[target_feature(enable = $features)]
            #[inline]
            fn add<const F: u8, const N: usize, const R: usize>(
                weight: &[u8],
                rows: &[Row<'_>; R],
                i: usize,
                sums: &mut [__m256; R],
            ) {
                let eight = runs_of::<F, N>(weight, i);
                for (row, sums) in rows.iter().zip(sums) {
                    let others: &[Run; N] = row.integers[i * LANES..].first_chunk().expect("runs of a row");
                    let mut products = [_mm256_setzero_si256(); LANES];
                    for ((to, q), p) in products.iter_mut().zip(&eight.integers).zip(others) {
                        *to = product::<F>(*q, load_32(bytemuck::cast_ref(p)));
                    }
                    *sums = add_terms::<F>(&eight, halves(products), &row.runs[i], *sums);
                }
            }

            /// Adds a term for each group, given the sums of the products of each half of a run.
            #[target_feature(enable = $features)]
            #[inline]
            fn add_terms<const F: u8>(
                eight: &Eight,
                products: [__m256i; 2],
                runs: &Runs,
                mut sums: __m256,
            ) -> __m256 {
                let scale = load_floats(&runs.scales);
                let of_halves = [load_integers(&runs.sums[0]), load_integers(&runs.sums[1])];
                let add_halves = |[a, b]: [__m256i; 2]| _mm256_add_epi32(a, b);
                let groups = if has_small_groups(F) { 2 } else { 1 };
                for group in 0..groups {
                    let (mut product, of_group) = match has_small_groups(F) {
                        true => (products[group], of_halves[group]),
                        false => (add_halves(products), add_halves(of_halves)),
                    };
                    if offset(F) > 0 && ($biased || !is_wide(F)) {
                        let offset = _mm_cvtsi32_si128(offset(F) as i32);
                        product = _mm256_sub_epi32(product, _mm256_sll_epi32(of_group, offset));
                    }
                    let mut term =
                        _mm256_mul_ps(_mm256_mul_ps(eight.scales[group], scale), _mm256_cvtepi32_ps(product));
                    if has_minima(F) {
                        let of_group = _mm256_mul_ps(scale, _mm256_cvtepi32_ps(of_group));
                        term = _mm256_sub_ps(term, _mm256_mul_ps(eight.minima[group], of_group));
                    }
                    sums = _mm256_add_ps(sums, term);
                }
                sums
            }

            /// The sum of each half of eight vectors.
            #[target_feature(enable = $features)]
            #[inline]
            fn halves(p: [__m256i; LANES]) -> [__m256i; 2] {
                let four = |p: [__m256i; 4]| {
                    _mm256_hadd_epi32(_mm256_hadd_epi32(p[0], p[1]), _mm256_hadd_epi32(p[2], p[3]))
                };
                let (low, high) = (four([p[0], p[1], p[2], p[3]]), four([p[4], p[5], p[6], p[7]]));
                [_mm256_permute2x128_si256::<0x20>(low, high), _mm256_permute2x128_si256::<0x31>(low, high)]
            }

            /// Multiplies 32 integers, and adds each four neighbours.
            #[target_feature(enable = $features)]
            #[inline]
            fn product<const F: u8>(q: __m256i, p: __m256i) -> __m256i {
                if $biased || !is_wide(F) {
                    multiply_bytes(q, p)
                } else {
                    // The sign goes to the activations, which are never -128.
                    multiply_bytes(_mm256_sign_epi8(q, q), _mm256_sign_epi8(p, q))
                }
            }

            #[target_feature(enable = $features)]
            #[inline]
            fn multiply_bytes($u: __m256i, $s: __m256i) -> __m256i {
                $product
            }

            /// Runs `8 * i..8 * i + 8` of a row of blocks. Those that are not there have zeros.
            #[target_feature(enable = $features)]
            #[inline]
            pub(in super::super) fn eight<const F: u8>(weight: &[u8], i: usize) -> Eight {
                runs_of::<F, LANES>(weight, i)
            }

            /// As [`eight`], where only the first `N` can be there.
            #[target_feature(enable = $features)]
            #[inline]
            fn runs_of<const F: u8, const N: usize>(weight: &[u8], i: usize) -> Eight {
                let bytes = const { bytes(F) };
                if runs(F) > 1 {
                    return large::<F>(&weight[i * bytes..][..bytes]);
                }
                let blocks = &weight[i * LANES * bytes..];
                match blocks.get(..N * bytes) {
                    Some(blocks) => small::<F, N>(blocks),
                    None => {
                        let mut padded = [0; LANES * LARGEST];
                        padded[..blocks.len()].copy_from_slice(blocks);
                        small::<F, N>(&padded[..N * bytes])
                    }
                }
            }

            /// Blocks of one run.
            #[target_feature(enable = $features)]
            #[inline]
            fn small<const F: u8, const N: usize>(blocks: &[u8]) -> Eight {
                let mut integers = [_mm256_setzero_si256(); LANES];
                let mut numbers = [[0u16; LANES]; 2];
                for i in 0..N {
                    let block = &blocks[i * const { bytes(F) }..][..const { bytes(F) }];
                    integers[i] = small_integers::<F>(block);
                    numbers[0][i] = u16::from_le_bytes(*part(block, 0));
                    if F == INT4 {
                        numbers[1][i] = block[2].into();
                    } else if has_minima(F) {
                        numbers[1][i] = u16::from_le_bytes(*part(block, 2));
                    }
                }
                let [d, m] = numbers.map(|halves| _mm256_cvtph_ps(bytemuck::cast(halves)));
                let m = match F {
                    INT4 => {
                        let zeros = _mm256_cvtepu16_epi32(bytemuck::cast(numbers[1]));
                        _mm256_mul_ps(d, _mm256_cvtepi32_ps(zeros))
                    }
                    // The formats add `m`.
                    _ if has_minima(F) => _mm256_xor_ps(m, _mm256_set1_ps(-0.0)),
                    _ => _mm256_setzero_ps(),
                };
                Eight { integers, scales: [d; 2], minima: [m; 2] }
            }

            #[target_feature(enable = $features)]
            #[inline]
            fn small_integers<const F: u8>(block: &[u8]) -> __m256i {
                match F {
                    Q4_0 => nibbles(part(block, 2)),
                    Q4_1 => nibbles(part(block, 4)),
                    INT4 => nibbles(part(block, 3)),
                    Q5_0 => _mm256_or_si256(nibbles(part(block, 6)), fifth_bits(part(block, 2))),
                    Q5_1 => _mm256_or_si256(nibbles(part(block, 8)), fifth_bits(part(block, 4))),
                    Q8_0 => biased(load_32(part(block, 2))),
                    _ => {
                        let values = biased(_mm256_broadcastsi128_si256(bytemuck::cast(IQ4_NL_VALUES)));
                        _mm256_shuffle_epi8(values, nibbles(part(block, 2)))
                    }
                }
            }

            /// With an offset of 128, if wide integers have one here.
            #[target_feature(enable = $features)]
            #[inline]
            fn biased(integers: __m256i) -> __m256i {
                if $biased { _mm256_xor_si256(integers, _mm256_set1_epi8(-128)) } else { integers }
            }

            /// A block of eight runs.
            #[target_feature(enable = $features)]
            #[inline]
            fn large<const F: u8>(block: &[u8]) -> Eight {
                let integers = std::array::from_fn(|run| large_integers::<F>(block, run));
                let zeros = [_mm256_setzero_ps(); 2];
                let (scales, minima) = match F {
                    Q2_K => {
                        let [scales, minima] = q2_scales_and_minima(block);
                        (of_halves(scales, half(block, 80)), of_halves(minima, half(block, 82)))
                    }
                    Q3_K => (of_halves(q3_scales(block), half(block, 108)), zeros),
                    Q4_K | Q5_K => {
                        let [scales, minima] = q4_scales_and_minima(block);
                        ([products(scales, half(block, 0)); 2], [products(minima, half(block, 2)); 2])
                    }
                    _ => (of_halves(bytemuck::cast(*part::<16>(block, 192)), half(block, 208)), zeros),
                };
                Eight { integers, scales, minima }
            }

            /// The integers of a run of a large block.
            #[target_feature(enable = $features)]
            #[inline]
            fn large_integers<const F: u8>(block: &[u8], run: usize) -> __m256i {
                match F {
                    Q2_K => bits(part(block, 16 + run / 4 * 32), run % 4 * 2, 3),
                    Q3_K => {
                        let two = bits(part(block, 32 + run / 4 * 32), run % 4 * 2, 3);
                        _mm256_or_si256(two, _mm256_slli_epi16::<2>(bits(part(block, 0), run, 1)))
                    }
                    Q4_K => bits(part(block, 16 + run / 2 * 32), run % 2 * 4, 15),
                    Q5_K => {
                        let four = bits(part(block, 48 + run / 2 * 32), run % 2 * 4, 15);
                        _mm256_or_si256(four, _mm256_slli_epi16::<4>(bits(part(block, 16), run, 1)))
                    }
                    _ => {
                        let (half, run) = (run / 4, run % 4);
                        let four = bits(part(block, half * 64 + run % 2 * 32), run / 2 * 4, 15);
                        let two = bits(part(block, 128 + half * 32), run * 2, 3);
                        _mm256_or_si256(four, _mm256_slli_epi16::<4>(two))
                    }
                }
            }

            /// 16 signed bytes, two for each run, multiplied by `d`: those of the first halves, and of the second.
            #[target_feature(enable = $features)]
            #[inline]
            fn of_halves(bytes: [u64; 2], d: f32) -> [__m256; 2] {
                let order = _mm_setr_epi8(0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15);
                let bytes: [u64; 2] = bytemuck::cast(_mm_shuffle_epi8(bytemuck::cast(bytes), order));
                [products(bytes[0], d), products(bytes[1], d)]
            }

            /// 8 signed bytes, multiplied by `d`.
            #[target_feature(enable = $features)]
            #[inline]
            fn products(bytes: u64, d: f32) -> __m256 {
                let integers = _mm256_cvtepi8_epi32(_mm_cvtsi64_si128(bytes as i64));
                _mm256_mul_ps(_mm256_set1_ps(d), _mm256_cvtepi32_ps(integers))
            }

            /// The number in half precision at byte `at`.
            #[target_feature(enable = $features)]
            #[inline]
            fn half(block: &[u8], at: usize) -> f32 {
                let bits = u16::from_le_bytes(*part(block, at));
                _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(bits.into())))
            }

            #[target_feature(enable = $features)]
            #[inline]
            fn load_floats(floats: &[f32; LANES]) -> __m256 {
                bytemuck::cast(*floats)
            }

            #[target_feature(enable = $features)]
            #[inline]
            fn load_integers(integers: &[i32; LANES]) -> __m256i {
                bytemuck::cast(*integers)
            }

            #[target_feature(enable = $features)]
            #[inline]
            fn load_16(bytes: &[u8; 16]) -> __m128i {
                // SAFETY: it reads 16 bytes, which are there, at any alignment.
                unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) }
            }

            #[target_feature(enable = $features)]
            #[inline]
            fn load_32(bytes: &[u8; 32]) -> __m256i {
                // SAFETY: it reads 32 bytes, which are there, at any alignment.
                unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) }
            }

            /// 32 integers of four bits: the low halves of 16 bytes, and then the high ones.
            #[target_feature(enable = $features)]
            #[inline]
            fn nibbles(bytes: &[u8; 16]) -> __m256i {
                let both = _mm256_broadcastsi128_si256(load_16(bytes));
                let both = _mm256_srlv_epi64(both, _mm256_setr_epi64x(0, 0, 4, 4));
                _mm256_and_si256(both, _mm256_set1_epi8(15))
            }

            /// For each bit, 16 or 0 in the byte of its number.
            #[target_feature(enable = $features)]
            #[inline]
            fn fifth_bits(bits: &[u8; 4]) -> __m256i {
                let of_byte =
                    _mm256_set_epi64x(0x0303_0303_0303_0303, 0x0202_0202_0202_0202, 0x0101_0101_0101_0101, 0);
                let spread = _mm256_shuffle_epi8(_mm256_set1_epi32(i32::from_le_bytes(*bits)), of_byte);
                let bit = _mm256_set1_epi64x(0x8040_2010_0804_0201_u64 as i64);
                let is_set = _mm256_cmpeq_epi8(_mm256_and_si256(spread, bit), bit);
                _mm256_and_si256(is_set, _mm256_set1_epi8(16))
            }

            /// Each byte, shifted to the right and masked.
            #[target_feature(enable = $features)]
            #[inline]
            fn bits(bytes: &[u8; 32], shift: usize, mask: i8) -> __m256i {
                let shifted = _mm256_srl_epi16(load_32(bytes), _mm_cvtsi32_si128(shift as i32));
                _mm256_and_si256(shifted, _mm256_set1_epi8(mask))
            }
        }
    };
}

kernels!(avx2, "avx2,f16c", false, |u, s| {
    _mm256_madd_epi16(_mm256_maddubs_epi16(u, s), _mm256_set1_epi16(1))
});
kernels!(vnni, "avx2,f16c,avx512f,avx512vl,avx512vnni", true, |u, s| {
    _mm256_dpbusd_epi32(_mm256_setzero_si256(), u, s)
});

//! The products of `plain.rs` with the vector instructions of x86: 32 integers at a time, and the eight lanes of a run as one
//! vector of floats.
//!
//! The bits are those of plain code. Integer products are exact: the instructions of AVX2 add two products of a byte without a
//! sign and one with a sign in 16 bits, at most `2 * 128 * 127`, which fits. Floats are multiplied and added one operation at a
//! time, never fused.

use std::arch::x86_64::*;

use super::{Activations, LANES, RUN, total};
use crate::{BlockFormat, quantized::IQ4_NL_VALUES};

/// A row of activations.
struct Row<'a> {
    integers: &'a [[i8; RUN]],
    scales: &'a [f32],
    /// Only for formats with minima.
    sums: &'a [[f32; LANES]],
}

impl<'a> Row<'a> {
    fn of(activations: &'a Activations, row: usize, minima: bool) -> Self {
        let integers = activations.integers(row).as_chunks().0;
        let sums = if minima { activations.sums(row).as_chunks().0 } else { &[] };
        Self { integers, scales: activations.scales(row), sums }
    }
}

/// Scales and minima of the groups of a large block.
struct Head {
    scales: [f32; 16],
    minima: [f32; 16],
}

/// The formats as numbers, to be constants of functions.
const Q4_0: u8 = BlockFormat::Q4_0 as u8;
const Q4_1: u8 = BlockFormat::Q4_1 as u8;
const Q5_0: u8 = BlockFormat::Q5_0 as u8;
const Q5_1: u8 = BlockFormat::Q5_1 as u8;
const Q8_0: u8 = BlockFormat::Q8_0 as u8;
const Q2_K: u8 = BlockFormat::Q2_K as u8;
const Q3_K: u8 = BlockFormat::Q3_K as u8;
const Q4_K: u8 = BlockFormat::Q4_K as u8;
const Q5_K: u8 = BlockFormat::Q5_K as u8;
const Q6_K: u8 = BlockFormat::Q6_K as u8;
const IQ4_NL: u8 = BlockFormat::IQ4_NL as u8;

/// Whether integers are never negative.
const fn is_unsigned(format: u8) -> bool {
    has_minima(format)
}

const fn has_minima(format: u8) -> bool {
    matches!(format, Q4_1 | Q5_1 | Q2_K | Q4_K | Q5_K)
}

/// Writes the functions of one set of instructions. The expression multiplies 32 bytes without a sign and 32 with a sign, and adds
/// each four neighbours.
macro_rules! kernels {
    ($module:ident, $features:tt, |$u:ident, $s:ident| $product:expr) => {
        pub(super) mod $module {
            use super::*;

            /// [`dot`](super::super::dot).
            #[target_feature(enable = $features)]
            pub(in super::super) fn dot(
                format: BlockFormat,
                weight: &[u8],
                activations: &Activations,
                first: usize,
                to: &mut [f32],
            ) {
                match to.len() {
                    0 => {}
                    1 => rows::<1>(format, weight, activations, first, to),
                    2 => rows::<2>(format, weight, activations, first, to),
                    3 => rows::<3>(format, weight, activations, first, to),
                    _ => rows::<4>(format, weight, activations, first, to),
                }
            }

            #[target_feature(enable = $features)]
            fn rows<const R: usize>(
                format: BlockFormat,
                weight: &[u8],
                activations: &Activations,
                first: usize,
                to: &mut [f32],
            ) {
                let rows = std::array::from_fn(|i| Row::of(activations, first + i, format.has_minima()));
                let sums = match format {
                    BlockFormat::Q4_0 => small::<Q4_0, 18, R>(weight, &rows),
                    BlockFormat::Q4_1 => small::<Q4_1, 20, R>(weight, &rows),
                    BlockFormat::Q5_0 => small::<Q5_0, 22, R>(weight, &rows),
                    BlockFormat::Q5_1 => small::<Q5_1, 24, R>(weight, &rows),
                    BlockFormat::Q8_0 => small::<Q8_0, 34, R>(weight, &rows),
                    BlockFormat::IQ4_NL => small::<IQ4_NL, 18, R>(weight, &rows),
                    BlockFormat::Q2_K => large::<Q2_K, 84, R>(weight, &rows),
                    BlockFormat::Q3_K => large::<Q3_K, 110, R>(weight, &rows),
                    BlockFormat::Q4_K => large::<Q4_K, 144, R>(weight, &rows),
                    BlockFormat::Q5_K => large::<Q5_K, 176, R>(weight, &rows),
                    BlockFormat::Q6_K => large::<Q6_K, 210, R>(weight, &rows),
                };
                for (to, sums) in to.iter_mut().zip(sums) {
                    *to = total(&bytemuck::cast(sums));
                }
            }

            /// Blocks of one run each, two at a time.
            #[target_feature(enable = $features)]
            fn small<const F: u8, const BYTES: usize, const R: usize>(
                weight: &[u8],
                rows: &[Row<'_>; R],
            ) -> [[__m256; 2]; R] {
                let mut sums = [[_mm256_setzero_ps(); 2]; R];
                let (pairs, last) = weight.as_chunks::<BYTES>().0.as_chunks::<2>();
                for (i, [even, odd]) in pairs.iter().enumerate() {
                    add_small::<F, BYTES, R, 0>(even, rows, 2 * i, &mut sums);
                    add_small::<F, BYTES, R, 1>(odd, rows, 2 * i + 1, &mut sums);
                }
                if let [even] = last {
                    add_small::<F, BYTES, R, 0>(even, rows, 2 * pairs.len(), &mut sums);
                }
                sums
            }

            #[target_feature(enable = $features)]
            #[inline]
            fn add_small<const F: u8, const BYTES: usize, const R: usize, const ODD: usize>(
                block: &[u8; BYTES],
                rows: &[Row<'_>; R],
                at: usize,
                sums: &mut [[__m256; 2]; R],
            ) {
                let d = _mm256_set1_ps(half(block, 0));
                let minimum = match F {
                    Q4_1 | Q5_1 => _mm256_set1_ps(-half(block, 2)),
                    _ => _mm256_setzero_ps(),
                };
                let integers = match F {
                    Q4_0 => _mm256_sub_epi8(nibbles(part(block, 2)), _mm256_set1_epi8(8)),
                    Q4_1 => nibbles(part(block, 4)),
                    Q5_0 => {
                        let bits = _mm256_or_si256(nibbles(part(block, 6)), fifth_bits(part(block, 2)));
                        _mm256_sub_epi8(bits, _mm256_set1_epi8(16))
                    }
                    Q5_1 => _mm256_or_si256(nibbles(part(block, 8)), fifth_bits(part(block, 4))),
                    Q8_0 => load_32(part(block, 2)),
                    _ => {
                        let values = _mm256_broadcastsi128_si256(bytemuck::cast(IQ4_NL_VALUES));
                        _mm256_shuffle_epi8(values, nibbles(part(block, 2)))
                    }
                };
                add::<F, R, ODD>(integers, d, minimum, rows, at, sums);
            }

            /// Blocks of eight runs.
            #[target_feature(enable = $features)]
            fn large<const F: u8, const BYTES: usize, const R: usize>(
                weight: &[u8],
                rows: &[Row<'_>; R],
            ) -> [[__m256; 2]; R] {
                let mut sums = [[_mm256_setzero_ps(); 2]; R];
                for (i, block) in weight.as_chunks::<BYTES>().0.iter().enumerate() {
                    let head = head::<F, BYTES>(block);
                    for run in (0..8).step_by(2) {
                        add_large::<F, BYTES, R, 0>(block, &head, run, rows, 8 * i + run, &mut sums);
                        add_large::<F, BYTES, R, 1>(block, &head, run + 1, rows, 8 * i + run + 1, &mut sums);
                    }
                }
                sums
            }

            #[target_feature(enable = $features)]
            #[inline]
            fn add_large<const F: u8, const BYTES: usize, const R: usize, const ODD: usize>(
                block: &[u8; BYTES],
                head: &Head,
                run: usize,
                rows: &[Row<'_>; R],
                at: usize,
                sums: &mut [[__m256; 2]; R],
            ) {
                let of_groups = |values: &[f32; 16]| {
                    let (low, high) = (values[2 * run], values[2 * run + 1]);
                    _mm256_set_m128(_mm_set1_ps(high), _mm_set1_ps(low))
                };
                let scale = of_groups(&head.scales);
                let minimum = if has_minima(F) { of_groups(&head.minima) } else { _mm256_setzero_ps() };
                let integers = integers::<F, BYTES>(block, run);
                add::<F, R, ODD>(integers, scale, minimum, rows, at, sums);
            }

            /// The integers of a run of a large block.
            #[target_feature(enable = $features)]
            #[inline]
            fn integers<const F: u8, const BYTES: usize>(block: &[u8; BYTES], run: usize) -> __m256i {
                match F {
                    Q2_K => bits(part(block, 16 + run / 4 * 32), run % 4 * 2, 3),
                    Q3_K => {
                        let two = bits(part(block, 32 + run / 4 * 32), run % 4 * 2, 3);
                        let third = _mm256_slli_epi16::<2>(bits(part(block, 0), run, 1));
                        _mm256_sub_epi8(_mm256_or_si256(two, third), _mm256_set1_epi8(4))
                    }
                    Q4_K => bits(part(block, 16 + run / 2 * 32), run % 2 * 4, 15),
                    Q5_K => {
                        let four = bits(part(block, 48 + run / 2 * 32), run % 2 * 4, 15);
                        let fifth = _mm256_slli_epi16::<4>(bits(part(block, 16), run, 1));
                        _mm256_or_si256(four, fifth)
                    }
                    _ => {
                        let (half, run) = (run / 4, run % 4);
                        let four = bits(part(block, half * 64 + run % 2 * 32), run / 2 * 4, 15);
                        let two = bits(part(block, 128 + half * 32), run * 2, 3);
                        let six = _mm256_or_si256(four, _mm256_slli_epi16::<4>(two));
                        _mm256_sub_epi8(six, _mm256_set1_epi8(32))
                    }
                }
            }

            /// The scales and minima of a large block.
            #[target_feature(enable = $features)]
            #[inline]
            fn head<const F: u8, const BYTES: usize>(block: &[u8; BYTES]) -> Head {
                const FOUR: u64 = 0x0F0F_0F0F_0F0F_0F0F;
                match F {
                    Q2_K => {
                        let packed = *part::<16>(block, 0);
                        let (d, m) = (half(block, 80), half(block, 82));
                        let [a, b]: [u64; 2] = bytemuck::cast(packed);
                        Head {
                            scales: scaled([a & FOUR, b & FOUR], d),
                            minima: scaled([a >> 4 & FOUR, b >> 4 & FOUR], m),
                        }
                    }
                    Q3_K => {
                        let low = u64::from_le_bytes(*part(block, 96));
                        let high = u64::from(u32::from_le_bytes(*part(block, 104)));
                        let two = |at: u32| high >> at & 0x0303_0303;
                        let a = low & FOUR | (two(0) | two(2) << 32) << 4;
                        let b = low >> 4 & FOUR | (two(4) | two(6) << 32) << 4;
                        // The bytes are below 64, so subtracting 32 of each borrows from no neighbour if a bit is there to take.
                        const SIGNS: u64 = 0x8080_8080_8080_8080;
                        let centred = |v: u64| ((v | SIGNS) - (SIGNS >> 2)) ^ SIGNS;
                        Head { scales: scaled([centred(a), centred(b)], half(block, 108)), minima: [0.0; 16] }
                    }
                    Q4_K | Q5_K => {
                        let word = |at| u32::from_le_bytes(*part(block, at));
                        let (a, b, c) = (word(4), word(8), word(12));
                        let six = |low: u32, high: u32| {
                            let high = c >> low & 0x0F0F_0F0F | (high >> 6 & 0x0303_0303) << 4;
                            u64::from(high) << 32
                        };
                        let scales = u64::from(a & 0x3F3F_3F3F) | six(0, a);
                        let minima = u64::from(b & 0x3F3F_3F3F) | six(4, b);
                        Head { scales: twice(scales, half(block, 0)), minima: twice(minima, half(block, 2)) }
                    }
                    _ => Head {
                        scales: scaled(bytemuck::cast(*part::<16>(block, 192)), half(block, 208)),
                        minima: [0.0; 16],
                    },
                }
            }

            /// 16 signed bytes, multiplied by `d`.
            #[target_feature(enable = $features)]
            #[inline]
            fn scaled(bytes: [u64; 2], d: f32) -> [f32; 16] {
                bytemuck::cast([products(bytes[0], d), products(bytes[1], d)])
            }

            /// 8 signed bytes, multiplied by `d`, each of them twice.
            #[target_feature(enable = $features)]
            #[inline]
            fn twice(bytes: u64, d: f32) -> [f32; 16] {
                let products = products(bytes, d);
                let low = _mm256_permutevar8x32_ps(products, _mm256_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3));
                let high = _mm256_permutevar8x32_ps(products, _mm256_setr_epi32(4, 4, 5, 5, 6, 6, 7, 7));
                bytemuck::cast([low, high])
            }

            #[target_feature(enable = $features)]
            #[inline]
            fn products(bytes: u64, d: f32) -> __m256 {
                let integers = _mm256_cvtepi8_epi32(_mm_cvtsi64_si128(bytes as i64));
                _mm256_mul_ps(_mm256_set1_ps(d), _mm256_cvtepi32_ps(integers))
            }

            /// Adds a run of each row, multiplied by these integers.
            #[target_feature(enable = $features)]
            #[inline]
            fn add<const F: u8, const R: usize, const ODD: usize>(
                integers: __m256i,
                scale: __m256,
                minimum: __m256,
                rows: &[Row<'_>; R],
                at: usize,
                sums: &mut [[__m256; 2]; R],
            ) {
                for (row, sums) in rows.iter().zip(sums) {
                    let p = load_32(bytemuck::cast_ref(&row.integers[at]));
                    let exact = if is_unsigned(F) {
                        product(integers, p)
                    } else {
                        // The sign goes to the activations, which are never -128.
                        product(_mm256_sign_epi8(integers, integers), _mm256_sign_epi8(p, integers))
                    };
                    let of_row = _mm256_set1_ps(row.scales[at]);
                    let mut term = _mm256_mul_ps(_mm256_mul_ps(scale, of_row), _mm256_cvtepi32_ps(exact));
                    if has_minima(F) {
                        let of_lanes = bytemuck::cast(row.sums[at]);
                        term = _mm256_sub_ps(term, _mm256_mul_ps(_mm256_mul_ps(minimum, of_row), of_lanes));
                    }
                    sums[ODD] = _mm256_add_ps(sums[ODD], term);
                }
            }

            #[target_feature(enable = $features)]
            #[inline]
            fn product($u: __m256i, $s: __m256i) -> __m256i {
                $product
            }

            /// The number in half precision at byte `at`.
            #[target_feature(enable = $features)]
            #[inline]
            fn half<const BYTES: usize>(block: &[u8; BYTES], at: usize) -> f32 {
                let bits = u16::from_le_bytes(*part(block, at));
                _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(bits.into())))
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
                let low = load_16(bytes);
                let both = _mm256_set_m128i(_mm_srli_epi16::<4>(low), low);
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

/// `N` bytes from `at` on.
#[inline]
fn part<const N: usize>(block: &[u8], at: usize) -> &[u8; N] {
    // An array by value would become a vector byte by byte.
    block[at..].first_chunk().expect("a part of a block")
}

kernels!(avx2, "avx2,f16c", |u, s| _mm256_madd_epi16(_mm256_maddubs_epi16(u, s), _mm256_set1_epi16(1)));
kernels!(vnni, "avx2,f16c,avx512vl,avx512vnni", |u, s| _mm256_dpbusd_epi32(_mm256_setzero_si256(), u, s));

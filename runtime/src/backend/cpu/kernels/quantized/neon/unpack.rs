//! Blocks, taken apart into vectors.

use std::arch::aarch64::*;

use super::{FOUR, load_signed};
use crate::{
    backend::cpu::kernels::quantized::{
        LANES,
        formats::{
            INT4, LARGEST, Q2_K, Q3_K, Q4_0, Q4_1, Q4_K, Q5_0, Q5_1, Q5_K, Q8_0, bytes, bytes_of_eight,
            has_minima, is_wide, offset, part, q2_scales_and_minima, q3_scales, q4_scales_and_minima, runs,
        },
    },
    quantized::IQ4_NL_VALUES,
};

/// Four runs of a row of blocks.
#[derive(Clone, Copy)]
pub(super) struct Four {
    /// The first half of each run, and the second. Products need no offsets here: integers have the signs that they mean.
    pub(super) integers: [[int8x16_t; 2]; FOUR],
    /// Of the first half of each run, and of the second, if those have scales of their own.
    pub(super) scales: [float32x4_t; 2],
    /// Likewise, in formats with minima.
    pub(super) minima: [float32x4_t; 2],
}

/// A number for each of eight runs.
type Floats = [float32x4_t; 2];

/// Runs `8 * i..8 * i + 8` of a row of blocks, of which each is there.
#[target_feature(enable = "neon")]
#[inline]
pub(super) fn eight<const F: u8>(weight: &[u8], i: usize) -> [Four; 2] {
    let blocks = &weight[i * const { bytes_of_eight(F) }..][..const { bytes_of_eight(F) }];
    if runs(F) > 1 { large::<F>(blocks) } else { small::<F>(blocks) }
}

/// As [`eight`], of the last runs of a row, which are fewer. Those that are not there have zeros.
#[target_feature(enable = "neon")]
pub(super) fn last<const F: u8>(weight: &[u8], i: usize) -> [Four; 2] {
    let blocks = &weight[i * const { bytes_of_eight(F) }..];
    let mut padded = [0; LANES * LARGEST];
    padded[..blocks.len()].copy_from_slice(blocks);
    eight::<F>(&padded, 0)
}

/// Eight blocks of one run.
#[target_feature(enable = "neon")]
#[inline]
fn small<const F: u8>(blocks: &[u8]) -> [Four; 2] {
    let mut integers = [[vdupq_n_s8(0); 2]; LANES];
    let mut numbers = [[0u16; LANES]; 2];
    for i in 0..LANES {
        let block = &blocks[i * const { bytes(F) }..][..const { bytes(F) }];
        integers[i] = small_integers::<F>(block);
        numbers[0][i] = u16::from_le_bytes(*part(block, 0));
        if F == INT4 {
            numbers[1][i] = block[2].into();
        } else if has_minima(F) {
            numbers[1][i] = u16::from_le_bytes(*part(block, 2));
        }
    }
    let scales = halves(&numbers[0]);
    let mut minima = [vdupq_n_f32(0.0); 2];
    if F == INT4 {
        let zeros = load_8(&numbers[1]);
        minima[0] = vmulq_f32(scales[0], vcvtq_f32_u32(vmovl_u16(vget_low_u16(zeros))));
        minima[1] = vmulq_f32(scales[1], vcvtq_f32_u32(vmovl_high_u16(zeros)));
    } else if has_minima(F) {
        // The formats add `m`.
        let m = halves(&numbers[1]);
        minima = [vnegq_f32(m[0]), vnegq_f32(m[1])];
    }
    fours(&integers, [scales; 2], [minima; 2])
}

/// Eight runs as two fours, given the numbers of the first half of each run, and of the second.
#[target_feature(enable = "neon")]
#[inline]
fn fours(integers: &[[int8x16_t; 2]; LANES], scales: [Floats; 2], minima: [Floats; 2]) -> [Four; 2] {
    let [[a, b, c, d], [e, f, g, h]] = [
        [integers[0], integers[1], integers[2], integers[3]],
        [integers[4], integers[5], integers[6], integers[7]],
    ];
    [
        Four {
            integers: [a, b, c, d],
            scales: [scales[0][0], scales[1][0]],
            minima: [minima[0][0], minima[1][0]],
        },
        Four {
            integers: [e, f, g, h],
            scales: [scales[0][1], scales[1][1]],
            minima: [minima[0][1], minima[1][1]],
        },
    ]
}

/// The integers of a block of one run.
#[target_feature(enable = "neon")]
#[inline]
fn small_integers<const F: u8>(block: &[u8]) -> [int8x16_t; 2] {
    match F {
        Q4_0 => centred::<F>(nibbles(part(block, 2))),
        Q4_1 => centred::<F>(nibbles(part(block, 4))),
        INT4 => centred::<F>(nibbles(part(block, 3))),
        Q5_0 => centred::<F>(five_bits(part(block, 6), part(block, 2))),
        Q5_1 => centred::<F>(five_bits(part(block, 8), part(block, 4))),
        Q8_0 => centred::<F>([load(part(block, 2)), load(part(block, 18))]),
        _ => {
            let values = load_signed(&IQ4_NL_VALUES);
            let places = nibbles(part(block, 2));
            [vqtbl1q_s8(values, places[0]), vqtbl1q_s8(values, places[1])]
        }
    }
}

/// Integers without a sign become those that they mean.
#[target_feature(enable = "neon")]
#[inline]
fn centred<const F: u8>(integers: [uint8x16_t; 2]) -> [int8x16_t; 2] {
    let mut signed = [vreinterpretq_s8_u8(integers[0]), vreinterpretq_s8_u8(integers[1])];
    if offset(F) > 0 && !is_wide(F) {
        for integers in &mut signed {
            *integers = vsubq_s8(*integers, vdupq_n_s8(const { 1i8.wrapping_shl(offset(F)) }));
        }
    }
    signed
}

/// A block of eight runs.
#[target_feature(enable = "neon")]
#[inline]
fn large<const F: u8>(block: &[u8]) -> [Four; 2] {
    let mut integers = [[vdupq_n_s8(0); 2]; LANES];
    for (run, integers) in integers.iter_mut().enumerate() {
        *integers = centred::<F>([large_integers::<F>(block, run, 0), large_integers::<F>(block, run, 1)]);
    }
    let zeros = [[vdupq_n_f32(0.0); 2]; 2];
    let (scales, minima) = match F {
        Q2_K => {
            let [scales, minima] = q2_scales_and_minima(block);
            (of_halves(scales, half(block, 80)), of_halves(minima, half(block, 82)))
        }
        Q3_K => (of_halves(q3_scales(block), half(block, 108)), zeros),
        Q4_K | Q5_K => {
            let [scales, minima] = q4_scales_and_minima(block);
            let (scales, minima) = (vcreate_s8(scales), vcreate_s8(minima));
            ([products(scales, half(block, 0)); 2], [products(minima, half(block, 2)); 2])
        }
        _ => {
            let scales = [u64::from_le_bytes(*part(block, 192)), u64::from_le_bytes(*part(block, 200))];
            (of_halves(scales, half(block, 208)), zeros)
        }
    };
    fours(&integers, scales, minima)
}

/// The integers of half of a run of a large block, without a sign.
#[target_feature(enable = "neon")]
#[inline]
fn large_integers<const F: u8>(block: &[u8], run: usize, half: usize) -> uint8x16_t {
    let bytes = |at: usize| part(block, at + half * 16);
    match F {
        Q2_K => vandq_u8(shifted(bytes(16 + run / 4 * 32), run % 4 * 2), vdupq_n_u8(3)),
        Q3_K => {
            let two = shifted(bytes(32 + run / 4 * 32), run % 4 * 2);
            above::<2>(two, shifted(bytes(0), run), 7)
        }
        Q4_K => vandq_u8(shifted(bytes(16 + run / 2 * 32), run % 2 * 4), vdupq_n_u8(15)),
        Q5_K => {
            let four = shifted(bytes(48 + run / 2 * 32), run % 2 * 4);
            above::<4>(four, shifted(bytes(16), run), 31)
        }
        _ => {
            let (part, run) = (run / 4, run % 4);
            let four = shifted(bytes(part * 64 + run % 2 * 32), run / 2 * 4);
            above::<4>(four, shifted(bytes(128 + part * 32), run * 2), 63)
        }
    }
}

/// Each byte, shifted to the right. The number is a constant where this is compiled.
#[target_feature(enable = "neon")]
#[inline]
fn shifted(bytes: &[u8; 16], by: usize) -> uint8x16_t {
    vshlq_u8(load(bytes), vdupq_n_s8(-(by as i8)))
}

/// The low `N` bits of `low` with the bits of `high` above them, masked.
#[target_feature(enable = "neon")]
#[inline]
fn above<const N: i32>(low: uint8x16_t, high: uint8x16_t, mask: u8) -> uint8x16_t {
    vandq_u8(vsliq_n_u8::<N>(low, high), vdupq_n_u8(mask))
}

/// 32 integers of four bits: the low halves of 16 bytes, and then the high ones.
#[target_feature(enable = "neon")]
#[inline]
fn nibbles(bytes: &[u8; 16]) -> [uint8x16_t; 2] {
    let both = load(bytes);
    [vandq_u8(both, vdupq_n_u8(15)), vshrq_n_u8::<4>(both)]
}

/// As [`nibbles`], with a fifth bit of each.
#[target_feature(enable = "neon")]
#[inline]
fn five_bits(bytes: &[u8; 16], fifth: &[u8; 4]) -> [uint8x16_t; 2] {
    let both = load(bytes);
    let fifth = vreinterpretq_u8_u32(vdupq_n_u32(u32::from_le_bytes(*fifth)));
    let bit = vreinterpretq_u8_u64(vdupq_n_u64(0x8040_2010_0804_0201));
    let of_byte = [0u64, 0x0101_0101_0101_0101, 0x0202_0202_0202_0202, 0x0303_0303_0303_0303];
    let mut all = [both, vshrq_n_u8::<4>(both)];
    for (i, four) in all.iter_mut().enumerate() {
        let places = vcombine_u64(vcreate_u64(of_byte[2 * i]), vcreate_u64(of_byte[2 * i + 1]));
        let is_set = vtstq_u8(vqtbl1q_u8(fifth, vreinterpretq_u8_u64(places)), bit);
        *four = above::<4>(*four, is_set, 31);
    }
    all
}

/// 16 signed bytes, two for each run, multiplied by `d`: those of the first halves, and of the second.
#[target_feature(enable = "neon")]
#[inline]
fn of_halves(bytes: [u64; 2], d: float32x4_t) -> [Floats; 2] {
    let (a, b) = (vcreate_s8(bytes[0]), vcreate_s8(bytes[1]));
    [products(vuzp1_s8(a, b), d), products(vuzp2_s8(a, b), d)]
}

/// 8 signed bytes, multiplied by `d`.
#[target_feature(enable = "neon")]
#[inline]
fn products(bytes: int8x8_t, d: float32x4_t) -> Floats {
    let wide = vmovl_s8(bytes);
    let (low, high) = (vmovl_s16(vget_low_s16(wide)), vmovl_high_s16(wide));
    [vmulq_f32(d, vcvtq_f32_s32(low)), vmulq_f32(d, vcvtq_f32_s32(high))]
}

/// Numbers in half precision.
#[target_feature(enable = "neon")]
#[inline]
fn halves(bits: &[u16; LANES]) -> Floats {
    let halves = vreinterpretq_f16_u16(load_8(bits));
    [vcvt_f32_f16(vget_low_f16(halves)), vcvt_high_f32_f16(halves)]
}

/// The number in half precision at byte `at`, in each place.
#[target_feature(enable = "neon")]
#[inline]
fn half(block: &[u8], at: usize) -> float32x4_t {
    let bits = u16::from_le_bytes(*part(block, at));
    vcvt_f32_f16(vreinterpret_f16_u16(vdup_n_u16(bits)))
}

#[target_feature(enable = "neon")]
#[inline]
fn load(bytes: &[u8; 16]) -> uint8x16_t {
    // SAFETY: it reads 16 bytes, which are there, at any alignment.
    unsafe { vld1q_u8(bytes.as_ptr()) }
}

#[target_feature(enable = "neon")]
#[inline]
fn load_8(numbers: &[u16; LANES]) -> uint16x8_t {
    // SAFETY: it reads eight numbers of 16 bits, which are there.
    unsafe { vld1q_u16(numbers.as_ptr()) }
}

//! The formats as the kernels with vector instructions see them, which are compiled for each of them.

use super::LANES;
use crate::BlockFormat;

/// The formats as numbers, to be constants of functions.
pub(super) const Q4_0: u8 = BlockFormat::Q4_0 as u8;
pub(super) const Q4_1: u8 = BlockFormat::Q4_1 as u8;
pub(super) const Q5_0: u8 = BlockFormat::Q5_0 as u8;
pub(super) const Q5_1: u8 = BlockFormat::Q5_1 as u8;
pub(super) const Q8_0: u8 = BlockFormat::Q8_0 as u8;
pub(super) const Q2_K: u8 = BlockFormat::Q2_K as u8;
pub(super) const Q3_K: u8 = BlockFormat::Q3_K as u8;
pub(super) const Q4_K: u8 = BlockFormat::Q4_K as u8;
pub(super) const Q5_K: u8 = BlockFormat::Q5_K as u8;
pub(super) const Q6_K: u8 = BlockFormat::Q6_K as u8;
pub(super) const IQ4_NL: u8 = BlockFormat::IQ4_NL as u8;
pub(super) const INT4: u8 = BlockFormat::INT4 as u8;

/// The bytes of a block.
pub(super) const fn bytes(format: u8) -> usize {
    let mut i = 0;
    while BlockFormat::ALL[i] as u8 != format {
        i += 1;
    }
    BlockFormat::ALL[i].bytes()
}

pub(super) const fn has_minima(format: u8) -> bool {
    matches!(format, Q4_1 | Q5_1 | Q2_K | Q4_K | Q5_K | INT4)
}

/// Set if each half of a run has a scale.
pub(super) const fn has_small_groups(format: u8) -> bool {
    matches!(format, Q2_K | Q3_K | Q6_K)
}

/// Parts of a run that have scales.
pub(super) const fn groups(format: u8) -> usize {
    if has_small_groups(format) { 2 } else { 1 }
}

/// Runs of a block.
pub(super) const fn runs(format: u8) -> usize {
    if matches!(format, Q2_K | Q3_K | Q4_K | Q5_K | Q6_K) { LANES } else { 1 }
}

/// Bytes of eight runs.
pub(super) const fn bytes_of_eight(format: u8) -> usize {
    bytes(format) * LANES / runs(format)
}

/// The bytes of the largest block of one run.
pub(super) const LARGEST: usize = BlockFormat::Q8_0.bytes();

/// Set if integers use all eight bits.
pub(super) const fn is_wide(format: u8) -> bool {
    matches!(format, Q8_0 | IQ4_NL)
}

/// The binary logarithm of what is added to integers to make them positive; 0 stands for nothing.
pub(super) const fn offset(format: u8) -> u32 {
    match format {
        Q3_K => 2,
        Q4_0 => 3,
        Q5_0 => 4,
        Q6_K => 5,
        Q8_0 | IQ4_NL => 7,
        _ => 0,
    }
}

/// Calls a function of a format, which is a constant of it.
macro_rules! of_format {
    ($format:expr, $function:ident $arguments:tt) => {
        match $format {
            BlockFormat::Q4_0 => $function::<Q4_0> $arguments,
            BlockFormat::Q4_1 => $function::<Q4_1> $arguments,
            BlockFormat::Q5_0 => $function::<Q5_0> $arguments,
            BlockFormat::Q5_1 => $function::<Q5_1> $arguments,
            BlockFormat::Q8_0 => $function::<Q8_0> $arguments,
            BlockFormat::IQ4_NL => $function::<IQ4_NL> $arguments,
            BlockFormat::Q2_K => $function::<Q2_K> $arguments,
            BlockFormat::Q3_K => $function::<Q3_K> $arguments,
            BlockFormat::Q4_K => $function::<Q4_K> $arguments,
            BlockFormat::Q5_K => $function::<Q5_K> $arguments,
            BlockFormat::Q6_K => $function::<Q6_K> $arguments,
            BlockFormat::INT4 => $function::<INT4> $arguments,
            BlockFormat::F8_E4M3 => unreachable!("floats are not multiplied as integers"),
        }
    };
}
pub(super) use of_format;

/// `N` bytes from `at` on.
#[inline]
pub(super) fn part<const N: usize>(block: &[u8], at: usize) -> &[u8; N] {
    // An array by value would become a vector byte by byte.
    block[at..].first_chunk().expect("a part of a block")
}

/// The low halves of eight bytes.
const FOUR_BITS: u64 = 0x0F0F_0F0F_0F0F_0F0F;

/// The scales of a block of Q2_K, and its minima, each as bytes, of which two belong to a run.
#[inline]
pub(super) fn q2_scales_and_minima(block: &[u8]) -> [[u64; 2]; 2] {
    let (a, b) = (u64::from_le_bytes(*part(block, 0)), u64::from_le_bytes(*part(block, 8)));
    [[a & FOUR_BITS, b & FOUR_BITS], [a >> 4 & FOUR_BITS, b >> 4 & FOUR_BITS]]
}

/// The scales of a block of Q3_K as signed bytes, of which two belong to a run.
#[inline]
pub(super) fn q3_scales(block: &[u8]) -> [u64; 2] {
    let low = u64::from_le_bytes(*part(block, 96));
    let high = u64::from(u32::from_le_bytes(*part(block, 104)));
    let two = |at: u32| high >> at & 0x0303_0303;
    let a = low & FOUR_BITS | (two(0) | two(2) << 32) << 4;
    let b = low >> 4 & FOUR_BITS | (two(4) | two(6) << 32) << 4;
    // The bytes are below 64, so subtracting 32 of each borrows from no neighbour if a bit is there to take.
    const SIGNS: u64 = 0x8080_8080_8080_8080;
    let centred = |v: u64| ((v | SIGNS) - (SIGNS >> 2)) ^ SIGNS;
    [centred(a), centred(b)]
}

/// The scales of a block of Q4_K or Q5_K, and its minima, each as bytes, one for a run.
#[inline]
pub(super) fn q4_scales_and_minima(block: &[u8]) -> [u64; 2] {
    let word = |at| u32::from_le_bytes(*part(block, at));
    let (a, b, c) = (word(4), word(8), word(12));
    let six = |low: u32, high: u32| {
        let high = c >> low & 0x0F0F_0F0F | (high >> 6 & 0x0303_0303) << 4;
        u64::from(high) << 32
    };
    [u64::from(a & 0x3F3F_3F3F) | six(0, a), u64::from(b & 0x3F3F_3F3F) | six(4, b)]
}

//! Blocks of 256 elements, in groups of 16 or 32 with scales of their own.

use super::{GROUP, Parts, parts::half_at};

/// 16 scales and minima of 4 bits, 64 bytes of elements, `d`, `m`.
pub(super) fn q2(b: &[u8], to: &mut Parts) {
    let (packed, rest) = b.split_at(16);
    let (q, rest) = rest.split_at(64);
    let (d, m) = (half_at(rest, 0), half_at(rest, 2));
    for (group, &packed) in packed.iter().enumerate() {
        to.scales[group] = d * f32::from(packed & 0xF);
        to.minima[group] = m * f32::from(packed >> 4);
    }
    groups(to, |group, i| two_bits(q, group, i) as i8);
}

/// 32 bytes of third bits, 64 bytes of the two low bits, 16 packed scales of 6 bits, `d`.
pub(super) fn q3(b: &[u8], to: &mut Parts) {
    let (third, rest) = b.split_at(32);
    let (q, rest) = rest.split_at(64);
    let (packed, d) = rest.split_at(12);
    let d = half_at(d, 0);
    for (group, scale) in to.scales.iter_mut().enumerate() {
        // The low four bits are in 8 bytes, those of the second 8 scales in the upper halves; the high two in 4 bytes.
        let low = packed[group % 8] >> (group / 8 * 4) & 0xF;
        let high = packed[8 + group % 4] >> (group / 4 * 2) & 3;
        *scale = d * (f32::from(low | high << 4) - 32.0);
    }
    groups(to, |group, i| {
        // Bit `n` of byte `i` belongs to element `i` of the `n`th run of 32.
        let bit = third[group % 2 * 16 + i] >> (group / 2) & 1;
        (two_bits(q, group, i) | bit << 2) as i8 - 4
    });
}

/// Sets each integer. `integer` gets a group and an index within it.
fn groups(to: &mut Parts, integer: impl Fn(usize, usize) -> i8) {
    for (group, to) in to.integers.chunks_exact_mut(GROUP).enumerate() {
        to.iter_mut().enumerate().for_each(|(i, to)| *to = integer(group, i));
    }
}

/// The low two bits of element `i` of a group of 16. Each half of a block has 32 bytes, in which four runs of 32 elements share
/// bytes.
fn two_bits(q: &[u8], group: usize, i: usize) -> u8 {
    q[group / 8 * 32 + group % 2 * 16 + i] >> (group % 8 / 2 * 2) & 3
}

/// `d`, `m`, 8 packed scales and minima, 128 bytes of elements.
pub(super) fn q4(b: &[u8], to: &mut Parts) {
    let (head, q) = b.split_at(16);
    scales_and_minima(head, to);
    runs(to, |run, i| four_bits(q, run, i));
}

/// As [`q4`], with 32 bytes of fifth bits between scales and elements.
pub(super) fn q5(b: &[u8], to: &mut Parts) {
    let (head, rest) = b.split_at(16);
    let (fifth, q) = rest.split_at(32);
    scales_and_minima(head, to);
    runs(to, |run, i| four_bits(q, run, i) | (fifth[i] >> run & 1) << 4);
}

/// Sets each integer. `integer` gets a run of 32 and an index within it.
fn runs(to: &mut Parts, integer: impl Fn(usize, usize) -> u8) {
    for (run, to) in to.integers.chunks_exact_mut(2 * GROUP).enumerate() {
        to.iter_mut().enumerate().for_each(|(i, to)| *to = integer(run, i) as i8);
    }
}

/// The low four bits of element `i` of a run of 32. Two runs share 32 bytes.
fn four_bits(q: &[u8], run: usize, i: usize) -> u8 {
    q[run / 2 * 32 + i] >> (run % 2 * 4) & 0xF
}

/// Scales and minima of 6 bits, one for each run of 32 elements.
fn scales_and_minima(head: &[u8], to: &mut Parts) {
    let (d, m, packed) = (half_at(head, 0), half_at(head, 2), &head[4..]);
    for run in 0..8 {
        let (scale, min) = scale_and_min(packed, run);
        to.scales[2 * run..2 * run + 2].fill(d * f32::from(scale));
        to.minima[2 * run..2 * run + 2].fill(m * f32::from(min));
    }
}

/// Scale and minimum of a run in 12 bytes: those of the first four runs are the low six bits of bytes 0 to 7; the others have
/// their low four bits in bytes 8 to 11, and their high two above those of the first four.
fn scale_and_min(packed: &[u8], run: usize) -> (u8, u8) {
    if run < 4 {
        return (packed[run] & 63, packed[run + 4] & 63);
    }
    let low = packed[run + 4];
    (low & 0xF | packed[run - 4] >> 6 << 4, low >> 4 | packed[run] >> 6 << 4)
}

/// 128 bytes of low four bits, 64 bytes of high two bits, 16 signed scales, `d`.
pub(super) fn q6(b: &[u8], to: &mut Parts) {
    let (low, rest) = b.split_at(128);
    let (high, rest) = rest.split_at(64);
    let (scales, d) = rest.split_at(16);
    let d = half_at(d, 0);
    to.scales.iter_mut().zip(scales).for_each(|(to, &scale)| *to = d * f32::from(scale as i8));
    groups(to, |group, i| {
        // Each half of the block holds four runs of 32 elements that share bytes.
        let (half, run) = (group / 8, group % 8 / 2);
        let i = group % 2 * 16 + i;
        let four = low[half * 64 + run % 2 * 32 + i] >> (run / 2 * 4) & 0xF;
        let two = high[half * 32 + i] >> (run * 2) & 3;
        (four | two << 4) as i8 - 32
    });
}

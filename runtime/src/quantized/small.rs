//! Blocks of 32 elements with a scale `d`, and a minimum `m` in the `_1` formats, or a zero point.

use super::{GROUP, Parts, parts::half_at};

/// The values of [`IQ4_NL`](super::BlockFormat::IQ4_NL): `kvalues_iq4nl` of ggml.
pub(crate) const IQ4_NL_VALUES: [i8; 16] =
    [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113];

/// `d`, 16 bytes of elements.
pub(super) fn q4_0(b: &[u8], to: &mut Parts) {
    scale(half_at(b, 0), to);
    nibbles(&b[2..], to, |q, _| q as i8 - 8);
}

/// `d`, `m`, 16 bytes of elements.
pub(super) fn q4_1(b: &[u8], to: &mut Parts) {
    scale(half_at(b, 0), to);
    minimum(half_at(b, 2), to);
    nibbles(&b[4..], to, |q, _| q as i8);
}

/// `d`, 4 bytes of fifth bits, 16 bytes of elements.
pub(super) fn q5_0(b: &[u8], to: &mut Parts) {
    let high = u32::from_le_bytes([b[2], b[3], b[4], b[5]]);
    scale(half_at(b, 0), to);
    nibbles(&b[6..], to, |q, i| fifth_bit(q, high, i) - 16);
}

/// `d`, `m`, 4 bytes of fifth bits, 16 bytes of elements.
pub(super) fn q5_1(b: &[u8], to: &mut Parts) {
    let high = u32::from_le_bytes([b[4], b[5], b[6], b[7]]);
    scale(half_at(b, 0), to);
    minimum(half_at(b, 2), to);
    nibbles(&b[8..], to, |q, i| fifth_bit(q, high, i));
}

/// `d`, 32 signed bytes.
pub(super) fn q8_0(b: &[u8], to: &mut Parts) {
    scale(half_at(b, 0), to);
    to.integers.iter_mut().zip(&b[2..]).for_each(|(to, &q)| *to = q as i8);
}

/// `d`, 16 bytes of elements, which are places in a table.
pub(super) fn iq4_nl(b: &[u8], to: &mut Parts) {
    scale(half_at(b, 0), to);
    nibbles(&b[2..], to, |q, _| IQ4_NL_VALUES[usize::from(q)]);
}

/// `d`, a byte `z`, 16 bytes of elements. `d * z` is exact.
pub(super) fn int4(b: &[u8], to: &mut Parts) {
    let d = half_at(b, 0);
    scale(d, to);
    minimum(-(d * f32::from(b[2])), to);
    nibbles(&b[3..], to, |q, _| q as i8);
}

fn scale(d: f32, to: &mut Parts) {
    to.scales[..32 / GROUP].fill(d);
}

/// The formats add `m`.
fn minimum(m: f32, to: &mut Parts) {
    to.minima[..32 / GROUP].fill(-m);
}

/// 32 elements in 16 bytes: the low halves are the first 16, the high halves the rest. `integer` gets the four bits and the
/// index of the element.
fn nibbles(q: &[u8], to: &mut Parts, integer: impl Fn(u8, usize) -> i8) {
    let (first, second) = to.integers[..32].split_at_mut(16);
    for (i, ((first, second), q)) in first.iter_mut().zip(second).zip(q).enumerate() {
        *first = integer(q & 0xF, i);
        *second = integer(q >> 4, i + 16);
    }
}

fn fifth_bit(q: u8, high: u32, i: usize) -> i8 {
    (q | ((high >> i) as u8 & 1) << 4) as i8
}

//! Blocks of 32 elements.

use super::half_at;

pub(super) fn q4_0(b: &[u8], out: &mut [f32]) {
    let d = half_at(b, 0);
    nibbles(&b[2..], out, |q, _| d * (f32::from(q) - 8.0));
}

pub(super) fn q4_1(b: &[u8], out: &mut [f32]) {
    let (d, m) = (half_at(b, 0), half_at(b, 2));
    nibbles(&b[4..], out, |q, _| d * f32::from(q) + m);
}

pub(super) fn q5_0(b: &[u8], out: &mut [f32]) {
    let (d, high) = (half_at(b, 0), u32::from_le_bytes([b[2], b[3], b[4], b[5]]));
    nibbles(&b[6..], out, |q, i| d * (f32::from(fifth_bit(q, high, i)) - 16.0));
}

pub(super) fn q5_1(b: &[u8], out: &mut [f32]) {
    let (d, m) = (half_at(b, 0), half_at(b, 2));
    let high = u32::from_le_bytes([b[4], b[5], b[6], b[7]]);
    nibbles(&b[8..], out, |q, i| d * f32::from(fifth_bit(q, high, i)) + m);
}

pub(super) fn q8_0(b: &[u8], out: &mut [f32]) {
    let d = half_at(b, 0);
    out.iter_mut().zip(&b[2..]).for_each(|(out, &q)| *out = d * f32::from(q as i8));
}

pub(super) fn iq4_nl(b: &[u8], out: &mut [f32]) {
    /// `kvalues_iq4nl` of ggml.
    const VALUES: [i8; 16] = [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113];
    let d = half_at(b, 0);
    nibbles(&b[2..], out, |q, _| d * f32::from(VALUES[usize::from(q)]));
}

/// 32 elements in 16 bytes: the low halves are the first 16, the high halves the rest. `value` gets the four bits and the
/// index of the element.
fn nibbles(q: &[u8], out: &mut [f32], value: impl Fn(u8, usize) -> f32) {
    let (first, second) = out.split_at_mut(16);
    for (i, ((first, second), q)) in first.iter_mut().zip(second).zip(q).enumerate() {
        *first = value(q & 0xF, i);
        *second = value(q >> 4, i + 16);
    }
}

fn fifth_bit(q: u8, high: u32, i: usize) -> u8 {
    q | ((high >> i) as u8 & 1) << 4
}

//! Floats to blocks. In most formats of 32 elements, a block's scale follows from its smallest and its largest value, as in the
//! reference functions of ggml (`quantize_row_q4_0_ref` and its siblings in `ggml-quants.c`); in the others, scales are searched
//! for (`search.rs`; `k.rs` for the formats whose scales are integers themselves).

mod k;
mod search;
#[cfg(test)]
mod tests;

use half::f16;

use super::{BlockFormat, float8};
use crate::{Error, Result};

const NAME: &str = "BlockFormat::quantize";

impl BlockFormat {
    /// Returns the blocks of `values`.
    ///
    /// Those of `Q4_0`, `Q4_1`, `Q5_0`, `Q5_1` and `Q8_0` are what llama.cpp writes. In `F8_E4M3`, the value of the largest size becomes
    /// 448, in `INT4`, values from the smallest (or 0) to the largest (or 0) become integers from 0 to 15. For the other formats, scales and minima are
    /// searched for, so that the sum of the squared errors becomes small; every value counts the same.
    ///
    /// # Errors
    /// Returns [`Error::Argument`] if the elements of a block do not divide the number of values, and if values are not finite, or too
    /// large for a scale in half precision.
    pub fn quantize(self, values: &[f32]) -> Result<Vec<u8>> {
        let block = match self {
            Self::Q4_0 => q4_0,
            Self::Q4_1 => q4_1,
            Self::Q5_0 => q5_0,
            Self::Q5_1 => q5_1,
            Self::Q8_0 => q8_0,
            Self::IQ4_NL => iq4_nl,
            Self::Q2_K => k::q2,
            Self::Q3_K => k::q3,
            Self::Q4_K => k::q4,
            Self::Q5_K => k::q5,
            Self::Q6_K => k::q6,
            Self::F8_E4M3 => f8_e4m3,
            Self::INT4 => int4,
        };
        let Some(bytes) = self.row_bytes(values.len()) else {
            let (count, elements) = (values.len(), self.elements());
            return refuse(format!(
                "{count} values are not whole blocks of {self}, which are {elements} elements"
            ));
        };
        let mut out = Vec::with_capacity(bytes);
        for (i, values) in values.chunks_exact(self.elements()).enumerate() {
            if block(values, &mut out).is_none() {
                return refuse(format!(
                    "a value of block {i} is not finite, or too large for a scale in half precision, which is at most 65504"
                ));
            }
        }
        Ok(out)
    }
}

fn refuse<T>(reason: String) -> Result<T> {
    Err(Error::Argument { op: NAME, reason })
}

/// The largest number in half precision.
const MAX_HALF: f32 = 65504.0;

/// `value` in half precision; `None` if it is not finite there.
fn half_of(value: f32) -> Option<f16> {
    Some(f16::from_f32(value)).filter(|half| half.is_finite())
}

/// Writes `value` in half precision; `None` if it is not finite there.
fn push(value: f32, out: &mut Vec<u8>) -> Option<()> {
    out.extend_from_slice(&half_of(value)?.to_le_bytes());
    Some(())
}

/// `1 / d`, or 0.
fn inverse(d: f32) -> f32 {
    if d == 0.0 { 0.0 } else { 1.0 / d }
}

/// Writes the low four bits of 32 integers.
fn push_nibbles(q: &[u8; 32], out: &mut Vec<u8>) {
    out.extend((0..16).map(|i| q[i] & 0xF | (q[i + 16] & 0xF) << 4));
}

/// Writes the fifth bits of 32 integers.
fn push_fifth_bits(q: &[u8; 32], out: &mut Vec<u8>) {
    let bits = q.iter().enumerate().fold(0u32, |bits, (i, &q)| bits | u32::from(q >> 4 & 1) << i);
    out.extend_from_slice(&bits.to_le_bytes());
}

/// Quantises with a factor alone: the value of the largest size becomes `-limit`, with its sign.
fn around_zero(values: &[f32], limit: f32, out: &mut Vec<u8>) -> Option<[u8; 32]> {
    let largest = values.iter().fold(0.0f32, |most, &v| if v.abs() > most.abs() { v } else { most });
    if values.iter().any(|v| !v.is_finite()) {
        return None;
    }
    let d = largest / -limit;
    push(d, out)?;
    let inverse = inverse(d);
    let integer = |v: f32| (v * inverse + limit + 0.5).clamp(0.0, 2.0 * limit - 1.0) as u8;
    Some(std::array::from_fn(|i| integer(values[i])))
}

/// Quantises with a factor and an offset: the smallest value becomes 0, the largest `limit`.
fn above_minimum(values: &[f32], limit: f32, out: &mut Vec<u8>) -> Option<[u8; 32]> {
    let least = values.iter().fold(f32::INFINITY, |least, &v| least.min(v));
    let most = values.iter().fold(f32::NEG_INFINITY, |most, &v| most.max(v));
    if values.iter().any(|v| !v.is_finite()) {
        return None;
    }
    let d = (most - least) / limit;
    push(d, out)?;
    push(least, out)?;
    let inverse = inverse(d);
    let integer = |v: f32| ((v - least) * inverse + 0.5).clamp(0.0, limit) as u8;
    Some(std::array::from_fn(|i| integer(values[i])))
}

fn q4_0(values: &[f32], out: &mut Vec<u8>) -> Option<()> {
    let q = around_zero(values, 8.0, out)?;
    push_nibbles(&q, out);
    Some(())
}

fn q4_1(values: &[f32], out: &mut Vec<u8>) -> Option<()> {
    let q = above_minimum(values, 15.0, out)?;
    push_nibbles(&q, out);
    Some(())
}

fn q5_0(values: &[f32], out: &mut Vec<u8>) -> Option<()> {
    let q = around_zero(values, 16.0, out)?;
    push_fifth_bits(&q, out);
    push_nibbles(&q, out);
    Some(())
}

fn q5_1(values: &[f32], out: &mut Vec<u8>) -> Option<()> {
    let q = above_minimum(values, 31.0, out)?;
    push_fifth_bits(&q, out);
    push_nibbles(&q, out);
    Some(())
}

fn q8_0(values: &[f32], out: &mut Vec<u8>) -> Option<()> {
    let most = values.iter().fold(0.0f32, |most, v| most.max(v.abs()));
    if values.iter().any(|v| !v.is_finite()) {
        return None;
    }
    let d = most / 127.0;
    push(d, out)?;
    let inverse = inverse(d);
    out.extend(values.iter().map(|v| (v * inverse).round() as i8 as u8));
    Some(())
}

fn f8_e4m3(values: &[f32], out: &mut Vec<u8>) -> Option<()> {
    let most = values.iter().fold(0.0f32, |most, v| most.max(v.abs()));
    if values.iter().any(|v| !v.is_finite()) {
        return None;
    }
    let d = most / float8::MOST;
    out.extend_from_slice(&d.to_le_bytes());
    // Dividing by a tiny scale stays below the largest value, its inverse may not be finite.
    out.extend(values.iter().map(|v| float8::nearest(if d == 0.0 { 0.0 } else { v / d })));
    Some(())
}

fn int4(values: &[f32], out: &mut Vec<u8>) -> Option<()> {
    let (d, zero) = grid_with_zero(values)?;
    out.extend_from_slice(&d.to_le_bytes());
    out.push(zero);
    push_nibbles(&std::array::from_fn(|i| on_grid(values[i], d, zero)), out);
    Some(())
}

/// The scale and the zero point of values that become integers of 4 bits, 0 among them; `None` if some are not finite, or too large.
pub(crate) fn grid_with_zero(values: &[f32]) -> Option<(f16, u8)> {
    let least = values.iter().fold(0.0f32, |least, &v| least.min(v));
    let most = values.iter().fold(0.0f32, |most, &v| most.max(v));
    if values.iter().any(|v| !v.is_finite()) {
        return None;
    }
    let d = half_of(most / 15.0 - least / 15.0)?;
    Some((d, (-least * inverse(d.to_f32())).round().clamp(0.0, 15.0) as u8))
}

/// The integer of a value for a scale and a zero point.
pub(crate) fn on_grid(value: f32, d: f16, zero: u8) -> u8 {
    (value * inverse(d.to_f32()) + f32::from(zero)).round().clamp(0.0, 15.0) as u8
}

fn iq4_nl(values: &[f32], out: &mut Vec<u8>) -> Option<()> {
    // Beyond, products with values of the table overflow in the search.
    let largest = search::largest(values);
    if !values.iter().all(|v| v.is_finite()) || largest.abs() > 128.0 * MAX_HALF {
        return None;
    }
    let d = half_of(search::table_scale(values))?;
    out.extend_from_slice(&d.to_le_bytes());
    let inverse = inverse(d.to_f32());
    push_nibbles(&std::array::from_fn(|i| search::place(values[i] * inverse) as u8), out);
    Some(())
}

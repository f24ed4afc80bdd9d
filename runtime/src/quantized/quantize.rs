//! Floats to blocks, where a block's scale follows from its smallest and its largest value: the reference functions of ggml
//! (`quantize_row_q4_0_ref` and its siblings in `ggml-quants.c`).

use half::f16;

use super::BlockFormat;
use crate::{Error, Result};

const NAME: &str = "BlockFormat::quantize";

impl BlockFormat {
    /// Returns the blocks of `values`, as llama.cpp writes them.
    ///
    /// Formats of one scale, or of one scale and one minimum, a block can be made: `Q4_0`, `Q4_1`, `Q5_0`, `Q5_1` and `Q8_0`. The
    /// others need a search for the best scales; files of them come from llama.cpp.
    ///
    /// # Errors
    /// Returns [`Error::Argument`] for another format; if the elements of a block do not divide the number of values; and if
    /// values are not finite, or too large for a scale in half precision.
    pub fn quantize(self, values: &[f32]) -> Result<Vec<u8>> {
        let block = match self {
            Self::Q4_0 => q4_0,
            Self::Q4_1 => q4_1,
            Self::Q5_0 => q5_0,
            Self::Q5_1 => q5_1,
            Self::Q8_0 => q8_0,
            _ => return refuse(format!("{self} cannot be made here; Q4_0, Q4_1, Q5_0, Q5_1 and Q8_0 can")),
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

fn refuse<T>(why: String) -> Result<T> {
    Err(Error::Argument { op: NAME, why })
}

/// Writes `value` in half precision; `None` if it is not finite there.
fn push(value: f32, out: &mut Vec<u8>) -> Option<()> {
    let half = f16::from_f32(value);
    out.extend_from_slice(&half.to_le_bytes());
    half.is_finite().then_some(())
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

/// What is quantised with a factor alone: the value of the largest size becomes `-limit`, with its sign.
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

/// What is quantised with a factor and an offset: the smallest value becomes 0, the largest `limit`.
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

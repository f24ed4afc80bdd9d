//! Block formats, and how they become `f32`.
//!
//! A tensor is a sequence of blocks of equal size. Small blocks hold 32 weights with a scale `d` (and
//! a minimum `m` in the `_1` formats); `Q6_K` holds 256 in 16 groups with a scale each.

use std::fmt;

use half::{bf16, f16};

/// How a tensor's elements are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(non_camel_case_types, reason = "the names that everybody uses")]
pub enum TensorType {
    /// IEEE single precision.
    F32,
    /// IEEE half precision.
    F16,
    /// The upper half of an `f32`.
    BF16,
    /// `d * (q - 8)`, 4 bits.
    Q4_0,
    /// `d * q + m`, 4 bits.
    Q4_1,
    /// `d * (q - 16)`, 5 bits.
    Q5_0,
    /// `d * q + m`, 5 bits.
    Q5_1,
    /// `d * q`, 8 bits, signed.
    Q8_0,
    /// `d * scale * (q - 32)`, 6 bits.
    Q6_K,
}

impl TensorType {
    /// The type with this number in a file.
    pub fn from_code(code: u32) -> Option<Self> {
        Some(match code {
            0 => Self::F32,
            1 => Self::F16,
            2 => Self::Q4_0,
            3 => Self::Q4_1,
            6 => Self::Q5_0,
            7 => Self::Q5_1,
            8 => Self::Q8_0,
            14 => Self::Q6_K,
            30 => Self::BF16,
            _ => return None,
        })
    }

    /// Elements of one block.
    pub fn block_elements(self) -> usize {
        match self {
            Self::F32 | Self::F16 | Self::BF16 => 1,
            Self::Q4_0 | Self::Q4_1 | Self::Q5_0 | Self::Q5_1 | Self::Q8_0 => 32,
            Self::Q6_K => 256,
        }
    }

    /// Bytes of one block.
    pub fn block_bytes(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::F16 | Self::BF16 => 2,
            Self::Q4_0 => 2 + 16,
            Self::Q4_1 => 2 + 2 + 16,
            Self::Q5_0 => 2 + 4 + 16,
            Self::Q5_1 => 2 + 2 + 4 + 16,
            Self::Q8_0 => 2 + 32,
            Self::Q6_K => 128 + 64 + 16 + 2,
        }
    }

    /// The elements of whole blocks; a rest shorter than a block is ignored.
    pub fn dequantise(self, stored: &[u8]) -> Vec<f32> {
        let blocks = stored.chunks_exact(self.block_bytes());
        let mut out = Vec::with_capacity(blocks.len() * self.block_elements());
        match self {
            Self::F32 => out.extend(blocks.map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]))),
            Self::F16 => out.extend(blocks.map(|b| half_at(b, 0))),
            Self::BF16 => out.extend(blocks.map(|b| bf16::from_le_bytes([b[0], b[1]]).to_f32())),
            Self::Q4_0 => {
                for b in blocks {
                    let d = half_at(b, 0);
                    nibbles(&b[2..], |q, _| d * (f32::from(q) - 8.0), &mut out);
                }
            }
            Self::Q4_1 => {
                for b in blocks {
                    let (d, m) = (half_at(b, 0), half_at(b, 2));
                    nibbles(&b[4..], |q, _| d * f32::from(q) + m, &mut out);
                }
            }
            Self::Q5_0 => {
                for b in blocks {
                    let (d, high) = (half_at(b, 0), u32::from_le_bytes([b[2], b[3], b[4], b[5]]));
                    nibbles(&b[6..], |q, i| d * (f32::from(fifth_bit(q, high, i)) - 16.0), &mut out);
                }
            }
            Self::Q5_1 => {
                for b in blocks {
                    let (d, m) = (half_at(b, 0), half_at(b, 2));
                    let high = u32::from_le_bytes([b[4], b[5], b[6], b[7]]);
                    nibbles(&b[8..], |q, i| d * f32::from(fifth_bit(q, high, i)) + m, &mut out);
                }
            }
            Self::Q8_0 => {
                for b in blocks {
                    let d = half_at(b, 0);
                    out.extend(b[2..].iter().map(|&q| d * f32::from(q as i8)));
                }
            }
            Self::Q6_K => {
                for b in blocks {
                    q6_k(b, &mut out);
                }
            }
        }
        out
    }
}

impl fmt::Display for TensorType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

fn half_at(b: &[u8], at: usize) -> f32 {
    f16::from_le_bytes([b[at], b[at + 1]]).to_f32()
}

/// 32 weights in 16 bytes: the low halves are the first 16, the high halves the rest. `value` gets
/// the four bits and the index of the weight.
fn nibbles(q: &[u8], value: impl Fn(u8, usize) -> f32, out: &mut Vec<f32>) {
    out.extend(q.iter().enumerate().map(|(i, q)| value(q & 0xF, i)));
    out.extend(q.iter().enumerate().map(|(i, q)| value(q >> 4, i + 16)));
}

fn fifth_bit(q: u8, high: u32, i: usize) -> u8 {
    q | ((high >> i) as u8 & 1) << 4
}

/// 128 bytes of low four bits, 64 bytes of high two bits, 16 signed scales, one half.
fn q6_k(b: &[u8], out: &mut Vec<f32>) {
    let (low, rest) = b.split_at(128);
    let (high, rest) = rest.split_at(64);
    let (scales, d) = rest.split_at(16);
    let d = half_at(d, 0);
    // Each half of the block holds four runs of 32 weights that share bytes.
    for half in 0..2 {
        let (low, high, scales) = (&low[half * 64..], &high[half * 32..], &scales[half * 8..]);
        for run in 0..4 {
            for i in 0..32 {
                let four = low[i + (run & 1) * 32] >> (run / 2 * 4) & 0xF;
                let two = high[i] >> (run * 2) & 3;
                let scale = f32::from(scales[run * 2 + i / 16] as i8);
                out.push(d * scale * (f32::from(four | two << 4) - 32.0));
            }
        }
    }
}

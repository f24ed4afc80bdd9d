//! Block formats, and how they become floats. The formats are those of ggml (`ggml-common.h`, `ggml-quants.c`).
//!
//! A tensor is a sequence of blocks of equal size. Small blocks hold 32 elements with a scale `d` (and a minimum `m` in the
//! `_1` formats); those of the K formats hold 256 in groups with scales of their own.

mod k;
mod small;

use half::{bf16, f16};

use super::TensorType;

/// Elements of the largest block.
const LARGEST: usize = 256;

impl TensorType {
    /// Dequantises whole blocks one after the other and passes the elements of each to `each`; a rest shorter than a block is
    /// ignored.
    pub fn for_each_block(self, stored: &[u8], mut each: impl FnMut(&[f32])) {
        let dequantise = self.of_block();
        let mut elements = [0.0; LARGEST];
        let elements = &mut elements[..self.block_elements()];
        for block in stored.chunks_exact(self.block_bytes()) {
            dequantise(block, elements);
            each(elements);
        }
    }

    /// The elements of whole blocks; a rest shorter than a block is ignored.
    pub fn dequantise(self, stored: &[u8]) -> Vec<f32> {
        let mut out = Vec::with_capacity(stored.len() / self.block_bytes() * self.block_elements());
        self.for_each_block(stored, |elements| out.extend_from_slice(elements));
        out
    }

    /// What dequantises a block. Both of its arguments have the lengths of a block.
    fn of_block(self) -> fn(&[u8], &mut [f32]) {
        match self {
            Self::F32 => |b, out| out[0] = f32::from_le_bytes([b[0], b[1], b[2], b[3]]),
            Self::F16 => |b, out| out[0] = half_at(b, 0),
            Self::BF16 => |b, out| out[0] = bf16::from_le_bytes([b[0], b[1]]).to_f32(),
            Self::Q4_0 => small::q4_0,
            Self::Q4_1 => small::q4_1,
            Self::Q5_0 => small::q5_0,
            Self::Q5_1 => small::q5_1,
            Self::Q8_0 => small::q8_0,
            Self::IQ4_NL => small::iq4_nl,
            Self::Q2_K => k::q2,
            Self::Q3_K => k::q3,
            Self::Q4_K => k::q4,
            Self::Q5_K => k::q5,
            Self::Q6_K => k::q6,
        }
    }
}

fn half_at(b: &[u8], at: usize) -> f32 {
    f16::from_le_bytes([b[at], b[at + 1]]).to_f32()
}

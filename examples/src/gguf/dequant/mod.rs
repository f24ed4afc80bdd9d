//! How stored elements become floats: blocks by [`BlockFormat`](graphable::BlockFormat), and floats one by one.

use half::{bf16, f16};

use super::TensorType;

impl TensorType {
    /// Dequantises whole blocks one after the other and passes the elements of each to `each`; a rest shorter than a block is
    /// ignored.
    pub fn for_each_block(self, stored: &[u8], mut each: impl FnMut(&[f32])) {
        let mut elements = vec![0.0; self.block_elements()];
        for block in stored.chunks_exact(self.block_bytes()) {
            self.read_block(block, &mut elements);
            each(&elements);
        }
    }

    /// The elements of whole blocks; a rest shorter than a block is ignored.
    pub fn dequantise(self, stored: &[u8]) -> Vec<f32> {
        let mut out = Vec::with_capacity(stored.len() / self.block_bytes() * self.block_elements());
        self.for_each_block(stored, |elements| out.extend_from_slice(elements));
        out
    }

    /// Both arguments have the lengths of a block.
    fn read_block(self, block: &[u8], out: &mut [f32]) {
        match self.blocks() {
            Some(format) => format.dequantize(block, out).expect("the lengths are those of a block"),
            None => out[0] = self.read_float(block),
        }
    }

    fn read_float(self, b: &[u8]) -> f32 {
        match self {
            Self::F16 => f16::from_le_bytes([b[0], b[1]]).to_f32(),
            Self::BF16 => bf16::from_le_bytes([b[0], b[1]]).to_f32(),
            _ => f32::from_le_bytes([b[0], b[1], b[2], b[3]]),
        }
    }
}

//! How stored elements become floats.

use super::TensorType;
use crate::elements::floats;

/// The most elements that are dequantised at a time: so few stay in a core's nearest cache.
const PIECE: usize = 4096;

impl TensorType {
    /// Dequantises whole blocks, some of them at a time, and passes their elements to `each`; a rest shorter than a block is ignored.
    pub fn for_each_piece(self, stored: &[u8], mut each: impl FnMut(&[f32])) {
        let blocks = PIECE / self.block_elements();
        let mut values = vec![0.0; if self.blocks().is_some() { PIECE } else { 0 }];
        let whole = stored.len() / self.block_bytes() * self.block_bytes();
        for stored in stored[..whole].chunks(blocks * self.block_bytes()) {
            let Some(format) = self.blocks() else {
                let values = self.float().and_then(|dtype| floats(stored, dtype));
                each(&values.expect("elements that are not in blocks are floats"));
                continue;
            };
            let values = &mut values[..stored.len() / self.block_bytes() * self.block_elements()];
            format
                .dequantize(stored, values)
                .expect("they are whole blocks, and the places of their elements");
            each(values);
        }
    }

    /// The elements of whole blocks; a rest shorter than a block is ignored.
    pub fn dequantise(self, stored: &[u8]) -> Vec<f32> {
        let mut out = Vec::with_capacity(stored.len() / self.block_bytes() * self.block_elements());
        self.for_each_piece(stored, |values| out.extend_from_slice(values));
        out
    }
}

//! Floats of 8 bits with their scales.

use ::safetensors::tensor::Dtype;
use rayon::prelude::*;

use super::raw::{FLOATS, Floats, Raw, wrong};
use crate::{
    BlockFormat, Result,
    quantized::float8::{ELEMENTS, value},
};

const FORMAT: BlockFormat = BlockFormat::F8_E4M3;

/// A weight.
pub(super) struct Float8<'a> {
    /// Rows, and their elements.
    pub(super) shape: [usize; 2],
    bits: &'a [u8],
    scales: Floats<'a>,
    /// Rows and columns of which each scale is, and how many scales there are for a row.
    block: [usize; 2],
    across: usize,
}

impl<'a> Float8<'a> {
    /// Checks a weight and its scales, which are called `names`. `block` is the size of blocks that have scales, if there are some.
    pub(super) fn new(
        path: &str,
        [weight_name, scale_name]: [&str; 2],
        [weight, scale]: [Raw<'a>; 2],
        block: Option<[usize; 2]>,
    ) -> Result<Self> {
        let &[rows, width] = weight.shape else {
            let shape = weight.shape;
            return wrong(
                path,
                format!("has `{weight_name}` with shape {shape:?}; a quantised weight has two dimensions"),
            );
        };
        // One scale; one for each row; one for each block.
        let ([of_rows, of_columns], expected) = match (scale.shape, block) {
            ([] | [1] | [1, 1], None) => ([rows.max(1), width.max(1)], scale.shape.to_vec()),
            ([_], None) => ([1, width.max(1)], vec![rows]),
            (_, None) => ([1, width.max(1)], vec![rows, 1]),
            (_, Some(block)) => (block, vec![rows.div_ceil(block[0]), width.div_ceil(block[1])]),
        };
        scale.check(path, scale_name, FLOATS, &expected)?;
        let scales = scale.floats();
        if let Some(i) = (0..scales.len()).find(|i| !scales.at(*i).is_finite()) {
            return wrong(
                path,
                format!("has `{scale_name}` with the value {} at {i}; the model is damaged", scales.at(i)),
            );
        }
        let across = width.div_ceil(of_columns);
        Ok(Self { shape: [rows, width], bits: weight.bytes, scales, block: [of_rows, of_columns], across })
    }

    fn scale(&self, row: usize, column: usize) -> f32 {
        self.scales.at(row / self.block[0] * self.across + column / self.block[1])
    }

    /// Its blocks; `None` if the format does not divide its rows.
    pub(super) fn blocks(&self) -> Option<Vec<u8>> {
        let [rows, width] = self.shape;
        let bytes = FORMAT.row_bytes(width)?;
        let mut all = vec![0; rows.checked_mul(bytes)?];
        if all.is_empty() {
            return Some(all);
        }
        let rows = all.par_chunks_exact_mut(bytes).zip(self.bits.par_chunks_exact(width)).enumerate();
        rows.for_each(|(row, (to, bits))| {
            let blocks = to.chunks_exact_mut(FORMAT.bytes()).zip(bits.chunks_exact(ELEMENTS));
            for (i, (block, bits)) in blocks.enumerate() {
                let (head, elements) = block.split_at_mut(FORMAT.bytes() - ELEMENTS);
                head.copy_from_slice(&self.scale(row, i * ELEMENTS).to_le_bytes());
                elements.copy_from_slice(bits);
            }
        });
        Some(all)
    }

    /// Its values, in f32.
    pub(super) fn values(&self) -> Vec<u8> {
        let [rows, width] = self.shape;
        let mut all = vec![0; rows * width * size_of::<f32>()];
        if all.is_empty() {
            return all;
        }
        let rows = all.par_chunks_exact_mut(width * size_of::<f32>()).zip(self.bits.par_chunks_exact(width));
        rows.enumerate().for_each(|(row, (to, bits))| {
            for (column, (to, &bits)) in to.as_chunks_mut().0.iter_mut().zip(bits).enumerate() {
                *to = (self.scale(row, column) * value(bits)).to_le_bytes();
            }
        });
        all
    }
}

/// The type of the elements.
pub(super) const DTYPE: Dtype = Dtype::F8_E4M3;

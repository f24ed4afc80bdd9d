//! Weights of floats as tensors of quantised checkpoints.

use half::f16;
use rayon::prelude::*;

use super::int4::AWQ_PLACES;
use crate::{
    Error, Result,
    quantized::{
        float8,
        quantize::{grid_with_zero, on_grid},
    },
};

const NAME: &str = "Packing::pack";

/// The form in which weights of floats are written to safetensors files that [`QuantizedTensors`](super::QuantizedTensors) reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Packing {
    /// fp8, with a scale for each row: `quant_method` `compressed-tensors`, `format` `float-quantized`.
    Float8,
    /// Integers of 4 bits in the layout `gemm` of AWQ, with a scale and a zero point for so many elements of a row: `quant_method`
    /// `awq`.
    Awq {
        /// The elements that share a scale, a multiple of 32.
        group: usize,
    },
}

/// A tensor of a packed weight.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PackedTensor {
    /// The name, after that of the layer: `weight`.
    pub name: &'static str,
    /// The element type as a safetensors header has it: `F8_E4M3`.
    pub dtype: &'static str,
    /// Sizes, outermost first.
    pub shape: Vec<usize>,
    /// The elements, row-major, little-endian; empty where only sizes are [asked for](Packing::tensors).
    pub bytes: Vec<u8>,
}

impl PackedTensor {
    fn new(name: &'static str, dtype: &'static str, shape: &[usize]) -> Self {
        Self { name, dtype, shape: shape.into(), bytes: Vec::new() }
    }
}

impl Packing {
    /// Returns whether a weight of this shape can be packed: two dimensions; for integers, rows that groups divide, and a number of rows that
    /// 8 divides.
    pub fn fits(self, shape: &[usize]) -> bool {
        match (self, shape) {
            (Self::Float8, [_, _]) => true,
            (Self::Awq { group }, &[rows, width]) => {
                group > 0
                    && group.is_multiple_of(32)
                    && width.is_multiple_of(group)
                    && rows.is_multiple_of(AWQ_PLACES.len())
            }
            _ => false,
        }
    }

    /// Returns the tensors of a weight of this shape, without their elements.
    pub fn tensors(self, shape: &[usize]) -> Vec<PackedTensor> {
        let (rows, width) = (shape.first().copied().unwrap_or(1), shape.get(1).copied().unwrap_or(1));
        match self {
            Self::Float8 => vec![
                PackedTensor::new("weight", "F8_E4M3", &[rows, width]),
                PackedTensor::new("weight_scale", "F32", &[rows, 1]),
            ],
            Self::Awq { group } => {
                let (groups, words) = (width / group.max(1), rows / AWQ_PLACES.len());
                vec![
                    PackedTensor::new("qweight", "I32", &[width, words]),
                    PackedTensor::new("qzeros", "I32", &[groups, words]),
                    PackedTensor::new("scales", "F16", &[groups, rows]),
                ]
            }
        }
    }

    /// Returns the tensors of a weight of `shape` with these values. The largest value of a row becomes the largest float of 8 bits;
    /// in a group, values from the smallest (or 0) to the largest (or 0) become integers from 0 to 15.
    ///
    /// # Errors
    /// Returns [`Error::Argument`] if the shape does not [fit](Self::fits), or has another number of elements; if values are not finite,
    /// or too large for a scale in half precision.
    pub fn pack(self, values: &[f32], shape: &[usize]) -> Result<Vec<PackedTensor>> {
        let refuse = |reason: String| Err(Error::Argument { op: NAME, reason });
        let &[rows, width] = shape else {
            return refuse(format!("the shape {shape:?} does not have two dimensions"));
        };
        if !self.fits(shape) {
            return refuse(format!("{shape:?} does not fit {self:?}; keep this weight in floats"));
        }
        if rows.checked_mul(width) != Some(values.len()) {
            return refuse(format!("{shape:?} does not have {} elements", values.len()));
        }
        let mut tensors = self.tensors(shape);
        let parts = match self {
            Self::Float8 => float8(values, rows, width),
            Self::Awq { group } => awq(values, [rows, width], group),
        };
        let Some(parts) = parts else {
            return refuse(
                "a value is not finite, or too large for a scale in half precision, which is at most 65504"
                    .into(),
            );
        };
        tensors.iter_mut().zip(parts).for_each(|(tensor, bytes)| tensor.bytes = bytes);
        Ok(tensors)
    }
}

/// Elements and scales; `None` if a value is not finite.
fn float8(values: &[f32], rows: usize, width: usize) -> Option<Vec<Vec<u8>>> {
    let mut scales = Vec::with_capacity(4 * rows);
    let mut elements = Vec::with_capacity(values.len());
    for row in 0..rows {
        let values = &values[row * width..][..width];
        let most = values.iter().fold(0.0f32, |most, v| most.max(v.abs()));
        if values.iter().any(|v| !v.is_finite()) {
            return None;
        }
        let d = most / float8::MOST;
        scales.extend_from_slice(&d.to_le_bytes());
        elements.extend(values.iter().map(|v| float8::nearest(if d == 0.0 { 0.0 } else { v / d })));
    }
    Some(vec![elements, scales])
}

/// Integers, zero points and scales; `None` if a value is not finite, or too large.
fn awq(values: &[f32], [rows, width]: [usize; 2], group: usize) -> Option<Vec<Vec<u8>>> {
    let (groups, each) = (width / group, AWQ_PLACES.len());
    let grids: Vec<(f16, u8)> = values.par_chunks(group).map(grid_with_zero).collect::<Option<_>>()?;
    // Word `word` of the rows `8 * word` to `8 * word + 7`, whose integers are `of`.
    let packed = |word: usize, of: &dyn Fn(usize) -> u8| {
        AWQ_PLACES
            .iter()
            .enumerate()
            .fold(0, |bits, (i, place)| bits | u32::from(of(word * each + i)) << (4 * place))
    };
    let words = |count: usize, of: &(dyn Fn(usize, usize) -> u8 + Sync)| -> Vec<u8> {
        let one = |i: usize| packed(i % (rows / each), &|row| of(row, i / (rows / each)));
        (0..count * (rows / each)).into_par_iter().flat_map_iter(|i| one(i).to_le_bytes()).collect()
    };
    let integers = words(width, &|row, column| {
        let (d, zero) = grids[row * groups + column / group];
        on_grid(values[row * width + column], d, zero)
    });
    let zeros = words(groups, &|row, group| grids[row * groups + group].1);
    let of_groups = (0..groups * rows).map(|i| grids[i % rows * groups + i / rows].0);
    Some(vec![integers, zeros, of_groups.flat_map(f16::to_le_bytes).collect()])
}

//! A tensor of the model that is converted, and how its values are written.

use std::{borrow::Cow, io::Write};

use graphable::BlockFormat;
use rayon::prelude::*;

use crate::{
    elements::{floats, push_floats},
    gguf::TensorType,
};

/// Elements that are converted at a time: they take 4 MB as floats.
const AT_ONCE: usize = 1 << 20;

/// A tensor as the model's files have it, by the name that it has in GGUF files.
pub(super) struct Tensor<'a> {
    pub(super) name: String,
    pub(super) shape: Vec<usize>,
    pub(super) ty: TensorType,
    /// Whole rows.
    pub(super) bytes: Cow<'a, [u8]>,
    pub(super) change: Change,
}

/// What differs between the files of other programs and GGUF files.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Change {
    None,
    /// Rows of heads of so many elements, whose halves turn together, become rows of which neighbours do.
    Interleave(usize),
    /// 1 is added: the weights of norms that are stored less 1.
    AddOne,
}

/// How far what was written is from what was read.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Errors {
    /// The sum of the squares of the values.
    pub(super) squares: f64,
    /// The sum of the squared errors.
    pub(super) squared: f64,
    /// The largest error.
    pub(super) most: f64,
}

impl Errors {
    pub(super) fn of(values: &[f32], read: &[f32]) -> Self {
        let each = values.iter().zip(read).map(|(v, r)| (f64::from(*v), f64::from(v - r)));
        each.fold(Self::default(), |sum, (v, off)| Self {
            squares: sum.squares + v * v,
            squared: sum.squared + off * off,
            most: sum.most.max(off.abs()),
        })
    }

    pub(super) fn and(self, other: Self) -> Self {
        Self {
            squares: self.squares + other.squares,
            squared: self.squared + other.squared,
            most: self.most.max(other.most),
        }
    }

    /// The root of the mean squared error over that of the mean square; 0 if all is 0.
    pub(super) fn relative(self) -> f64 {
        if self.squared == 0.0 { 0.0 } else { (self.squared / self.squares).sqrt() }
    }
}

/// Why a tensor is not written.
pub(super) enum Failure {
    /// A value that the type does not have.
    Value(String),
    Write(std::io::Error),
}

impl Tensor<'_> {
    /// Elements of a row; a vector is one row.
    fn width(&self) -> usize {
        self.shape.last().copied().unwrap_or(1)
    }

    fn row_bytes(&self) -> usize {
        self.width() / self.ty.block_elements() * self.ty.block_bytes()
    }

    /// Writes the tensor as `ty`. `done` is told how many of its stored bytes were read since it was last told.
    pub(super) fn write(
        &self,
        ty: TensorType,
        to: &mut impl Write,
        mut done: impl FnMut(u64),
    ) -> Result<Errors, Failure> {
        let (width, row) = (self.width(), self.row_bytes());
        if row == 0 {
            return Ok(Errors::default());
        }
        let rows = self.bytes.len() / row;
        let step = (AT_ONCE / width).max(1);
        let mut all = Errors::default();
        for first in (0..rows).step_by(step) {
            let count = step.min(rows - first);
            if ty == self.ty && self.change == Change::None {
                to.write_all(&self.bytes[first * row..][..count * row]).map_err(Failure::Write)?;
            } else {
                let converted: Vec<_> =
                    (first..first + count).into_par_iter().map(|i| self.row(i, ty)).collect();
                for one in converted {
                    let (bytes, errors) = one.map_err(Failure::Value)?;
                    to.write_all(&bytes).map_err(Failure::Write)?;
                    all = all.and(errors);
                }
            }
            done((count * row) as u64);
        }
        Ok(all)
    }

    /// Row `i` of what is written.
    fn row(&self, i: usize, ty: TensorType) -> Result<(Vec<u8>, Errors), String> {
        let from = match self.change {
            Change::Interleave(head) => i / head * head + i % 2 * (head / 2) + i % head / 2,
            _ => i,
        };
        let stored = &self.bytes[from * self.row_bytes()..][..self.row_bytes()];
        if ty == self.ty && self.change != Change::AddOne {
            return Ok((stored.to_vec(), Errors::default()));
        }
        let mut values = self.ty.dequantise(stored);
        if self.change == Change::AddOne {
            values.iter_mut().for_each(|v| *v += 1.0);
        }
        let bytes = encode(ty, &values)?;
        let errors = Errors::of(&values, &ty.dequantise(&bytes));
        Ok((bytes, errors))
    }
}

/// Values as they are stored.
fn encode(ty: TensorType, values: &[f32]) -> Result<Vec<u8>, String> {
    if let Some(format) = ty.blocks() {
        return BlockFormat::quantize(format, values).map_err(|e| match e {
            graphable::Error::Argument { reason, .. } => reason,
            other => other.to_string(),
        });
    }
    let dtype = ty.float().expect("elements that are not in blocks are floats");
    let mut bytes = Vec::with_capacity(dtype.size() * values.len());
    push_floats(values, dtype, &mut bytes);
    let read = floats(&bytes, dtype).expect("it is the type of floats");
    match values.iter().zip(read).find(|(v, read)| v.is_finite() && !read.is_finite()) {
        Some((v, _)) => Err(format!("the value {v} is too large for {ty}")),
        None => Ok(bytes),
    }
}

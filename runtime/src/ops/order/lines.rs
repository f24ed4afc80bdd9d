//! The elements along an axis as the rows of a matrix.

use crate::{
    Element, Result, Tensor,
    ops::{check, contiguous, transpose},
    tensor::broadcast::Shape,
    value::layout::{Layout, PaddedDims},
};

/// Elements of a line: distances twice as large are numbers of kernels.
const LONGEST: usize = 1 << 30;

/// The shape of a tensor whose lines are rows of a matrix, in the order of its other dimensions.
pub(super) struct Lines {
    axis: usize,
    /// Sizes with the axis last, and their padding.
    sizes: Shape,
    marks: PaddedDims,
    pub(super) count: usize,
    pub(super) length: usize,
}

impl Lines {
    /// Finds the lines of `x`, whose axis may not be padded.
    pub(super) fn of<'s, T: Element>(
        name: &'static str,
        x: &Tensor<'s, T>,
        axis: usize,
    ) -> Result<(Self, Tensor<'s, T>)> {
        check::check_axis(name, axis, x.rank())?;
        x.scope().refuse_padded(name, x.raw.marks, axis)?;
        Self::with_padding(name, x, axis)
    }

    /// Finds the lines of `x`, whose axis may be padded: real elements are in front of the padding.
    ///
    /// Those in the padding of other dimensions are lines as well: computing one is not a fault.
    pub(super) fn with_padding<'s, T: Element>(
        name: &'static str,
        x: &Tensor<'s, T>,
        axis: usize,
    ) -> Result<(Self, Tensor<'s, T>)> {
        check::check_axis(name, axis, x.rank())?;
        if x.size(axis) > LONGEST {
            let reason = format!("a line has {} elements; the largest possible is {LONGEST}", x.size(axis));
            return Err(x.scope().shape_error(name, &[x.into()], reason));
        }
        let last = contiguous(&transpose(x, axis, x.rank() - 1)?)?;
        let (sizes, length) = (Shape::from_slice(last.sizes()), x.size(axis));
        let count = sizes[..sizes.len() - 1].iter().product();
        let layout = Layout::contiguous(&[count, length])?;
        let lines = Self { axis, sizes, marks: last.raw.marks, count, length };
        Ok((lines, last.alias(layout, 0, PaddedDims::NONE)))
    }

    /// The tensor whose lines are the rows of `matrix`.
    pub(super) fn restore<'s, T: Element>(&self, matrix: &Tensor<'s, T>) -> Result<Tensor<'s, T>> {
        let mut sizes = self.sizes.clone();
        let last = sizes.len() - 1;
        sizes[last] = matrix.size(1);
        let whole = contiguous(matrix)?.alias(Layout::contiguous(&sizes)?, 0, self.marks);
        transpose(&whole, self.axis, last)
    }
}

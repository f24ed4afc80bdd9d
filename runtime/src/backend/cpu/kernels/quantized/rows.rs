//! Rows of activations, as products with weights of a format take them.

use super::{Activations, float8::Floats};
use crate::BlockFormat;

/// Rows of activations: quantised, unless the elements of the weights are floats.
pub(crate) enum Rows {
    Quantised(Activations),
    Floats(Floats),
}

impl Rows {
    /// Takes rows of `width` elements, whole blocks of `format`. `row` writes a row, given its index.
    pub(crate) fn new(
        format: BlockFormat,
        rows: usize,
        width: usize,
        row: impl Fn(usize, &mut [f32]) + Sync,
    ) -> Self {
        if format.has_floats() {
            Self::Floats(Floats::new(rows, width, row))
        } else {
            Self::Quantised(Activations::new(rows, width, row))
        }
    }

    pub(crate) fn rows(&self) -> usize {
        match self {
            Self::Quantised(rows) => rows.rows(),
            Self::Floats(rows) => rows.rows(),
        }
    }

    pub(crate) fn width(&self) -> usize {
        match self {
            Self::Quantised(rows) => rows.width(),
            Self::Floats(rows) => rows.width(),
        }
    }
}

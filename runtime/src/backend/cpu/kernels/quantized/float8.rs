//! Products with floats of 8 bits. They are not integers, so activations stay floats, too.
//!
//! - There are 16 sums of a block: element `i` times its activation is added to sum `i % 16`.
//! - The scale of the block times each is added to one of 16 sums of the row.
//! - These are added in pairs: those eight, four, two and one apart.
//!
//! Every multiplication and every addition is rounded, so a result has the same bits with any number of rows and threads, and with
//! any instructions: [`product`] is compiled for each set of them, and its loops over 16 become vectors.

use super::Level;
use crate::{BlockFormat, quantized::float8};

const FORMAT: BlockFormat = BlockFormat::F8_E4M3;
const ELEMENTS: usize = FORMAT.elements();
const SUMS: usize = 16;
/// Rows of activations that are multiplied with a block at a time.
const ROWS: usize = 4;

/// Rows of activations.
pub(crate) struct Floats {
    rows: usize,
    width: usize,
    values: Vec<f32>,
}

impl Floats {
    /// Gathers rows of `width` elements. `row` writes a row, given its index.
    pub(super) fn new(rows: usize, width: usize, row: impl Fn(usize, &mut [f32])) -> Self {
        let mut values = vec![0.0; rows * width];
        // There is no chunk without elements.
        values.chunks_mut(width.max(1)).enumerate().for_each(|(i, to)| row(i, to));
        Self { rows, width, values }
    }

    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    pub(super) fn width(&self) -> usize {
        self.width
    }

    fn row(&self, row: usize) -> &[f32] {
        &self.values[row * self.width..][..self.width]
    }
}

/// [`multiply`](super::multiply).
pub(super) fn multiply(level: Level, weights: &[u8], x: &Floats, to: &mut [f32]) {
    match level {
        Level::Plain => columns(weights, x, to),
        // Plain code has the instructions of NEON there, and there is nothing in these products for others.
        #[cfg(target_arch = "aarch64")]
        Level::Neon(_) | Level::DotProd(_) => columns(weights, x, to),
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the function needs the instructions that it is compiled for, nothing else. A value of this level is only made by
        // `Level::all`, after the machine was found to have them all.
        Level::Avx2(_) => unsafe { columns_avx2(weights, x, to) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the function needs the instructions that it is compiled for, with AVX-512 and VNNI, and nothing else; `Level::all` makes a value of this level only on a machine that has them all.
        Level::Vnni(_) => unsafe { columns_avx512(weights, x, to) },
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,f16c")]
fn columns_avx2(weights: &[u8], x: &Floats, to: &mut [f32]) {
    columns(weights, x, to);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,f16c,avx512f,avx512vl,avx512vnni")]
fn columns_avx512(weights: &[u8], x: &Floats, to: &mut [f32]) {
    columns(weights, x, to);
}

/// Loops stand where closures would be shorter: a function of the library that calls one is compiled without the instructions of
/// its caller.
#[inline(always)]
fn columns(weights: &[u8], x: &Floats, to: &mut [f32]) {
    let columns = to.len() / x.rows;
    let bytes = weights.len() / columns;
    let mut first = 0;
    while first < x.rows {
        let rows = if x.rows - first < ROWS { 1 } else { ROWS };
        for column in 0..columns {
            let weight = &weights[column * bytes..][..bytes];
            if rows == 1 {
                let [sum] = product(weight, [x.row(first)]);
                to[first * columns + column] = sum;
            } else {
                let of = [x.row(first), x.row(first + 1), x.row(first + 2), x.row(first + 3)];
                let sums: [f32; ROWS] = product(weight, of);
                for (i, sum) in sums.into_iter().enumerate() {
                    to[(first + i) * columns + column] = sum;
                }
            }
        }
        first += rows;
    }
}

/// The products of a row of blocks and so many rows of activations.
#[inline(always)]
fn product<const R: usize>(weight: &[u8], rows: [&[f32]; R]) -> [f32; R] {
    let mut sums = [[0.0; SUMS]; R];
    for (i, block) in weight.chunks_exact(FORMAT.bytes()).enumerate() {
        let scale = float8::scale(block);
        let mut of_block = [[0.0; SUMS]; R];
        for part in 0..ELEMENTS / SUMS {
            let bits: &[u8] = &block[float8::HEAD + part * SUMS..][..SUMS];
            let mut values = [0.0; SUMS];
            for lane in 0..SUMS {
                values[lane] = float8::value(bits[lane]);
            }
            for r in 0..R {
                let x: &[f32] = &rows[r][i * ELEMENTS + part * SUMS..][..SUMS];
                for lane in 0..SUMS {
                    of_block[r][lane] += values[lane] * x[lane];
                }
            }
        }
        for r in 0..R {
            for lane in 0..SUMS {
                sums[r][lane] += scale * of_block[r][lane];
            }
        }
    }
    let mut totals = [0.0; R];
    for r in 0..R {
        totals[r] = total(sums[r]);
    }
    totals
}

/// Adds up the sums of a row.
#[inline(always)]
fn total(mut lanes: [f32; SUMS]) -> f32 {
    let mut width = SUMS;
    while width > 1 {
        width /= 2;
        for lane in 0..width {
            lanes[lane] += lanes[lane + width];
        }
    }
    lanes[0]
}

//! Products with weights in blocks.
//!
//! With integers, a row of activations is quantised, too: to 8 bits, with a scale for each [`RUN`] of 32 (`activations.rs`), whatever
//! the format of the weight. So the inner products of a run are products of small integers, which are exact in any order, and a block is
//! never expanded to floats. What remains are sums of floats, one for each run:
//!
//! - The integers of a group, which is a run or, in formats with scales of 16 elements, half of one, are multiplied and added
//!   exactly. The sum becomes a float, and is multiplied by `scale of the group * scale of the activations`. In formats with
//!   minima, `minimum * (scale of the activations * sum of the group's activations)` is subtracted.
//! - There are eight sums. Run `r` is added to sum `r % 8`, group by group.
//! - The sums are added in pairs: those four, two and one apart.
//!
//! No multiplication is fused with an addition. So the order, and with it every bit of a result, follows from the width alone:
//! it is the same with any number of rows and threads, and with any instructions. `plain.rs` is the definition. `x86.rs` and `neon`
//! have the same sums with vector instructions that are found at run time (`level.rs`), eight runs of a row at a time, and, for many
//! rows of activations, some rows of weights at a time: `tiles` 8 or 16, `neon/tiles.rs` four. What they share about formats is in
//! `formats.rs`. The tests compare them bit by bit.
//!
//! Weights whose elements are floats of 8 bits are multiplied with activations as they are (`float8.rs`).

mod activations;
mod float8;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod formats;
mod level;
#[cfg(target_arch = "aarch64")]
mod neon;
mod plain;
mod rows;
#[cfg(target_arch = "x86_64")]
mod tiles;
#[cfg(target_arch = "x86_64")]
mod x86;

use activations::Activations;
pub(crate) use level::Level;
pub(crate) use rows::Rows;

use crate::BlockFormat;

/// Elements of a row of activations that share a scale.
pub(crate) const RUN: usize = 32;
/// Words of four integers in a run.
const WORDS: usize = RUN / 4;
/// Sums that runs are added to.
const LANES: usize = 8;

/// `to` becomes the product of `rows`, which are for this format, and the transpose of `weights`: a row for each row of activations, a column for each
/// row of blocks.
///
/// # Panics
/// Panics if `to` and `weights` are not such matrices.
pub(crate) fn multiply(level: Level, format: BlockFormat, weights: &[u8], rows: &Rows, to: &mut [f32]) {
    if to.is_empty() {
        return;
    }
    assert!(rows.rows() > 0 && to.len().is_multiple_of(rows.rows()), "rows of activations");
    let columns = to.len() / rows.rows();
    let bytes = format.row_bytes(rows.width()).expect("whole blocks");
    assert_eq!(Some(weights.len()), bytes.checked_mul(columns), "the size of the weights");
    let activations = match rows {
        Rows::Quantised(activations) => activations,
        Rows::Floats(floats) => return float8::multiply(level, weights, floats, to),
    };
    match level {
        Level::Plain => plain::multiply(format, weights, activations, to),
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the function needs the instructions that it is compiled for, nothing else. A value of this level is only made by
        // `Level::all`, after the machine was found to have them all.
        Level::Avx2(_) => unsafe { tiles::avx2::multiply(format, weights, activations, to) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the function needs AVX-512 with VNNI and nothing else; `Level::all` makes a value of this level only on a machine that
        // has both.
        Level::Vnni(_) => unsafe { tiles::avx512::multiply(format, weights, activations, to) },
        #[cfg(target_arch = "aarch64")]
        // SAFETY: the function needs NEON and nothing else; `Level::all` makes a value of this level only on a machine that has it.
        Level::Neon(_) => unsafe { neon::base::multiply(format, weights, activations, to) },
        #[cfg(target_arch = "aarch64")]
        // SAFETY: the function needs NEON with the dot products of bytes, and nothing else; `Level::all` makes a value of this level only
        // on a machine that has both.
        Level::DotProd(_) => unsafe { neon::dotprod::multiply(format, weights, activations, to) },
    }
}

/// Adds up the sums of runs.
fn total(mut lanes: [f32; LANES]) -> f32 {
    let mut width = LANES;
    while width > 1 {
        width /= 2;
        for l in 0..width {
            lanes[l] += lanes[l + width];
        }
    }
    lanes[0]
}

#[cfg(test)]
mod tests;

//! Products with weights in blocks.
//!
//! A row of activations is quantised, too: to 8 bits, with a scale for each [`RUN`] of 32 (`activations.rs`), whatever
//! the format of the weight. So the inner products of a run are products of small integers, which are exact in any order, and a block is
//! never expanded to floats. What remains are sums of floats, one for each run:
//!
//! - A run has eight lanes of four neighbours. A lane's integers are multiplied and added exactly; the sum becomes a float, and
//!   is multiplied by `scale of the group * scale of the activations`. In formats with minima,
//!   `minimum * scale of the activations * sum of the lane's activations` is subtracted.
//! - Lanes are added up from run to run, those of even and of odd runs apart.
//! - The sixteen sums are added in pairs: even and odd, then lanes four, two and one apart.
//!
//! No multiplication is fused with an addition. So the order, and with it every bit of a result, follows from the width alone:
//! it is the same with any number of rows and threads, and with any instructions. `plain.rs` is the definition; `x86.rs` has the
//! same sums with vector instructions that are found at run time, and the tests compare them bit by bit.

mod activations;
mod level;
mod plain;
#[cfg(target_arch = "x86_64")]
mod x86;

pub(crate) use activations::Activations;
pub(crate) use level::Level;

use crate::BlockFormat;

/// Elements of a row of activations that share a scale.
pub(crate) const RUN: usize = 32;
/// Neighbours that are multiplied and added as integers.
const NEIGHBOURS: usize = 4;
/// Sums that a run of activations is added to.
const LANES: usize = RUN / NEIGHBOURS;
/// Rows of activations that are multiplied with a row of weights at a time.
pub(crate) const ROWS: usize = 4;

/// `to[i]` becomes the inner product of `weight`, a row of blocks, and row `first + i` of the activations, of which there are at
/// most [`ROWS`].
///
/// # Panics
/// Panics if `weight` is not as wide as the activations, or the rows are not there.
pub(crate) fn dot(
    level: Level,
    format: BlockFormat,
    weight: &[u8],
    activations: &Activations,
    first: usize,
    to: &mut [f32],
) {
    assert_eq!(Some(weight.len()), format.row_bytes(activations.width()), "the width of a row of weights");
    assert!(to.len() <= ROWS && first + to.len() <= activations.rows(), "rows of activations");
    match level {
        Level::Plain => plain::dot(format, weight, activations, first, to),
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the function needs the instructions that it is compiled for, nothing else. A value of this level is only made by
        // `Level::all`, after the machine was found to have them all.
        Level::Avx2(_) => unsafe { x86::avx2::dot(format, weight, activations, first, to) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        Level::Vnni(_) => unsafe { x86::vnni::dot(format, weight, activations, first, to) },
    }
}

/// Adds up the lanes of even and of odd runs.
fn total(sums: &[[f32; LANES]; 2]) -> f32 {
    let mut lanes: [f32; LANES] = std::array::from_fn(|l| sums[0][l] + sums[1][l]);
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

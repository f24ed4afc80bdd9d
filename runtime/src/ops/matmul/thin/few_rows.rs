//! Which products are of few rows, and which operands they read 16 bytes at a time.

use crate::{
    BlockFormat, DType,
    backend::{Launch, View},
};

/// Bytes of a chunk.
pub(super) const CHUNK: usize = 16;
/// Bytes behind each row in shared memory, so that rows beside each other are in other banks.
pub(super) const GAP: usize = 64;
/// The most rows.
pub(in crate::ops) const FEW_ROWS: usize = 16;

/// The largest K for which eight warps have work enough with weights in blocks. Weights of a larger one are mostly those of few columns
/// (of a layer that makes a wide row narrow again), so that there are few blocks, too few warps to hide what it costs to take weights apart.
pub(super) const MOST_OF_EIGHT: usize = 4096;

/// The largest K, for which 32 bits are enough for a place in the tiles of eight columns in blocks.
const MOST_K: usize = 1 << 28;

/// Returns whether the blocks of a format have 256 elements, with scales of their own for parts of them.
pub(super) fn is_large(format: BlockFormat) -> bool {
    format.elements() > 64
}

/// Returns whether registers hold what a block needs that makes `m` rows of `k` elements before it multiplies them: with units of 256
/// elements and twice as many threads, for one row.
pub(super) fn may_make_rows(format: Option<BlockFormat>, m: usize, k: usize) -> bool {
    m == 1 || k <= MOST_OF_EIGHT || !format.is_some_and(is_large)
}

/// Returns whether a product of these sizes is one of few rows, which these kernels compute whatever the library could do.
/// docs/BENCHMARKS.md has both beside each other.
pub(in crate::ops::matmul) fn takes(dtype: DType, m: usize, n: usize, k: usize) -> bool {
    dtype.is_computed_in_f32()
        && (1..=FEW_ROWS).contains(&m)
        && k > 0
        && (k * dtype.size()).is_multiple_of(CHUNK)
        && k <= MOST_K
        && i32::try_from(n).is_ok()
}

/// Returns whether a product is one that can be fused with what lies around it.
pub(in crate::ops) fn may_fuse_product(product: &Launch) -> bool {
    let (Some(x), Some(y)) = (product.inputs.first(), product.outputs.first()) else { return false };
    match (x.layout.shape(), y.layout.shape()) {
        (&[m, k], &[_, n]) => takes(x.dtype, m, n, k) && product.workspace == 0,
        _ => false,
    }
}

/// Returns whether lines along K, `across` elements apart, start where 16 bytes can be loaded.
pub(in crate::ops) fn lines_up(view: &View, [along, across]: [usize; 2], [k, lines]: [usize; 2]) -> bool {
    (along == 1 || k == 1)
        && view.addr.is_multiple_of(CHUNK as u64)
        && (lines == 1 || (across * view.dtype.size()).is_multiple_of(CHUNK))
}

//! Copies between views whose elements lie next to each other along different dimensions: `transpose.cu`.

use bytemuck::{Pod, Zeroable};

use crate::{
    Result,
    backend::cuda::kernels::{Dims, Grid, Kernel, SourceFile, Submit, THREADS, Walk, submit},
    base::rank::MAX_RANK,
};

static SOURCE: SourceFile = SourceFile::ours("copy/transpose.cu", include_str!("../transpose.cu")).split();

/// Words of rows and columns below which too much of a square is left empty.
const LEAST: u64 = 16;
/// Bytes of a word, where elements are smaller and can be read so.
const WORD: u64 = 4;

/// Mirrors `TransposeParams`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub(super) struct TransposeParams {
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) rows: u64,
    pub(super) columns: u64,
    pub(super) from_stride: u64,
    pub(super) to_stride: u64,
    pub(super) down: u32,
    pub(super) across: u32,
    pub(super) squares: u64,
    pub(super) dims: Dims,
    pub(super) strides: [[u64; MAX_RANK]; 2],
}
const _: () = assert!(size_of::<TransposeParams>() == 216);

/// A copy by squares of a plane of two dimensions, of which one lies together where it is read, the other where it is written.
#[derive(Debug)]
pub(super) struct Transpose {
    name: &'static str,
    params: TransposeParams,
}

impl Transpose {
    /// Returns the copy of elements of `size` bytes that the first operand of `walk` lends and the second one takes; `None` if
    /// it is better done element by element.
    pub(super) fn of(walk: &Walk<2>, size: u64, from: u64, to: u64) -> Option<Self> {
        let along = |k: usize| walk.0.iter().position(|dim| dim.strides[k] == 1 && dim.size >= LEAST);
        let (columns_at, rows_at) = (along(0)?, along(1)?);
        if columns_at == rows_at {
            return None;
        }
        let (columns, rows) = (walk.0[columns_at], walk.0[rows_at]);
        let mut planes = walk.clone();
        let mut at = 0;
        planes.0.retain(|_| {
            at += 1;
            at - 1 != columns_at && at - 1 != rows_at
        });
        // Every word of a row or a column begins at a multiple of its size.
        let offsets =
            planes.0.iter().flat_map(|dim| dim.strides).chain([rows.strides[0], columns.strides[1]]);
        let all = offsets.chain([rows.size, columns.size]).map(|n| n * size).fold(from | to, |a, b| a | b);
        let packs = all % WORD == 0 && rows.size.min(columns.size) * size >= LEAST * WORD;
        let (name, pack) = match (size, packs) {
            (1, true) => ("transpose_1_in_fours", 4),
            (1, false) => ("transpose_1", 1),
            (2, true) => ("transpose_2_in_pairs", 2),
            (2, false) => ("transpose_2", 1),
            (4, _) => ("transpose_4", 1),
            (8, _) => ("transpose_8", 1),
            _ => return None,
        };
        let side = 32 * pack;
        let (down, across) = (rows.size.div_ceil(side), columns.size.div_ceil(side));
        let squares = planes.count().checked_mul(down)?.checked_mul(across)?;
        u32::try_from(squares).ok()?;
        let params = TransposeParams {
            from,
            to,
            rows: rows.size,
            columns: columns.size,
            from_stride: rows.strides[0],
            to_stride: columns.strides[1],
            down: u32::try_from(down).ok()?,
            across: u32::try_from(across).ok()?,
            squares,
            dims: planes.dims(),
            strides: planes.strides(),
        };
        Some(Self { name, params })
    }

    pub(super) fn submit(&self, gpu: &mut dyn Submit) -> Result<()> {
        let blocks = gpu.props().blocks_for(self.params.squares * u64::from(THREADS), THREADS);
        submit(gpu, Kernel::plain(&SOURCE, self.name), Grid::line(blocks, THREADS), &self.params)
    }
}

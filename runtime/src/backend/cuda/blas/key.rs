//! The properties on which the choice of an algorithm depends.

use super::problem::{A, B, BIAS, Problem, Y};
use crate::{DType, Numerics};

/// One operand as the library sees it: column-major.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Side {
    /// Set if the operand is used transposed.
    pub(crate) transposed: bool,
    /// Elements between its columns.
    pub(crate) ld: i64,
    /// Elements between the matrices of a batch.
    pub(crate) stride: i64,
}

/// Everything that decides which algorithms fit, and how fast they are.
///
/// The library counts columns first, we count rows first: it computes `y^T = b^T a^T`. Its first
/// matrix is our right side, and its result has `n` rows and `m` columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    /// Element type; sums are f32.
    pub(crate) dtype: DType,
    /// Rows of our result.
    pub(crate) m: u64,
    /// Columns of our result.
    pub(crate) n: u64,
    /// The size of the dimension that is summed over.
    pub(crate) k: u64,
    /// Number of products.
    pub(crate) batch: i32,
    /// Our left side.
    pub(crate) a: Side,
    /// Our right side.
    pub(crate) b: Side,
    /// Our result; never transposed.
    pub(crate) y: Side,
    /// Set if a row is added to all rows.
    pub(crate) bias: bool,
    /// The alignment of the addresses of left side, right side, bias and result, in bytes.
    pub(crate) align: [u32; 4],
    /// The switches that make a difference for it.
    pub(crate) numerics: Numerics,
}

impl Key {
    /// Returns `None` if the library cannot compute this: integers, strides that are not those of a matrix, a
    /// batch with more than one stride, a bias that is not one row or that it would add too late, or an empty
    /// product.
    pub(crate) fn of(problem: &Problem) -> Option<Self> {
        let p = problem;
        let most = i32::MAX as usize;
        if !matches!(p.dtype, DType::F32 | DType::F16 | DType::Bf16)
            || p.is_empty()
            || p.k == 0
            || [p.m, p.n, p.k].iter().any(|&x| x > most)
        {
            return None;
        }
        let (size, strides) = match p.batch.as_slice() {
            [] => (1, [0; 4]),
            [dim] if dim.size <= most => (dim.size as i32, dim.strides),
            _ => return None,
        };
        if p.has_bias() {
            let row = p.strides[BIAS];
            if (p.n != 1 && row.col != 1) || (p.m != 1 && row.row != 0) || strides[BIAS] != 0 {
                return None;
            }
        }
        let side = |i: usize, transposed: bool, ld: i64| Side { transposed, ld, stride: strides[i] as i64 };
        let either = |i: usize, rows: usize, cols: usize| {
            let s = p.strides[i];
            leading(cols, rows, s.col, s.row)
                .map(|ld| side(i, false, ld))
                .or_else(|| leading(rows, cols, s.row, s.col).map(|ld| side(i, true, ld)))
        };
        let key = Self {
            dtype: p.dtype,
            m: p.m as u64,
            n: p.n as u64,
            k: p.k as u64,
            batch: size,
            a: either(A, p.m, p.k)?,
            b: either(B, p.k, p.n)?,
            y: side(Y, false, leading(p.n, p.m, p.strides[Y].col, p.strides[Y].row)?),
            bias: p.has_bias(),
            align: p.addrs.map(alignment),
            numerics: Numerics::default(),
        };
        (!key.rounds_twice()).then_some(key)
    }

    /// Returns the key of the same product with these switches, as far as they concern it. `has_tf32` says that the device
    /// has tensor cores for TF32.
    pub(crate) fn with_numerics(self, numerics: Numerics, has_tf32: bool) -> Self {
        let numerics = numerics.concerning(self.dtype);
        Self { numerics: numerics.tf32(numerics.tf32 && has_tf32), ..self }
    }

    /// Returns whether some of the library's algorithms round the product before they add the bias: in 16
    /// bits, if rows do not begin or end at multiples of 16 bytes (observed with 13.0, test
    /// `every_candidate_rounds_once`). The library does not report which ones.
    fn rounds_twice(&self) -> bool {
        let bytes = self.dtype.size() as i64;
        let whole = |elements: i64| elements * bytes % 16 == 0;
        let begin = [self.a, self.b, self.y].iter().all(|side| whole(side.ld) && whole(side.stride))
            && self.align.iter().all(|&align| align >= 16);
        let end = whole(self.k as i64) && whole(self.n as i64);
        self.bias && bytes == 2 && !(begin && end)
    }

    /// Returns the key as text, which names an entry on disk. In the deterministic mode nothing is kept there.
    pub(crate) fn text(&self) -> String {
        let side = |s: Side| format!("{}{}+{}", if s.transposed { 't' } else { 'n' }, s.ld, s.stride);
        let [a, b, bias, y] = self.align;
        let tf32 = if self.numerics.tf32 { " tf32" } else { "" };
        let reduced = if self.numerics.reduced_precision_reduction { " reduced" } else { "" };
        format!(
            "{} m{} n{} k{} x{} a:{} b:{} y:{} bias:{} align:{a},{b},{bias},{y}{tf32}{reduced}",
            self.dtype,
            self.m,
            self.n,
            self.k,
            self.batch,
            side(self.a),
            side(self.b),
            side(self.y),
            self.bias
        )
    }
}

/// Returns the leading dimension of a column-major matrix, if these strides belong to one.
fn leading(rows: usize, cols: usize, down: usize, across: usize) -> Option<i64> {
    if rows != 1 && down != 1 {
        return None;
    }
    // Of a single column any leading dimension will do.
    let ld = if cols == 1 { rows } else { across };
    if ld < rows { None } else { i64::try_from(ld).ok() }
}

/// Returns the alignment class of an address: 256 bytes (the alignment of allocations), 16 bytes (as vector
/// loads need), or otherwise the exact alignment. A null address counts as fully aligned.
fn alignment(addr: u64) -> u32 {
    match addr.trailing_zeros() {
        8.. => 256,
        4..8 => 16,
        bits => 1 << bits,
    }
}

//! The only use of `gemm-f32`, the part of the `gemm` crate for `f32`: checks the preconditions that the
//! crate relies on.
//!
//! The crate `gemm` itself would add four more element types, each of which takes as long to build as this
//! one.

#[cfg(feature = "cpu-gemm")]
use gemm_common::Parallelism;

#[cfg(not(feature = "cpu-gemm"))]
pub(crate) use super::plain::multiply;

/// A matrix to read: element `(i, j)` is `data[i * rs + j * cs]`.
#[derive(Clone, Copy)]
pub(crate) struct Mat<'a> {
    pub(crate) data: &'a [f32],
    pub(crate) rs: usize,
    pub(crate) cs: usize,
}

/// The sizes of the product of `[m, k]` and `[k, n]`.
#[derive(Clone, Copy)]
pub(crate) struct Sizes {
    pub(crate) m: usize,
    pub(crate) k: usize,
    pub(crate) n: usize,
}

/// Variants of the product.
#[derive(Clone, Copy)]
pub(crate) struct Mode {
    /// Adds to the previous values instead of overwriting them.
    pub(crate) add: bool,
    /// Factor of the product.
    pub(crate) scale: f32,
    /// May use rayon's pool; the result does not depend on it.
    pub(crate) threads: bool,
}

#[cfg(feature = "cpu-gemm")]
/// `dst = scale * a x b (+ dst)`, with `a: m, k` and `b: k, n`. Row `i` of the product starts at
/// `dst[i * rs]`.
///
/// # Panics
/// Panics if a matrix is smaller than its shape and strides require.
pub(crate) fn multiply(sizes: Sizes, dst: &mut [f32], rs: usize, a: Mat<'_>, b: Mat<'_>, mode: Mode) {
    let Sizes { m, k, n } = sizes;
    if m == 0 || n == 0 {
        return;
    }
    // Strides of dimensions of size 1 mean nothing, but they choose the path inside of `gemm`.
    let unit = |n: usize, stride: usize, neutral: usize| if n == 1 { neutral } else { stride };
    let rs = unit(m, rs, n);
    assert!(rs >= n && span(m, rs, n, 1) <= dst.len(), "destination of a product");
    let a = Operand::checked("left", a.data, (m, unit(m, a.rs, k.max(1))), (k, unit(k, a.cs, 1)));
    let b = Operand::checked("right", b.data, (k, unit(k, b.rs, 1)), (n, unit(n, b.cs, k.max(1))));
    let parallelism = if mode.threads { Parallelism::Rayon(0) } else { Parallelism::None };
    // Its kernels need the columns of the destination to be contiguous: if the rows are, this computes the
    // product of the transposed matrices.
    let (m, n, (dst_cs, dst_rs), left, right) = match rs > 1 {
        true => (n, m, (rs as isize, 1), b.transposed(), a.transposed()),
        false => (m, n, (1, rs as isize), a, b),
    };
    let multiply = gemm_f32::gemm::f32::get_gemm_fn();
    // SAFETY: it reads `a.data[i * a.rs + l * a.cs]` and `b.data[l * b.rs + j * b.cs]` and
    // reads and writes `dst[i * rs + j]`, for i < m, j < n, l < k. The largest of these indices is
    // one less than the span; the assert above holds the span of `dst` within its slice, and
    // `Operand::checked` those of `a` and `b` (with `k == 0` neither is read). A slice has at most `isize::MAX` bytes, so the strides
    // that are used fit in `isize`; the others were replaced by n or k, which are no larger than a
    // span. `dst` is borrowed mutably, so nothing else overlaps it; rows of `dst` do not overlap
    // each other, as `rs >= n`. Transposing both sides and the product swaps names only. No stride is
    // negative, which is what the crate `gemm` takes care of before it calls this function.
    unsafe {
        multiply(
            m,
            n,
            k,
            dst.as_mut_ptr(),
            dst_cs,
            dst_rs,
            mode.add,
            left.data,
            left.cs,
            left.rs,
            right.data,
            right.cs,
            right.rs,
            1.0,
            mode.scale,
            false,
            false,
            false,
            parallelism,
        );
    }
}

/// A side of a product: its elements lie within the slice that it was made of.
#[cfg(feature = "cpu-gemm")]
struct Operand {
    data: *const f32,
    rs: isize,
    cs: isize,
}

#[cfg(feature = "cpu-gemm")]
impl Operand {
    /// A matrix of so many rows and columns, with their strides.
    ///
    /// # Panics
    /// Panics if the slice is smaller.
    fn checked(side: &str, data: &[f32], (rows, rs): (usize, usize), (cols, cs): (usize, usize)) -> Self {
        let is_within = rows == 0 || cols == 0 || span(rows, rs, cols, cs) <= data.len();
        assert!(is_within, "{side} side of a product");
        Self { data: data.as_ptr(), rs: rs as isize, cs: cs as isize }
    }

    fn transposed(self) -> Self {
        Self { rs: self.cs, cs: self.rs, ..self }
    }
}

#[cfg(feature = "cpu-gemm")]
/// Elements that a matrix of no zero dimension touches; saturates, so that the check fails.
fn span(rows: usize, rs: usize, cols: usize, cs: usize) -> usize {
    (rows - 1).saturating_mul(rs).saturating_add((cols - 1).saturating_mul(cs)).saturating_add(1)
}

//! The one door to the `gemm` crate: checks what the crate trusts.

#[cfg(feature = "cpu-gemm")]
use gemm::Parallelism;

#[cfg(not(feature = "cpu-gemm"))]
pub(super) use super::plain::multiply;

/// A matrix to read: element `(i, j)` is `data[i * rs + j * cs]`.
#[derive(Clone, Copy)]
pub(super) struct Mat<'a> {
    pub(super) data: &'a [f32],
    pub(super) rs: usize,
    pub(super) cs: usize,
}

/// What happens around the product.
#[derive(Clone, Copy)]
pub(super) struct Mode {
    /// Adds to what is there instead of overwriting it.
    pub(super) add: bool,
    /// Factor of the product.
    pub(super) scale: f32,
    /// May use rayon's pool; the result does not depend on it.
    pub(super) threads: bool,
}

#[cfg(feature = "cpu-gemm")]
/// `dst = scale * a x b (+ dst)`, with `a: m, k` and `b: k, n`. Row `i` of the product starts at
/// `dst[i * rs]`.
///
/// # Panics
/// When a matrix is smaller than its shape and strides say.
pub(super) fn multiply(
    (m, k, n): (usize, usize, usize),
    dst: &mut [f32],
    rs: usize,
    a: Mat<'_>,
    b: Mat<'_>,
    mode: Mode,
) {
    if m == 0 || n == 0 {
        return;
    }
    // Strides of dimensions of size 1 mean nothing, but they choose the path inside of `gemm`.
    let unit = |n: usize, stride: usize, neutral: usize| if n == 1 { neutral } else { stride };
    let rs = unit(m, rs, n);
    let (a_rs, a_cs) = (unit(m, a.rs, k.max(1)), unit(k, a.cs, 1));
    let (b_rs, b_cs) = (unit(k, b.rs, 1), unit(n, b.cs, k.max(1)));
    assert!(rs >= n && span(m, rs, n, 1) <= dst.len(), "destination of a product");
    assert!(k == 0 || span(m, a_rs, k, a_cs) <= a.data.len(), "left side of a product");
    assert!(k == 0 || span(k, b_rs, n, b_cs) <= b.data.len(), "right side of a product");
    let parallelism = if mode.threads { Parallelism::Rayon(0) } else { Parallelism::None };
    // SAFETY: `gemm` reads `a.data[i * a_rs + l * a_cs]` and `b.data[l * b_rs + j * b_cs]` and
    // reads and writes `dst[i * rs + j]`, for i < m, j < n, l < k. The largest of these indices is
    // one less than the span, and the asserts above hold the spans within the slices (with
    // `k == 0` neither `a` nor `b` is read). A slice has at most `isize::MAX` bytes, so the strides
    // that are used fit in `isize`; the others were replaced by n or k, which are no larger than a
    // span. `dst` is borrowed mutably, so nothing else overlaps it; rows of `dst` do not overlap
    // each other, as `rs >= n`. `f32` is one of the types that `gemm` accepts.
    unsafe {
        gemm::gemm(
            m,
            n,
            k,
            dst.as_mut_ptr(),
            1,
            rs as isize,
            mode.add,
            a.data.as_ptr(),
            a_cs as isize,
            a_rs as isize,
            b.data.as_ptr(),
            b_cs as isize,
            b_rs as isize,
            1.0,
            mode.scale,
            false,
            false,
            false,
            parallelism,
        );
    }
}

#[cfg(feature = "cpu-gemm")]
/// Elements that a matrix of no zero dimension touches; saturates, so that the check fails.
fn span(rows: usize, rs: usize, cols: usize, cs: usize) -> usize {
    (rows - 1).saturating_mul(rs).saturating_add((cols - 1).saturating_mul(cs)).saturating_add(1)
}

//! Products of matrices without the `gemm-f32` crate: the same results up to rounding, several times as slow.

use rayon::prelude::*;

use super::gemm::{Mat, Mode, Sizes};

/// Sums that are kept apart in a dot product, so that it can be vectorised.
const LANES: usize = 16;

/// `dst = scale * a x b (+ dst)`, with `a: m, k` and `b: k, n`. Row `i` of the product starts at
/// `dst[i * rs]`. The result does not depend on threads.
///
/// # Panics
/// Panics if a matrix is smaller than its shape and strides require.
pub(crate) fn multiply(sizes: Sizes, dst: &mut [f32], rs: usize, a: Mat<'_>, b: Mat<'_>, mode: Mode) {
    let Sizes { m, k, n } = sizes;
    if m == 0 || n == 0 {
        return;
    }
    // The stride of a single row means nothing.
    let rs = if m == 1 { n } else { rs };
    let one = |left: &mut Vec<f32>, (i, to): (usize, &mut [f32])| {
        left.clear();
        left.extend((0..k).map(|l| a.data[i * a.rs + l * a.cs]));
        row(left, b, mode, &mut to[..n]);
    };
    if mode.threads {
        dst.par_chunks_mut(rs).take(m).enumerate().for_each_init(Vec::new, one);
    } else {
        let mut left = Vec::new();
        dst.chunks_mut(rs).take(m).enumerate().for_each(|item| one(&mut left, item));
    }
}

/// One row of the product.
fn row(left: &[f32], b: Mat<'_>, mode: Mode, to: &mut [f32]) {
    if !mode.add {
        to.fill(0.0);
    }
    if left.is_empty() {
        return;
    }
    // Along whichever dimension of the right side is contiguous.
    if b.rs == 1 {
        for (j, to) in to.iter_mut().enumerate() {
            *to += mode.scale * dot(left, &b.data[j * b.cs..][..left.len()]);
        }
        return;
    }
    for (l, &x) in left.iter().enumerate() {
        let x = mode.scale * x;
        if b.cs == 1 {
            let right = &b.data[l * b.rs..][..to.len()];
            to.iter_mut().zip(right).for_each(|(to, y)| *to += x * y);
        } else {
            to.iter_mut().enumerate().for_each(|(j, to)| *to += x * b.data[l * b.rs + j * b.cs]);
        }
    }
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    let mut sums = [0.0; LANES];
    let (left, left_rest) = a.as_chunks::<LANES>();
    let (right, right_rest) = b.as_chunks::<LANES>();
    for (x, y) in left.iter().zip(right) {
        for lane in 0..LANES {
            sums[lane] += x[lane] * y[lane];
        }
    }
    let rest: f32 = left_rest.iter().zip(right_rest).map(|(x, y)| x * y).sum();
    sums.iter().sum::<f32>() + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Element `(i, j)` of a matrix with whole numbers, so that every order of summation has the same result.
    fn element(i: usize, j: usize) -> f32 {
        ((i * 7 + j * 3) % 11) as f32 - 5.0
    }

    /// The matrix, with its rows or its columns end to end, and gaps.
    fn laid_out(rows: usize, columns: usize, transposed: bool) -> (Vec<f32>, usize, usize) {
        let (rs, cs) = if transposed { (1, rows + 2) } else { (columns + 3, 1) };
        let mut data = vec![f32::NAN; rows * rs.max(1) + columns * cs + rows * columns * 4];
        for i in 0..rows {
            for j in 0..columns {
                data[i * rs + j * cs] = element(i, j);
            }
        }
        (data, rs, cs)
    }

    #[test]
    fn products_are_exact_on_whole_numbers() {
        for (m, k, n) in [(1, 1, 1), (1, 40, 7), (5, 33, 4), (3, 0, 2), (17, 16, 19)] {
            for case in 0..16 {
                let flag = |bit: usize| case >> bit & 1 == 1;
                let (left, a_rs, a_cs) = laid_out(m, k, flag(0));
                let (right, b_rs, b_cs) = laid_out(k, n, flag(1));
                let rs = n + 2;
                let mut dst = vec![2.0; (m - 1) * rs + n];
                let a = Mat { data: &left, rs: a_rs, cs: a_cs };
                let b = Mat { data: &right, rs: b_rs, cs: b_cs };
                let mode = Mode { add: flag(2), scale: 0.5, threads: flag(3) };
                multiply(Sizes { m, k, n }, &mut dst, rs, a, b, mode);
                for i in 0..m {
                    for j in 0..n {
                        let sum: f32 = (0..k).map(|l| element(i, l) * element(l, j)).sum();
                        let expected = sum * 0.5 + if flag(2) { 2.0 } else { 0.0 };
                        assert_eq!(dst[i * rs + j], expected, "{m}, {k}, {n}, case {case}, at {i}, {j}");
                    }
                }
                // Memory between the rows is not changed.
                assert!(dst.iter().enumerate().all(|(at, x)| at % rs < n || *x == 2.0));
            }
        }
    }
}

//! The kernels of pooling. What the padding of a bucket holds is outside of the input.

use crate::kernel;
#[cfg(feature = "cuda")]
use crate::{
    kernel::definition::{Definition, Kernel as _},
    ops::by_type::definitions,
};

/// The first element of part `i` of `parts`, into which a dimension is divided.
#[kernel]
fn part_begin(i: i32, size: i32, parts: i32) -> i32 {
    i * size / parts
}

/// The element after its last one; neighbours may share an element.
#[kernel]
fn part_end(i: i32, size: i32, parts: i32) -> i32 {
    ((i + 1) * size + parts - 1) / parts
}

/// Parts of each dimension, whose elements are put together. No part has more than the quotient and two elements.
macro_rules! adaptive {
    ($t:ident $one:ident $two:ident $begin:expr, |$sum:ident, $value:ident| $step:expr, |$count:ident| $end:expr) => {
        #[kernel(index)]
        pub(in crate::ops) fn $one(x: View<$t, 3>, parts: i32, [n, c, i]: [i32; 3]) -> $t {
            let (first, last) = (part_begin(i, x.dim(2), parts), part_end(i, x.dim(2), parts));
            let mut $sum = $begin;
            for k in 0..x.dim(2) / parts + 2 {
                if first + k >= last {
                    break;
                }
                let $value = x.at([n, c, first + k]);
                $sum = $step;
            }
            let $count = (last - first) as $t;
            $end
        }

        #[kernel(index)]
        pub(in crate::ops) fn $two(x: View<$t, 4>, parts: i32, parts_2: i32, [n, c, i, j]: [i32; 4]) -> $t {
            let (row, below) = (part_begin(i, x.dim(2), parts), part_end(i, x.dim(2), parts));
            let (column, after) = (part_begin(j, x.dim(3), parts_2), part_end(j, x.dim(3), parts_2));
            let mut $sum = $begin;
            for k in 0..x.dim(2) / parts + 2 {
                if row + k >= below {
                    break;
                }
                for l in 0..x.dim(3) / parts_2 + 2 {
                    if column + l >= after {
                        break;
                    }
                    let $value = x.at([n, c, row + k, column + l]);
                    $sum = $step;
                }
            }
            let $count = ((below - row) * (after - column)) as $t;
            $end
        }
    };
}

/// The kernels of a type.
macro_rules! pools {
    ($($module:ident $t:ident)*) => {$(
        pub(super) mod $module {
            use super::{part_begin, part_end};
            use crate::kernel;

            /// The larger one; a NaN stays.
            #[kernel]
            fn larger(most: $t, value: $t) -> $t {
                if value > most || value.is_nan() { value } else { most }
            }

            /// The largest element of each window.
            #[kernel(index)]
            pub(in crate::ops) fn max_pool_1d(
                x: View<$t, 3>,
                kernel: i32,
                stride: i32,
                padding: i32,
                dilation: i32,
                [n, c, i]: [i32; 3],
            ) -> $t {
                let mut most = $t::NEG_INFINITY;
                for k in 0..kernel {
                    most = larger(most, x.at_or([n, c, i * stride + k * dilation - padding], $t::NEG_INFINITY));
                }
                most
            }

            #[kernel(index)]
            pub(in crate::ops) fn max_pool_2d(
                x: View<$t, 4>,
                kernel: i32,
                stride: i32,
                padding: i32,
                dilation: i32,
                kernel_2: i32,
                stride_2: i32,
                padding_2: i32,
                dilation_2: i32,
                [n, c, i, j]: [i32; 4],
            ) -> $t {
                let mut most = $t::NEG_INFINITY;
                for k in 0..kernel {
                    let row = i * stride + k * dilation - padding;
                    for l in 0..kernel_2 {
                        let column = j * stride_2 + l * dilation_2 - padding_2;
                        most = larger(most, x.at_or([n, c, row, column], $t::NEG_INFINITY));
                    }
                }
                most
            }

            /// Number of elements of a window that count: those in the input, or those in the input and in its padding.
            #[kernel]
            fn counted(first: i32, kernel: i32, padding: i32, size: i32, all: bool) -> $t {
                if all {
                    ((first + kernel).min(size + padding) - first) as $t
                } else {
                    ((first + kernel).min(size) - first.max(0)) as $t
                }
            }

            /// The mean of each window, with zeros around the input.
            #[kernel(index)]
            pub(in crate::ops) fn avg_pool_1d(
                x: View<$t, 3>,
                kernel: i32,
                stride: i32,
                padding: i32,
                all: bool,
                [n, c, i]: [i32; 3],
            ) -> $t {
                let first = i * stride - padding;
                let mut sum = 0.0;
                for k in 0..kernel {
                    sum += x.at_or([n, c, first + k], 0.0);
                }
                sum / counted(first, kernel, padding, x.dim(2), all)
            }

            #[kernel(index)]
            pub(in crate::ops) fn avg_pool_2d(
                x: View<$t, 4>,
                kernel: i32,
                stride: i32,
                padding: i32,
                kernel_2: i32,
                stride_2: i32,
                padding_2: i32,
                all: bool,
                [n, c, i, j]: [i32; 4],
            ) -> $t {
                let (row, column) = (i * stride - padding, j * stride_2 - padding_2);
                let mut sum = 0.0;
                for k in 0..kernel {
                    for l in 0..kernel_2 {
                        sum += x.at_or([n, c, row + k, column + l], 0.0);
                    }
                }
                let rows = counted(row, kernel, padding, x.dim(2), all);
                sum / (rows * counted(column, kernel_2, padding_2, x.dim(3), all))
            }

            adaptive!($t adaptive_avg_1d adaptive_avg_2d 0.0, |sum, value| sum + value, |count| sum / count);
            adaptive!($t adaptive_max_1d adaptive_max_2d $t::NEG_INFINITY, |most, value| larger(most, value), |_count| most);
        }
    )*};
}

pools! {
    floats f32
    doubles f64
}

/// The kernels of this file, for CI to compile.
#[cfg(feature = "cuda")]
pub(super) fn all() -> impl Iterator<Item = &'static Definition> {
    definitions!([floats, doubles] [
        max_pool_1d, max_pool_2d, avg_pool_1d, avg_pool_2d,
        adaptive_avg_1d, adaptive_avg_2d, adaptive_max_1d, adaptive_max_2d
    ])
}

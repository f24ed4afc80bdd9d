//! The kernels of upsampling. Places are computed in f32, as PyTorch computes them.

use crate::kernel;
#[cfg(feature = "cuda")]
use crate::{
    kernel::definition::{Definition, Kernel as _},
    ops::by_type::definitions,
};

/// The element of a dimension that stands at place `i` of `out`.
#[kernel]
fn nearest(i: i32, size: i32, out: i32) -> i32 {
    let scale = size as f32 / out as f32;
    ((i as f32 * scale).floor() as i32).min(size - 1)
}

/// The kernels of a type.
macro_rules! sizes {
    ($($module:ident $t:ident)*) => {$(
        pub(super) mod $module {
            use super::nearest;
            use crate::kernel;

            #[kernel(index)]
            pub(in crate::ops) fn nearest_1d(x: View<$t, 3>, out: i32, [n, c, i]: [i32; 3]) -> $t {
                x.at([n, c, nearest(i, x.dim(2), out)])
            }

            #[kernel(index)]
            pub(in crate::ops) fn nearest_2d(x: View<$t, 4>, out: i32, out_2: i32, [n, c, i, j]: [i32; 4]) -> $t {
                x.at([n, c, nearest(i, x.dim(2), out), nearest(j, x.dim(3), out_2)])
            }

            /// The place in the input, between two elements, of place `i` of `out`.
            #[kernel]
            fn between(i: i32, size: i32, out: i32, corners: bool) -> $t {
                if corners {
                    let scale = if out > 1 { (size - 1) as $t / (out - 1) as $t } else { 0.0 };
                    i as $t * scale
                } else {
                    let scale = size as $t / out as $t;
                    ((i as $t + 0.5) * scale - 0.5).max(0.0)
                }
            }

            #[kernel(index)]
            pub(in crate::ops) fn linear_1d(x: View<$t, 3>, out: i32, corners: bool, [n, c, i]: [i32; 3]) -> $t {
                let place = between(i, x.dim(2), out, corners);
                let first = (place as i32).min(x.dim(2) - 1);
                let second = (first + 1).min(x.dim(2) - 1);
                let part = place - first as $t;
                (1.0 - part) * x.at([n, c, first]) + part * x.at([n, c, second])
            }

            #[kernel(index)]
            pub(in crate::ops) fn bilinear_2d(
                x: View<$t, 4>,
                out: i32,
                out_2: i32,
                corners: bool,
                [n, c, i, j]: [i32; 4],
            ) -> $t {
                let (place, place_2) = (between(i, x.dim(2), out, corners), between(j, x.dim(3), out_2, corners));
                let (row, column) = ((place as i32).min(x.dim(2) - 1), (place_2 as i32).min(x.dim(3) - 1));
                let (below, right) = ((row + 1).min(x.dim(2) - 1), (column + 1).min(x.dim(3) - 1));
                let (down, along) = (place - row as $t, place_2 - column as $t);
                let above = (1.0 - along) * x.at([n, c, row, column]) + along * x.at([n, c, row, right]);
                let under = (1.0 - along) * x.at([n, c, below, column]) + along * x.at([n, c, below, right]);
                (1.0 - down) * above + down * under
            }
        }
    )*};
}

sizes! {
    floats f32
    doubles f64
}

/// The kernels of this file, for CI to compile.
#[cfg(feature = "cuda")]
pub(super) fn all() -> impl Iterator<Item = &'static Definition> {
    definitions!([floats, doubles] [nearest_1d, nearest_2d, linear_1d, bilinear_2d])
}

//! The kernels of upsampling. Places of `nearest` are computed in f32, as PyTorch computes them, and those of `linear` in the type
//! of the elements; where a dimension keeps its size, elements are
//! copied, and where `nearest` doubles it, they are repeated, since a place above 2^24 is not exact.

use crate::kernel;
#[cfg(feature = "cuda")]
use crate::{
    kernel::definition::{Definition, Kernel as _},
    ops::by_type::definitions,
};

/// The element of a dimension that stands at place `i` of `out`.
#[kernel]
fn nearest(i: i32, size: i32, out: i32) -> i32 {
    if out == size {
        i
    } else if out % 2 == 0 && out / 2 == size {
        i / 2
    } else {
        let scale = size as f32 / out as f32;
        ((i as f32 * scale).floor() as i32).min(size - 1)
    }
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

            /// `part` of the way from `first` to `second`; `first` alone in a dimension that keeps its size, where an infinity in
            /// `second` would spread.
            #[kernel]
            fn blend(is_kept: bool, part: $t, first: $t, second: $t) -> $t {
                if is_kept { first } else { (1.0 - part) * first + part * second }
            }

            #[kernel(index)]
            pub(in crate::ops) fn linear_1d(x: View<$t, 3>, out: i32, corners: bool, [n, c, i]: [i32; 3]) -> $t {
                let is_kept = out == x.dim(2);
                let place = between(i, x.dim(2), out, corners);
                let first = if is_kept { i } else { (place as i32).min(x.dim(2) - 1) };
                let second = (first + 1).min(x.dim(2) - 1);
                blend(is_kept, place - first as $t, x.at([n, c, first]), x.at([n, c, second]))
            }

            #[kernel(index)]
            pub(in crate::ops) fn bilinear_2d(
                x: View<$t, 4>,
                out: i32,
                out_2: i32,
                corners: bool,
                [n, c, i, j]: [i32; 4],
            ) -> $t {
                let (keeps_rows, keeps_columns) = (out == x.dim(2), out_2 == x.dim(3));
                let (place, place_2) = (between(i, x.dim(2), out, corners), between(j, x.dim(3), out_2, corners));
                let row = if keeps_rows { i } else { (place as i32).min(x.dim(2) - 1) };
                let column = if keeps_columns { j } else { (place_2 as i32).min(x.dim(3) - 1) };
                let (below, right) = ((row + 1).min(x.dim(2) - 1), (column + 1).min(x.dim(3) - 1));
                let (down, along) = (place - row as $t, place_2 - column as $t);
                let above = blend(keeps_columns, along, x.at([n, c, row, column]), x.at([n, c, row, right]));
                let under = blend(keeps_columns, along, x.at([n, c, below, column]), x.at([n, c, below, right]));
                blend(keeps_rows, down, above, under)
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

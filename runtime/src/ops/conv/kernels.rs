//! The kernels of convolutions. Zeros surround the input, and stand for what the padding of a bucket holds.

#[cfg(feature = "cuda")]
use crate::{
    kernel::definition::{Definition, Kernel as _},
    ops::by_type::definitions,
};

/// A convolution whose groups have one channel of the input, each with the channel of the result `per_group` times; the
/// sum begins with the bias.
macro_rules! depthwise {
    ($t:ident $one:ident $two:ident ($($bias:ident: $of:expr)?) $c:ident) => {
        #[kernel(index)]
        pub(in crate::ops) fn $one(
            x: View<$t, 3>,
            w: View<$t, 3>,
            $($bias: View<$t, 1>,)?
            per_group: i32,
            stride: i32,
            padding: i32,
            dilation: i32,
            [n, $c, i]: [i32; 3],
        ) -> $t {
            let mut sum = 0.0;
            $(sum += $of;)?
            for k in 0..w.dim(2) {
                sum += x.at_or([n, $c / per_group, i * stride + k * dilation - padding], 0.0) * w.at([$c, 0, k]);
            }
            sum
        }

        #[kernel(index)]
        pub(in crate::ops) fn $two(
            x: View<$t, 4>,
            w: View<$t, 4>,
            $($bias: View<$t, 1>,)?
            per_group: i32,
            stride: i32,
            padding: i32,
            dilation: i32,
            stride_2: i32,
            padding_2: i32,
            dilation_2: i32,
            [n, $c, i, j]: [i32; 4],
        ) -> $t {
            let mut sum = 0.0;
            $(sum += $of;)?
            for k in 0..w.dim(2) {
                let row = i * stride + k * dilation - padding;
                for l in 0..w.dim(3) {
                    let column = j * stride_2 + l * dilation_2 - padding_2;
                    sum += x.at_or([n, $c / per_group, row, column], 0.0) * w.at([$c, 0, k, l]);
                }
            }
            sum
        }
    };
}

/// The sum of what each element of the input contributes to an element of the result, after a bias. The contributions,
/// `[groups, N, positions, channels of a group, K]`, are a product; the `K` of two dimensions are one, row by row.
macro_rules! fold {
    ($t:ident $one:ident $two:ident ($($bias:ident: $of:expr)?) $c:ident) => {
        #[kernel(index)]
        pub(in crate::ops) fn $one(
            parts: View<$t, 5>,
            $($bias: View<$t, 1>,)?
            stride: i32,
            padding: i32,
            dilation: i32,
            [n, $c, i]: [i32; 3],
        ) -> $t {
            let (group, channel) = ($c / parts.dim(3), $c % parts.dim(3));
            let mut sum = 0.0;
            $(sum += $of;)?
            for k in 0..parts.dim(4) {
                let place = i + padding - k * dilation;
                if place % stride == 0 {
                    sum += parts.at_or([group, n, place / stride, channel, k], 0.0);
                }
            }
            sum
        }

        #[kernel(index)]
        pub(in crate::ops) fn $two(
            parts: View<$t, 6>,
            $($bias: View<$t, 1>,)?
            columns: i32,
            stride: i32,
            padding: i32,
            dilation: i32,
            stride_2: i32,
            padding_2: i32,
            dilation_2: i32,
            [n, $c, i, j]: [i32; 4],
        ) -> $t {
            let (group, channel) = ($c / parts.dim(4), $c % parts.dim(4));
            let mut sum = 0.0;
            $(sum += $of;)?
            for k in 0..parts.dim(5) {
                let row = i + padding - k / columns * dilation;
                let column = j + padding_2 - k % columns * dilation_2;
                if row % stride == 0 && column % stride_2 == 0 {
                    sum += parts.at_or([group, n, row / stride, column / stride_2, channel, k], 0.0);
                }
            }
            sum
        }
    };
}

/// The kernels of a type.
macro_rules! convolutions {
    ($($module:ident $t:ident)*) => {$(
        pub(super) mod $module {
            use crate::kernel;

            /// The windows of the input, `[N, positions, C, K]`: the left side of a product.
            #[kernel(index)]
            pub(in crate::ops) fn unfold_1d(
                x: View<$t, 3>,
                stride: i32,
                padding: i32,
                dilation: i32,
                [n, i, c, k]: [i32; 4],
            ) -> $t {
                x.at_or([n, c, i * stride + k * dilation - padding], 0.0)
            }

            /// Likewise, `[N, rows, columns, C, K, K]`.
            #[kernel(index)]
            pub(in crate::ops) fn unfold_2d(
                x: View<$t, 4>,
                stride: i32,
                padding: i32,
                dilation: i32,
                stride_2: i32,
                padding_2: i32,
                dilation_2: i32,
                [n, i, j, c, k, l]: [i32; 6],
            ) -> $t {
                x.at_or([n, c, i * stride + k * dilation - padding, j * stride_2 + l * dilation_2 - padding_2], 0.0)
            }

            /// A result and its bias.
            #[kernel]
            pub(in crate::ops) fn biased(y: $t, bias: $t) -> $t {
                y + bias
            }

            depthwise!($t depthwise_1d depthwise_2d () c);
            depthwise!($t depthwise_bias_1d depthwise_bias_2d (bias: bias.at([c])) c);
            fold!($t fold_1d fold_2d () c);
            fold!($t fold_bias_1d fold_bias_2d (bias: bias.at([c])) c);
        }
    )*};
}

convolutions! {
    floats f32
    doubles f64
}

/// The kernels of this file, for CI to compile.
#[cfg(feature = "cuda")]
pub(super) fn all() -> impl Iterator<Item = &'static Definition> {
    definitions!([floats, doubles] [
        biased, unfold_1d, unfold_2d, depthwise_1d, depthwise_2d, depthwise_bias_1d,
        depthwise_bias_2d, fold_1d, fold_2d, fold_bias_1d, fold_bias_2d
    ])
}

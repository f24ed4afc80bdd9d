//! The kernels of norms over channels.

#[cfg(feature = "cuda")]
use crate::{
    kernel::definition::{Definition, Kernel as _},
    ops::by_type::definitions,
};

/// For each type that elements are computed in.
macro_rules! norms {
    ($($module:ident $t:ident)*) => {$(
        pub(super) mod $module {
            use crate::kernel;

            /// A row with mean 0 and variance 1.
            #[kernel(rows)]
            pub(in crate::ops) fn normalized(x: Row<$t>, eps: $t) -> Row<$t> {
                let count = x.len() as $t;
                let mean = x.sum() / count;
                let variance = x.map(|v| (v - mean) * (v - mean)).sum() / count;
                let scale = 1.0 / (variance + eps).sqrt();
                x.map(|v| (v - mean) * scale)
            }

            #[kernel]
            pub(in crate::ops) fn affine(x: $t, weight: $t, bias: $t) -> $t {
                x * weight + bias
            }

            #[kernel]
            pub(in crate::ops) fn batch_normalized(x: $t, mean: $t, variance: $t, weight: $t, bias: $t, eps: $t) -> $t {
                (x - mean) * (1.0 / (variance + eps).sqrt()) * weight + bias
            }

            /// The mean, the variance, and the variance estimated from a sample, of the first `count` values of a row.
            #[kernel(rows)]
            pub(in crate::ops) fn batch_norm_training(x: Row<$t>, count: u32) -> ($t, $t, $t) {
                let n = (count as $t).max(1.0);
                let mean = x.enumerate().map(|(i, v)| if i < count { v } else { 0.0 }).sum() / n;
                let squares = x.enumerate().map(|(i, v)| if i < count { (v - mean) * (v - mean) } else { 0.0 }).sum();
                (mean, squares / n, squares / (n - 1.0).max(1.0))
            }

            /// A statistic that moves towards that of a batch.
            #[kernel]
            pub(in crate::ops) fn moved(batch: $t, running: $t, momentum: $t) -> $t {
                (1.0 - momentum) * running + momentum * batch
            }
        }
    )*};
}

norms! {
    floats f32
    doubles f64
}

/// The kernels of this file, for CI to compile.
#[cfg(feature = "cuda")]
pub(super) fn all() -> impl Iterator<Item = &'static Definition> {
    definitions!([floats, doubles] [normalized, affine, batch_normalized, batch_norm_training, moved])
}

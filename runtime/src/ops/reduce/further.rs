//! Reductions of `f64`, `i64` and `i8`, as kernels of rows: those of the other types have loops of their own.

#[cfg(feature = "cuda")]
use crate::kernel::definition::{Definition, Kernel as _};
use crate::ops::by_type::Further;

/// Kernels of integers, which wrap.
macro_rules! integers {
    ($($module:ident $t:ident $wide:ident;)*) => {$(
        mod $module {
            use crate::kernel;

            #[kernel(reduce)]
            pub(super) fn sum(x: Row<$t>) -> $t {
                x.sum()
            }

            #[kernel(reduce)]
            pub(super) fn mean(x: Row<$t>) -> $t {
                (x.map(|v| v as $wide).sum() / x.len() as $wide) as $t
            }

            #[kernel(reduce)]
            pub(super) fn max(x: Row<$t>) -> $t {
                x.max()
            }
        }
    )*};
}

integers! {
    i64s i64 i64;
    i8s i8 i64;
}

/// Kernels of `f64`. A NaN is unequal to itself.
mod f64s {
    use crate::kernel;

    #[kernel(reduce)]
    pub(super) fn sum(x: Row<f64>) -> f64 {
        x.sum()
    }

    #[kernel(reduce)]
    pub(super) fn mean(x: Row<f64>) -> f64 {
        x.sum() / x.len() as f64
    }

    /// NaN is the largest, and stays.
    #[kernel]
    fn larger(a: f64, b: f64) -> f64 {
        if a > b || a != a { a } else { b }
    }

    #[kernel(reduce)]
    pub(super) fn max(x: Row<f64>) -> f64 {
        x.fold(f64::NEG_INFINITY, |a, b| larger(a, b), |a, b| larger(a, b))
    }
}

/// The kernels of this file, for CI to compile: of two types.
#[cfg(feature = "cuda")]
pub(super) fn kernels() -> [&'static Definition; 2] {
    [f64s::sum::DEFINITION, i8s::mean::DEFINITION]
}

/// The kernels of each reduction.
pub(super) const SUM: Further = Further::new::<f64s::sum, i64s::sum, i8s::sum>();
pub(super) const MEAN: Further = Further::new::<f64s::mean, i64s::mean, i8s::mean>();
pub(super) const MAX: Further = Further::new::<f64s::max, i64s::max, i8s::max>();

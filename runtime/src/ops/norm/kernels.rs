//! The norms as kernels of rows.

use crate::{
    DType, Real,
    kernel::definition::{Definition, Kernel as _},
};

/// For each type that elements are computed in.
macro_rules! norms {
    ($($module:ident $t:ident)*) => {$(
        pub(super) mod $module {
            use crate::kernel;

            #[kernel(rows)]
            pub(in crate::ops) fn layer_norm(x: Row<$t>, weight: Row<$t>, bias: Row<$t>, eps: $t) -> Row<$t> {
                let mean = x.sum() / x.len() as $t;
                // A second pass instead of E[x²] - E[x]²: that difference cancels when the mean is large.
                let variance = x.map(|v| (v - mean) * (v - mean)).sum() / x.len() as $t;
                let factor = 1.0 / (variance + eps).sqrt();
                x.zip(weight).zip(bias).map(|((v, w), b)| (v - mean) * factor * w + b)
            }

            #[kernel(rows)]
            pub(in crate::ops) fn rms_norm(x: Row<$t>, weight: Row<$t>, eps: $t) -> Row<$t> {
                let factor = 1.0 / (x.map(|v| v * v).sum() / x.len() as $t + eps).sqrt();
                x.zip(weight).map(|(v, w)| v * factor * w)
            }
        }
    )*};
}

norms! {
    floats f32
    doubles f64
}

/// The nearest value that an element of each type can have.
mod nearest {
    use crate::kernel;

    #[kernel]
    pub(super) fn of_f32(x: f32) -> f32 {
        x
    }

    #[kernel]
    pub(super) fn of_f64(x: f64) -> f64 {
        x
    }

    #[kernel]
    pub(super) fn of_bf16(x: f32) -> f32 {
        // The upper half. A tie goes to even; the one NaN has nothing in the lower half.
        let bits = x.to_bits();
        f32::from_bits((bits + 0x7fff + (bits >> 16 & 1)) & 0xffff_0000)
    }

    #[kernel]
    pub(super) fn of_f16(x: f32) -> f32 {
        let size = x.abs();
        let bits = size.to_bits();
        let near = f32::from_bits((bits + 0xfff + (bits >> 13 & 1)) & 0xffff_e000);
        let normal = if near > 65504.0 { f32::INFINITY } else { near };
        // Below the smallest normal number of f16 there are multiples of 2^-24, as f32 has them next to 0.5.
        let nearest = if size < 0.000_061_035_156 { size + 0.5 - 0.5 } else { normal };
        nearest.copysign(x)
    }
}

/// For each type of elements, as the sum is rounded before it is normalised.
macro_rules! add_rms_norms {
    ($($module:ident $t:ident $nearest:ident;)*) => {$(
        mod $module {
            use super::nearest::$nearest;
            use crate::kernel;

            #[kernel(rows)]
            pub(super) fn add_rms_norm(
                x: Row<$t>,
                added: Row<$t>,
                weight: Row<$t>,
                eps: $t,
            ) -> (Row<$t>, Row<$t>) {
                let sum = x.zip(added).map(|(a, b)| $nearest(a + b));
                let factor = 1.0 / (sum.map(|v| v * v).sum() / sum.len() as $t + eps).sqrt();
                (sum, sum.zip(weight).map(|(v, w)| v * factor * w))
            }
        }
    )*};
}

add_rms_norms! {
    f32s f32 of_f32;
    f16s f32 of_f16;
    bf16s f32 of_bf16;
    f64s f64 of_f64;
}

/// The kernel of the sum, and its norm, of elements `T`.
pub(super) fn add_rms_norm<T: Real>() -> &'static Definition {
    match T::DTYPE {
        DType::F16 => f16s::add_rms_norm::DEFINITION,
        DType::Bf16 => bf16s::add_rms_norm::DEFINITION,
        DType::F64 => f64s::add_rms_norm::DEFINITION,
        _ => f32s::add_rms_norm::DEFINITION,
    }
}

/// The kernels of this file, for CI to compile.
#[cfg(feature = "cuda")]
pub(in crate::ops) fn all() -> impl Iterator<Item = &'static Definition> {
    let sums = [
        f32s::add_rms_norm::DEFINITION,
        f16s::add_rms_norm::DEFINITION,
        bf16s::add_rms_norm::DEFINITION,
        f64s::add_rms_norm::DEFINITION,
    ];
    let of_reals = [floats::layer_norm::DEFINITION, floats::rms_norm::DEFINITION];
    of_reals.into_iter().chain([doubles::layer_norm::DEFINITION, doubles::rms_norm::DEFINITION]).chain(sums)
}

#[cfg(test)]
mod tests {
    use half::{bf16, f16};
    use rand::{Rng as _, SeedableRng as _, rngs::StdRng};

    use super::*;
    use crate::backend::cpu::kernels::float::testing::check_all;

    #[test]
    fn rounding_is_that_of_the_types() {
        let mut rng = StdRng::seed_from_u64(3);
        let ends =
            [0.0, -0.0, f32::INFINITY, 65519.9, 65520.0, 6.1e-5, 6.103_515_6e-5, 3e-8, 2.9e-8, f32::MAX];
        let mut cases: Vec<f32> = ends.to_vec();
        for _ in 0..200_000 {
            cases.push(f32::from_bits(rng.random()));
            cases.push(rng.random_range(-70_000.0f32..70_000.0) * rng.random::<f32>().powi(9));
        }
        for x in cases.into_iter().filter(|x| !x.is_nan()) {
            assert_eq!(nearest::of_f16::scalar(x).to_bits(), f16::from_f32(x).to_f32().to_bits(), "{x:e}");
            assert_eq!(nearest::of_bf16::scalar(x).to_bits(), bf16::from_f32(x).to_f32().to_bits(), "{x:e}");
        }
        assert!(nearest::of_f16::scalar(-f32::NAN).is_nan() && nearest::of_bf16::scalar(f32::NAN).is_nan());
    }

    #[test]
    fn layer_norm_is_right() {
        let weight: Vec<f32> = (0..600).map(|i| 0.5 + i as f32 / 600.0).collect();
        let bias: Vec<f32> = (0..600).map(|i| i as f32 / 300.0 - 1.0).collect();
        check_all(
            2e-5,
            |row| row.copy_from_slice(&floats::layer_norm::row(row, &weight, &bias, 1e-3)),
            |row| {
                let n = row.len() as f64;
                let mean = row.iter().sum::<f64>() / n;
                let variance = row.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n;
                let part = |i: usize| f64::from(weight[i]) / (variance + 1e-3).sqrt();
                row.iter().enumerate().map(|(i, v)| (v - mean) * part(i) + f64::from(bias[i])).collect()
            },
        );
    }

    #[test]
    fn layer_norm_keeps_a_small_variance_beside_a_large_mean() {
        let row: Vec<f32> = (0..64).map(|i| 4096.0 + (i % 2) as f32).collect();
        let row = floats::layer_norm::row(&row, &[1.0; 64], &[0.0; 64], 0.0);
        assert!(
            row.iter().enumerate().all(|(i, v)| (v.abs() - 1.0).abs() < 1e-5 && (*v > 0.0) == (i % 2 == 1))
        );
    }

    #[test]
    fn rms_norm_is_right() {
        let weight: Vec<f32> = (0..600).map(|i| 0.5 + i as f32 / 600.0).collect();
        check_all(
            1e-5,
            |row| row.copy_from_slice(&floats::rms_norm::row(row, &weight, 1e-3)),
            |row| {
                let square = row.iter().map(|v| v * v).sum::<f64>() / row.len() as f64;
                row.iter().zip(&weight).map(|(v, &w)| v * f64::from(w) / (square + 1e-3).sqrt()).collect()
            },
        );
    }
}

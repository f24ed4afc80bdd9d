//! Functions that kernels can call and Rust does not have. Each device has its own, as it has of `exp`.

#![expect(non_camel_case_types, reason = "kernels call them")]

use std::any::TypeId;

use crate::kernel::{
    definition::{Compute, Definition, Kernel, Kind},
    exp::exp,
};

use super::error_functions;

/// Functions of one float of a type: the Rust, and the CUDA C++ with the argument `x`.
macro_rules! functions {
    ($t:ident $compute:ident $further:literal $input:ident $output:ident: $($(#[$doc:meta])* $name:ident($x:ident) $body:block $text:literal)*) => {$(
        $(#[$doc])*
        #[derive(Debug)]
        pub(in crate::ops) enum $name {}

        impl $name {
            #[inline(always)]
            pub(in crate::ops) fn scalar($x: $t) -> $t $body
        }

        impl Kernel for $name {
            const DEFINITION: &'static Definition = &Definition {
                id: TypeId::of::<Self>(),
                name: stringify!($name),
                kind: Kind::Elements,
                inputs: &[("x", Compute::$compute)],
                outputs: &[Compute::$compute],
                further: $further,
                text: concat!("DEVICE ", stringify!($t), " ${f}(", stringify!($t), " x) {", $text, "}\n"),
                uses: |_| {},
                block: |block| {
                    for (y, x) in block.$output(0).iter_mut().zip(block.$input(0)) {
                        *y = Self::scalar(*x);
                    }
                },
            };
            const DEPTH: usize = 1;
        }
    )*};
}

functions! {
    f32 F32 false input_f32 output_f32:

    /// `1 / (1 + e^-x)`. On a GPU the reciprocal is off by at most 1 ulp, which costs a third of a division that is
    /// rounded to nearest.
    sigmoid(x) {
        1.0 / (1.0 + exp(-x))
    }
    "
    f32 y;
    asm(\"rcp.approx.ftz.f32 %0, %1;\" : \"=f\"(y) : \"f\"(1.0f + expf(-x)));
    return y;
"

    /// The distribution function of the normal distribution. The small result of a negative `x` keeps its digits: here
    /// in f64; on a GPU as `exp(-z^2) * t * q(t)` with `z = |x| / sqrt(2)` and `t = 1 / (1 + z/2)`, where `q` is off by
    /// less than 3e-7 and the rounding of `x^2` is made up for.
    normal_cdf(x) {
        let x = f64::from(x);
        let tail = 0.5 * erfc(x.abs() * std::f64::consts::FRAC_1_SQRT_2);
        (if x < 0.0 { tail } else { 1.0 - tail }) as f32
    }
    "
    const f32 a = fminf(fabsf(x), 16.0f), square = a * a, rest = __fmaf_rn(a, a, -square);
    f32 t;
    asm(\"rcp.approx.ftz.f32 %0, %1;\" : \"=f\"(t) : \"f\"(__fmaf_rn(a, 0.35355339f, 1.0f)));
    f32 q = -0.06017150f;
    q = __fmaf_rn(q, t, 0.28937700f);
    q = __fmaf_rn(q, t, -0.49589345f);
    q = __fmaf_rn(q, t, 0.28654626f);
    q = __fmaf_rn(q, t, -0.03145923f);
    q = __fmaf_rn(q, t, 0.20432477f);
    q = __fmaf_rn(q, t, 0.24278180f);
    q = __fmaf_rn(q, t, 0.28240940f);
    q = __fmaf_rn(q, t, 0.28208485f);
    f32 tail = expf(-0.5f * square) * (0.5f * t * q);
    tail = __fmaf_rn(-0.5f * rest, tail, tail);
    return x < 0.0f ? tail : 1.0f - tail;
"

    /// The error function. On the CPU it is computed in f64, near 0 by its series, whose terms do not cancel.
    error_function(x) {
        let (x, z) = (f64::from(x), f64::from(x.abs()));
        let positive = if z < 0.5 { series(z) } else { 1.0 - erfc(z) };
        positive.copysign(x) as f32
    }
    "
    return erff(x);
"

    /// `1 - error_function(x)`, whose small results keep their digits.
    complementary_error_function(x) {
        let x = f64::from(x);
        let of_positive = if x.abs() < 0.5 { 1.0 - series(x.abs()) } else { erfc(x.abs()) };
        (if x < 0.0 { 2.0 - of_positive } else { of_positive }) as f32
    }
    "
    return erfcf(x);
"
}

/// The same of `f64`.
pub(super) mod doubles {
    use super::*;

    functions! {
        f64 F64 true input_f64 output_f64:

        /// `1 / (1 + e^-x)`.
        sigmoid(x) {
            1.0 / (1.0 + (-x).exp())
        }
        " return 1.0 / (1.0 + ::exp(-x)); "

        /// The distribution function of the normal distribution.
        normal_cdf(x) {
            error_functions::normal_cdf(x)
        }
        " return ::normcdf(x); "

        /// The error function.
        error_function(x) {
            error_functions::erf(x)
        }
        " return ::erf(x); "

        /// `1 - error_function(x)`, whose small results keep their digits.
        complementary_error_function(x) {
            error_functions::erfc(x)
        }
        " return ::erfc(x); "
    }
}

/// The error function of `0 <= z < 0.5`: `2/sqrt(pi)` times the sum of `(-1)^n z^(2n+1) / (n! (2n+1))`, of which the first term
/// that is missing is below 1e-13.
fn series(z: f64) -> f64 {
    let (mut power, mut sum) = (z, z);
    for n in 1..10 {
        power *= -z * z / f64::from(n);
        sum += power / f64::from(2 * n + 1);
    }
    std::f64::consts::FRAC_2_SQRT_PI * sum
}

/// The complementary error function of `z >= 0`: `exp(-z^2) * t * q(t)` with `t = 1 / (1 + z/2)`,
/// where `q` interpolates the remaining factor at Chebyshev nodes. Off by less than 1e-8 relative
/// up to `z = 14`, where the value is far below the smallest f32.
fn erfc(z: f64) -> f64 {
    const Q: [f64; 11] = [
        0.2820924995177405,
        0.282158138568635,
        0.24613115490984977,
        0.18018403352540766,
        0.07410754874211692,
        -0.009407974122453026,
        0.0476590888195653,
        -0.36104360389310886,
        0.42794219211988416,
        -0.20844028265218145,
        0.03861720777811396,
    ];
    let t = 1.0 / (1.0 + 0.5 * z);
    let q = Q.iter().rev().fold(0.0, |sum, c| sum * t + c);
    (-z * z).exp() * t * q
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn erfc_matches_its_series() {
        // erf(z) = 2/sqrt(pi) * exp(-z^2) * sum of 2^n z^(2n+1) / (1*3*..*(2n+1)); no term cancels.
        for i in 0..=300 {
            let z = f64::from(i) * 0.01;
            let (mut term, mut sum) = (z, z);
            for n in 1..200 {
                term *= 2.0 * z * z / f64::from(2 * n + 1);
                sum += term;
            }
            let erf = std::f64::consts::FRAC_2_SQRT_PI * (-z * z).exp() * sum;
            assert!((erfc(z) - (1.0 - erf)).abs() < 1e-8, "erfc({z})");
        }
        // Far out the asymptotic continued fraction holds.
        for z in [3.0f64, 5.0, 8.0, 12.0] {
            let fraction = (1..200).rev().fold(z, |f, k| z + f64::from(k) * 0.5 / f);
            let expected = (-z * z).exp() / (fraction * std::f64::consts::PI.sqrt());
            assert!((erfc(z) / expected - 1.0).abs() < 1e-7, "erfc({z})");
        }
    }
}

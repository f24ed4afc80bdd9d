//! The error function of `f64` on the CPU, which Rust does not have.

use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI};

/// From here on, results are not sums of the series.
const FAR: f64 = 0.5;

/// Beyond, powers of e are 0.
const NOTHING: f64 = 40.0;

/// The error function.
pub(super) fn erf(x: f64) -> f64 {
    let size = x.abs();
    let of_size = if size < FAR { series(size) } else { 1.0 - far(size) };
    of_size.copysign(x)
}

/// `1 - erf(x)`, whose small results keep their digits.
pub(super) fn erfc(x: f64) -> f64 {
    if x.abs() < FAR {
        1.0 - series(x)
    } else if x < 0.0 {
        2.0 - far(-x)
    } else {
        far(x)
    }
}

/// The distribution function of the normal distribution, whose small results keep their digits.
pub(super) fn normal_cdf(x: f64) -> f64 {
    let size = x.abs();
    let z = size * FRAC_1_SQRT_2;
    let tail = if z < FAR { 0.5 - 0.5 * series(z) } else { 0.5 * power(size, 0.5) * scaled(z) };
    if x < 0.0 { tail } else { 1.0 - tail }
}

/// The error function of `|z| < 0.5`: `2/sqrt(pi)` times the sum of `(-1)^n z^(2n+1) / (n! (2n+1))`, of which the first term that
/// is missing is below 1e-19 of the first.
fn series(z: f64) -> f64 {
    let (mut power, mut sum) = (z, 0.0);
    for n in 1..14 {
        power *= -z * z / f64::from(n);
        sum += power / f64::from(2 * n + 1);
    }
    FRAC_2_SQRT_PI * (z + sum)
}

/// `erfc(z)` of `z >= 0.5`.
fn far(z: f64) -> f64 {
    power(z, 1.0) * scaled(z)
}

/// `exp(-factor z^2)`; what rounding takes from the square is made up for.
fn power(z: f64, factor: f64) -> f64 {
    let z = if z > NOTHING { NOTHING } else { z };
    let square = z * z;
    let rest = z.mul_add(z, -square);
    let power = (-factor * square).exp();
    power - factor * rest * power
}

/// `exp(z^2) erfc(z)` of `z >= 0.5`: `t q(t)` with `t = 1 / (1 + z/2)`, where `q` is off by less than 2e-17.
fn scaled(z: f64) -> f64 {
    /// Of Chebyshev polynomials of `2.5 t - 1`.
    const Q: [f64; 25] = [
        0.4869974896593381,
        0.24101444861760662,
        0.03917158019801934,
        0.0028202013162589696,
        -0.0003190025880142985,
        -7.762458294633769e-05,
        3.904758903066749e-06,
        2.10650100538356e-06,
        -1.1719156145292982e-07,
        -6.458612977687303e-08,
        6.547928118976531e-09,
        2.0176470623078224e-09,
        -3.982401175873017e-10,
        -4.9761436210290495e-11,
        2.213944839159887e-11,
        -1.7358623528113927e-13,
        -1.026209787629388e-12,
        1.4448991184132368e-13,
        3.158980053643002e-14,
        -1.2428959971894012e-14,
        3.0295830930074995e-16,
        6.422214347909852e-16,
        -1.3294242674635553e-16,
        -1.2796905792827282e-17,
        1.0532288760211047e-17,
    ];
    let t = 1.0 / (1.0 + 0.5 * z);
    let at = 2.5 * t - 1.0;
    let (mut next, mut after) = (0.0, 0.0);
    for c in Q[1..].iter().rev() {
        (next, after) = (c + 2.0 * at * next - after, next);
    }
    t * (Q[0] + at * next - after)
}

#[cfg(test)]
mod tests {
    use super::*;

    // Numbers, and the nearest of what their values have with 300 bits.
    const ERF: [(f64, f64); 9] = [
        (1e-300, 1.1283791670955126e-300),
        (-1e-09, -1.1283791670955127e-09),
        (0.3, 0.3286267594591274),
        (0.49999999999999994, 0.5204998778130465),
        (0.5, 0.5204998778130465),
        (-0.75, -0.7111556336535151),
        (1.5, 0.9661051464753108),
        (-3.0, -0.9999779095030014),
        (5.8, 0.9999999999999998),
    ];
    const ERFC: [(f64, f64); 11] = [
        (-7.0, 2.0),
        (-0.75, 1.7111556336535152),
        (-0.3, 1.3286267594591274),
        (1e-09, 0.9999999988716208),
        (0.49999999999999994, 0.47950012218695354),
        (0.5, 0.4795001221869535),
        (1.0, 0.15729920705028513),
        (2.5, 0.0004069520174449589),
        (9.3, 1.653244184030135e-39),
        (17.0, 1.0212280150942608e-127),
        (26.0, 5.663192408856143e-296),
    ];
    const NORMAL_CDF: [(f64, f64); 10] = [
        (-37.0, 5.725571222524577e-300),
        (-17.3, 2.3519444588092324e-67),
        (-4.1, 2.065750691254677e-05),
        (-1.0, 0.15865525393145705),
        (-0.71, 0.23885206808998674),
        (-0.3, 0.3820885778110474),
        (0.0, 0.5),
        (0.5, 0.6914624612740131),
        (3.3, 0.9995165758576162),
        (8.0, 0.9999999999999993),
    ];

    #[track_caller]
    fn near(of: fn(f64) -> f64, values: &[(f64, f64)], places: f64) {
        for &(x, want) in values {
            let (got, place) = (of(x), want.abs().next_up() - want.abs());
            assert!((got - want).abs() <= places * place, "{x}: {got} {want}");
        }
    }

    #[test]
    fn results_are_within_a_few_places() {
        near(erf, &ERF, 3.0);
        near(erfc, &ERFC, 6.0);
        near(normal_cdf, &NORMAL_CDF, 6.0);
    }

    #[test]
    fn ends_are_those_of_the_functions() {
        let inf = f64::INFINITY;
        assert_eq!(([inf, -inf, 0.0].map(erf), erf(-0.0).to_bits()), ([1.0, -1.0, 0.0], (-0.0f64).to_bits()));
        assert_eq!([inf, -inf, 0.0, 50.0].map(erfc), [0.0, 2.0, 1.0, 0.0]);
        assert_eq!([inf, -inf, 0.0, -60.0].map(normal_cdf), [1.0, 0.0, 0.5, 0.0]);
        assert!([erf, erfc, normal_cdf].iter().all(|of| of(f64::NAN).is_nan()));
    }

    /// The arguments at which one way of computing meets another.
    #[test]
    fn there_are_no_steps() {
        for of in [erf, erfc, normal_cdf] {
            for x in [0.5, -0.5, FRAC_1_SQRT_2, -FRAC_1_SQRT_2] {
                let (below, above) = (of(f64::next_down(x)), of(f64::next_up(x)));
                assert!((below - above).abs() < 8e-16, "{x}: {below} {above}");
            }
        }
    }
}

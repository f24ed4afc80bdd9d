//! Inverse hyperbolic functions on the CPU. Rust's lose digits near the ends of what they are defined for, and overflow.

use std::f64::consts::LN_2;

/// From here on, 1 is less than half a unit in the last place of the square.
const LARGE: f64 = 268_435_456.0;

/// The inverse of the hyperbolic sine.
#[must_use]
pub(super) fn asinh(x: f64) -> f64 {
    let size = x.abs();
    let square = size * size;
    let of_size =
        if size > LARGE { size.ln() + LN_2 } else { (size + square / (1.0 + (1.0 + square).sqrt())).ln_1p() };
    of_size.copysign(x)
}

/// The inverse of the hyperbolic cosine; NaN below 1.
#[must_use]
pub(super) fn acosh(x: f64) -> f64 {
    let above = x - 1.0;
    if x > LARGE {
        x.ln() + LN_2
    } else if x < 1.0 {
        f64::NAN
    } else {
        (above + (above * (above + 2.0)).sqrt()).ln_1p()
    }
}

/// The inverse of the hyperbolic tangent; NaN outside -1 to 1.
#[must_use]
pub(super) fn atanh(x: f64) -> f64 {
    let (size, below) = (x.abs(), 1.0 - x.abs());
    let twice = size + size;
    // For small numbers the first term has all digits, and the second is small.
    let grown = if size < 0.5 { twice + twice * size / below } else { twice / below };
    (0.5 * grown.ln_1p()).copysign(x)
}

#[cfg(test)]
mod tests {
    use super::*;

    // Numbers, and the nearest of what their values have with 300 bits.
    const ASINH: [(f64, f64); 14] = [
        (5e-324, 5e-324),
        (1e-300, 1e-300),
        (1e-09, 1e-09),
        (-0.001, -0.0009999998333334083),
        (0.11853711939785486, 0.11826126494376453),
        (0.5, 0.48121182505960347),
        (-1.0, -0.881373587019543),
        (2.5, 1.6472311463710958),
        (1000.0, 7.600902709541988),
        (268435456.0, 20.101268236238415),
        (268435457.0, 20.101268239963705),
        (1e+154, 355.291251501643),
        (-1e+200, -461.2101657793691),
        (1.7976931348623157e+308, 710.475860073944),
    ];
    const ACOSH: [(f64, f64); 11] = [
        (1.0000000000000002, 2.1073424255447014e-08),
        (1.0000000001, 1.4142136208675862e-05),
        (1.0001, 0.014142017775251545),
        (1.0275198968916917, 0.23407089084132038),
        (1.5, 0.9624236501192069),
        (2.0, 1.3169578969248168),
        (10.0, 2.993222846126381),
        (268435456.0, 20.101268236238415),
        (268435457.0, 20.101268239963705),
        (1e+200, 461.2101657793691),
        (1.7976931348623157e+308, 710.475860073944),
    ];
    const ATANH: [(f64, f64); 12] = [
        (5e-324, 5e-324),
        (1e-300, 1e-300),
        (-1e-09, -1e-09),
        (0.001, 0.0010000003333335333),
        (0.11990831720007344, 0.12048800712518835),
        (0.25, 0.25541281188299536),
        (0.49999999999999994, 0.5493061443340548),
        (0.5, 0.5493061443340549),
        (-0.75, -0.9729550745276566),
        (0.999, 3.8002011672501994),
        (0.9999999999999999, 18.714973875118524),
        (-0.9999999999999999, -18.714973875118524),
    ];

    #[track_caller]
    fn near(of: fn(f64) -> f64, values: &[(f64, f64)]) {
        for &(x, want) in values {
            let (got, place) = (of(x), want.abs().next_up() - want.abs());
            assert!((got - want).abs() <= 3.0 * place, "{x}: {got} {want}");
        }
    }

    #[test]
    fn results_are_within_three_places() {
        near(asinh, &ASINH);
        near(acosh, &ACOSH);
        near(atanh, &ATANH);
    }

    #[test]
    fn ends_are_those_of_the_functions() {
        let inf = f64::INFINITY;
        assert_eq!((asinh(inf), asinh(-inf), acosh(inf), acosh(1.0)), (inf, -inf, inf, 0.0));
        assert_eq!((atanh(1.0), atanh(-1.0)), (inf, -inf));
        for zero in [asinh(-0.0), atanh(-0.0)] {
            assert_eq!(zero.to_bits(), (-0.0f64).to_bits());
        }
        for none in [acosh(0.999), acosh(-3.0), acosh(-inf), atanh(1.001), atanh(-2.0), atanh(inf)] {
            assert!(none.is_nan());
        }
        assert!([asinh, acosh, atanh].iter().all(|of| of(f64::NAN).is_nan()));
    }
}

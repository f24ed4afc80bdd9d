//! The exponential function on the CPU: without branches and calls, so that loops over it become vectors, with the same bits
//! everywhere.

/// Adding it rounds to an integer, which is left in the low bits of the sum.
const ROUND: f32 = 12_582_912.0;

/// `e^x`, within 2 units in the last place.
#[must_use]
#[inline(always)]
pub(crate) fn exp(x: f32) -> f32 {
    // Beyond these, results are infinite, or zero. NaN is not compared.
    let x = if x > 89.0 { 89.0 } else { x };
    let x = if x < -104.0 { -104.0 } else { x };
    let (power, shifted) = reduced(x);
    // 2^n as a product, as it may be no normal number. Only the last multiplication rounds.
    let n = shifted.to_bits().cast_signed().wrapping_sub(ROUND.to_bits().cast_signed());
    let half = n >> 1;
    let two_to = |n: i32| f32::from_bits((n.wrapping_add(127) << 23).cast_unsigned());
    power * two_to(half) * two_to(n.wrapping_sub(half))
}

/// `e^x` for `x <= 0` or NaN, within 2 units in the last place; zero where the result would be subnormal.
#[must_use]
#[inline(always)]
pub(crate) fn exp_of_negative(x: f32) -> f32 {
    /// `ln` of the smallest normal number, rounded up.
    const LOWEST: f32 = -87.33;
    let (power, shifted) = reduced(x);
    // 2^n, by adding n to the exponent of 1.
    let scale = f32::from_bits((shifted.to_bits() << 23).wrapping_add(1.0f32.to_bits()));
    if x < LOWEST { 0.0 } else { power * scale }
}

/// `e^r` with `x = n ln 2 + r` and `|r| <= ln 2 / 2`, and `n` in the low bits of a number.
#[inline(always)]
fn reduced(x: f32) -> (f32, f32) {
    /// `ln 2` in two parts: a multiple of the first by up to 256 is exact.
    const LN2_HI: f32 = 0.693_359_4;
    const LN2_LO: f32 = -2.121_944_4e-4;
    let shifted = x * std::f32::consts::LOG2_E + ROUND;
    let n = shifted - ROUND;
    let r = (x - n * LN2_HI) - n * LN2_LO;
    // (e^r - 1 - r) / r^2, interpolated at Chebyshev nodes: e^r is off by less than 1.1e-8.
    let mut q = 0.001_392_621_3;
    q = q * r + 0.008_363_203;
    q = q * r + 0.041_666_556;
    q = q * r + 0.166_665_76;
    q = q * r + 0.5;
    (q * (r * r) + r + 1.0, shifted)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Distance in units of the last place of `want`, which is not normal below `2^-126`.
    fn off(got: f32, want: f64) -> f64 {
        let place = f64::powi(2.0, (want.log2().floor() as i32).max(-126) - 23);
        (f64::from(got) - want).abs() / place
    }

    #[test]
    fn powers_are_within_two_places() {
        for i in -1_040_000..=887_228 {
            let x = i as f32 * 1e-4;
            let want = f64::from(x).exp();
            assert!(off(exp(x), want) <= 2.0, "{x}: {} {want}", exp(x));
            if (-87.32..=0.0).contains(&x) {
                assert!(off(exp_of_negative(x), want) <= 2.0, "{x}: {} {want}", exp_of_negative(x));
            }
        }
    }

    #[test]
    fn powers_of_what_is_not_in_range() {
        let inf = f32::INFINITY;
        assert_eq!([0.0, -0.0].map(exp), [1.0, 1.0]);
        assert_eq!([-104.0, -200.0, f32::MIN, -inf].map(exp), [0.0; 4]);
        assert_eq!([88.73, 100.0, f32::MAX, inf].map(exp), [inf; 4]);
        assert_eq!(exp(-103.0).to_bits(), 1);
        assert_eq!([0.0, -0.0].map(exp_of_negative), [1.0, 1.0]);
        assert_eq!([-88.0, f32::MIN, -inf].map(exp_of_negative), [0.0; 3]);
        assert!(exp(f32::NAN).is_nan() && exp_of_negative(f32::NAN).is_nan());
    }
}

//! Operators and methods of kernels that Rust defines differently: with a panic in some builds, or not for
//! every value.
//!
//! `language.cuh` defines the same for GPUs.

pub use super::{index::lang as views, random::Random, rows::lang as rows};

use super::{definition::Constant, exp, hyperbolic};

/// Floats and integers.
#[diagnostic::on_unimplemented(
    message = "kernels do not compute with `{Self}` so",
    label = "a number is needed here"
)]
pub trait Number: Copy + PartialOrd {
    /// `+`
    #[must_use]
    fn add(self, other: Self) -> Self;
    /// `-`
    #[must_use]
    fn sub(self, other: Self) -> Self;
    /// `*`
    #[must_use]
    fn mul(self, other: Self) -> Self;
    /// `/`
    #[must_use]
    fn div(self, other: Self) -> Self;
    /// `%`
    #[must_use]
    fn rem(self, other: Self) -> Self;
    /// The smaller one.
    #[must_use]
    fn min(self, other: Self) -> Self;
    /// The larger one.
    #[must_use]
    fn max(self, other: Self) -> Self;
    /// The remainder that is not negative.
    #[must_use]
    fn rem_euclid(self, other: Self) -> Self;
    /// The quotient that belongs to [`rem_euclid`](Self::rem_euclid).
    #[must_use]
    fn div_euclid(self, other: Self) -> Self;
}

/// Floats and signed integers.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no negative numbers",
    label = "a float or a signed integer is needed here"
)]
pub trait Signed: Number {
    /// `-`
    #[must_use]
    fn neg(self) -> Self;
    /// Without its sign.
    #[must_use]
    fn abs(self) -> Self;
    /// Its sign.
    #[must_use]
    fn signum(self) -> Self;
}

/// `f32` and `f64`.
#[diagnostic::on_unimplemented(message = "`{Self}` is not a float", label = "a float is needed here")]
pub trait Real: Signed {
    /// If it is a negative number.
    fn is_sign_negative(self) -> bool;
    /// If it is a positive number.
    fn is_sign_positive(self) -> bool;
    /// `e^x`
    #[must_use]
    fn exp(self) -> Self;
    /// The inverse of the hyperbolic sine.
    #[must_use]
    fn asinh(self) -> Self;
    /// The inverse of the hyperbolic cosine.
    #[must_use]
    fn acosh(self) -> Self;
    /// The inverse of the hyperbolic tangent.
    #[must_use]
    fn atanh(self) -> Self;
    /// A power.
    #[must_use]
    fn powi(self, exponent: i32) -> Self;
    /// In degrees.
    #[must_use]
    fn to_degrees(self) -> Self;
    /// In radians.
    #[must_use]
    fn to_radians(self) -> Self;
}

/// Integers.
#[diagnostic::on_unimplemented(message = "`{Self}` is not an integer", label = "an integer is needed here")]
pub trait Integer: Number {
    /// Its lowest 32 bits.
    fn bits(self) -> u32;
    /// As an index, none of which is negative: `u32::MAX` for one that 32 bits do not hold.
    fn index(self) -> u32;
    /// `<<`
    #[must_use]
    fn shl(self, places: u32) -> Self;
    /// `>>`
    #[must_use]
    fn shr(self, places: u32) -> Self;
    /// A power.
    #[must_use]
    fn pow(self, exponent: u32) -> Self;
}

macro_rules! integer {
    ($($t:ident $index:expr;)*) => {$(
        impl Number for $t {
            #[inline(always)]
            fn add(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
            #[inline(always)]
            fn sub(self, other: Self) -> Self {
                self.wrapping_sub(other)
            }
            #[inline(always)]
            fn mul(self, other: Self) -> Self {
                self.wrapping_mul(other)
            }
            #[inline(always)]
            fn div(self, other: Self) -> Self {
                if other == 0 { 0 } else { self.wrapping_div(other) }
            }
            #[inline(always)]
            fn rem(self, other: Self) -> Self {
                if other == 0 { self } else { self.wrapping_rem(other) }
            }
            #[inline(always)]
            fn min(self, other: Self) -> Self {
                Ord::min(self, other)
            }
            #[inline(always)]
            fn max(self, other: Self) -> Self {
                Ord::max(self, other)
            }
            #[inline(always)]
            fn rem_euclid(self, other: Self) -> Self {
                if other == 0 { self } else { self.wrapping_rem_euclid(other) }
            }
            #[inline(always)]
            fn div_euclid(self, other: Self) -> Self {
                if other == 0 { 0 } else { self.wrapping_div_euclid(other) }
            }
        }
        impl Integer for $t {
            #[inline(always)]
            fn bits(self) -> u32 {
                self as u32
            }
            #[inline(always)]
            fn index(self) -> u32 {
                let index: fn($t) -> u32 = $index;
                index(self)
            }
            #[inline(always)]
            fn shl(self, places: u32) -> Self {
                self.wrapping_shl(places)
            }
            #[inline(always)]
            fn shr(self, places: u32) -> Self {
                self.wrapping_shr(places)
            }
            #[inline(always)]
            fn pow(self, exponent: u32) -> Self {
                self.wrapping_pow(exponent)
            }
        }
    )*};
}

integer! {
    i32 |i| i as u32;
    i64 |i| u32::try_from(i).unwrap_or(u32::MAX);
    i8 |i| i as u32;
    u32 |i| i;
    u8 |i| i.into();
}

macro_rules! signed_integer {
    ($($t:ident)*) => {$(
        impl Signed for $t {
            #[inline(always)]
            fn neg(self) -> Self {
                self.wrapping_neg()
            }
            #[inline(always)]
            fn abs(self) -> Self {
                self.wrapping_abs()
            }
            #[inline(always)]
            fn signum(self) -> Self {
                $t::signum(self)
            }
        }
    )*};
}

signed_integer!(i32 i64 i8);

/// Functions that kernels compute in `f32` and in `f64`. `e^x` has a function for each, angles a factor, and the inverse hyperbolic
/// functions are those of `f64`.
macro_rules! float {
    ($($t:ident $exp:expr, $degrees:literal $radians:literal;)*) => {$(
        impl Number for $t {
            #[inline(always)]
            fn add(self, other: Self) -> Self {
                self + other
            }
            #[inline(always)]
            fn sub(self, other: Self) -> Self {
                self - other
            }
            #[inline(always)]
            fn mul(self, other: Self) -> Self {
                self * other
            }
            #[inline(always)]
            fn div(self, other: Self) -> Self {
                self / other
            }
            #[inline(always)]
            fn rem(self, other: Self) -> Self {
                self % other
            }
            /// NaN counts as missing; `-0.0` is smaller than `0.0`.
            #[inline(always)]
            fn min(self, other: Self) -> Self {
                let first = self < other || (self == other && self.is_sign_negative()) || other.is_nan();
                if first { self } else { other }
            }
            /// NaN counts as missing; `0.0` is larger than `-0.0`.
            #[inline(always)]
            fn max(self, other: Self) -> Self {
                let first = self > other || (self == other && self.is_sign_positive()) || other.is_nan();
                if first { self } else { other }
            }
            #[inline(always)]
            fn rem_euclid(self, other: Self) -> Self {
                let rest = self % other;
                if rest < 0.0 { rest + $t::abs(other) } else { rest }
            }
            #[inline(always)]
            fn div_euclid(self, other: Self) -> Self {
                let whole = (self / other).trunc();
                match self % other < 0.0 {
                    true if other > 0.0 => whole - 1.0,
                    true => whole + 1.0,
                    false => whole,
                }
            }
        }

        impl Signed for $t {
            #[inline(always)]
            fn neg(self) -> Self {
                -self
            }
            #[inline(always)]
            fn abs(self) -> Self {
                $t::abs(self)
            }
            #[inline(always)]
            fn signum(self) -> Self {
                if self.is_nan() { self } else { $t::copysign(1.0, self) }
            }
        }

        impl Real for $t {
            #[inline(always)]
            fn is_sign_negative(self) -> bool {
                !self.is_nan() && $t::is_sign_negative(self)
            }
            #[inline(always)]
            fn is_sign_positive(self) -> bool {
                !self.is_nan() && $t::is_sign_positive(self)
            }
            #[inline(always)]
            fn exp(self) -> Self {
                $exp(self)
            }
            #[inline]
            fn asinh(self) -> Self {
                hyperbolic::asinh(self.into()) as $t
            }
            #[inline]
            fn acosh(self) -> Self {
                hyperbolic::acosh(self.into()) as $t
            }
            #[inline]
            fn atanh(self) -> Self {
                hyperbolic::atanh(self.into()) as $t
            }
            #[inline(always)]
            fn powi(self, exponent: i32) -> Self {
                let (mut square, mut left, mut power) = (self, exponent.unsigned_abs(), 1.0);
                while left > 0 {
                    if left & 1 == 1 {
                        power *= square;
                    }
                    left >>= 1;
                    if left > 0 {
                        square *= square;
                    }
                }
                if exponent < 0 { 1.0 / power } else { power }
            }
            #[inline(always)]
            fn to_degrees(self) -> Self {
                self * $degrees
            }
            #[inline(always)]
            fn to_radians(self) -> Self {
                self * $radians
            }
        }
    )*};
}

float! {
    f32 exp::exp, 57.295_78 0.017_453_292;
    f64 f64::exp, 57.295_779_513_082_32 0.017_453_292_519_943_295;
}

/// A type in which loops count.
#[diagnostic::on_unimplemented(
    message = "loops of kernels do not count in `{Self}`",
    label = "convert it first: `n as i32`"
)]
pub trait Counter: Integer {}

impl Counter for i32 {}
impl Counter for i8 {}
impl Counter for u32 {}
impl Counter for u8 {}

/// Returns the bound of a loop, of a type that only rustc knows.
#[must_use]
#[inline(always)]
pub fn bound<T: Counter>(n: T) -> T {
    n
}

/// Returns the same value: rustc compares tuples as well, kernels do not.
#[must_use]
#[inline(always)]
pub fn value<T: Constant>(x: T) -> T {
    x
}

macro_rules! operators {
    ($($(#[$doc:meta])* $bound:ident $name:ident;)*) => {$(
        $(#[$doc])*
        #[must_use]
        #[inline(always)]
        pub fn $name<T: $bound>(a: T, b: T) -> T {
            a.$name(b)
        }
    )*};
}

operators! {
    /// `a + b`; integers wrap.
    Number add;
    /// `a - b`; integers wrap.
    Number sub;
    /// `a * b`; integers wrap.
    Number mul;
    /// `a / b`; integers truncate and wrap, and division by zero is 0.
    Number div;
    /// `a % b`; for integers the remainder of `/`, so `a` if `b` is 0.
    Number rem;
    /// The smaller one; NaN counts as missing, and `-0.0` is smaller than `0.0`.
    Number min;
    /// The larger one; NaN counts as missing, and `0.0` is larger than `-0.0`.
    Number max;
    /// The remainder that is not negative; `a` where an integer `b` is 0.
    Number rem_euclid;
    /// The quotient that belongs to `rem_euclid`; 0 where an integer `b` is 0.
    Number div_euclid;
}

/// Returns `-a`; integers wrap.
#[must_use]
#[inline(always)]
pub fn neg<T: Signed>(a: T) -> T {
    a.neg()
}

/// Returns `a` without its sign; integers wrap.
#[must_use]
#[inline(always)]
pub fn abs<T: Signed>(a: T) -> T {
    a.abs()
}

macro_rules! functions {
    ($($(#[$doc:meta])* $name:ident)*) => {$(
        $(#[$doc])*
        #[must_use]
        #[inline(always)]
        pub fn $name<T: Real>(x: T) -> T {
            x.$name()
        }
    )*};
}

functions! {
    /// `e^x`
    exp
    /// The inverse of the hyperbolic sine.
    asinh
    /// The inverse of the hyperbolic cosine; NaN below 1.
    acosh
    /// The inverse of the hyperbolic tangent; NaN outside -1 to 1.
    atanh
    /// In degrees.
    to_degrees
    /// In radians.
    to_radians
}

/// Returns 1 or -1; NaN for NaN, and 0 for an integer 0.
#[must_use]
#[inline(always)]
pub fn signum<T: Signed>(a: T) -> T {
    a.signum()
}

/// Returns `x` within `low` and `high`; `high` where they are in the wrong order. NaN stays NaN.
#[must_use]
#[inline(always)]
pub fn clamp<T: Number>(x: T, low: T, high: T) -> T {
    let x = if x < low { low } else { x };
    if x > high { high } else { x }
}

/// Returns `a << places`, modulo the bits.
#[must_use]
#[inline(always)]
pub fn shl<T: Integer>(a: T, places: impl Integer) -> T {
    a.shl(places.bits())
}

/// Returns `a >> places`, modulo the bits.
#[must_use]
#[inline(always)]
pub fn shr<T: Integer>(a: T, places: impl Integer) -> T {
    a.shr(places.bits())
}

/// Returns a power; it wraps.
#[must_use]
#[inline(always)]
pub fn pow<T: Integer>(a: T, exponent: u32) -> T {
    a.pow(exponent)
}

/// Divides like [`div`].
#[must_use]
#[inline(always)]
pub fn wrapping_div<T: Integer>(a: T, b: T) -> T {
    a.div(b)
}

/// Returns the remainder like [`rem`].
#[must_use]
#[inline(always)]
pub fn wrapping_rem<T: Integer>(a: T, b: T) -> T {
    a.rem(b)
}

/// Returns a power by repeated squaring, each step rounded.
#[must_use]
#[inline(always)]
pub fn powi<T: Real>(x: T, exponent: i32) -> T {
    x.powi(exponent)
}

/// Returns the bits; `0x7fc00000` for every NaN.
#[must_use]
#[inline(always)]
pub fn to_bits(x: f32) -> u32 {
    if x.is_nan() { 0x7fc0_0000 } else { x.to_bits() }
}

/// Returns the number with these bits.
#[must_use]
#[inline(always)]
pub fn from_bits(bits: u32) -> f32 {
    f32::from_bits(bits)
}

/// Returns whether it is a negative number, `-0.0` included; no NaN is.
#[must_use]
#[inline(always)]
pub fn is_sign_negative<T: Real>(x: T) -> bool {
    x.is_sign_negative()
}

/// Returns whether it is a positive number, `0.0` included; no NaN is.
#[must_use]
#[inline(always)]
pub fn is_sign_positive<T: Real>(x: T) -> bool {
    x.is_sign_positive()
}

/// Returns `x` with the sign of `sign`; a NaN counts as positive.
#[must_use]
#[inline(always)]
pub fn copysign<T: Real>(x: T, sign: T) -> T {
    if sign.is_sign_negative() { x.abs().neg() } else { x.abs() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_defined_everywhere() {
        assert_eq!((div(7, 0), rem(7, 0), rem_euclid(-7, 0), div_euclid(-7, 0)), (0, 7, -7, 0));
        assert_eq!((div(i32::MIN, -1), rem(i32::MIN, -1)), (i32::MIN, 0));
        assert_eq!((add(250u8, 10), neg(i32::MIN), abs(i32::MIN)), (4, i32::MIN, i32::MIN));
        assert_eq!((shl(1u8, 9), shr(-8i32, 33u32), shl(1u32, -31i32)), (2, -4, 2));
        assert_eq!((pow(10u8, 3), clamp(5, 9, 1)), (232, 1));
        assert_eq!((div(7i64, 0), rem(i64::MIN, -1), div(i64::MIN, -1)), (0, 0, i64::MIN));
        assert_eq!((mul(100i8, 3), neg(i8::MIN), abs(i64::MIN), shr(-128i8, 9)), (44, -128, i64::MIN, -64));
        assert_eq!((shl(1i64, 65i64), pow(3i64, 40)), (2, -6_289_078_614_652_622_815));
    }

    #[test]
    fn indices_are_no_others_of_fewer_bits() {
        assert_eq!([-1i64, 1 << 32, 7].map(Integer::index), [u32::MAX, u32::MAX, 7]);
        assert_eq!(((-1i8).index(), (-1i32).index(), 200u8.index()), (u32::MAX, u32::MAX, 200));
    }

    #[test]
    fn floats_are_defined_everywhere() {
        for (a, b) in [(-0.0f32, 0.0f32), (0.0, -0.0)] {
            assert!(min(a, b).is_sign_negative() && max(a, b).is_sign_positive());
        }
        assert_eq!((min(f32::NAN, 1.0), max(1.0, f32::NAN)), (1.0, 1.0));
        assert!(min(f32::NAN, f32::NAN).is_nan() && clamp(f32::NAN, 0.0, 1.0).is_nan());
        assert_eq!(to_bits(-f32::NAN), 0x7fc0_0000);
        assert_eq!((powi(2.0f32, -3), powi(3.0f64, 5), powi(0.5f32, 0)), (0.125, 243.0, 1.0));
        assert_eq!((powi(0.1f32, 2), powi(0.1f64, -2)), (0.1f32 * 0.1, 1.0 / (0.1 * 0.1)));
        assert_eq!((rem_euclid(-7.5f32, 2.0), div_euclid(-7.5f32, 2.0)), (0.5, -4.0));
        assert_eq!((copysign(-3.0, f32::NAN), copysign(3.0, -0.0f32)), (3.0, -3.0));
        assert_eq!((copysign(-3.0, f64::NAN), copysign(3.0, -0.0f64)), (3.0, -3.0));
        assert!(min(-0.0f64, 0.0).is_sign_negative() && max(f64::NAN, f64::NAN).is_nan());
        assert_eq!(to_degrees(1.0), 1.0f32.to_degrees());
        assert_eq!(to_radians(1.0), 1.0f32.to_radians());
        for x in [1.0f64, 0.3, 1e300] {
            assert_eq!((to_degrees(x), to_radians(x)), (x.to_degrees(), x.to_radians()));
        }
        assert_eq!(
            (exp(1.0f64), asinh(0.75f32), atanh(f64::NAN).is_nan()),
            (1.0f64.exp(), 2.0f32.ln(), true)
        );
    }
}

//! The methods that kernels have.

/// The types on which a method can be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// `f32`.
    F32,
    /// `f32` and `f64`.
    Float,
    Integer,
    /// Floats and integers.
    Number,
    /// Floats and signed integers.
    Signed,
    SignedInteger,
    /// `i32`.
    I32,
    /// Integers of which a loop counts: all but `i64`.
    Counter,
    Unsigned,
    /// Integers and `bool`.
    Bits,
    /// Random numbers.
    Random,
}

impl Class {
    /// Returns whether one type alone has such methods.
    pub(super) fn is_of_one_type(self) -> bool {
        matches!(self, Self::F32 | Self::I32)
    }
}

/// A type in a method's signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Of {
    /// The type of the receiver.
    Own,
    Bool,
    F32,
    I32,
    U32,
}

/// A method.
#[derive(Debug)]
pub(super) struct Method {
    pub(super) name: &'static str,
    pub(super) class: Class,
    /// The arguments after the receiver.
    pub(super) arguments: &'static [Of],
    pub(super) result: Of,
    /// Set if Rust's own method has the meaning of the kernel language in every build. The others are
    /// functions of the runtime.
    pub(super) native: bool,
}

/// The method of that name.
pub(super) fn method(name: &str) -> Option<&'static Method> {
    ALL.iter().find(|method| method.name == name)
}

macro_rules! arguments {
    ($($argument:ident)*) => { &[$(Of::$argument),*] };
}

macro_rules! methods {
    ($($class:ident $native:literal $arguments:tt -> $result:ident: $($name:ident)*;)*) => {
        pub(super) const ALL: &[Method] = &[$($(Method {
            name: stringify!($name),
            class: Class::$class,
            arguments: arguments! $arguments,
            result: Of::$result,
            native: $native,
        },)*)*];
    };
}

methods! {
    Float true () -> Own: exp2 exp_m1 ln ln_1p log2 log10 cbrt sin cos tan asin acos atan sinh cosh tanh;
    Float true () -> Own: sqrt floor ceil round round_ties_even trunc fract recip;
    Float false () -> Own: exp asinh acosh atanh to_degrees to_radians;
    Float true (Own) -> Own: powf atan2 hypot;
    Float false (Own) -> Own: copysign;
    Float false (I32) -> Own: powi;
    Float true (Own Own) -> Own: mul_add;
    Float true () -> Bool: is_nan is_infinite is_finite;
    Float false () -> Bool: is_sign_negative is_sign_positive;
    F32 false () -> U32: to_bits;
    Number false (Own) -> Own: min max rem_euclid div_euclid;
    Number false (Own Own) -> Own: clamp;
    Signed false () -> Own: abs signum;
    Integer false (U32) -> Own: pow;
    Integer true (Own) -> Own: wrapping_add wrapping_sub wrapping_mul saturating_add saturating_sub;
    Integer false (Own) -> Own: wrapping_div wrapping_rem;
    Integer true () -> Own: wrapping_neg swap_bytes reverse_bits;
    Integer true (U32) -> Own: wrapping_shl wrapping_shr rotate_left rotate_right wrapping_pow;
    Integer true () -> U32: count_ones count_zeros leading_zeros trailing_zeros;
    SignedInteger true () -> Own: wrapping_abs;
    I32 true () -> U32: unsigned_abs;
    SignedInteger true () -> Bool: is_negative is_positive;
    Unsigned true () -> Bool: is_power_of_two;
    Random true () -> U32: bits more_bits;
    Random true () -> F32: uniform normal exponential gumbel;
    Random true (U32) -> U32: below;
}

/// Returns what to write instead of a method of Rust that kernels do not have.
pub(super) fn instead(name: &str) -> Option<&'static str> {
    Some(match name {
        "unwrap" | "expect" | "unwrap_or" | "ok" => {
            "kernels have no `Option`; write the case that is missing with `if`"
        }
        "checked_add" | "overflowing_add" => {
            "`+` of kernels wraps; compare before you add, or use `saturating_add`"
        }
        "checked_sub" | "overflowing_sub" => {
            "`-` of kernels wraps; compare before you subtract, or use `saturating_sub`"
        }
        "checked_mul" | "overflowing_mul" => "`*` of kernels wraps; compare before you multiply",
        "checked_div" | "checked_rem" => {
            "division by zero is defined in kernels: `x / 0` is 0, and `x % 0` is `x`"
        }
        "log" => "write `x.ln() / base.ln()`, or `log2` and `log10`",
        "sin_cos" => "write `x.sin()` and `x.cos()`",
        "abs_sub" => "write `(a - b).max(0.0)`",
        "into" | "try_into" => "write the conversion: `x as f32`, or `f32::from(b)` for a bool",
        "clone" | "to_owned" => "values of kernels are copied; leave it out",
        "then" | "then_some" => "write `if c { a } else { b }`",
        "rev" | "step_by" | "iter" | "map" | "sum" | "fold" | "enumerate" | "zip" => {
            "write the loop: `for i in 0..8 { … }`, with a `let mut` for its result"
        }
        "abs_diff" => "write `if a > b { a - b } else { b - a }`",
        "sigmoid" => "write `1.0 / (1.0 + (-x).exp())`",
        "rsqrt" => "write `x.sqrt().recip()`",
        "random" | "rand" | "randn" | "gen" | "sample" | "next_u32" => {
            "take the random number as a parameter, `r: Random`, and write `r.uniform()` or `r.normal()`"
        }
        "random_range" | "gen_range" | "randint" => {
            "take the random number as a parameter, `r: Random`, and write `r.below(n)`"
        }
        _ => return None,
    })
}

/// `f32::from_bits`, a function of the type.
pub(super) static FROM_BITS: Method =
    Method { name: "from_bits", class: Class::Bits, arguments: &[], result: Of::Own, native: false };

// `language.cuh` for `f64`, `i64` and `i8`. Kernels without them do not have this.

namespace lang {

// ---- conversions: `as`

DEVICE f32 to_f32(f64 x) { return __double2float_rn(x); }
DEVICE f32 to_f32(i64 x) { return __ll2float_rn(x); }
DEVICE f32 to_f32(i8 x) { return (f32)(i32)x; }

DEVICE f64 to_f64(f32 x) { return (f64)x; }
DEVICE f64 to_f64(f64 x) { return x; }
DEVICE f64 to_f64(i32 x) { return (f64)x; }
DEVICE f64 to_f64(i64 x) { return __ll2double_rn(x); }
DEVICE f64 to_f64(i8 x) { return (f64)(i32)x; }
DEVICE f64 to_f64(u32 x) { return (f64)x; }
DEVICE f64 to_f64(u8 x) { return (f64)(u32)x; }
DEVICE f64 to_f64(bool x) { return x ? 1.0 : 0.0; }

#define LANG_FROM_FURTHER(I)                                                         \
    DEVICE I to_##I(f64 x) { return Saturate<I>::of(x); }                            \
    DEVICE I to_##I(i64 x) { return (I)x; }                                          \
    DEVICE I to_##I(i8 x) { return (I)x; }
LANG_TO(i64)
LANG_TO(i8)
LANG_FROM_FURTHER(i64)
LANG_FROM_FURTHER(i8)
LANG_FROM_FURTHER(i32)
LANG_FROM_FURTHER(u32)
LANG_FROM_FURTHER(u8)

// As the index of a row or of a view: one that 32 bits do not hold is out of range.
DEVICE u32 to_index(i64 x) { return x < 0ll || x > 4294967295ll ? 0xffffffffu : (u32)x; }

// ---- f64

DEVICE bool is_nan(f64 x) { return x != x; }
DEVICE bool is_infinite(f64 x) { return fabs(x) == __longlong_as_double(0x7ff0000000000000ll); }
DEVICE bool is_finite(f64 x) { return fabs(x) < __longlong_as_double(0x7ff0000000000000ll); }
DEVICE bool is_sign_negative(f64 x) { return !is_nan(x) && __double_as_longlong(x) < 0ll; }
DEVICE bool is_sign_positive(f64 x) { return !is_nan(x) && __double_as_longlong(x) >= 0ll; }

DEVICE f64 add(f64 a, f64 b) { return a + b; }
DEVICE f64 sub(f64 a, f64 b) { return a - b; }
DEVICE f64 mul(f64 a, f64 b) { return a * b; }
DEVICE f64 div(f64 a, f64 b) { return a / b; }
DEVICE f64 rem(f64 a, f64 b) { return fmod(a, b); }
DEVICE f64 neg(f64 a) { return -a; }
// NaN counts as missing, and `-0.0` is less than `0.0`.
DEVICE f64 min(f64 a, f64 b) { return a < b || (a == b && is_sign_negative(a)) || is_nan(b) ? a : b; }
DEVICE f64 max(f64 a, f64 b) { return a > b || (a == b && is_sign_positive(a)) || is_nan(b) ? a : b; }
DEVICE f64 abs(f64 x) { return fabs(x); }
DEVICE f64 copysign(f64 x, f64 sign) { return is_sign_negative(sign) ? -fabs(x) : fabs(x); }
DEVICE f64 signum(f64 x) { return is_nan(x) ? x : is_sign_negative(x) ? -1.0 : 1.0; }
DEVICE f64 rem_euclid(f64 a, f64 b) {
    f64 rest = fmod(a, b);
    return rest < 0.0 ? rest + fabs(b) : rest;
}
DEVICE f64 div_euclid(f64 a, f64 b) {
    f64 whole = ::trunc(a / b);
    return fmod(a, b) < 0.0 ? (b > 0.0 ? whole - 1.0 : whole + 1.0) : whole;
}
DEVICE f64 mul_add(f64 a, f64 b, f64 c) { return __fma_rn(a, b, c); }
DEVICE f64 recip(f64 x) { return 1.0 / x; }
DEVICE f64 sqrt(f64 x) { return __dsqrt_rn(x); }
DEVICE f64 floor(f64 x) { return ::floor(x); }
DEVICE f64 ceil(f64 x) { return ::ceil(x); }
DEVICE f64 round(f64 x) { return ::round(x); }
DEVICE f64 round_ties_even(f64 x) { return ::rint(x); }
DEVICE f64 trunc(f64 x) { return ::trunc(x); }
DEVICE f64 fract(f64 x) { return x - ::trunc(x); }
DEVICE f64 to_degrees(f64 x) { return x * 57.29577951308232; }
DEVICE f64 to_radians(f64 x) { return x * 0.017453292519943295; }
DEVICE f64 exp(f64 x) { return ::exp(x); }
DEVICE f64 exp2(f64 x) { return ::exp2(x); }
DEVICE f64 exp_m1(f64 x) { return ::expm1(x); }
DEVICE f64 ln(f64 x) { return ::log(x); }
DEVICE f64 ln_1p(f64 x) { return ::log1p(x); }
DEVICE f64 log2(f64 x) { return ::log2(x); }
DEVICE f64 log10(f64 x) { return ::log10(x); }
DEVICE f64 cbrt(f64 x) { return ::cbrt(x); }
DEVICE f64 sin(f64 x) { return ::sin(x); }
DEVICE f64 cos(f64 x) { return ::cos(x); }
DEVICE f64 tan(f64 x) { return ::tan(x); }
DEVICE f64 asin(f64 x) { return ::asin(x); }
DEVICE f64 acos(f64 x) { return ::acos(x); }
DEVICE f64 atan(f64 x) { return ::atan(x); }
DEVICE f64 sinh(f64 x) { return ::sinh(x); }
DEVICE f64 cosh(f64 x) { return ::cosh(x); }
DEVICE f64 tanh(f64 x) { return ::tanh(x); }
DEVICE f64 asinh(f64 x) { return ::asinh(x); }
DEVICE f64 acosh(f64 x) { return ::acosh(x); }
DEVICE f64 atanh(f64 x) { return ::atanh(x); }
DEVICE f64 atan2(f64 a, f64 b) { return ::atan2(a, b); }
DEVICE f64 powf(f64 a, f64 b) { return ::pow(a, b); }
DEVICE f64 hypot(f64 a, f64 b) { return ::hypot(a, b); }
LANG_POWI(f64)

// ---- integers

LANG_INTEGER(i64, u64, 64u)
LANG_INTEGER(i8, u32, 8u)
LANG_SIGNED(i64)
LANG_SIGNED(i8)

DEVICE i8 saturate_i8(i64 x) { return x > 127ll ? (i8)127 : x < -128ll ? (i8)-128 : (i8)x; }
LANG_SATURATING(i8)
// The end of the numbers on the side of `a`.
DEVICE i64 end_of(i64 a) { return a < 0ll ? -9223372036854775807ll - 1 : 9223372036854775807ll; }
DEVICE i64 saturating_add(i64 a, i64 b) {
    const i64 sum = add(a, b);
    return ((a ^ sum) & (b ^ sum)) < 0ll ? end_of(a) : sum;
}
DEVICE i64 saturating_sub(i64 a, i64 b) {
    const i64 rest = sub(a, b);
    return ((a ^ b) & (a ^ rest)) < 0ll ? end_of(a) : rest;
}

DEVICE u32 count_ones(i64 a) { return (u32)__popcll((u64)a); }
DEVICE u32 count_ones(i8 a) { return count_ones((u8)a); }
DEVICE u32 count_zeros(i64 a) { return 64u - count_ones(a); }
DEVICE u32 count_zeros(i8 a) { return 8u - count_ones(a); }
DEVICE u32 leading_zeros(i64 a) { return (u32)__clzll(a); }
DEVICE u32 leading_zeros(i8 a) { return leading_zeros((u8)a); }
DEVICE u32 trailing_zeros(i64 a) { return a == 0ll ? 64u : (u32)__ffsll(a) - 1u; }
DEVICE u32 trailing_zeros(i8 a) { return trailing_zeros((u8)a); }
DEVICE i64 reverse_bits(i64 a) { return (i64)__brevll((u64)a); }
DEVICE i8 reverse_bits(i8 a) { return (i8)reverse_bits((u8)a); }
DEVICE i64 swap_bytes(i64 a) { return (i64)((u64)swap_bytes((u32)a) << 32 | swap_bytes((u32)((u64)a >> 32))); }
DEVICE i8 swap_bytes(i8 a) { return a; }
DEVICE i64 rotate_left(i64 a, u32 n) { return (i64)(((u64)a << (n & 63u)) | ((u64)a >> ((0u - n) & 63u))); }
DEVICE i8 rotate_left(i8 a, u32 n) { return (i8)rotate_left((u8)a, n); }
DEVICE i64 rotate_right(i64 a, u32 n) { return rotate_left(a, 0u - n); }
DEVICE i8 rotate_right(i8 a, u32 n) { return rotate_left(a, 0u - n); }

// ---- elements: from memory

DEVICE f64 read(f64 x) { return x; }
DEVICE i64 read(i64 x) { return x; }
DEVICE i8 read(i8 x) { return x; }

template <> struct Bits<f64> { static DEVICE f64 of(u64 x) { return __longlong_as_double((i64)x); } };
template <> struct Bits<i64> { static DEVICE i64 of(u64 x) { return (i64)x; } };

}  // namespace lang

// ---- rows: what `reductions.cuh` has for the other types

namespace rows {

template <int W> DEVICE f64 across(f64 x, u32 by) { return __shfl_xor_sync(FULL, x, by, W); }
template <int W> DEVICE i64 across(i64 x, u32 by) { return __shfl_xor_sync(FULL, x, by, W); }
template <int W> DEVICE i8 across(i8 x, u32 by) { return (i8)__shfl_xor_sync(FULL, (i32)x, by, W); }

template <typename N> struct Ends;
template <> struct Ends<f64> {
    static DEVICE f64 lowest() { return __longlong_as_double((i64)0xfff0000000000000ull); }
    static DEVICE f64 highest() { return __longlong_as_double(0x7ff0000000000000ll); }
};
template <> struct Ends<i64> {
    static DEVICE i64 lowest() { return -9223372036854775807ll - 1; }
    static DEVICE i64 highest() { return 9223372036854775807ll; }
};
template <> struct Ends<i8> {
    static DEVICE i8 lowest() { return (i8)-128; }
    static DEVICE i8 highest() { return (i8)127; }
};

}  // namespace rows

// The meaning of operators and methods in kernels written in Rust: `lang.rs` says the same for the CPU. It is compiled
// without contraction, with IEEE division, square roots and subnormals.

template <typename A, typename B> struct Tuple2 { A v0; B v1; };
template <typename A, typename B, typename C> struct Tuple3 { A v0; B v1; C v2; };
template <typename A, typename B, typename C, typename D> struct Tuple4 { A v0; B v1; C v2; D v3; };

namespace lang {

// ---- conversions: `as`

DEVICE f32 to_f32(f32 x) { return x; }
DEVICE f32 to_f32(i32 x) { return __int2float_rn(x); }
DEVICE f32 to_f32(u32 x) { return __uint2float_rn(x); }
DEVICE f32 to_f32(u8 x) { return (f32)(u32)x; }
DEVICE f32 to_f32(bool x) { return x ? 1.0f : 0.0f; }

#define LANG_TO(I)                                                                   \
    DEVICE I to_##I(f32 x) { return Saturate<I>::of(x); }                            \
    DEVICE I to_##I(i32 x) { return (I)x; }                                          \
    DEVICE I to_##I(u32 x) { return (I)x; }                                          \
    DEVICE I to_##I(u8 x) { return (I)x; }                                           \
    DEVICE I to_##I(bool x) { return x ? (I)1 : (I)0; }
LANG_TO(i32)
LANG_TO(u32)
LANG_TO(u8)
DEVICE bool to_bool(bool x) { return x; }

// ---- f32

DEVICE bool is_nan(f32 x) { return x != x; }
DEVICE bool is_infinite(f32 x) { return fabsf(x) == __uint_as_float(0x7f800000u); }
DEVICE bool is_finite(f32 x) { return fabsf(x) < __uint_as_float(0x7f800000u); }
DEVICE bool is_sign_negative(f32 x) { return !is_nan(x) && (__float_as_uint(x) >> 31) != 0u; }
DEVICE bool is_sign_positive(f32 x) { return !is_nan(x) && (__float_as_uint(x) >> 31) == 0u; }
DEVICE u32 to_bits(f32 x) { return is_nan(x) ? 0x7fc00000u : __float_as_uint(x); }
DEVICE f32 from_bits(u32 x) { return __uint_as_float(x); }

DEVICE f32 add(f32 a, f32 b) { return a + b; }
DEVICE f32 sub(f32 a, f32 b) { return a - b; }
DEVICE f32 mul(f32 a, f32 b) { return a * b; }
DEVICE f32 div(f32 a, f32 b) { return a / b; }
DEVICE f32 rem(f32 a, f32 b) { return fmodf(a, b); }
DEVICE f32 neg(f32 a) { return -a; }
// NaN counts as missing, and `-0.0` is less than `0.0`.
DEVICE f32 min(f32 a, f32 b) { f32 r; asm("min.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b)); return r; }
DEVICE f32 max(f32 a, f32 b) { f32 r; asm("max.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b)); return r; }
DEVICE f32 abs(f32 x) { return fabsf(x); }
DEVICE f32 copysign(f32 x, f32 sign) { return is_sign_negative(sign) ? -fabsf(x) : fabsf(x); }
DEVICE f32 signum(f32 x) { return is_nan(x) ? x : is_sign_negative(x) ? -1.0f : 1.0f; }
DEVICE f32 rem_euclid(f32 a, f32 b) {
    f32 rest = fmodf(a, b);
    return rest < 0.0f ? rest + fabsf(b) : rest;
}
DEVICE f32 div_euclid(f32 a, f32 b) {
    f32 whole = truncf(a / b);
    return fmodf(a, b) < 0.0f ? (b > 0.0f ? whole - 1.0f : whole + 1.0f) : whole;
}
DEVICE f32 mul_add(f32 a, f32 b, f32 c) { return __fmaf_rn(a, b, c); }
DEVICE f32 recip(f32 x) { return 1.0f / x; }
DEVICE f32 sqrt(f32 x) { return __fsqrt_rn(x); }
DEVICE f32 floor(f32 x) { return floorf(x); }
DEVICE f32 ceil(f32 x) { return ceilf(x); }
DEVICE f32 round(f32 x) { return roundf(x); }
DEVICE f32 round_ties_even(f32 x) { return rintf(x); }
DEVICE f32 trunc(f32 x) { return truncf(x); }
DEVICE f32 fract(f32 x) { return x - truncf(x); }
DEVICE f32 to_degrees(f32 x) { return x * 57.29578f; }
DEVICE f32 to_radians(f32 x) { return x * 0.017453292f; }
DEVICE f32 exp(f32 x) { return expf(x); }
DEVICE f32 exp2(f32 x) { return exp2f(x); }
DEVICE f32 exp_m1(f32 x) { return expm1f(x); }
DEVICE f32 ln(f32 x) { return logf(x); }
DEVICE f32 ln_1p(f32 x) { return log1pf(x); }
DEVICE f32 log2(f32 x) { return log2f(x); }
DEVICE f32 log10(f32 x) { return log10f(x); }
DEVICE f32 cbrt(f32 x) { return cbrtf(x); }
DEVICE f32 sin(f32 x) { return sinf(x); }
DEVICE f32 cos(f32 x) { return cosf(x); }
DEVICE f32 tan(f32 x) { return tanf(x); }
DEVICE f32 asin(f32 x) { return asinf(x); }
DEVICE f32 acos(f32 x) { return acosf(x); }
DEVICE f32 atan(f32 x) { return atanf(x); }
DEVICE f32 atan2(f32 a, f32 b) { return atan2f(a, b); }
DEVICE f32 sinh(f32 x) { return sinhf(x); }
DEVICE f32 cosh(f32 x) { return coshf(x); }
DEVICE f32 tanh(f32 x) { return tanhf(x); }
DEVICE f32 asinh(f32 x) { return asinhf(x); }
DEVICE f32 acosh(f32 x) { return acoshf(x); }
DEVICE f32 atanh(f32 x) { return atanhf(x); }
DEVICE f32 powf(f32 a, f32 b) { return ::powf(a, b); }
DEVICE f32 hypot(f32 a, f32 b) { return hypotf(a, b); }
#define LANG_POWI(F)                                                                 \
    DEVICE F powi(F x, i32 exponent) {                                               \
        F square = x, power = (F)1;                                                  \
        u32 left = exponent < 0 ? 0u - (u32)exponent : (u32)exponent;                \
        while (left > 0u) {                                                          \
            if (left & 1u) power = power * square;                                   \
            left >>= 1;                                                              \
            if (left > 0u) square = square * square;                                 \
        }                                                                            \
        return exponent < 0 ? (F)1 / power : power;                                  \
    }
LANG_POWI(f32)

// ---- integers

// `U` has no sign, and as many bits, or 32: it wraps.
#define LANG_INTEGER(I, U, BITS)                                                     \
    DEVICE I add(I a, I b) { return (I)((U)a + (U)b); }                              \
    DEVICE I sub(I a, I b) { return (I)((U)a - (U)b); }                              \
    DEVICE I mul(I a, I b) { return (I)((U)a * (U)b); }                              \
    DEVICE I min(I a, I b) { return a < b ? a : b; }                                 \
    DEVICE I max(I a, I b) { return a > b ? a : b; }                                 \
    DEVICE I bit_and(I a, I b) { return (I)(a & b); }                                \
    DEVICE I bit_or(I a, I b) { return (I)(a | b); }                                 \
    DEVICE I bit_xor(I a, I b) { return (I)(a ^ b); }                                \
    DEVICE I bit_not(I a) { return (I)~a; }                                          \
    DEVICE I shl(I a, u32 n) { return (I)((U)a << (n & (BITS - 1u))); }              \
    DEVICE I shr(I a, u32 n) { return (I)(a >> (n & (BITS - 1u))); }                 \
    DEVICE I wrapping_add(I a, I b) { return add(a, b); }                            \
    DEVICE I wrapping_sub(I a, I b) { return sub(a, b); }                            \
    DEVICE I wrapping_mul(I a, I b) { return mul(a, b); }                            \
    DEVICE I wrapping_neg(I a) { return (I)((U)0 - (U)a); }                          \
    DEVICE I wrapping_shl(I a, u32 n) { return shl(a, n); }                          \
    DEVICE I wrapping_shr(I a, u32 n) { return shr(a, n); }                          \
    DEVICE I pow(I a, u32 n) {                                                       \
        I square = a, power = (I)1;                                                  \
        while (n > 0u) {                                                             \
            if (n & 1u) power = mul(power, square);                                  \
            n >>= 1;                                                                 \
            square = mul(square, square);                                            \
        }                                                                            \
        return power;                                                                \
    }                                                                                \
    DEVICE I wrapping_pow(I a, u32 n) { return pow(a, n); }
LANG_INTEGER(i32, u32, 32u)
LANG_INTEGER(u32, u32, 32u)
LANG_INTEGER(u8, u32, 8u)

#define LANG_SIGNED(I)                                                               \
    DEVICE I neg(I a) { return wrapping_neg(a); }                                    \
    DEVICE I abs(I a) { return a < 0 ? wrapping_neg(a) : a; }                        \
    DEVICE I wrapping_abs(I a) { return abs(a); }                                    \
    DEVICE I signum(I a) { return (I)((i32)(a > 0) - (i32)(a < 0)); }                \
    DEVICE bool is_negative(I a) { return a < 0; }                                   \
    DEVICE bool is_positive(I a) { return a > 0; }                                   \
    DEVICE I div(I a, I b) { return b == 0 ? (I)0 : b == -1 ? neg(a) : (I)(a / b); } \
    DEVICE I rem(I a, I b) { return b == 0 ? a : b == -1 ? (I)0 : (I)(a % b); }      \
    DEVICE I rem_euclid(I a, I b) {                                                  \
        if (b == 0) return a;                                                        \
        I rest = rem(a, b);                                                          \
        return rest < 0 ? add(rest, abs(b)) : rest;                                  \
    }                                                                                \
    DEVICE I div_euclid(I a, I b) {                                                  \
        if (b == 0) return (I)0;                                                     \
        I whole = div(a, b);                                                         \
        return rem(a, b) < 0 ? (b > 0 ? sub(whole, (I)1) : add(whole, (I)1)) : whole;\
    }                                                                                \
    DEVICE I wrapping_div(I a, I b) { return div(a, b); }                            \
    DEVICE I wrapping_rem(I a, I b) { return rem(a, b); }
LANG_SIGNED(i32)
DEVICE u32 unsigned_abs(i32 a) { return (u32)abs(a); }

DEVICE u32 div(u32 a, u32 b) { return b == 0u ? 0u : a / b; }
DEVICE u8 div(u8 a, u8 b) { return b == 0 ? (u8)0 : (u8)(a / b); }
DEVICE u32 rem(u32 a, u32 b) { return b == 0u ? a : a % b; }
DEVICE u8 rem(u8 a, u8 b) { return b == 0 ? a : (u8)(a % b); }
DEVICE u32 rem_euclid(u32 a, u32 b) { return rem(a, b); }
DEVICE u8 rem_euclid(u8 a, u8 b) { return rem(a, b); }
DEVICE u32 div_euclid(u32 a, u32 b) { return div(a, b); }
DEVICE u8 div_euclid(u8 a, u8 b) { return div(a, b); }
DEVICE u32 wrapping_div(u32 a, u32 b) { return div(a, b); }
DEVICE u8 wrapping_div(u8 a, u8 b) { return div(a, b); }
DEVICE u32 wrapping_rem(u32 a, u32 b) { return rem(a, b); }
DEVICE u8 wrapping_rem(u8 a, u8 b) { return rem(a, b); }

DEVICE i32 saturate_i32(i64 x) { return x > 2147483647ll ? 2147483647 : x < -2147483648ll ? -2147483647 - 1 : (i32)x; }
DEVICE u32 saturate_u32(i64 x) { return x > 4294967295ll ? 4294967295u : x < 0ll ? 0u : (u32)x; }
DEVICE u8 saturate_u8(i64 x) { return x > 255ll ? (u8)255 : x < 0ll ? (u8)0 : (u8)x; }
#define LANG_SATURATING(I)                                                           \
    DEVICE I saturating_add(I a, I b) { return saturate_##I((i64)a + (i64)b); }      \
    DEVICE I saturating_sub(I a, I b) { return saturate_##I((i64)a - (i64)b); }
LANG_SATURATING(i32)
LANG_SATURATING(u32)
LANG_SATURATING(u8)

// Counted in 32 bits; a `u8` has 24 zeros in front that it does not have.
DEVICE u32 count_ones(u32 a) { return (u32)__popc(a); }
DEVICE u32 count_ones(i32 a) { return count_ones((u32)a); }
DEVICE u32 count_ones(u8 a) { return count_ones((u32)a); }
DEVICE u32 count_zeros(u32 a) { return 32u - count_ones(a); }
DEVICE u32 count_zeros(i32 a) { return 32u - count_ones(a); }
DEVICE u32 count_zeros(u8 a) { return 8u - count_ones(a); }
DEVICE u32 leading_zeros(u32 a) { return (u32)__clz((int)a); }
DEVICE u32 leading_zeros(i32 a) { return leading_zeros((u32)a); }
DEVICE u32 leading_zeros(u8 a) { return leading_zeros((u32)a) - 24u; }
DEVICE u32 trailing_zeros(u32 a) { return a == 0u ? 32u : (u32)__ffs((int)a) - 1u; }
DEVICE u32 trailing_zeros(i32 a) { return trailing_zeros((u32)a); }
DEVICE u32 trailing_zeros(u8 a) { return a == 0 ? 8u : trailing_zeros((u32)a); }
DEVICE u32 reverse_bits(u32 a) { return (u32)__brev(a); }
DEVICE i32 reverse_bits(i32 a) { return (i32)reverse_bits((u32)a); }
DEVICE u8 reverse_bits(u8 a) { return (u8)(reverse_bits((u32)a) >> 24); }
DEVICE u32 swap_bytes(u32 a) { return (u32)__byte_perm(a, 0u, 0x0123u); }
DEVICE i32 swap_bytes(i32 a) { return (i32)swap_bytes((u32)a); }
DEVICE u8 swap_bytes(u8 a) { return a; }
DEVICE u32 rotate_left(u32 a, u32 n) { return (a << (n & 31u)) | (a >> ((0u - n) & 31u)); }
DEVICE i32 rotate_left(i32 a, u32 n) { return (i32)rotate_left((u32)a, n); }
DEVICE u8 rotate_left(u8 a, u32 n) { return (u8)(((u32)a << (n & 7u)) | ((u32)a >> ((0u - n) & 7u))); }
DEVICE u32 rotate_right(u32 a, u32 n) { return rotate_left(a, 0u - n); }
DEVICE i32 rotate_right(i32 a, u32 n) { return rotate_left(a, 0u - n); }
DEVICE u8 rotate_right(u8 a, u32 n) { return rotate_left(a, 0u - n); }
DEVICE bool is_power_of_two(u32 a) { return count_ones(a) == 1u; }
DEVICE bool is_power_of_two(u8 a) { return count_ones(a) == 1u; }

// ---- bool

DEVICE bool bit_and(bool a, bool b) { return a && b; }
DEVICE bool bit_or(bool a, bool b) { return a || b; }
DEVICE bool bit_xor(bool a, bool b) { return a != b; }
DEVICE bool bit_not(bool a) { return !a; }

// ---- f32 and integers

template <typename N> DEVICE N clamp(N x, N low, N high) {
    N y = x < low ? low : x;
    return y > high ? high : y;
}

// ---- elements: from memory and back

DEVICE f32 read(f32 x) { return x; }
DEVICE f32 read(f16 x) { return ::to_f32(x); }
DEVICE f32 read(bf16 x) { return ::to_f32(x); }
DEVICE i32 read(i32 x) { return x; }
DEVICE u32 read(u32 x) { return x; }
DEVICE u16 read(u16 x) { return x; }
DEVICE u8 read(u8 x) { return x; }
DEVICE bool read(boolean x) { return x.bits != 0; }

template <typename E> struct Write { static DEVICE E of(E x) { return x; } };
template <> struct Write<f16> { static DEVICE f16 of(f32 x) { return from_f32<f16>(x); } };
template <> struct Write<bf16> { static DEVICE bf16 of(f32 x) { return from_f32<bf16>(x); } };
template <> struct Write<boolean> {
    static DEVICE boolean of(bool x) { boolean y; y.bits = x ? 1 : 0; return y; }
};

// Elements that are stored together.
template <typename E, int V> struct Results {
    Pack<E, V> pack;
    template <typename N> DEVICE void set(int i, N x) { pack.v[i] = Write<E>::of(x); }
    DEVICE const Pack<E, V>& all() const { return pack; }
};

// Floats of 16 bits stay f32 until all are there: then one instruction rounds two and puts them next to each other.
#define LANG_RESULTS(E, TYPE)                                                        \
    template <int V> struct Results<E, V> {                                          \
        f32 v[V];                                                                    \
        DEVICE void set(int i, f32 x) { v[i] = x; }                                  \
        DEVICE Pack<E, V> all() const {                                              \
            union { Pack<E, V> pack; u32 pairs[V > 1 ? V / 2 : 1]; } both;           \
            if constexpr (V == 1) {                                                  \
                both.pack.v[0] = Write<E>::of(v[0]);                                 \
            } else {                                                                 \
                static_assert(V % 2 == 0, "pairs");                                  \
                _Pragma("unroll") for (int i = 0; i < V / 2; ++i) {                  \
                    asm("cvt.rn." TYPE "x2.f32 %0, %1, %2;"                          \
                        : "=r"(both.pairs[i]) : "f"(v[2 * i + 1]), "f"(v[2 * i]));   \
                }                                                                    \
            }                                                                        \
            return both.pack;                                                        \
        }                                                                            \
    };
LANG_RESULTS(f16, "f16")
LANG_RESULTS(bf16, "bf16")

// The bits of an element as an element of another type of its size: what a later kernel reads of memory that one wrote.
template <typename E> struct Same {
    template <typename F> static DEVICE E bits(F x) {
        static_assert(sizeof(E) == sizeof(F), "elements of one size");
        union { F from; E to; } both;
        both.from = x;
        return both.to;
    }
};

// A number that the host sent as its bits.
template <typename N> struct Bits { static DEVICE N of(u32 x) { return (N)x; } };
template <> struct Bits<f32> { static DEVICE f32 of(u32 x) { return __uint_as_float(x); } };
template <> struct Bits<bool> { static DEVICE bool of(u32 x) { return x != 0u; } };

}  // namespace lang

// ---- packs

template <typename E, int V> DEVICE void load_pack(Pack<E, V>& to, u64 addr, u64 at, bool splat, u64 left) {
    const E* from = (const E*)addr + at;
    if (splat || left < V) {
#pragma unroll
        for (int i = 0; i < V; ++i) to.v[i] = from[splat || i >= left ? 0 : i];
    } else {
        to.raw = *(const Raw<sizeof(E) * V>*)from;
    }
}

template <typename E, int V> DEVICE void store_pack(const Pack<E, V>& from, u64 addr, u64 at, u64 left) {
    E* to = (E*)addr + at;
    if (left < V) {
#pragma unroll
        for (int i = 0; i < V; ++i) {
            if (i < left) to[i] = from.v[i];
        }
    } else {
        *(Raw<sizeof(E) * V>*)to = from.raw;
    }
}

// One element from the elements at the same place of up to three inputs.
// Types: all
#include "common.cuh"

// The output is contiguous. With `vec`, numbers count packs of 16 bytes of `T`; only a walk of one
// dimension may end within a pack.
struct ElementParams {
    u64 x[3];
    u64 y;
    u64 count;  // elements of the output
    u64 packs;  // passes of the loop
    f32 factor;
    u32 vec;
    Dims dims;
    u64 strides[3][MAX_RANK];
};
static_assert(sizeof(ElementParams) == 256, "mirrored in elementwise.rs");

#define V_MOST (16 / (int)sizeof(T))

template <typename E, int V> DEVICE void load(Pack<E, V>& to, u64 addr, u64 at, bool splat, u64 left) {
    const E* from = (const E*)addr + at;
    if (splat || left < V) {
#pragma unroll
        for (int i = 0; i < V; ++i) to.v[i] = from[splat || i >= left ? 0 : i];
    } else {
        to.raw = *(const Raw<sizeof(E) * V>*)from;
    }
}

template <typename E, int V> DEVICE void store(const Pack<E, V>& from, u64 addr, u64 at, u64 left) {
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

#define FOR_PACKS(p)                                                                 \
    for (u64 n = (u64)blockIdx.x * blockDim.x + threadIdx.x; n < p.packs; n += (u64)gridDim.x * blockDim.x)

// ---- arithmetic: floats in f32, integers wrap

DEVICE f32 add_of(f32 a, f32 b) { return a + b; }
DEVICE f32 sub_of(f32 a, f32 b) { return a - b; }
DEVICE f32 mul_of(f32 a, f32 b) { return a * b; }
DEVICE f32 div_of(f32 a, f32 b) { return a / b; }
DEVICE f32 neg_of(f32 a) { return -a; }
DEVICE f32 scale_of(f32 a, f32 factor) { return a * factor; }

#define INTEGER(I)                                                                   \
    DEVICE I add_of(I a, I b) { return (I)((u32)a + (u32)b); }                       \
    DEVICE I sub_of(I a, I b) { return (I)((u32)a - (u32)b); }                       \
    DEVICE I mul_of(I a, I b) { return (I)((u32)a * (u32)b); }                       \
    DEVICE I neg_of(I a) { return (I)(0u - (u32)a); }                                \
    DEVICE I scale_of(I a, f32 factor) { return Saturate<I>::of((double)a * (double)factor); }
INTEGER(i32)
INTEGER(u32)
INTEGER(u8)
DEVICE i32 div_of(i32 a, i32 b) { return b == 0 ? 0 : b == -1 ? neg_of(a) : a / b; }
DEVICE u32 div_of(u32 a, u32 b) { return b == 0 ? 0 : a / b; }
DEVICE u8 div_of(u8 a, u8 b) { return b == 0 ? 0 : a / b; }

DEVICE f32 silu_of(f32 x) { return x / (1.0f + expf(-x)); }
DEVICE f32 gelu_of(f32 x) { return x * normcdff(x); }
// `x/2 * (1 + tanh(u))` as `x * sigmoid(2u)`, which does not cancel for negative `x`.
DEVICE f32 gelu_tanh_of(f32 x) {
    f32 twice_u = 2.0f * 0.7978846f * (x + 0.044715f * x * x * x);
    return x / (1.0f + expf(-twice_u));
}

// The type that `T` is computed in.
#if defined(T_f32) || defined(T_f16) || defined(T_bf16)
typedef f32 A;
DEVICE A up(T x) { return to_f32(x); }
DEVICE T down(A x) { return from_f32<T>(x); }
DEVICE A real(f32 x) { return x; }
#elif defined(T_boolean)
typedef u8 A;
DEVICE A up(T x) { return x.bits; }
DEVICE T down(A x) { T y; y.bits = x; return y; }
DEVICE A real(f32 x) { return Saturate<A>::of(x); }
#else
typedef T A;
DEVICE A up(T x) { return x; }
DEVICE T down(A x) { return x; }
DEVICE A real(f32 x) { return Saturate<A>::of(x); }
#endif

// ---- one input

template <int V, typename F> DEVICE void unary(const ElementParams& p, F f) {
    FOR_PACKS(p) {
        u64 at[1];
        locate<1>(p.dims, p.strides, n, at);
        u64 left = p.count - n * V;
        Pack<T, V> x, y;
        load<T, V>(x, p.x[0], at[0], V > 1 && p.strides[0][0] == 0, left);
#pragma unroll
        for (int i = 0; i < V; ++i) y.v[i] = down(f(up(x.v[i])));
        store<T, V>(y, p.y, n * V, left);
    }
}

#define UNARY(NAME, VALUE)                                                           \
    extern "C" __global__ void __launch_bounds__(256)                                \
        unary_##NAME(const __grid_constant__ ElementParams p) { in_order();                      \
        f32 factor = p.factor;                                                       \
        auto f = [factor](A x) -> A { return VALUE; };                               \
        if (p.vec) unary<V_MOST>(p, f);                                              \
        else unary<1>(p, f);                                                         \
    }

UNARY(neg, neg_of(x))
UNARY(relu, x < (A)0 ? (A)0 : x)
UNARY(scale, scale_of(x, factor))
UNARY(exp, real(expf((f32)x)))
UNARY(log, real(logf((f32)x)))
UNARY(sqrt, real(sqrtf((f32)x)))
UNARY(rsqrt, real(1.0f / sqrtf((f32)x)))
UNARY(tanh, real(tanhf((f32)x)))
UNARY(gelu, real(gelu_of((f32)x)))
UNARY(gelu_tanh, real(gelu_tanh_of((f32)x)))
UNARY(silu, real(silu_of((f32)x)))

// ---- two inputs

template <typename Y, int V, typename F> DEVICE void binary(const ElementParams& p, F f) {
    FOR_PACKS(p) {
        u64 at[2];
        locate<2>(p.dims, p.strides, n, at);
        u64 left = p.count - n * V;
        Pack<T, V> a, b;
        Pack<Y, V> y;
        load<T, V>(a, p.x[0], at[0], V > 1 && p.strides[0][0] == 0, left);
        load<T, V>(b, p.x[1], at[1], V > 1 && p.strides[1][0] == 0, left);
#pragma unroll
        for (int i = 0; i < V; ++i) y.v[i] = f(up(a.v[i]), up(b.v[i]));
        store<Y, V>(y, p.y, n * V, left);
    }
}

#define BINARY(NAME, VALUE)                                                          \
    extern "C" __global__ void __launch_bounds__(256)                                \
        binary_##NAME(const __grid_constant__ ElementParams p) { in_order();                     \
        auto f = [](A a, A b) -> T { return down(VALUE); };                          \
        if (p.vec) binary<T, V_MOST>(p, f);                                          \
        else binary<T, 1>(p, f);                                                     \
    }

BINARY(add, add_of(a, b))
BINARY(sub, sub_of(a, b))
BINARY(mul, mul_of(a, b))
BINARY(div, div_of(a, b))
BINARY(silu_mul, real(silu_of((f32)a) * (f32)b))

// A bool is written as its byte.
#define COMPARE(NAME, SIGN)                                                          \
    extern "C" __global__ void __launch_bounds__(256)                                \
        compare_##NAME(const __grid_constant__ ElementParams p) { in_order();                    \
        auto f = [](A a, A b) -> u8 { return a SIGN b ? 1 : 0; };                    \
        if (p.vec) binary<u8, V_MOST>(p, f);                                         \
        else binary<u8, 1>(p, f);                                                    \
    }

COMPARE(eq, ==)
COMPARE(ne, !=)
COMPARE(lt, <)
COMPARE(le, <=)
COMPARE(gt, >)
COMPARE(ge, >=)

// ---- three inputs: the condition, then what is picked from

template <int V> DEVICE void where(const ElementParams& p) {
    FOR_PACKS(p) {
        u64 at[3];
        locate<3>(p.dims, p.strides, n, at);
        u64 left = p.count - n * V;
        Pack<u8, V> c;
        Pack<T, V> a, b;
        load<u8, V>(c, p.x[0], at[0], V > 1 && p.strides[0][0] == 0, left);
        load<T, V>(a, p.x[1], at[1], V > 1 && p.strides[1][0] == 0, left);
        load<T, V>(b, p.x[2], at[2], V > 1 && p.strides[2][0] == 0, left);
#pragma unroll
        for (int i = 0; i < V; ++i) a.v[i] = c.v[i] ? a.v[i] : b.v[i];
        store<T, V>(a, p.y, n * V, left);
    }
}

extern "C" __global__ void __launch_bounds__(256) where_pick(const __grid_constant__ ElementParams p) { in_order();
    if (p.vec) where<V_MOST>(p);
    else where<1>(p);
}

// From `T` to `U`.
// Types: pairs
#include "common.cuh"

// The output is contiguous. With `vec`, numbers count packs; only a walk of one dimension may end
// within a pack.
struct CastParams {
    u64 x;
    u64 y;
    u64 count;  // elements of the output
    u64 packs;  // passes of the loop
    u32 vec;
    u32 pad;
    Dims dims;
    u64 strides[1][MAX_RANK];
};
static_assert(sizeof(CastParams) == 144, "mirrored in elementwise.rs");

// Sixteen bytes of the larger type.
#define V_MOST (16 / (int)(sizeof(T) > sizeof(U) ? sizeof(T) : sizeof(U)))

// What a value becomes: from f32, or from an integer of its own type.
template <typename D> struct To;
template <> struct To<f32> {
    static DEVICE f32 of(f32 v) { return v; }
    static DEVICE f32 of(i32 v) { return (f32)v; }
    static DEVICE f32 of(u32 v) { return (f32)v; }
};
template <> struct To<f16> {
    static DEVICE f16 of(f32 v) { return from_f32<f16>(v); }
    static DEVICE f16 of(i32 v) { return from_f32<f16>(odd_f32(v)); }
    static DEVICE f16 of(u32 v) { return from_f32<f16>(odd_f32(v)); }
};
template <> struct To<bf16> {
    static DEVICE bf16 of(f32 v) { return from_f32<bf16>(v); }
    static DEVICE bf16 of(i32 v) { return from_f32<bf16>(odd_f32(v)); }
    static DEVICE bf16 of(u32 v) { return from_f32<bf16>(odd_f32(v)); }
};
template <> struct To<i32> {
    static DEVICE i32 of(f32 v) { return Saturate<i32>::of(v); }
    static DEVICE i32 of(i32 v) { return v; }
    static DEVICE i32 of(u32 v) { return (i32)v; }
};
template <> struct To<u32> {
    static DEVICE u32 of(f32 v) { return Saturate<u32>::of(v); }
    static DEVICE u32 of(i32 v) { return (u32)v; }
    static DEVICE u32 of(u32 v) { return v; }
};
template <> struct To<u8> {
    static DEVICE u8 of(f32 v) { return Saturate<u8>::of(v); }
    static DEVICE u8 of(i32 v) { return (u8)v; }
    static DEVICE u8 of(u32 v) { return (u8)v; }
};
// NaN is true.
template <> struct To<boolean> {
    template <typename V> static DEVICE boolean of(V v) {
        boolean y;
        y.bits = v != (V)0 ? 1 : 0;
        return y;
    }
};

DEVICE f32 value(f32 x) { return x; }
DEVICE f32 value(f16 x) { return to_f32(x); }
DEVICE f32 value(bf16 x) { return to_f32(x); }
DEVICE i32 value(i32 x) { return x; }
DEVICE u32 value(u32 x) { return x; }
DEVICE u32 value(u8 x) { return x; }
DEVICE u32 value(boolean x) { return x.bits != 0 ? 1u : 0u; }

template <int V> DEVICE void run(const CastParams& p) {
    for (u64 n = (u64)blockIdx.x * blockDim.x + threadIdx.x; n < p.packs; n += (u64)gridDim.x * blockDim.x) {
        u64 at[1];
        locate<1>(p.dims, p.strides, n, at);
        u64 left = p.count - n * V;
        Pack<T, V> x;
        Pack<U, V> y;
        const T* from = (const T*)p.x + at[0];
        bool splat = V > 1 && p.strides[0][0] == 0;
        if (splat || left < V) {
#pragma unroll
            for (int i = 0; i < V; ++i) x.v[i] = from[splat || i >= left ? 0 : i];
        } else {
            x.raw = *(const Raw<sizeof(T) * V>*)from;
        }
#pragma unroll
        for (int i = 0; i < V; ++i) y.v[i] = To<U>::of(value(x.v[i]));
        U* to = (U*)p.y + n * V;
        if (left < V) {
#pragma unroll
            for (int i = 0; i < V; ++i) {
                if (i < left) to[i] = y.v[i];
            }
        } else {
            *(Raw<sizeof(U) * V>*)to = y.raw;
        }
    }
}

extern "C" __global__ void __launch_bounds__(256) cast(const __grid_constant__ CastParams p) { in_order();
    if (p.vec) run<V_MOST>(p);
    else run<1>(p);
}

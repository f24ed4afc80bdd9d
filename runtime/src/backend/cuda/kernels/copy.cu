// Elements from place to place, whatever they mean: everything is counted in words of 1 to 16 bytes.
// Types: none
#include "common.cuh"

// A strided view to a strided view of equal shape.
struct Move {
    u64 from;
    u64 to;
    u64 count;  // words
    Dims dims;
    u64 strides[2][MAX_RANK];
};
struct CopyParams { Move move; };
static_assert(sizeof(CopyParams) == 176, "mirrored in copy.rs");

template <int W> DEVICE void run(const Move& m) {
    for (u64 n = (u64)blockIdx.x * blockDim.x + threadIdx.x; n < m.count; n += (u64)gridDim.x * blockDim.x) {
        u64 at[2];
        locate<2>(m.dims, m.strides, n, at);
        ((Raw<W>*)m.to)[at[1]] = ((const Raw<W>*)m.from)[at[0]];
    }
}

#define COPY(W)                                                                      \
    extern "C" __global__ void __launch_bounds__(256)                                \
        copy_##W(const __grid_constant__ CopyParams p) { in_order(); run<W>(p.move); }
COPY(1) COPY(2) COPY(4) COPY(8) COPY(16)

// Up to eight of them, one per row of the grid.
#define PARTS 8
struct JoinParams { Move part[PARTS]; };
static_assert(sizeof(JoinParams) == 1408, "mirrored in copy.rs");

#define JOIN(W)                                                                      \
    extern "C" __global__ void __launch_bounds__(256)                                \
        join_##W(const __grid_constant__ JoinParams p) { in_order(); run<W>(p.part[blockIdx.y]); }
JOIN(1) JOIN(2) JOIN(4) JOIN(8) JOIN(16)

// Bytes that lie end to end, from and to addresses that 16 divides.
struct FlatParams { u64 from; u64 to; u64 bytes; };
static_assert(sizeof(FlatParams) == 24, "mirrored in copy.rs");

extern "C" __global__ void __launch_bounds__(256) copy_flat(const __grid_constant__ FlatParams p) { in_order();
    u64 first = (u64)blockIdx.x * blockDim.x + threadIdx.x, all = (u64)gridDim.x * blockDim.x;
    u64 words = p.bytes / 16;
    for (u64 n = first; n < words; n += all) ((Raw<16>*)p.to)[n] = ((const Raw<16>*)p.from)[n];
    for (u64 n = words * 16 + first; n < p.bytes; n += all) ((u8*)p.to)[n] = ((const u8*)p.from)[n];
}

// The output is contiguous; where a coordinate is not below `limits`, it is zero.
struct PadParams {
    u64 from;
    u64 to;
    u64 count;  // words of the output
    Dims dims;  // of the output
    u64 limits[MAX_RANK];
    u64 strides[MAX_RANK];
};
static_assert(sizeof(PadParams) == 176, "mirrored in copy.rs");

template <int W, typename I> DEVICE void pad(const PadParams& p) {
    for (u64 n = (u64)blockIdx.x * blockDim.x + threadIdx.x; n < p.count; n += (u64)gridDim.x * blockDim.x) {
        I rest = (I)n;
        u64 at = 0;
        bool inside = true;
#pragma unroll
        for (int axis = 0; axis < MAX_RANK; ++axis) {
            if (axis < (int)p.dims.rank) {
                I part = rest;
                if (axis + 1 < (int)p.dims.rank) {
                    I size = (I)p.dims.shape[axis];
                    rest = part / size;
                    part -= rest * size;
                }
                inside = inside && part < p.limits[axis];
                at += (u64)part * p.strides[axis];
            }
        }
        Raw<W> word = {};
        if (inside) word = ((const Raw<W>*)p.from)[at];
        ((Raw<W>*)p.to)[n] = word;
    }
}

#define PAD(W)                                                                       \
    extern "C" __global__ void __launch_bounds__(256)                                \
        pad_##W(const __grid_constant__ PadParams p) { in_order();                               \
        if (p.dims.wide) pad<W, u64>(p);                                             \
        else pad<W, u32>(p);                                                         \
    }
PAD(1) PAD(2) PAD(4) PAD(8) PAD(16)

// `pattern` is the element, repeated to four bytes.
struct FillParams { u64 to; u64 bytes; u32 pattern; u32 pad; };
static_assert(sizeof(FillParams) == 24, "mirrored in copy.rs");

extern "C" __global__ void __launch_bounds__(256) fill(const __grid_constant__ FillParams p) { in_order();
    u64 first = (u64)blockIdx.x * blockDim.x + threadIdx.x, all = (u64)gridDim.x * blockDim.x;
    u64 words = (p.to & 15) == 0 ? p.bytes / 16 : 0;
    Raw<16> word = {{p.pattern, p.pattern, p.pattern, p.pattern}};
    for (u64 n = first; n < words; n += all) ((Raw<16>*)p.to)[n] = word;
    for (u64 n = words * 16 + first; n < p.bytes; n += all) {
        ((u8*)p.to)[n] = (u8)(p.pattern >> (8 * (n & 3)));
    }
}

struct ArangeParams { u64 to; u64 count; double start; double step; };
static_assert(sizeof(ArangeParams) == 32, "mirrored in copy.rs");

// Two roundings, as on the host: no fused multiply and add.
#define ARANGE(NAME, E, VALUE)                                                       \
    extern "C" __global__ void __launch_bounds__(256)                                \
        arange_##NAME(const __grid_constant__ ArangeParams p) { in_order();                      \
        u64 first = (u64)blockIdx.x * blockDim.x + threadIdx.x;                      \
        for (u64 n = first; n < p.count; n += (u64)gridDim.x * blockDim.x) {         \
            double v = __dadd_rn(p.start, __dmul_rn((double)n, p.step));             \
            ((E*)p.to)[n] = VALUE;                                                   \
        }                                                                            \
    }
ARANGE(f32, f32, (f32)v)
ARANGE(f16, f16, from_f32<f16>(odd_f32(v)))
ARANGE(bf16, bf16, from_f32<bf16>(odd_f32(v)))
ARANGE(i32, i32, Saturate<i32>::of(v))
ARANGE(u32, u32, Saturate<u32>::of(v))
ARANGE(u8, u8, Saturate<u8>::of(v))
ARANGE(boolean, u8, (u8)(v != 0.0 ? 1 : 0))

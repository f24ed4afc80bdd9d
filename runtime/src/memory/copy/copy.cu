// Elements from place to place, whatever they mean: everything is counted in words of 1 to 16 bytes.
// Types: none
#include "common.cuh"

// A strided view to a strided view of equal shape.
struct CopyParams { Move move; };
static_assert(sizeof(CopyParams) == 176, "mirrored by cuda.rs");

#define COPY(W) \
    KERNEL(copy_##W, 256)(const __grid_constant__ CopyParams p) { in_order(); move_words<W>(p.move); }
COPY(1) COPY(2) COPY(4) COPY(8) COPY(16)

// Bytes that lie end to end, from and to addresses that 16 divides.
struct FlatParams { u64 from; u64 to; u64 bytes; };
static_assert(sizeof(FlatParams) == 24, "mirrored by cuda.rs");

KERNEL(copy_flat, 256)(const __grid_constant__ FlatParams p) { in_order();
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
static_assert(sizeof(PadParams) == 176, "mirrored by cuda.rs");

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

#define PAD(W)                                                              \
    KERNEL(pad_##W, 256)(const __grid_constant__ PadParams p) { in_order(); \
        if (p.dims.wide) pad<W, u64>(p);                                    \
        else pad<W, u32>(p);                                                \
    }
PAD(1) PAD(2) PAD(4) PAD(8) PAD(16)

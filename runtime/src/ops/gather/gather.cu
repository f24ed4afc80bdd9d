// Slices picked by indices found in device memory, counted in words of 1 to 16 bytes.
// Types: none
#include "common.cuh"

// `y[o, n, e] = x[o, index[n], e]`, or zeros; `y` is contiguous.
struct PickParams {
    u64 x;
    u64 y;
    u64 count;      // words of the output
    u64 len;        // words of a slice
    u64 n;          // indices
    u64 stride;     // between slices, in words
    u64 wide;       // whether a number may not fit in 31 bits
    Picks picks;
    Dims outer;
    u64 outer_strides[1][MAX_RANK];
    Dims inner;
    u64 inner_strides[1][MAX_RANK];
};
static_assert(sizeof(PickParams) == 560, "mirrored by cuda.rs");

template <int W, typename I> DEVICE void pick(const PickParams& p) {
    const u64 rows = p.picks.count();
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < p.count; i += (u64)gridDim.x * blockDim.x) {
        I slice = (I)i / (I)p.len, e = (I)i - slice * (I)p.len;
        I o = slice / (I)p.n, k = slice - o * (I)p.n;
        u32 row = p.picks.at(k);
        Raw<W> word = {};
        if (row < rows) {
            u64 outer[1], inner[1];
            locate<1>(p.outer, p.outer_strides, o, outer);
            locate<1>(p.inner, p.inner_strides, e, inner);
            word = ((const Raw<W>*)p.x)[outer[0] + row * p.stride + inner[0]];
        } else if (o == 0 && e == 0) {
            p.picks.missing(k, row, rows);
        }
        ((Raw<W>*)p.y)[i] = word;
    }
}

#define PICK(W)                                                               \
    KERNEL(pick_##W, 256)(const __grid_constant__ PickParams p) { in_order(); \
        if (p.wide) pick<W, u64>(p);                                          \
        else pick<W, u32>(p);                                                 \
    }
PICK(1) PICK(2) PICK(4) PICK(8) PICK(16)

// Slices picked by indices found in device memory, counted in words of 1 to 16 bytes.
// Types: none
#include "common.cuh"

// A padded dimension of the indices.
struct Padded {
    u64 real;    // u32*: how many of its places are real; 0: all
    u64 behind;  // indices behind it
    u64 size;
};

// `y[o, n, e] = x[o, index[n], e]`, or zeros; `y` is contiguous.
struct PickParams {
    u64 x;
    u64 y;
    u64 index;      // u32
    FaultSink sink;
    u32 op;
    u32 wide;       // whether a number may not fit in 31 bits
    u64 count;      // words of the output
    u64 len;        // words of a slice
    u64 n;          // indices
    u64 rows;       // slices of `x` along the axis
    u64 stride;     // between them, in words
    u64 real;       // u32*: how many slices are real, those behind being padding; 0: all
    Dims ids;
    u64 ids_strides[1][MAX_RANK];
    Dims outer;
    u64 outer_strides[1][MAX_RANK];
    Dims inner;
    u64 inner_strides[1][MAX_RANK];
    Padded padded[MAX_RANK];
};
static_assert(sizeof(PickParams) == 552, "mirrored by cuda.rs");

DEVICE u32 id_at(const PickParams& p, u64 k) {
    u64 at[1];
    locate<1>(p.ids, p.ids_strides, k, at);
    return ((const u32*)p.index)[at[0]];
}

// Whether index `k` stands in no padding: only such a one can be a mistake.
DEVICE bool counts(const PickParams& p, u64 k) {
    for (u32 axis = 0; axis < MAX_RANK; ++axis) {
        const Padded& d = p.padded[axis];
        if (d.real && k / d.behind % d.size >= *(const u32*)d.real) return false;
    }
    return true;
}

template <int W, typename I> DEVICE void pick(const PickParams& p) {
    u64 rows = p.rows;
    if (p.real) {
        const u64 real = *(const u32*)p.real;
        rows = real < rows ? real : rows;
    }
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < p.count; i += (u64)gridDim.x * blockDim.x) {
        I slice = (I)i / (I)p.len, e = (I)i - slice * (I)p.len;
        I o = slice / (I)p.n, k = slice - o * (I)p.n;
        u32 row = id_at(p, k);
        Raw<W> word = {};
        if (row < rows) {
            u64 outer[1], inner[1];
            locate<1>(p.outer, p.outer_strides, o, outer);
            locate<1>(p.inner, p.inner_strides, e, inner);
            word = ((const Raw<W>*)p.x)[outer[0] + row * p.stride + inner[0]];
        } else if (o == 0 && e == 0 && counts(p, k)) {
            if (is_first(p.sink, k, [&](u64 j) { return id_at(p, j) >= rows && counts(p, j); })) {
                report(p.sink, p.op, row, rows);
            }
        }
        ((Raw<W>*)p.y)[i] = word;
    }
}

#define PICK(W)                                                                      \
    extern "C" __global__ void __launch_bounds__(256)                                \
        pick_##W(const __grid_constant__ PickParams p) { in_order();                             \
        if (p.wide) pick<W, u64>(p);                                                 \
        else pick<W, u32>(p);                                                        \
    }
PICK(1) PICK(2) PICK(4) PICK(8) PICK(16)

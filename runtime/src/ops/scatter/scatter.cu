// Rows placed by indices found in device memory, counted in words of 1 to 16 bytes.
// Types: none
#include "common.cuh"

// `y[index[i], ..] = x[i, ..]` for the last `i` of each row.
struct ScatterParams {
    u64 x;
    u64 y;
    Places to;
    u64 len;           // words of a row
    u64 strides[2];    // between rows, in words: of `x`, of `y`
    Dims inner;
    u64 inner_strides[2][MAX_RANK];
};
static_assert(sizeof(ScatterParams) == 272, "mirrored by cuda.rs");

// Before a scatter of many rows: the table of its places, empty, then with the last index of each row.
KERNEL(places_clear, 256)(const __grid_constant__ Places p) {
    in_order();
    u64* const slots = (u64*)p.table;
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i <= p.mask; i += (u64)gridDim.x * blockDim.x) slots[i] = 0;
}

KERNEL(places_enter, 256)(const __grid_constant__ Places p) {
    in_order();
    const u64 n = p.count();
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (u64)gridDim.x * blockDim.x) p.enter(i);
}

// A block takes one index at a time; blocks along y share the words of its row.
template <int W> DEVICE void scatter(const ScatterParams& p) {
    const u64 n = p.to.count();
    for (u64 i = blockIdx.x; i < n; i += gridDim.x) {
        u64 row;
        if (!p.to.place(i, n, &row)) continue;
        const Raw<W>* from = (const Raw<W>*)p.x + i * p.strides[0];
        Raw<W>* to = (Raw<W>*)p.y + row * p.strides[1];
        for (u64 e = (u64)blockIdx.y * blockDim.x + threadIdx.x; e < p.len; e += (u64)gridDim.y * blockDim.x) {
            u64 at[2];
            locate<2>(p.inner, p.inner_strides, e, at);
            to[at[1]] = from[at[0]];
        }
    }
}

// `y[index[i] - 1] = x[i]` for the last `i` of each element; 0 is no element.
struct ElementParams {
    u64 x;
    u64 y;
    Places to;
};
static_assert(sizeof(ElementParams) == 96, "mirrored by cuda.rs");

template <int W> DEVICE void elements(const ElementParams& p) {
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < p.to.n; i += (u64)gridDim.x * blockDim.x) {
        const u32 place = p.to.at(i);
        if (place == SKIP || place >= p.to.rows || !p.to.is_last(i, place)) continue;
        ((Raw<W>*)p.y)[place] = ((const Raw<W>*)p.x)[i];
    }
}

#define ELEMENTS(W) \
    KERNEL(elements_##W, 256)(const __grid_constant__ ElementParams p) { in_order(); elements<W>(p); }
ELEMENTS(1) ELEMENTS(2) ELEMENTS(4) ELEMENTS(8)

#define SCATTER(W) \
    KERNEL(scatter_##W, 256)(const __grid_constant__ ScatterParams p) { in_order(); scatter<W>(p); }
SCATTER(1) SCATTER(2) SCATTER(4) SCATTER(8) SCATTER(16)

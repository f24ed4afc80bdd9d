// Weights in blocks as floats: all of them, or rows picked by indices. And rows of activations that cannot be loaded in wide words.
// Of `FORMAT` if that is defined, and otherwise of every format.
// Types: floats
#include "common.cuh"
#include "blocks.cuh"

// Four of the lane's elements of a run, the first or the second of them. Each operation is rounded, as on the host.
template <class F, class R> DEVICE Raw<sizeof(T) * 4> values(const R& ready, u32 run, u32 i, u32 quad) {
    const u32 part = F::SPLIT ? i : 0;
    f32 q[4];
    blocks::integers<F>(quad, F::ZEROS ? 0u : blocks::zeros_of<F>(ready, run), q);
    Pack<T, 4> pack;
#pragma unroll
    for (u32 j = 0; j < 4; ++j) {
        f32 value = __fmul_rn(blocks::scale_of<F>(ready, run, part), q[j]);
        if (F::MINIMA || F::ZEROS) value = __fsub_rn(value, blocks::minimum_of<F>(ready, run, part));
        pack.v[j] = from_f32<T>(value);
    }
    return pack.raw;
}

// Writes the lane's elements of a unit to a row, of which `left` elements follow the beginning of the unit.
template <class F> DEVICE void write(const typename F::Held& held, u32 lane, T* y, u32 left) {
    const auto& ready = F::ready(held);
#pragma unroll
    for (u32 run = 0; run < F::UNIT / 32; ++run) {
        // The second block of an odd number is not there.
        if (run * 32 >= left) break;
        u32 quads[2];
        F::quads(ready, run, lane, quads);
#pragma unroll
        for (u32 i = 0; i < 2; ++i) {
            *(Raw<sizeof(T) * 4>*)(y + run * 32 + i * 16 + lane * 4) = values<F>(ready, run, i, quads[i]);
        }
    }
}

struct ExpandParams {
    u64 w;       // the first tile
    u64 y;       // rows, contiguous
    u64 rows;
    u64 k;
    u32 units;   // of a row
    u32 spans;   // of a row, each of `SPAN` elements
    u64 tiles;
};

// Elements of a row that a warp has, for each of the rows of a tile.
const u32 SPAN = 256;
// Elements of 128 bytes: a warp writes so many of a row at a time. Of 16 bits, lanes have 32 bytes of a row beside each other, and the
// second-level cache takes as long for these as for four times as many.
const u32 LINE = 128 / sizeof(T);
// Elements of 16 bytes.
const u32 WORD = 16 / sizeof(T);

// The lines of the rows of a tile, in words. A row has its words in another order, so that those that lanes write at a time are in different
// banks.
struct Lines {
    Raw<16> words[blocks::TILE][LINE / WORD];

    static DEVICE u32 order(u32 row) { return (row & 1) << 2 | row & 2 | row >> 2 & 1; }
    DEVICE T* at(u32 row, u32 element) { return (T*)&words[row][element / WORD ^ order(row)] + element % WORD; }
};

// A warp has a span of a tile: all of its weights are asked for before the first one is used.
template <class F> DEVICE void expand(const ExpandParams& p) {
    constexpr u32 EACH = SPAN / F::UNIT, OF_UNIT = F::UNIT / LINE, RUNS = LINE / 32;
    // One is written while the other may still be read.
    __shared__ Lines lines[256 / WARP][2];
    const u32 in_warp = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    const u32 lane = in_warp % blocks::LANES, place = in_warp / blocks::LANES;
    const u32 apart = gridDim.x * (blockDim.x / WARP), spans = (u32)p.tiles * p.spans;
    for (u32 i = blockIdx.x * (blockDim.x / WARP) + warp; i < spans; i += apart) {
        const u32 tile = i / p.spans, span = i - tile * p.spans, first = span * EACH;
        const u64 row = (u64)tile * blocks::TILE;
        const u8* const w = (const u8*)p.w + ((u64)tile * p.units + first) * (blocks::TILE * F::BYTES);
        const typename F::At at(w, place, lane);
        typename F::Held held[EACH] = {};
#pragma unroll
        for (u32 u = 0; u < EACH; ++u) {
            if (row + place < p.rows && first + u < p.units) F::load(held[u], at, u * (blocks::TILE * F::BYTES));
        }
        const u32 left = (u32)(p.k - (u64)span * SPAN);
        T* const y = (T*)p.y + row * p.k + (u64)span * SPAN;
#pragma unroll
        for (u32 u = 0; u < EACH; ++u) {
            const auto& ready = F::ready(held[u]);
#pragma unroll
            for (u32 line = 0; line < OF_UNIT; ++line) {
                const u32 begin = u * F::UNIT + line * LINE;
                if (begin >= left) break;
                Lines& to = lines[warp][(u * OF_UNIT + line) % 2];
#pragma unroll
                for (u32 r = 0; r < RUNS; ++r) {
                    const u32 run = line * RUNS + r;
                    u32 quads[2];
                    F::quads(ready, run, lane, quads);
#pragma unroll
                    for (u32 i = 0; i < 2; ++i) {
                        *(Raw<sizeof(T) * 4>*)to.at(place, r * 32 + i * 16 + lane * 4) = values<F>(ready, run, i, quads[i]);
                    }
                }
                __syncwarp();
                // Eight lanes have a row.
                const u32 element = in_warp % 8 * WORD;
#pragma unroll
                for (u32 h = 0; h < 2; ++h) {
                    const u32 r = in_warp / 8 + h * 4;
                    if (row + r >= p.rows || begin + element >= left) continue;
                    *(Raw<16>*)(y + r * p.k + begin + element) = *(const Raw<16>*)to.at(r, element);
                }
            }
        }
        // The lines of the last ones are read before others are written.
        __syncwarp();
    }
}

struct RowsParams {
    u64 w;
    u64 y;      // a row for each index, contiguous
    u64 n;      // indices
    u64 k;
    u64 units;  // of a row
    Picks picks;
};
static_assert(sizeof(RowsParams) == 336, "mirrored by cuda.rs");

// Four lanes have a unit of a row.
template <class F> DEVICE void rows(const RowsParams& p) {
    const u64 there = p.picks.count(), apart = (u64)gridDim.x * blockDim.x;
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < p.n * p.units * blocks::LANES; i += apart) {
        const u32 lane = i % blocks::LANES;
        const u64 index = i / blocks::LANES / p.units, unit = i / blocks::LANES - index * p.units;
        const u32 row = p.picks.at(index);
        T* const y = (T*)p.y + index * p.k + unit * F::UNIT;
        const u32 left = (u32)(p.k - unit * F::UNIT);
        if (row < there) {
            typename F::Held held;
            const u64 tile = (row / blocks::TILE * p.units + unit) * (blocks::TILE * F::BYTES);
            F::load(held, typename F::At((const u8*)p.w + tile, row % blocks::TILE, lane), 0);
            write<F>(held, lane, y, left);
        } else {
            for (u32 at = lane * 4; at < F::UNIT && at < left; at += blocks::LANES * 4) {
                Pack<T, 4> zeros = {};
                *(Raw<sizeof(T) * 4>*)(y + at) = zeros.raw;
            }
            if (unit == 0 && lane == 0) p.picks.missing(index, row, there);
        }
    }
}

// With four blocks at a time as the aim, ptxas has registers enough for `rows_`; by itself it takes 32 for `sm_100a`, and spills.
#define KERNELS(F)                                                                \
    KERNEL(expand_##F, 256)(const __grid_constant__ ExpandParams p) { in_order(); \
        expand<blocks::F>(p);                                                     \
    }                                                                             \
    KERNEL(rows_##F, 256, 4)(const __grid_constant__ RowsParams p) { in_order();  \
        rows<blocks::F>(p);                                                       \
    }
#define KERNELS_OF(F) KERNELS(F)
#ifdef FORMAT
KERNELS_OF(FORMAT)
#else
KERNELS(Q4_0)
KERNELS(Q4_1)
KERNELS(Q5_0)
KERNELS(Q5_1)
KERNELS(Q8_0)
KERNELS(Q2_K)
KERNELS(Q3_K)
KERNELS(Q4_K)
KERNELS(Q5_K)
KERNELS(Q6_K)
KERNELS(IQ4_NL)
KERNELS(F8_E4M3)
KERNELS(INT4)
#endif

struct GatherParams {
    u64 x, y;
    u64 m, k;
    u64 row, col;  // strides of `x`
};

// `y`, contiguous, is the matrix `x`.
KERNEL(contiguous, 256)(const __grid_constant__ GatherParams p) { in_order();
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < p.m * p.k; i += (u64)gridDim.x * blockDim.x) {
        const u64 row = i / p.k;
        ((T*)p.y)[i] = ((const T*)p.x)[row * p.row + (i - row * p.k) * p.col];
    }
}

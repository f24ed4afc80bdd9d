// Weights in blocks as floats: all of them, or rows picked by indices. And rows of activations that cannot be loaded in wide words.
// Of `FORMAT` if that is defined, and otherwise of every format.
// Types: floats
#include "common.cuh"
#include "blocks.cuh"

// Writes the lane's elements of a unit to a row, of which `left` elements follow the beginning of the unit. Each operation is rounded,
// as on the host.
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
            const u32 part = F::SPLIT ? i : 0;
            f32 q[4];
            blocks::integers<F>(quads[i], F::ZEROS ? 0u : blocks::zeros_of<F>(ready, run), q);
            Pack<T, 4> pack;
#pragma unroll
            for (u32 j = 0; j < 4; ++j) {
                f32 value = __fmul_rn(blocks::scale_of<F>(ready, run, part), q[j]);
                if (F::MINIMA || F::ZEROS) value = __fsub_rn(value, blocks::minimum_of<F>(ready, run, part));
                pack.v[j] = from_f32<T>(value);
            }
            *(Raw<sizeof(T) * 4>*)(y + run * 32 + i * 16 + lane * 4) = pack.raw;
        }
    }
}

struct ExpandParams {
    u64 w;      // the first tile
    u64 y;      // rows, contiguous
    u64 rows;
    u64 k;
    u64 units;  // of a row
    u64 tiles;
};

// A warp has a unit of a tile.
template <class F> DEVICE void expand(const ExpandParams& p) {
    const u32 lane = threadIdx.x % blocks::LANES, place = threadIdx.x / blocks::LANES % blocks::TILE;
    const u64 apart = (u64)gridDim.x * (blockDim.x / WARP);
    for (u64 i = blockIdx.x * (u64)(blockDim.x / WARP) + threadIdx.x / WARP; i < p.tiles * p.units; i += apart) {
        const u64 tile = i / p.units, unit = i - tile * p.units, row = tile * blocks::TILE + place;
        if (row >= p.rows) continue;
        typename F::Held held;
        F::load(held, typename F::At((const u8*)p.w + i * (blocks::TILE * F::BYTES), place, lane), 0);
        write<F>(held, lane, (T*)p.y + row * p.k + unit * F::UNIT, (u32)(p.k - unit * F::UNIT));
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
#define KERNELS(F)                                                                                                            \
    extern "C" __global__ void __launch_bounds__(256) expand_##F(const __grid_constant__ ExpandParams p) { in_order();        \
        expand<blocks::F>(p);                                                                                                 \
    }                                                                                                                         \
    extern "C" __global__ void __launch_bounds__(256, 4) rows_##F(const __grid_constant__ RowsParams p) { in_order();         \
        rows<blocks::F>(p);                                                                                                   \
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
extern "C" __global__ void __launch_bounds__(256) contiguous(const __grid_constant__ GatherParams p) { in_order();
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < p.m * p.k; i += (u64)gridDim.x * blockDim.x) {
        const u64 row = i / p.k;
        ((T*)p.y)[i] = ((const T*)p.x)[row * p.row + (i - row * p.k) * p.col];
    }
}

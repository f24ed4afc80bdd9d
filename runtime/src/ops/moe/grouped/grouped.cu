// Products of groups of rows, each with a matrix of its own. The sizes of the groups are values in device memory, so the grid
// is large enough for any of them.
// Types: floats
#include "common.cuh"

#define TILE 64u   // columns of a tile
#define DEPTH 16u
#define SIDE 4u    // columns of a thread

// y[r, n] = sum over k of x[r, k] * w[g, k, n] for the rows r of group g, and 0 for the rows behind all groups. Strides in
// elements; `y` is contiguous.
struct Params {
    u64 x, w, ends, y;
    u64 rows, k, n, groups;
    u64 slots;       // tiles along the rows: as many as groups of any sizes can have
    u64 x_row, x_col;
    u64 w_group, w_row, w_col;
    u64 ends_stride;
};

// The rows of a tile.
struct Tile {
    u64 group;  // `groups`: behind all of them
    u64 first;
    u64 end;    // of the group
};

// Finds the `slot`-th tile along the rows, counted through all groups and what is behind them; false if there are fewer.
template <u32 DOWN> DEVICE bool find(const Params& p, u64 slot, Tile* tile) {
    u64 first = 0;
    for (u64 group = 0; group <= p.groups; ++group) {
        u64 end = group < p.groups ? ((const u32*)p.ends)[group * p.ends_stride] : p.rows;
        end = end < p.rows ? end : p.rows;
        end = end > first ? end : first;
        const u64 tiles = (end - first + DOWN - 1) / DOWN;
        if (slot < tiles) {
            *tile = {group, first + slot * DOWN, end};
            return true;
        }
        slot -= tiles;
        first = end;
    }
    return false;
}

// 256 threads compute tiles of DOWN x 64, DOWN / 16 x 4 each.
template <u32 DOWN> DEVICE void grouped(const Params& p) {
    constexpr u32 HIGH = DOWN / 16;
    __shared__ f32 left[DEPTH][DOWN + 1];
    __shared__ f32 right[DEPTH][TILE + 1];
    const u32 tx = threadIdx.x % 16, ty = threadIdx.x / 16;
    const T* const x = (const T*)p.x;
    const u64 across = (p.n + TILE - 1) / TILE;
    for (u64 number = blockIdx.x; number < p.slots * across; number += gridDim.x) {
        const u64 col0 = number % across * TILE;
        Tile tile;
        // The same for all threads of the block.
        if (!find<DOWN>(p, number / across, &tile)) continue;
        f32 sums[HIGH][SIDE] = {};
        const T* const w = (const T*)p.w + tile.group * p.w_group;
        const u64 depth = tile.group < p.groups ? p.k : 0;
        for (u64 k0 = 0; k0 < depth; k0 += DEPTH) {
#pragma unroll
            for (u32 step = 0; step < DOWN * DEPTH / 256; ++step) {
                // Neighbouring threads read along the contiguous dimension.
                const u32 i = step * 256 + threadIdx.x;
                const u32 r = p.x_col == 1 ? i / DEPTH : i % DOWN;
                const u32 d = p.x_col == 1 ? i % DEPTH : i / DOWN;
                const bool there = tile.first + r < tile.end && k0 + d < p.k;
                left[d][r] = there ? to_f32(x[(tile.first + r) * p.x_row + (k0 + d) * p.x_col]) : 0.0f;
            }
#pragma unroll
            for (u32 step = 0; step < TILE * DEPTH / 256; ++step) {
                const u32 i = step * 256 + threadIdx.x;
                const u32 c = p.w_row == 1 ? i / DEPTH : i % TILE;
                const u32 d = p.w_row == 1 ? i % DEPTH : i / TILE;
                const bool there = col0 + c < p.n && k0 + d < p.k;
                right[d][c] = there ? to_f32(w[(k0 + d) * p.w_row + (col0 + c) * p.w_col]) : 0.0f;
            }
            __syncthreads();
#pragma unroll
            for (u32 d = 0; d < DEPTH; ++d) {
                f32 a[HIGH], b[SIDE];
#pragma unroll
                for (u32 i = 0; i < HIGH; ++i) a[i] = left[d][ty + i * 16];
#pragma unroll
                for (u32 j = 0; j < SIDE; ++j) b[j] = right[d][tx + j * 16];
#pragma unroll
                for (u32 i = 0; i < HIGH; ++i) {
#pragma unroll
                    for (u32 j = 0; j < SIDE; ++j) sums[i][j] += a[i] * b[j];
                }
            }
            __syncthreads();
        }
#pragma unroll
        for (u32 i = 0; i < HIGH; ++i) {
#pragma unroll
            for (u32 j = 0; j < SIDE; ++j) {
                const u64 row = tile.first + ty + i * 16, col = col0 + tx + j * 16;
                if (row < tile.end && col < p.n) ((T*)p.y)[row * p.n + col] = from_f32<T>(sums[i][j]);
            }
        }
    }
}

// For few rows in each group, and for many.
KERNEL(grouped_16, 256)(const __grid_constant__ Params p) { in_order();
    grouped<16>(p);
}
KERNEL(grouped_64, 256)(const __grid_constant__ Params p) { in_order();
    grouped<64>(p);
}

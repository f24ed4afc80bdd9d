// Matrix products that the library does not support, or for which it is slower: arbitrary strides and types,
// computed in tiles, and few rows times a large right side, limited by the bandwidth of reading that side.
// Types: all
#include "common.cuh"
#include "thin.cuh"

#define BATCH_RANK 4

// y[b, m, n] = sum over k of a[b, m, k] * w[b, k, n], plus bias[b, m, n]. Strides in elements.
struct Params {
    u64 a, w, bias, y;
    u64 partial;             // f32 [slices, batches, m, n], if K is split between blocks
    u64 m, n, k, batches;
    u64 a_row, a_col;
    u64 w_row, w_col;
    u64 bias_row, bias_col;
    u64 y_row, y_col;
    u64 shape[BATCH_RANK];   // of the batch, innermost last
    u64 a_batch[BATCH_RANK];
    u64 w_batch[BATCH_RANK];
    u64 bias_batch[BATCH_RANK];
    u64 y_batch[BATCH_RANK];
    u32 batch_rank;
    u32 split;               // the number of blocks that share K
};

// Offsets of one product of the batch.
struct At {
    u64 a, w, bias, y;
};

DEVICE At at_batch(const Params& p, u64 i) {
    At at = {0, 0, 0, 0};
#pragma unroll
    for (int axis = BATCH_RANK - 1; axis >= 0; --axis) {
        if (axis < (int)p.batch_rank) {
            u64 q = i / p.shape[axis];
            u64 r = i - q * p.shape[axis];
            at.a += r * p.a_batch[axis];
            at.w += r * p.w_batch[axis];
            at.bias += r * p.bias_batch[axis];
            at.y += r * p.y_batch[axis];
            i = q;
        }
    }
    return at;
}

// The type of accumulators: f32, f64, or integers that wrap.
template <typename X> struct Sum {
    typedef f32 Acc;
    static DEVICE f32 widen(X x) { return to_f32(x); }
    static DEVICE X narrow(f32 x) { return from_f32<X>(x); }
};
template <typename X, typename W = u32> struct WholeSum {
    typedef W Acc;
    static DEVICE W widen(X x) { return (W)x; }
    static DEVICE X narrow(W x) { return (X)x; }
};
template <> struct Sum<f64> : WholeSum<f64, f64> {};
template <> struct Sum<i64> : WholeSum<i64, u64> {};
template <> struct Sum<i8> : WholeSum<i8> {};
template <> struct Sum<i32> : WholeSum<i32> {};
template <> struct Sum<u32> : WholeSum<u32> {};
template <> struct Sum<u8> : WholeSum<u8> {};
template <> struct Sum<boolean> {
    typedef u32 Acc;
    static DEVICE u32 widen(boolean x) { return x.bits; }
    static DEVICE boolean narrow(u32 x) { boolean r; r.bits = x != 0; return r; }
};
typedef Sum<T>::Acc Acc;

DEVICE void store(const Params& p, const At& at, u64 row, u64 col, Acc sum) {
    if (p.bias) sum += Sum<T>::widen(((const T*)p.bias)[at.bias + row * p.bias_row + col * p.bias_col]);
    ((T*)p.y)[at.y + row * p.y_row + col * p.y_col] = Sum<T>::narrow(sum);
}

// ---- any strides

#define TILE 64u
#define DEPTH 16u
#define SIDE 4u

// 256 threads compute tiles of 64 x 64, 4 x 4 each.
KERNEL(matmul_tiled, 256)(const __grid_constant__ Params p) { in_order();
    __shared__ Acc left[DEPTH][TILE + 1];
    __shared__ Acc right[DEPTH][TILE + 1];
    const u32 tx = threadIdx.x % 16, ty = threadIdx.x / 16;
    const T* a = (const T*)p.a;
    const T* w = (const T*)p.w;
    const u64 down = (p.m + TILE - 1) / TILE, across = (p.n + TILE - 1) / TILE;
    for (u64 tile = blockIdx.x; tile < down * across * p.batches; tile += gridDim.x) {
        const At at = at_batch(p, tile / (down * across));
        const u64 row0 = tile / across % down * TILE, col0 = tile % across * TILE;
        Acc sums[SIDE][SIDE] = {};
        for (u64 k0 = 0; k0 < p.k; k0 += DEPTH) {
#pragma unroll
            for (u32 step = 0; step < TILE * DEPTH / 256; ++step) {
                // Neighbouring threads read along the contiguous dimension.
                const u32 i = step * 256 + threadIdx.x;
                u32 r = p.a_col == 1 ? i / DEPTH : i % TILE;
                u32 d = p.a_col == 1 ? i % DEPTH : i / TILE;
                Acc x = 0;
                if (row0 + r < p.m && k0 + d < p.k) {
                    x = Sum<T>::widen(a[at.a + (row0 + r) * p.a_row + (k0 + d) * p.a_col]);
                }
                left[d][r] = x;
                r = p.w_row == 1 ? i / DEPTH : i % TILE;
                d = p.w_row == 1 ? i % DEPTH : i / TILE;
                x = 0;
                if (col0 + r < p.n && k0 + d < p.k) {
                    x = Sum<T>::widen(w[at.w + (k0 + d) * p.w_row + (col0 + r) * p.w_col]);
                }
                right[d][r] = x;
            }
            __syncthreads();
#pragma unroll
            for (u32 d = 0; d < DEPTH; ++d) {
                Acc x[SIDE], y[SIDE];
#pragma unroll
                for (u32 i = 0; i < SIDE; ++i) {
                    x[i] = left[d][ty + i * 16];
                    y[i] = right[d][tx + i * 16];
                }
#pragma unroll
                for (u32 i = 0; i < SIDE; ++i) {
#pragma unroll
                    for (u32 j = 0; j < SIDE; ++j) sums[i][j] += x[i] * y[j];
                }
            }
            __syncthreads();
        }
#pragma unroll
        for (u32 i = 0; i < SIDE; ++i) {
#pragma unroll
            for (u32 j = 0; j < SIDE; ++j) {
                const u64 row = row0 + ty + i * 16, col = col0 + tx + j * 16;
                if (row < p.m && col < p.n) store(p, at, row, col, sums[i][j]);
            }
        }
    }
}

// ---- few rows

#if defined(T_f32) || defined(T_f16) || defined(T_bf16)

#define WARPS 8u
// The number of elements in 16 bytes.
#define LANE_ELEMENTS ((u32)(16 / sizeof(T)))

// K is contiguous on both sides. Blocks beside each other have the same columns and other rows, so that they read weights at
// about the same time.
template <u32 ROWS, u32 GROUPS, u32 AHEAD> DEVICE void gemv_nk(const Params& p) {
    const At at = at_batch(p, blockIdx.y);
    const u32 stacks = ((u32)p.m + ROWS - 1) / ROWS, row0 = blockIdx.x % stacks * ROWS;
    const u32 m = p.m - row0 < ROWS ? (u32)p.m - row0 : ROWS;
    // Several groups, or rows of f32, leave registers for one step's rows.
    constexpr u32 NEAR = GROUPS == 1 && ROWS != 4 ? thin::near<T>(ROWS, AHEAD) : 1;
    thin::Product<T, ROWS, GROUPS, AHEAD, NEAR, true> product(p.k);
    const u64 col0 = (u64)(blockIdx.x / stacks) * product.WIDTH;
#pragma unroll
    for (u32 g = 0; g < GROUPS; ++g) {
        // Past the end, the last column is computed again and discarded.
        const u64 col = col0 + g * thin::COLUMNS + product.column();
        product.set_column(g, (const T*)p.w + at.w + (col < p.n ? col : p.n - 1) * p.w_col);
    }
    product.begin();
    product.run((const T*)p.a + at.a + row0 * p.a_row, p.a_row, m);
    __shared__ typename decltype(product)::Parts parts;
    product.share(parts);
    __syncthreads();
    for (u32 i = threadIdx.x; i < m * product.WIDTH; i += thin::SLICES * WARP) {
        const u32 row = i / product.WIDTH, column = i % product.WIDTH;
        if (col0 + column < p.n) store(p, at, row0 + row, col0 + column, product.sum(parts, row, column));
    }
}

#define ACROSS 8u  // threads along N, which read one cache line of 128 bytes

// N is contiguous on the right side; the left side may have any strides. A thread computes the columns in
// 16 bytes. K is split between the threads of a block and between blocks (`split`), and the parts are added
// in order.
template <u32 ROWS> DEVICE void gemv_kn(const Params& p) {
    constexpr u32 COLS = LANE_ELEMENTS;
    constexpr u32 WIDTH = ACROSS * COLS;
    __shared__ f32 part[WARPS][WIDTH];
    const u32 tx = threadIdx.x % ACROSS, ty = threadIdx.x / ACROSS;
    const u32 warp = threadIdx.x / WARP;
    const u64 col0 = (u64)blockIdx.x * WIDTH, col = col0 + tx * COLS;
    const At at = at_batch(p, blockIdx.y);
    const T* a = (const T*)p.a + at.a;
    const T* w = (const T*)p.w + at.w;
    f32 sums[ROWS][COLS] = {};
    auto multiply = [&](u64 k, const f32 (&x)[COLS]) {
#pragma unroll
        for (u32 r = 0; r < ROWS; ++r) {
            const u64 row = r < p.m ? r : p.m - 1;
            const f32 y = to_f32(a[row * p.a_row + k * p.a_col]);
#pragma unroll
            for (u32 c = 0; c < COLS; ++c) sums[r][c] += x[c] * y;
        }
    };
    const u64 share = (p.k + p.split - 1) / p.split, first = blockIdx.z * share;
    const u64 end = first + share < p.k ? first + share : p.k;
    constexpr u32 DOWN = WARPS * WARP / ACROSS;
    constexpr u32 AHEAD = ROWS > 4 ? 2 : 4;
    if (col + COLS <= p.n) {
        u64 k = first + ty;
        for (; k + (AHEAD - 1) * DOWN < end; k += AHEAD * DOWN) {
            Words words[AHEAD];
#pragma unroll
            for (u32 i = 0; i < AHEAD; ++i) words[i] = thin::stream(w + (k + i * DOWN) * p.w_row + col);
#pragma unroll
            for (u32 i = 0; i < AHEAD; ++i) {
                f32 x[COLS];
                thin::unpack<T>(words[i], x);
                multiply(k + i * DOWN, x);
            }
        }
        for (; k < end; k += DOWN) {
            f32 x[COLS];
            thin::unpack<T>(thin::stream(w + k * p.w_row + col), x);
            multiply(k, x);
        }
    } else if (col < p.n) {
        for (u64 k = first + ty; k < end; k += DOWN) {
            f32 x[COLS];
#pragma unroll
            for (u32 c = 0; c < COLS; ++c) x[c] = col + c < p.n ? to_f32(w[k * p.w_row + col + c]) : 0.0f;
            multiply(k, x);
        }
    }
#pragma unroll
    for (u32 r = 0; r < ROWS; ++r) {
#pragma unroll
        for (u32 c = 0; c < COLS; ++c) {
            f32 sum = sums[r][c];
            sum += __shfl_xor_sync(FULL, sum, 8);
            sum += __shfl_xor_sync(FULL, sum, 16);
            if (threadIdx.x % WARP < ACROSS) part[warp][tx * COLS + c] = sum;
        }
        __syncthreads();
        const u64 to = col0 + threadIdx.x;
        if (threadIdx.x < WIDTH && r < p.m && to < p.n) {
            f32 sum = 0;
#pragma unroll
            for (u32 i = 0; i < WARPS; ++i) sum += part[i][threadIdx.x];
            if (p.split == 1) {
                store(p, at, r, to, sum);
            } else {
                const u64 row = ((u64)blockIdx.z * p.batches + blockIdx.y) * p.m + r;
                ((f32*)p.partial)[row * p.n + to] = sum;
            }
        }
        __syncthreads();
    }
}

// Adds the partial sums of the blocks of `gemv_kn`.
KERNEL(gemv_sum, 256)(const __grid_constant__ Params p) { in_order();
    const u64 count = p.batches * p.m * p.n;
    for (u64 i = (u64)blockIdx.x * 256 + threadIdx.x; i < count; i += (u64)gridDim.x * 256) {
        f32 sum = 0;
        for (u32 slice = 0; slice < p.split; ++slice) sum += ((const f32*)p.partial)[slice * count + i];
        store(p, at_batch(p, i / (p.m * p.n)), i / p.n % p.m, i % p.n, sum);
    }
}

// But for compute capability 9, the compiler needs more registers than three blocks leave.
#if __CUDA_ARCH__ < 900 || __CUDA_ARCH__ >= 1000
#define AT_MOST_TWO(RESIDENT) ((RESIDENT) < 2 ? (RESIDENT) : 2)
#else
#define AT_MOST_TWO(RESIDENT) (RESIDENT)
#endif

#define GEMV_NK(ROWS, GROUPS, AHEAD, RESIDENT)                                                                                           \
    KERNEL(gemv_nk_##ROWS##_##GROUPS##_##AHEAD##_##RESIDENT, 256, AT_MOST_TWO(RESIDENT))(const __grid_constant__ Params p) { in_order(); \
        gemv_nk<ROWS, GROUPS, AHEAD>(p);                                                                                                 \
    }
#define GEMV_KN(ROWS)                                                              \
    KERNEL(gemv_kn_##ROWS, 256, 1)(const __grid_constant__ Params p) { in_order(); \
        gemv_kn<ROWS>(p);                                                          \
    }

// Those that thin/mod.rs chooses from.
#if defined(T_f32)
GEMV_NK(1, 1, 4, 2)
GEMV_NK(1, 1, 4, 3)
GEMV_NK(2, 1, 4, 2)
GEMV_NK(2, 4, 1, 2)
GEMV_NK(4, 1, 4, 2)
GEMV_NK(4, 2, 2, 2)
#else
GEMV_NK(8, 1, 4, 2)
GEMV_NK(8, 2, 2, 3)
GEMV_NK(16, 1, 3, 2)
GEMV_NK(16, 4, 1, 2)
#endif
GEMV_KN(1)
GEMV_KN(2)
GEMV_KN(4)
GEMV_KN(8)

#endif

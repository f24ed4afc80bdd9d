// Attention on tensor cores, for many queries. A block processes 64 queries of one head, or 128, and iterates over
// the keys in tiles, loading the next tile while it computes the current one. The softmax is computed
// online, so scores never leave registers (Dao, "FlashAttention-2", 2023). f16 and bf16; head sizes up to 128, in multiples of
// 16; with WIDE up to 256. A row has the same bits in blocks of either height. On a GPU of compute capability 9.0, prefill_groups.cu takes
// heads up to 128.
// Types: halves
// Also: VARIANT
// Also: VARIANT WIDE
#include "common.cuh"
#include "prefill.cuh"

#define THREADS 128
#define WARPS 4

DEVICE void commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int N> DEVICE void wait() { asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory"); }

DEVICE void matrices(u32 (&r)[4], u32 at) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at));
}
DEVICE void matrices_transposed(u32 (&r)[4], u32 at) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at));
}

// Where 8 elements of a tile are, in bytes. Rows are swizzled so that `ldmatrix` has no bank conflicts.
template <int DT> struct Twisted {
    static DEVICE u32 at(u32 row, u32 eight) { return row * (DT * 2) + ((eight ^ (row & 7)) * 16); }
};

// Loads rows `first ..` of a head. Rows from `end` on, and elements from `size` on, become zeros.
template <int DT, int N>
DEVICE void load(u32 to, const T* head, u64 stride, u32 first, u32 end, u32 size) {
    for (u32 i = threadIdx.x; i < N * (DT / 8); i += THREADS) {
        const u32 row = i / (DT / 8), eight = i % (DT / 8);
        const bool real = first + row < end && eight * 8 < size;
        copy_async(to + Twisted<DT>::at(row, eight), real ? head + (first + row) * stride + eight * 8 : head, real);
    }
}

// Returns whether rows `from .. to` of the tile contain infinities or NaN.
template <int DT> DEVICE bool any_unsound(const u8* tile, u32 from, u32 to) {
    bool bad = false;
    for (u32 i = from * (DT / 2) + threadIdx.x; i < to * (DT / 2); i += THREADS) bad |= unsound(((const u32*)tile)[i]);
    return bad;
}

// Writes what two rows add up to, divided by the sums of their weights. `sink` is one more score of each row.
template <int DT, class Rows> DEVICE void write(Rows& rows, const Params& p, T* y, u64 below, bool is0, bool is1, f32 sink) {
    f32 factor[2];
    rows.factors(p, sink, factor);
#pragma unroll
    for (int i = 0; i < DT / 8; ++i) {
        if (i * 8 < p.size_v) {
            if (is0) *(u32*)(y + i * 8) = pack(rows.out[i][0] * factor[0], rows.out[i][1] * factor[0]);
            if (is1) *(u32*)(y + below + i * 8) = pack(rows.out[i][2] * factor[1], rows.out[i][3] * factor[1]);
        }
    }
}

// DT: the padded head size. BN: keys per tile. A warp has MT times 16 rows.
template <int DT, int BN, int MT> DEVICE void attend(const Params& p) {
    constexpr u32 ROWS = WARPS * 16 * MT;
    extern __shared__ __align__(128) u8 room[];
    u8* queries = room;
    u8* keys = room + ROWS * DT * 2;
    u8* values = keys + 2 * BN * DT * 2;
    const u32 tile_bytes = BN * DT * 2;

    const u32 heads = p.key_heads * p.group;
    u32 at = blockIdx.x;
    const u32 head = at % heads;
    at /= heads;
    // With a causal mask, the last queries see the most keys, so they start first.
    const u32 first = (p.chunks - 1 - at % p.chunks) * ROWS;
    const u32 b = at / p.chunks;
    const u32 key_head = head / p.group;
    const T* q = (const T*)p.q + b * p.q_strides[0] + head * p.q_strides[2];
    const T* k = (const T*)p.k + b * p.k_strides[0] + key_head * p.k_strides[2];
    const T* v = (const T*)p.v + b * p.v_strides[0] + key_head * p.v_strides[2];

    const u32 lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    // The rows of this thread: this one, the one 8 behind it, and 16 behind both.
    const u32 mine = warp * 16 * MT + lane / 4;

    // The number of keys that each row sees; `top`: the maximum, `low`: the minimum.
    u32* seen = (u32*)room;
    for (u32 r = threadIdx.x; r < ROWS; r += THREADS) {
        seen[r] = first + r < p.times ? visible(p, b, first + r) : 0;
#if defined(VARIANT)
        // And the first key that it sees.
        u32 limit = seen[r];
        const u32 t = first + r < p.times ? first + r : 0;
        seen[ROWS + r] = first_visible(p, position_of(p, b, t), limit);
        seen[r] = limit;
#endif
    }
    __syncthreads();
    Rows<DT, BN, Twisted<DT>> rows[MT];
#pragma unroll
    for (int m = 0; m < MT; ++m) {
#pragma unroll
        for (int r = 0; r < 2; ++r) {
            const u32 row = mine + m * 16 + r * 8;
            rows[m].limit[r] = seen[row];
            rows[m].max[r] = -INF;
            rows[m].total[r] = 0.f;
#if defined(VARIANT)
            const u32 t = first + row < p.times ? first + row : 0;
            rows[m].low[r] = seen[ROWS + row];
            rows[m].position[r] = position_of(p, b, t);
            rows[m].bias[r] = bias_of(p, b, head, t);
#endif
        }
#pragma unroll
        for (int i = 0; i < DT / 8; ++i) rows[m].out[i][0] = rows[m].out[i][1] = rows[m].out[i][2] = rows[m].out[i][3] = 0.f;
    }
    u32 top = 0, low = 0xffffffffu;
    // The smallest and the largest first key of a row.
    u32 bottom = 0xffffffffu, highest = 0;
    for (u32 r = 0; r < ROWS && first + r < p.times; ++r) {
        top = seen[r] > top ? seen[r] : top;
        low = seen[r] < low ? seen[r] : low;
#if defined(VARIANT)
        bottom = seen[ROWS + r] < bottom ? seen[ROWS + r] : bottom;
        highest = seen[ROWS + r] > highest ? seen[ROWS + r] : highest;
#endif
    }
#if defined(VARIANT)
    const u32 begin = bottom / BN;
    const f32 slope = slope_of(p, head), sink = sink_of(p, head);
#else
    const u32 begin = 0;
    const f32 slope = 0.f, sink = -INF;
#endif
    __syncthreads();
    const u32 tiles = (top + BN - 1) / BN;

    load<DT, ROWS>(shared_address(queries), q, p.q_strides[1], first, p.times, p.size);
    load<DT, BN>(shared_address(keys), k, p.k_strides[1], begin * BN, top, p.size);
    load<DT, BN>(shared_address(values), v, p.v_strides[1], begin * BN, top, p.size_v);
    commit();

    for (u32 n = begin; n < tiles; ++n) {
        const u32 now = (n - begin) % 2, then = now ^ 1;
        if (n + 1 < tiles) {
            load<DT, BN>(shared_address(keys) + then * tile_bytes, k, p.k_strides[1], (n + 1) * BN, top, p.size);
            load<DT, BN>(shared_address(values) + then * tile_bytes, v, p.v_strides[1], (n + 1) * BN, top, p.size_v);
            commit();
            wait<1>();
        } else {
            wait<0>();
        }
        __syncthreads();

        // Scores. Elements beyond the size of a head are zeros.
#pragma unroll
        for (int m = 0; m < MT; ++m) {
#pragma unroll
            for (int i = 0; i < BN / 8; ++i) rows[m].s[i][0] = rows[m].s[i][1] = rows[m].s[i][2] = rows[m].s[i][3] = 0.f;
        }
        const u32 tile_k = shared_address(keys) + now * tile_bytes;
#pragma unroll
        for (int d = 0; d < DT / 16; ++d) {
            u32 qf[MT][4];
#pragma unroll
            for (int m = 0; m < MT; ++m) {
                const u32 row = (warp * MT + m) * 16 + lane % 16;
                matrices(qf[m], shared_address(queries) + Twisted<DT>::at(row, d * 2 + lane / 16));
            }
#pragma unroll
            for (int i = 0; i < BN / 16; ++i) {
                u32 kf[4];
                const u32 row = i * 16 + lane / 16 * 8 + lane % 8;
                matrices(kf, tile_k + Twisted<DT>::at(row, d * 2 + lane / 8 % 2));
#pragma unroll
                for (int m = 0; m < MT; ++m) {
                    multiply(rows[m].s[2 * i], qf[m], kf[0], kf[1]);
                    multiply(rows[m].s[2 * i + 1], qf[m], kf[2], kf[3]);
                }
            }
        }
#if defined(VARIANT)
        const bool masked = (n + 1) * BN > low || n * BN < highest;
#else
        const bool masked = (low < top && (n + 1) * BN > low) || (n + 1) * BN > top;
#endif
#pragma unroll
        for (int m = 0; m < MT; ++m) {
            f32 fade[2];
            rows[m].weigh(p, n * BN, masked, slope, fade);
            rows[m].shrink(fade);
        }

        // Values. A weight of 0 does not erase a NaN, and keys that a row does not see may contain one, so
        // tiles that not all rows see are checked first.
        u8* tile_v = values + now * tile_bytes;
        bool bad = false;
#if defined(VARIANT)
        if ((low < top && (n + 1) * BN > low) || n * BN < highest) {
            bad = __syncthreads_or(any_unsound<DT>(tile_v, 0, BN));
        }
#else
        if (low < top && (n + 1) * BN > low) {
            const u32 from = low > n * BN ? low - n * BN : 0;
            bad = __syncthreads_or(any_unsound<DT>(tile_v, from, BN));
        }
#endif
        if (bad) {
            // Infinities and NaN are added separately, and the products see zeros in their place, so that rows which do not see
            // them have the same bits as without them.
#pragma unroll
            for (int m = 0; m < MT; ++m) {
                // All warps have used the keys of this tile; their place is large enough for the weights of ROWS rows.
                static_assert(ROWS <= DT, "room for weights");
                rows[m].add_unsound(tile_v, n * BN, (T*)(keys + now * tile_bytes) + (warp * MT + m) * 16 * BN);
            }
            __syncthreads();
            for (u32 i = threadIdx.x; i < tile_bytes / 4; i += THREADS) ((u32*)tile_v)[i] = sound(((const u32*)tile_v)[i]);
            __syncthreads();
        }
#pragma unroll
        for (int j = 0; j < BN / 16; ++j) {
            u32 pf[MT][4];
#pragma unroll
            for (int m = 0; m < MT; ++m) rows[m].weights(pf[m], j);
#pragma unroll
            for (int d = 0; d < DT / 16; ++d) {
                u32 vf[4];
                const u32 row = j * 16 + lane / 8 % 2 * 8 + lane % 8;
                matrices_transposed(vf, shared_address(tile_v) + Twisted<DT>::at(row, d * 2 + lane / 16));
#pragma unroll
                for (int m = 0; m < MT; ++m) {
                    multiply(rows[m].out[2 * d], pf[m], vf[0], vf[1]);
                    multiply(rows[m].out[2 * d + 1], pf[m], vf[2], vf[3]);
                }
            }
        }
        __syncthreads();
    }
    wait<0>();

    const u64 below = 8ull * heads * p.size_v;
#pragma unroll
    for (int m = 0; m < MT; ++m) {
        const u32 row = first + mine + m * 16;
        T* y = (T*)p.y + (((u64)b * p.times + row) * heads + head) * p.size_v + lane % 4 * 2;
        write<DT>(rows[m], p, y, below, row < p.times, row + 8 < p.times, sink);
    }
}

#define PREFILL(NAME, DT, BN, MT)                                            \
    KERNEL(NAME, THREADS, 2)(const __grid_constant__ Params p) { in_order(); \
        attend<DT, BN, MT>(p);                                               \
    }
#if defined(WIDE)
PREFILL(prefill_256, 256, 32, 1)
#else
PREFILL(prefill_64, 64, 64, 1)
PREFILL(prefill_128, 128, 64, 1)
#if !defined(VARIANT)
PREFILL(prefill_128_tall, 128, 64, 2)
#endif
#endif

// Attention on tensor cores, for many queries. A block processes 64 queries of one head and iterates over
// the keys in tiles, loading the next tile while it computes the current one. The softmax is computed
// online, so scores never leave registers. f16 and bf16; head sizes up to 128, in multiples of 16; with WIDE
// up to 256.
// Types: floats
// Also: VARIANT
// Also: VARIANT WIDE
#include "common.cuh"
#include "attention.cuh"

#define THREADS 128
#define ROWS 64  // queries per block, 16 per warp

#if !defined(T_f32)
// Copies 16 bytes, or writes zeros.
DEVICE void copy_async(u32 to, const void* from, bool real) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(real ? 16 : 0) : "memory");
}
DEVICE void commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int N> DEVICE void wait() { asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory"); }

DEVICE void matrices(u32 (&r)[4], u32 at) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at) : "memory");
}
DEVICE void matrices_transposed(u32 (&r)[4], u32 at) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at) : "memory");
}

// Byte offset of 8 elements of a tile. Rows are swizzled so that `ldmatrix` has no bank conflicts.
template <int DT> DEVICE u32 twisted(u32 row, u32 eight) { return row * (DT * 2) + ((eight ^ (row & 7)) * 16); }

// Loads rows `first ..` of a head. Rows from `end` on, and elements from `size` on, become zeros.
template <int DT, int N>
DEVICE void load(u32 to, const T* head, u64 stride, u32 first, u32 end, u32 size) {
    for (u32 i = threadIdx.x; i < N * (DT / 8); i += THREADS) {
        const u32 row = i / (DT / 8), eight = i % (DT / 8);
        const bool real = first + row < end && eight * 8 < size;
        copy_async(to + twisted<DT>(row, eight), real ? head + (first + row) * stride + eight * 8 : head, real);
    }
}

// Returns whether rows `from .. to` of the tile contain infinities or NaN.
template <int DT> DEVICE bool any_unsound(const u8* tile, u32 from, u32 to) {
    bool bad = false;
    for (u32 i = from * (DT / 2) + threadIdx.x; i < to * (DT / 2); i += THREADS) bad |= unsound(((const u32*)tile)[i]);
    return bad;
}

// DT: the padded head size. BN: keys per tile.
template <int DT, int BN> DEVICE void attend(const Params& p) {
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
    const u32 quad = lane % 4;
    // The rows of this thread: `mine` and `mine + 8`.
    const u32 mine = warp * 16 + lane / 4;

    // The number of keys that each row sees; `top`: the maximum, `low`: the minimum.
    u32* seen = (u32*)room;
    if (threadIdx.x < ROWS) {
        seen[threadIdx.x] = first + threadIdx.x < p.times ? visible(p, b, first + threadIdx.x) : 0;
#if defined(VARIANT)
        // And the first key that it sees.
        u32 limit = seen[threadIdx.x];
        const u32 t = first + threadIdx.x < p.times ? first + threadIdx.x : 0;
        seen[ROWS + threadIdx.x] = first_visible(p, position_of(p, b, t), limit);
        seen[threadIdx.x] = limit;
#endif
    }
    __syncthreads();
    const u32 limit0 = seen[mine], limit1 = seen[mine + 8];
    u32 top = 0, low = 0xffffffffu;
    for (u32 r = 0; r < ROWS && first + r < p.times; ++r) {
        top = seen[r] > top ? seen[r] : top;
        low = seen[r] < low ? seen[r] : low;
    }
#if defined(VARIANT)
    const u32 low0 = seen[ROWS + mine], low1 = seen[ROWS + mine + 8];
    // The smallest and the largest first key of a row.
    u32 bottom = 0xffffffffu, highest = 0;
    for (u32 r = 0; r < ROWS && first + r < p.times; ++r) {
        bottom = seen[ROWS + r] < bottom ? seen[ROWS + r] : bottom;
        highest = seen[ROWS + r] > highest ? seen[ROWS + r] : highest;
    }
    const u32 begin = bottom / BN;
    const u32 t0 = first + mine < p.times ? first + mine : 0, t1 = first + mine + 8 < p.times ? first + mine + 8 : 0;
    const i64 position0 = position_of(p, b, t0), position1 = position_of(p, b, t1);
    const f32 slope = slope_of(p, head);
    const T *bias0 = bias_of(p, b, head, t0), *bias1 = bias_of(p, b, head, t1);
#else
    const u32 begin = 0;
#endif
    __syncthreads();
    const u32 tiles = (top + BN - 1) / BN;

    load<DT, ROWS>(shared_address(queries), q, p.q_strides[1], first, p.times, p.size);
    load<DT, BN>(shared_address(keys), k, p.k_strides[1], begin * BN, top, p.size);
    load<DT, BN>(shared_address(values), v, p.v_strides[1], begin * BN, top, p.size_v);
    commit();

    // Registers hold the queries, but those of large heads.
    constexpr bool HELD = DT <= 128;
    u32 qf[HELD ? DT / 16 : 1][4];
    f32 out[DT / 8][4];
#pragma unroll
    for (int i = 0; i < DT / 8; ++i) out[i][0] = out[i][1] = out[i][2] = out[i][3] = 0.f;
    f32 max0 = -INF, max1 = -INF, total0 = 0.f, total1 = 0.f;

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
        if (HELD && n == begin) {
#pragma unroll
            for (int i = 0; i < DT / 16; ++i) {
                const u32 row = warp * 16 + lane % 16;
                matrices(qf[HELD ? i : 0], shared_address(queries) + twisted<DT>(row, i * 2 + lane / 16));
            }
        }

        // Scores.
        f32 s[BN / 8][4];
#pragma unroll
        for (int i = 0; i < BN / 8; ++i) s[i][0] = s[i][1] = s[i][2] = s[i][3] = 0.f;
        const u32 tile_k = shared_address(keys) + now * tile_bytes;
#pragma unroll
        for (int d = 0; d < DT / 16; ++d) {
            if (d * 16 < p.size) {
                if (!HELD) {
                    matrices(qf[0], shared_address(queries) + twisted<DT>(warp * 16 + lane % 16, d * 2 + lane / 16));
                }
#pragma unroll
                for (int i = 0; i < BN / 16; ++i) {
                    u32 kf[4];
                    const u32 row = i * 16 + lane / 16 * 8 + lane % 8;
                    matrices(kf, tile_k + twisted<DT>(row, d * 2 + lane / 8 % 2));
                    multiply(s[2 * i], qf[HELD ? d : 0], kf[0], kf[1]);
                    multiply(s[2 * i + 1], qf[HELD ? d : 0], kf[2], kf[3]);
                }
            }
        }

        // Softmax. NaN is never the maximum, but propagates through the weights.
        f32 most0 = max0, most1 = max1;
#pragma unroll
        for (int i = 0; i < BN / 8; ++i) {
#pragma unroll
            for (int c = 0; c < 2; ++c) {
                const u32 j = n * BN + i * 8 + quad * 2 + c;
#if defined(VARIANT)
                s[i][c] = j >= low0 && j < limit0
                              ? capped(p, s[i][c] * p.scale) + added(p, bias0, slope, position0, j) : -INF;
                s[i][2 + c] = j >= low1 && j < limit1
                                  ? capped(p, s[i][2 + c] * p.scale) + added(p, bias1, slope, position1, j) : -INF;
#else
                s[i][c] = j < limit0 ? s[i][c] * p.scale : -INF;
                s[i][2 + c] = j < limit1 ? s[i][2 + c] * p.scale : -INF;
#endif
                most0 = s[i][c] > most0 ? s[i][c] : most0;
                most1 = s[i][2 + c] > most1 ? s[i][2 + c] : most1;
            }
        }
#pragma unroll
        for (int d = 1; d < 4; d *= 2) {
            most0 = fmaxf(most0, __shfl_xor_sync(FULL, most0, d));
            most1 = fmaxf(most1, __shfl_xor_sync(FULL, most1, d));
        }
        const f32 fade0 = max0 == most0 ? 1.f : __expf(max0 - most0);
        const f32 fade1 = max1 == most1 ? 1.f : __expf(max1 - most1);
        max0 = most0;
        max1 = most1;
        total0 *= fade0;
        total1 *= fade1;
#pragma unroll
        for (int i = 0; i < BN / 8; ++i) {
#pragma unroll
            for (int c = 0; c < 2; ++c) {
                s[i][c] = s[i][c] == -INF ? 0.f : __expf(s[i][c] - max0);
                s[i][2 + c] = s[i][2 + c] == -INF ? 0.f : __expf(s[i][2 + c] - max1);
                total0 += s[i][c];
                total1 += s[i][2 + c];
            }
        }
#pragma unroll
        for (int i = 0; i < DT / 8; ++i) {
            out[i][0] *= fade0;
            out[i][1] *= fade0;
            out[i][2] *= fade1;
            out[i][3] *= fade1;
        }

        // Values. A weight of 0 does not erase a NaN, and keys that a row does not see may contain one, so
        // tiles that not all rows see are checked first.
        const u8* tile_v = values + now * tile_bytes;
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
        if (!bad) {
#pragma unroll
            for (int j = 0; j < BN / 16; ++j) {
                const u32 pf[4] = {pack(s[2 * j][0], s[2 * j][1]), pack(s[2 * j][2], s[2 * j][3]),
                                   pack(s[2 * j + 1][0], s[2 * j + 1][1]), pack(s[2 * j + 1][2], s[2 * j + 1][3])};
#pragma unroll
                for (int d = 0; d < DT / 16; ++d) {
                    if (d * 16 < p.size_v) {
                        u32 vf[4];
                        const u32 row = j * 16 + lane / 8 % 2 * 8 + lane % 8;
                        matrices_transposed(vf, shared_address(tile_v) + twisted<DT>(row, d * 2 + lane / 16));
                        multiply(out[2 * d], pf, vf[0], vf[1]);
                        multiply(out[2 * d + 1], pf, vf[2], vf[3]);
                    }
                }
            }
        } else {
#pragma unroll
            for (int i = 0; i < BN / 8; ++i) {
                for (u32 other = 0; other < 4; ++other) {
#pragma unroll
                    for (int c = 0; c < 2; ++c) {
                        const f32 w0 = __shfl_sync(FULL, s[i][c], (lane & ~3u) | other);
                        const f32 w1 = __shfl_sync(FULL, s[i][2 + c], (lane & ~3u) | other);
                        const u32 row = i * 8 + other * 2 + c;
                        const u32 j = n * BN + row;
#if defined(VARIANT)
                        const bool sees0 = j >= low0 && j < limit0, sees1 = j >= low1 && j < limit1;
#else
                        const bool sees0 = j < limit0, sees1 = j < limit1;
#endif
#pragma unroll
                        for (int d = 0; d < DT / 8; ++d) {
                            const T* two = (const T*)(tile_v + twisted<DT>(row, d)) + quad * 2;
                            const f32 a = to_f32(two[0]), z = to_f32(two[1]);
                            if (sees0) {
                                out[d][0] += w0 * a;
                                out[d][1] += w0 * z;
                            }
                            if (sees1) {
                                out[d][2] += w1 * a;
                                out[d][3] += w1 * z;
                            }
                        }
                    }
                }
            }
        }
        __syncthreads();
    }
    wait<0>();

#pragma unroll
    for (int d = 1; d < 4; d *= 2) {
        total0 += __shfl_xor_sync(FULL, total0, d);
        total1 += __shfl_xor_sync(FULL, total1, d);
    }
#if defined(VARIANT)
    // The sink is one more score of each row.
    const f32 sink = sink_of(p, head);
    const f32 end0 = fmaxf(max0, sink), end1 = fmaxf(max1, sink);
    const f32 last0 = max0 == end0 ? 1.f : __expf(max0 - end0), last1 = max1 == end1 ? 1.f : __expf(max1 - end1);
    total0 *= last0;
    total1 *= last1;
    if (sink != -INF) {
        total0 += __expf(sink - end0);
        total1 += __expf(sink - end1);
    }
    const f32 factor0 = total0 != 0.f ? last0 / total0 : 1.f, factor1 = total1 != 0.f ? last1 / total1 : 1.f;
#else
    const f32 factor0 = total0 != 0.f ? 1.f / total0 : 1.f, factor1 = total1 != 0.f ? 1.f / total1 : 1.f;
#endif
    T* y = (T*)p.y + (((u64)b * p.times + first + mine) * heads + head) * p.size_v + quad * 2;
    const u64 below = 8ull * heads * p.size_v;
#pragma unroll
    for (int i = 0; i < DT / 8; ++i) {
        if (i * 8 < p.size_v) {
            if (first + mine < p.times) *(u32*)(y + i * 8) = pack(out[i][0] * factor0, out[i][1] * factor0);
            if (first + mine + 8 < p.times) *(u32*)(y + below + i * 8) = pack(out[i][2] * factor1, out[i][3] * factor1);
        }
    }
}

#define PREFILL(DT, BN)                                                                                            \
    extern "C" __global__ void __launch_bounds__(THREADS, 2) prefill_##DT(const __grid_constant__ Params p) { in_order(); \
        attend<DT, BN>(p);                                                                                         \
    }
#if defined(WIDE)
PREFILL(256, 32)
#elif defined(VARIANT)
PREFILL(64, 32)
PREFILL(128, 32)
#else
PREFILL(64, 64)
PREFILL(128, 32)
#endif
#endif

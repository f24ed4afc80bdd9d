// Attention on tensor cores, for many queries. A block processes 64 queries of one head, or 128, and iterates over
// the keys in tiles, loading the next tile while it computes the current one. The softmax is computed
// online, so scores never leave registers (Dao, "FlashAttention-2", 2023). f16 and bf16; head sizes up to 128, in multiples of
// 16; with WIDE up to 256. A row has the same bits in blocks of either height.
// Types: halves
// Also: VARIANT
// Also: VARIANT WIDE
#include "common.cuh"
#include "attention.cuh"

#define THREADS 128
#define WARPS 4

// Copies 16 bytes, or writes zeros.
DEVICE void copy_async(u32 to, const void* from, bool real) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(real ? 16 : 0) : "memory");
}
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

// Two elements, with zeros instead of infinities and NaN.
DEVICE u32 sound(u32 two) {
    return (unsound(two & 0xffffu) ? 0 : two & 0xffffu) | (unsound(two & 0xffff0000u) ? 0 : two & 0xffff0000u);
}

// Weights are powers of two, whose exponents are those of e times this. Scores without a variant have it in their scale; a bias may
// be so large that it would overflow with it.
#define LOG2_E 1.4426950408889634f
#if defined(VARIANT)
#define UNIT LOG2_E
#else
#define UNIT 1.f
#endif

#define LARGEST __int_as_float(0x7f7fffff)

// 2^x, rounded in hardware.
DEVICE f32 power(f32 x) {
    f32 y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

// What a thread has of two rows of its warp, eight apart.
template <int DT, int BN> struct Rows {
    // Numbers of keys that they see.
    u32 limit[2];
#if defined(VARIANT)
    // The first key that they see.
    u32 low[2];
    i64 position[2];
    const T* bias[2];
#endif
    f32 max[2], total[2];
    f32 out[DT / 8][4];
    f32 s[BN / 8][4];

    DEVICE bool sees(u32 r, u32 j) const {
#if defined(VARIANT)
        return j >= low[r] && j < limit[r];
#else
        return j < limit[r];
#endif
    }

#if defined(VARIANT)
    // Returns whether a bias can be loaded two keys at a time.
    DEVICE static bool in_pairs(const Params& p) {
        const u64* strides = p.bias_strides;
        return strides[3] == 1 && (strides[0] | strides[1] | strides[2]) % 2 == 0 && p.bias % 4 == 0;
    }

    // Applies the variant to the scores. Which of its parts there are is the same for all scores, so that is tested once a tile rather
    // than once a score.
    DEVICE void vary(const Params& p, u32 first, bool masked, f32 slope) {
        const u32 mine = first + threadIdx.x % 4 * 2;
        each([&](f32& score, int, u32) { score *= p.scale; });
        if (p.soft_cap != 0.f) {
            // Finite, so that a score of 0 stays 0.
            const f32 inverse = fminf(1.f / p.soft_cap, LARGEST);
            each([&](f32& score, int, u32) { score = p.soft_cap * tanhf(score * inverse); });
        }
        if (p.bias && !masked && in_pairs(p)) {
            const u32* from[2] = {(const u32*)(bias[0] + mine), (const u32*)(bias[1] + mine)};
            u32 pairs[BN / 8][2];
#pragma unroll
            for (int i = 0; i < BN / 8; ++i) pairs[i][0] = from[0][i * 4], pairs[i][1] = from[1][i * 4];
            each([&](f32& score, int r, u32 j) { score += to_f32(((const T*)pairs[j / 8])[r * 2 + j % 2]); });
        } else if (p.bias) {
            const T* from[2] = {bias[0] + mine * p.bias_strides[3], bias[1] + mine * p.bias_strides[3]};
            each([&](f32& score, int r, u32 j) {
                if (!masked || sees(r, mine + j)) score += to_f32(from[r][j * p.bias_strides[3]]);
            });
        }
        if (p.alibi) {
            const f32 away[2] = {(f32)((i64)mine - position[0]), (f32)((i64)mine - position[1])};
            each([&](f32& score, int r, u32 j) { score -= slope * fabsf(away[r] + (f32)j); });
        }
    }
#endif

    // Calls a function with each score, the number of its row, and the distance of its key from this thread's first.
    template <class F> DEVICE void each(F f) {
#pragma unroll
        for (int i = 0; i < BN / 8; ++i) {
#pragma unroll
            for (int c = 0; c < 4; ++c) f(s[i][c], c / 2, (u32)(i * 8 + c % 2));
        }
    }

    // Makes weights of scores of the keys from `first` on, which all rows see unless `masked`. NaN is never the maximum, but
    // propagates through the weights.
    DEVICE void weigh(const Params& p, u32 first, bool masked, f32 slope) {
#if defined(VARIANT)
        vary(p, first, masked, slope);
#else
        const f32 scale = fminf(fmaxf(p.scale * LOG2_E, -LARGEST), LARGEST);
        each([&](f32& score, int, u32) { score *= scale; });
#endif
        if (masked) {
            const u32 mine = first + threadIdx.x % 4 * 2;
            each([&](f32& score, int r, u32 j) {
                if (!sees(r, mine + j)) score = -INF;
            });
        }
        f32 most[2] = {max[0], max[1]};
#pragma unroll
        for (int i = 0; i < BN / 8; ++i) {
#pragma unroll
            for (int c = 0; c < 4; ++c) most[c / 2] = fmaxf(most[c / 2], s[i][c]);
        }
#pragma unroll
        for (int r = 0; r < 2; ++r) {
#pragma unroll
            for (int d = 1; d < 4; d *= 2) most[r] = fmaxf(most[r], __shfl_xor_sync(FULL, most[r], d));
            // Without a key so far, all weights are 0.
            const f32 from = most[r] == -INF ? 0.f : most[r];
            const f32 fade = max[r] == most[r] ? 1.f : power((max[r] - from) * UNIT);
            max[r] = most[r];
            f32 sum = 0.f;
#pragma unroll
            for (int i = 0; i < BN / 8; ++i) {
#pragma unroll
                for (int c = 0; c < 2; ++c) {
                    s[i][r * 2 + c] = power((s[i][r * 2 + c] - from) * UNIT);
                    sum += s[i][r * 2 + c];
                }
            }
            total[r] = total[r] * fade + sum;
#pragma unroll
            for (int i = 0; i < DT / 8; ++i) {
                out[i][r * 2] *= fade;
                out[i][r * 2 + 1] *= fade;
            }
        }
    }

    // The weights of 16 keys, as the tensor cores take them.
    DEVICE void weights(u32 (&to)[4], int j) const {
        to[0] = pack(s[2 * j][0], s[2 * j][1]);
        to[1] = pack(s[2 * j][2], s[2 * j][3]);
        to[2] = pack(s[2 * j + 1][0], s[2 * j + 1][1]);
        to[3] = pack(s[2 * j + 1][2], s[2 * j + 1][3]);
    }

    // Adds those values of a tile, from `first` on, that are infinite or NaN, to rows that see them. Few tiles need this, so the code is
    // short rather than fast: unrolled, it took half of the time that the compiler needs for this file. `room` takes 16 rows of BN
    // weights of this warp, since a loop cannot index registers.
    DEVICE void add_unsound(const u8* tile_v, u32 first, T* room) {
        const u32 lane = threadIdx.x % WARP, quad = lane % 4;
        T* mine = room + lane / 4 * BN;
#pragma unroll
        for (int i = 0; i < BN / 8; ++i) {
            *(u32*)(mine + i * 8 + quad * 2) = pack(s[i][0], s[i][1]);
            *(u32*)(mine + 8 * BN + i * 8 + quad * 2) = pack(s[i][2], s[i][3]);
        }
        __syncwarp();
#pragma unroll 1
        for (u32 row = 0; row < BN; ++row) {
            const bool sees0 = sees(0, first + row), sees1 = sees(1, first + row);
            const f32 w0 = to_f32(mine[row]), w1 = to_f32(mine[8 * BN + row]);
#pragma unroll
            for (int d = 0; d < DT / 8; ++d) {
                const u32 two = *(const u32*)(tile_v + twisted<DT>(row, d) + quad * 4);
                if (!unsound(two)) continue;
                const u32 unsounds = two ^ sound(two);
                const f32 a = to_f32(((const T*)&unsounds)[0]), z = to_f32(((const T*)&unsounds)[1]);
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

    // Writes what two rows add up to. `sink` is one more score of each row.
    DEVICE void write(const Params& p, T* y, u64 below, bool is0, bool is1, f32 sink) {
        f32 factor[2];
#pragma unroll
        for (int r = 0; r < 2; ++r) {
#pragma unroll
            for (int d = 1; d < 4; d *= 2) total[r] += __shfl_xor_sync(FULL, total[r], d);
#if defined(VARIANT)
            const f32 end = fmaxf(max[r], sink);
            const f32 last = max[r] == end ? 1.f : power((max[r] - end) * UNIT);
            total[r] *= last;
            if (sink != -INF) total[r] += power((sink - end) * UNIT);
            factor[r] = total[r] != 0.f ? last / total[r] : 1.f;
#else
            factor[r] = total[r] != 0.f ? 1.f / total[r] : 1.f;
#endif
        }
#pragma unroll
        for (int i = 0; i < DT / 8; ++i) {
            if (i * 8 < p.size_v) {
                if (is0) *(u32*)(y + i * 8) = pack(out[i][0] * factor[0], out[i][1] * factor[0]);
                if (is1) *(u32*)(y + below + i * 8) = pack(out[i][2] * factor[1], out[i][3] * factor[1]);
            }
        }
    }
};

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
    Rows<DT, BN> rows[MT];
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
                matrices(qf[m], shared_address(queries) + twisted<DT>(row, d * 2 + lane / 16));
            }
#pragma unroll
            for (int i = 0; i < BN / 16; ++i) {
                u32 kf[4];
                const u32 row = i * 16 + lane / 16 * 8 + lane % 8;
                matrices(kf, tile_k + twisted<DT>(row, d * 2 + lane / 8 % 2));
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
        for (int m = 0; m < MT; ++m) rows[m].weigh(p, n * BN, masked, slope);

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
                matrices_transposed(vf, shared_address(tile_v) + twisted<DT>(row, d * 2 + lane / 16));
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
        rows[m].write(p, y, below, row < p.times, row + 8 < p.times, sink);
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

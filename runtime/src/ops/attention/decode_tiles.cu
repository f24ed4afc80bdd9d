// Attention on tensor cores for few queries and many keys. A block processes up to 8 or 16 rows (queries times the heads of a
// group) of one key head, and a part of the keys. Each of its warps runs its own online softmax over every so many tiles of
// keys, which go from memory to the registers from which they are multiplied: the order of keys and of the elements of a head
// in a product is free, so a thread loads 16 bytes of a row at a time. Scores are computed as `keys x rows`, and values
// are added as `elements x rows`. A tile is loaded as soon as the one before it has been multiplied.
//
// f16 and bf16; head sizes from 16 to 128, in multiples of 8.
// Types: halves
// Also: VARIANT
#include "common.cuh"
#include "attention.cuh"

// Scores may be this much larger than the one that weights are relative to: e^8 is far from the largest f16.
#define SLACK 8.f
// Two ones.
#if defined(T_f16)
#define ONES 0x3c003c00u
#else
#define ONES 0x3f803f80u
#endif

DEVICE void load(u32 (&to)[4], const T* from) {
    asm volatile("ld.global.L1::no_allocate.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "l"(from));
}

// Transposes 8 rows of 8 elements of a warp, of which each thread has two neighbours.
DEVICE u32 transposed(u32 two) {
    u32 out;
    asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(out) : "r"(two));
    return out;
}

// Threads of a block, for a padded head size: as many as registers are for.
template <int DT> constexpr u32 THREADS = DT <= 64 ? 256 : 192;

// DT: the padded head size. NT: rows of a block, in eights. MT: keys of a tile, in sixteens.
template <int DT, int NT, int MT> DEVICE void attend(const Params& p) {
    constexpr u32 STEP = 16 * MT, WARPS = THREADS<DT> / WARP;
    constexpr u32 CHUNKS = DT / 32;  // 16 bytes of a key that a thread has, of a query likewise
    constexpr u32 PIECES = DT / 64;  // 16 bytes of a value
    start_dependents();
#if __CUDA_ARCH__ >= 900
    if (cluster_size() > 1) Cluster::begin();
#endif
    const Share share(p, 8 * NT);
    const u32 count = share.count;

    extern __shared__ __align__(16) f32 room[];
    f32* values = room;                         // WARPS * count * DT
    f32* sums = values + WARPS * count * DT;    // WARPS * count * 2
    f32* parts = sums + WARPS * count * 2;      // cluster * count * (DT + 2)

    const u32 lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    // Of scores, a thread has keys `eighth` and `eighth + 8`, and rows `2 * quad` and `2 * quad + 1`.
    const u32 eighth = lane / 4, quad = lane % 4;
    const T* k = (const T*)p.k + share.b * p.k_strides[0] + share.head * p.k_strides[2];
    const T* v = (const T*)p.v + share.b * p.v_strides[0] + share.head * p.v_strides[2];
    const u64 k_apart = p.k_strides[1], v_apart = p.v_strides[1];
    // A warp has every so many tiles, so that the parts are even, whatever the capacity of the cache. Few keys are all in one block.
    const u32 apart = p.splits * WARPS;
    u32 tile = share.split * WARPS + warp;

    u32 kf[MT][2][CHUNKS][4], vf[MT][4][PIECES][4];
    // Rows from `end` on are not read; others take their place.
    auto load_keys = [&](u32 tile, u32 end) {
#pragma unroll
        for (u32 m = 0; m < 2 * MT; ++m) {
            u32 j = tile * STEP + m * 8 + eighth;
            j = j < end ? j : end - 1;
            const T* at = k + j * k_apart + quad * 8;
#pragma unroll
            for (u32 c = 0; c < CHUNKS; ++c) {
                if (c * 32 + quad * 8 < p.size) load(kf[m / 2][m % 2][c], at + c * 32);
            }
        }
    };
    auto load_values = [&](u32 tile, u32 end) {
#pragma unroll
        for (u32 m = 0; m < 4 * MT; ++m) {
            u32 j = tile * STEP + m / 4 * 16 + m / 2 % 2 * 8 + quad * 2 + m % 2;
            j = j < end ? j : end - 1;
            const T* at = v + j * v_apart + eighth * 8;
#pragma unroll
            for (u32 c = 0; c < PIECES; ++c) {
                if (c * 64 + eighth * 8 < p.size_v) load(vf[m / 4][m % 4][c], at + c * 64);
            }
        }
    };
    // Elements beyond the size of a head stay zeros.
#pragma unroll
    for (u32 m = 0; m < 2 * MT; ++m) {
#pragma unroll
        for (u32 i = 0; i < 4 * CHUNKS; ++i) kf[m / 2][m % 2][i / 4][i % 4] = 0;
    }
#pragma unroll
    for (u32 m = 0; m < 4 * MT; ++m) {
#pragma unroll
        for (u32 i = 0; i < 4 * PIECES; ++i) vf[m / 4][m % 4][i / 4][i % 4] = 0;
    }

    // Where the queries of rows `eighth` are, and the tokens of rows `2 * quad` and `2 * quad + 1`.
    const T* queries[NT];
    u32 times[NT][2];
#pragma unroll
    for (u32 n = 0; n < NT; ++n) {
        queries[n] = n * 8 + eighth < count ? share.query(p, n * 8 + eighth) + quad * 8 : nullptr;
#pragma unroll
        for (u32 c = 0; c < 2; ++c) times[n][c] = share.place(p, n * 8 + quad * 2 + c).t;
    }

#if defined(VARIANT)
    // A window decides where the first tile is.
    const bool is_first = false;
    wait_for_earlier();
    // What the scores of each row need besides: the first key that it sees, and its position.
    u32 from[NT][2], bottom = 0xffffffffu, highest = 0;
    i64 position[NT][2];
    f32 slope[NT][2];
    const T* bias[NT][2];
#else
    // Before it is known how many keys there are, the first tile of some blocks; one chunk asks for all.
    const bool is_first = tile * STEP < (p.keys < AHEAD ? p.keys : AHEAD);
    if (is_first && share.chunk == 0) {
        for (u32 i = lane; i < STEP * PIECES; i += WARP) {
            const u32 j = tile * STEP + i / PIECES, e = i % PIECES * 64;
            if (j < p.keys) {
                if (e < p.size) ask(k + j * k_apart + e);
                if (e < p.size_v) ask(v + j * v_apart + e);
            }
        }
    }
    wait_for_earlier();
#endif

    // All loads are issued before the number of keys, which is one of them, is used.
    const u32 real = real_of(p);
    u32 limit[NT][2];
#pragma unroll
    for (u32 n = 0; n < NT; ++n) {
#pragma unroll
        for (u32 c = 0; c < 2; ++c) limit[n][c] = limit_of(p, share.b, n * 8 + quad * 2 + c < count ? times[n][c] : 0);
    }
    u32 qf[NT][CHUNKS][4];
#pragma unroll
    for (u32 n = 0; n < NT; ++n) {
#pragma unroll
        for (u32 c = 0; c < CHUNKS; ++c) {
            qf[n][c][0] = qf[n][c][1] = qf[n][c][2] = qf[n][c][3] = 0;
            if (queries[n] && c * 32 + quad * 8 < p.size) load(qf[n][c], queries[n] + c * 32);
        }
    }
    if (is_first) {
        load_keys(tile, p.keys);
        load_values(tile, p.keys);
    }
#pragma unroll
    for (u32 n = 0; n < NT; ++n) {
#pragma unroll
        for (u32 c = 0; c < 2; ++c) {
            const u32 r = n * 8 + quad * 2 + c;
            limit[n][c] = r < count ? visible(p, times[n][c], limit[n][c], real) : 0;
#if defined(VARIANT)
            const u32 head = share.place(p, r < count ? r : 0).h, t = r < count ? times[n][c] : 0;
            position[n][c] = position_of(p, share.b, t);
            slope[n][c] = slope_of(p, head);
            bias[n][c] = bias_of(p, share.b, head, t);
            from[n][c] = first_visible(p, position[n][c], limit[n][c]);
            if (from[n][c] >= limit[n][c]) from[n][c] = limit[n][c] = 0;
            else bottom = from[n][c] < bottom ? from[n][c] : bottom;
            highest = from[n][c] > highest ? from[n][c] : highest;
#endif
        }
    }
    // The most and the fewest keys that a row sees.
    u32 top = 0, low = 0xffffffffu;
#pragma unroll
    for (u32 n = 0; n < NT; ++n) {
#pragma unroll
        for (u32 c = 0; c < 2; ++c) {
            top = limit[n][c] > top ? limit[n][c] : top;
            if (n * 8 + quad * 2 + c < count && limit[n][c] < low) low = limit[n][c];
        }
    }
#pragma unroll
    for (u32 d = 1; d < 4; d *= 2) {
        const u32 other = __shfl_xor_sync(FULL, top, d), its = __shfl_xor_sync(FULL, low, d);
        top = other > top ? other : top;
        low = its < low ? its : low;
#if defined(VARIANT)
        const u32 others = __shfl_xor_sync(FULL, bottom, d), theirs = __shfl_xor_sync(FULL, highest, d);
        bottom = others < bottom ? others : bottom;
        highest = theirs > highest ? theirs : highest;
#endif
    }
#if defined(VARIANT)
    // From a multiple of what all warps have, so that the warp of a key does not depend on other rows.
    tile += bottom < top ? bottom / STEP / apart * apart : 0;
#endif
    const u32 tiles = (top + STEP - 1) / STEP;
    const bool alone = is_alone(tiles, WARPS);
    if (alone) {
        leave();
        if (share.split != 0) return;
    }
    if (!is_first && tile < tiles) {
        load_keys(tile, top);
        load_values(tile, top);
    }

    // Weights are relative to `base`, the largest score, or at most SLACK less.
    f32 base[NT][2], out[NT][DT / 16][4], total[NT][4];
#pragma unroll
    for (u32 n = 0; n < NT; ++n) {
        base[n][0] = base[n][1] = -INF;
#pragma unroll
        for (u32 i = 0; i < 4; ++i) total[n][i] = 0.f;
#pragma unroll
        for (u32 i = 0; i < DT / 4; ++i) out[n][i / 4][i % 4] = 0.f;
    }

    for (; tile < tiles; tile += apart) {
        f32 s[MT][NT][4];
#pragma unroll
        for (u32 i = 0; i < MT * NT * 4; ++i) s[i / 4 / NT][i / 4 % NT][i % 4] = 0.f;
#pragma unroll
        for (u32 d = 0; d < DT / 16; ++d) {
            const u32 c = d / 2, low = d % 2 * 2;
#pragma unroll
            for (u32 m = 0; m < MT; ++m) {
                const u32 a[4] = {kf[m][0][c][low], kf[m][1][c][low], kf[m][0][c][low + 1], kf[m][1][c][low + 1]};
#pragma unroll
                for (u32 n = 0; n < NT; ++n) multiply(s[m][n], a, qf[n][c][low], qf[n][c][low + 1]);
            }
        }
        if (tile + apart < tiles) load_keys(tile + apart, top);

        // Softmax. NaN is never the maximum, but propagates through the weights.
        f32 most[NT][2];
        bool above = false;
#pragma unroll
        for (u32 n = 0; n < NT; ++n) {
#pragma unroll
            for (u32 c = 0; c < 2; ++c) {
                most[n][c] = -INF;
#pragma unroll
                for (u32 m = 0; m < 2 * MT; ++m) {
                    f32& score = s[m / 2][n][m % 2 * 2 + c];
                    const u32 j = tile * STEP + m * 8 + eighth;
#if defined(VARIANT)
                    const bool sees = j >= from[n][c] && j < limit[n][c];
                    score = sees ? capped(p, score * p.scale) + added(p, bias[n][c], slope[n][c], position[n][c], j) : -INF;
#else
                    score = j < limit[n][c] ? score * p.scale : -INF;
#endif
                    most[n][c] = score > most[n][c] ? score : most[n][c];
                }
                above |= most[n][c] > base[n][c] + SLACK;
            }
        }
        // Each row decides for itself.
        if (__any_sync(FULL, above)) {
#pragma unroll
            for (u32 n = 0; n < NT; ++n) {
#pragma unroll
                for (u32 c = 0; c < 2; ++c) {
#pragma unroll
                    for (u32 d = 4; d < WARP; d *= 2) most[n][c] = fmaxf(most[n][c], __shfl_xor_sync(FULL, most[n][c], d));
                    const f32 now = most[n][c] > base[n][c] + SLACK ? most[n][c] : base[n][c];
                    const f32 fade = factor(base[n][c], now);
                    base[n][c] = now;
                    total[n][c] *= fade;
#pragma unroll
                    for (u32 i = 0; i < DT / 16; ++i) {
                        out[n][i][c] *= fade;
                        out[n][i][c + 2] *= fade;
                    }
                }
            }
        }
        u32 weights[MT][NT][2];
#pragma unroll
        for (u32 m = 0; m < 2 * MT; ++m) {
#pragma unroll
            for (u32 n = 0; n < NT; ++n) {
                f32 w[2];
#pragma unroll
                for (u32 c = 0; c < 2; ++c) {
                    const f32 score = s[m / 2][n][m % 2 * 2 + c];
                    w[c] = score == -INF ? 0.f : EXP(score - base[n][c]);
                }
                weights[m / 2][n][m % 2] = transposed(pack(w[0], w[1]));
            }
        }

        // Values. A weight of 0 does not erase a NaN, and keys that no row sees may contain one.
#if defined(VARIANT)
        const u32 begin = bottom;
#else
        const u32 begin = 0;
#endif
        if ((tile + 1) * STEP > top || tile * STEP < begin) {
#pragma unroll
            for (u32 m = 0; m < 4 * MT; ++m) {
                const u32 j = tile * STEP + m / 4 * 16 + m / 2 % 2 * 8 + quad * 2 + m % 2;
                const bool sees = j >= begin && j < top;
#pragma unroll
                for (u32 i = 0; i < 4 * PIECES; ++i) {
                    if (!sees) vf[m / 4][m % 4][i / 4][i % 4] = 0;
                }
            }
        }
        // Those that some rows see may contain one, too.
        bool bad = false;
#if defined(VARIANT)
        const bool is_part = (tile + 1) * STEP > low || tile * STEP < highest;
#else
        const bool is_part = low < top && (tile + 1) * STEP > low;
#endif
        if (is_part) {
#pragma unroll
            for (u32 m = 0; m < 4 * MT; ++m) {
#pragma unroll
                for (u32 i = 0; i < 4 * PIECES; ++i) bad |= unsound(vf[m / 4][m % 4][i / 4][i % 4]);
            }
            bad = __any_sync(FULL, bad);
        }
        // Two elements of four keys each: those of an even place, and those of an odd one.
        auto pairs = [&](u32 (&a)[4], u32 m, u32 i) {
            const u32 c = i / 4, w = i % 4;
            a[0] = __byte_perm(vf[m][0][c][w], vf[m][1][c][w], 0x5410);
            a[1] = __byte_perm(vf[m][0][c][w], vf[m][1][c][w], 0x7632);
            a[2] = __byte_perm(vf[m][2][c][w], vf[m][3][c][w], 0x5410);
            a[3] = __byte_perm(vf[m][2][c][w], vf[m][3][c][w], 0x7632);
        };
        if (!bad) {
#pragma unroll
            for (u32 m = 0; m < MT; ++m) {
#pragma unroll
                for (u32 i = 0; i < DT / 16; ++i) {
                    u32 a[4];
                    pairs(a, m, i);
#pragma unroll
                    for (u32 n = 0; n < NT; ++n) multiply(out[n][i], a, weights[m][n][0], weights[m][n][1]);
                }
            }
        } else {
            // One row after the other, each with the keys that it sees.
#pragma unroll 1
            for (u32 r = 0; r < count; ++r) {
                u32 end = visible(p, share.b, share.place(p, r).t);
#if defined(VARIANT)
                const u32 start = first_visible(p, position_of(p, share.b, share.place(p, r).t), end);
                auto sees = [&](u32 j) { return j >= start && j < end; };
#else
                auto sees = [&](u32 j) { return j < end; };
#endif
#pragma unroll
                for (u32 m = 0; m < MT; ++m) {
                    const u32 j = tile * STEP + m * 16 + quad * 2;
                    const u32 near = (sees(j) ? 0xffffu : 0u) | (sees(j + 1) ? 0xffff0000u : 0u);
                    const u32 far = (sees(j + 8) ? 0xffffu : 0u) | (sees(j + 9) ? 0xffff0000u : 0u);
#pragma unroll
                    for (u32 n = 0; n < NT; ++n) {
#pragma unroll
                        for (u32 i = 0; i < DT / 16; ++i) {
                            u32 a[4];
                            pairs(a, m, i);
                            a[0] &= near, a[1] &= near, a[2] &= far, a[3] &= far;
                            f32 its[4] = {out[n][i][0], out[n][i][1], out[n][i][2], out[n][i][3]};
                            multiply(its, a, weights[m][n][0], weights[m][n][1]);
#pragma unroll
                            for (u32 h = 0; h < 4; ++h) {
                                if (r == n * 8 + quad * 2 + h % 2) out[n][i][h] = its[h];
                            }
                        }
                    }
                }
            }
        }
        const u32 ones[4] = {ONES, ONES, ONES, ONES};
#pragma unroll
        for (u32 m = 0; m < MT; ++m) {
#pragma unroll
            for (u32 n = 0; n < NT; ++n) multiply(total[n], ones, weights[m][n][0], weights[m][n][1]);
        }
        if (tile + apart < tiles) load_values(tile + apart, top);
    }

#pragma unroll
    for (u32 n = 0; n < NT; ++n) {
#pragma unroll
        for (u32 c = 0; c < 2; ++c) {
            const u32 r = n * 8 + quad * 2 + c, part = warp * count + r;
            if (r >= count) continue;
            if (eighth == 0) {
                sums[2 * part] = base[n][c];
                sums[2 * part + 1] = total[n][c];
            }
#pragma unroll
            for (u32 i = 0; i < DT / 32; ++i) {
                const float4 four = {out[n][2 * i][c], out[n][2 * i][c + 2], out[n][2 * i + 1][c], out[n][2 * i + 1][c + 2]};
                *(float4*)(values + part * DT + i / 2 * 64 + eighth * 8 + i % 2 * 4) = four;
            }
        }
    }
    merge<THREADS<DT>>(p, share, sums, values, DT, parts, alone);
}

#define ATTEND(DT, ROWS, BLOCKS)                                                                    \
    KERNEL(attend_##DT##_##ROWS, THREADS<DT>, RESIDENT(BLOCKS))(const __grid_constant__ Params p) { \
        attend<DT, ROWS / 8, 1>(p);                                                                 \
    }
ATTEND(64, 8, 2)
ATTEND(64, 16, 1)
ATTEND(128, 8, 2)
#if !defined(VARIANT)
// Registers do not hold what the scores need besides.
ATTEND(128, 16, 1)
#endif

// Attention in f32 for few queries and many keys, without tensor cores. A block processes up to R rows (queries times the heads
// of a group) of one key head, and a part of the keys. Each of its warps runs its own online softmax over every so many
// tiles of keys. Some lanes share a key, each with 8 elements, and add what they have so that each of them has other scores at
// the end: a weight is computed once. Values are read as they lie in memory, 4 elements a lane, with weights
// from shared memory. A tile is loaded as soon as the one before it has been multiplied.
//
// Head sizes from 16 to 128, in multiples of 8.
// Types: f32
// Also: VARIANT
#include "common.cuh"
#include "attention.cuh"

#define THREADS 256
#define WARPS (THREADS / WARP)


// Scores may be this much larger than the one that weights are relative to.
#define SLACK 8.f
// Keys of a lane.
#define U 4u

DEVICE void load(float4& to, const f32* from) {
    asm volatile("ld.global.L1::no_allocate.v4.f32 {%0,%1,%2,%3}, [%4];"
                 : "=f"(to.x), "=f"(to.y), "=f"(to.z), "=f"(to.w) : "l"(from));
}

DEVICE constexpr u32 log2_of(u32 n) { return n <= 1 ? 0 : 1 + log2_of(n / 2); }

// Adds each of `N` scores over 2^TO lanes. Of two, a lane keeps one, and gives the other to the lane that keeps that; the last
// one is added in all.
template <u32 BIT, u32 TO, u32 N> DEVICE void spread(f32* s) {
    if constexpr (BIT < TO) {
        if constexpr (N > 1) {
            const bool odd = threadIdx.x >> BIT & 1;
#pragma unroll
            for (u32 i = 0; i < N / 2; ++i) {
                const f32 kept = odd ? s[2 * i + 1] : s[2 * i], given = odd ? s[2 * i] : s[2 * i + 1];
                s[i] = kept + __shfl_xor_sync(FULL, given, 1u << BIT);
            }
        } else {
            s[0] += __shfl_xor_sync(FULL, s[0], 1u << BIT);
        }
        spread<BIT + 1, TO, (N > 1 ? N / 2 : 1)>(s);
    }
}

template <u32 DT, u32 R> DEVICE void attend(const Params& p) {
    constexpr u32 LANES = DT / 8, SLOTS = WARP / LANES, STEP = SLOTS * U;
    // Lanes of a value row, keys that a warp reads at a time, and how many times for a tile.
    constexpr u32 ROW = DT / 4, AT_ONCE = WARP / ROW, LOADS = STEP / AT_ONCE;
    // Scores of a lane's keys, of which it keeps `LEFT`; the lowest bits of its number tell which, first the row.
    constexpr u32 SCORES = U * R, BITS = log2_of(SCORES < LANES ? SCORES : LANES), LEFT = SCORES >> BITS;
    start_dependents();
#if __CUDA_ARCH__ >= 900
    if (cluster_size() > 1) Cluster::begin();
#endif
    const Share share(p, R);
    const u32 count = share.count;

    extern __shared__ __align__(16) f32 room[];
    f32* queries = room;                                // R * DT
    f32* weights = queries + R * DT;                    // WARPS * STEP * R
    f32* values = weights + WARPS * STEP * R;           // WARPS * count * DT
    f32* sums = values + WARPS * count * DT;            // WARPS * count * 2
    f32* parts = sums + WARPS * count * 2;              // cluster * count * (DT + 2)

    const u32 lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    const u32 sub = lane % LANES, slot = lane / LANES;
    const u32 mine = lane % R, four = lane % ROW, which = lane / ROW;
    const f32* k = (const f32*)p.k + share.b * p.k_strides[0] + share.head * p.k_strides[2] + sub * 4;
    const f32* v = (const f32*)p.v + share.b * p.v_strides[0] + share.head * p.v_strides[2] + four * 4;
    const u64 k_apart = p.k_strides[1], v_apart = p.v_strides[1];
    const bool near = sub * 4 < p.size, far = DT / 2 + sub * 4 < p.size, has = four * 4 < p.size_v;
    weights += warp * STEP * R;
    // A warp has every so many tiles, so that the parts are even, whatever the capacity of the cache. Few keys are all in one block.
    const u32 apart = p.splits * WARPS;
    u32 tile = share.split * WARPS + warp;

    // Elements beyond the size of a head stay zeros.
    float4 key[U][2], value[LOADS];
#pragma unroll
    for (u32 u = 0; u < U; ++u) key[u][0] = key[u][1] = make_float4(0.f, 0.f, 0.f, 0.f);
#pragma unroll
    for (u32 i = 0; i < LOADS; ++i) value[i] = make_float4(0.f, 0.f, 0.f, 0.f);
    // Rows from `end` on are not read; others take their place.
    auto load_keys = [&](u32 tile, u32 end) {
#pragma unroll
        for (u32 u = 0; u < U; ++u) {
            u32 j = tile * STEP + u * SLOTS + slot;
            j = j < end ? j : end - 1;
            const f32* at = k + j * k_apart;
            if (near) load(key[u][0], at);
            if (far) load(key[u][1], at + DT / 2);
        }
    };
    auto load_values = [&](u32 tile, u32 end) {
#pragma unroll
        for (u32 i = 0; i < LOADS; ++i) {
            u32 j = tile * STEP + i * AT_ONCE + which;
            j = j < end ? j : end - 1;
            if (has) load(value[i], v + j * v_apart);
        }
    };

    // Where this thread's elements of the queries are.
    constexpr u32 QUERIES = (R * DT + THREADS - 1) / THREADS;
    const f32* query[QUERIES];
#pragma unroll
    for (u32 i = 0; i < QUERIES; ++i) {
        const u32 at = i * THREADS + threadIdx.x, r = at / DT, e = at % DT;
        query[i] = r < count && e < p.size ? share.query(p, r) + e * p.q_strides[3] : nullptr;
    }
    const u32 t = share.place(p, mine < count ? mine : 0).t;

#if defined(VARIANT)
    // A window decides where the first tile is.
    const bool is_first = false;
    wait_for_earlier();
#else
    // Before it is known how many keys there are, the first tiles; one chunk asks for all.
    const bool is_first = tile * STEP < (p.keys < AHEAD ? p.keys : AHEAD);
    if (is_first && share.chunk == 0) {
        for (u32 i = lane; i < STEP * DT / 32; i += WARP) {
            const u32 j = tile * STEP + i / (DT / 32), e = i % (DT / 32) * 32;
            if (j < p.keys) {
                if (e < p.size) ask(k - sub * 4 + j * k_apart + e);
                if (e < p.size_v) ask(v - four * 4 + j * v_apart + e);
            }
        }
    }
    wait_for_earlier();
#endif

    // All loads are issued before the number of keys, which is one of them, is used.
    const u32 real = real_of(p), asked = limit_of(p, share.b, t);
    f32 loaded[QUERIES];
#pragma unroll
    for (u32 i = 0; i < QUERIES; ++i) loaded[i] = query[i] ? *query[i] : 0.f;
    if (is_first) {
        load_keys(tile, p.keys);
        load_values(tile, p.keys);
    }
    u32 limit = mine < count ? visible(p, t, asked, real) : 0;
#if defined(VARIANT)
    // What the scores of row `mine` need besides: the first key that it sees, and its position.
    const u32 head = share.place(p, mine < count ? mine : 0).h;
    const i64 position = position_of(p, share.b, t);
    const f32 slope = slope_of(p, head);
    const T* bias = bias_of(p, share.b, head, t);
    u32 from = first_visible(p, position, limit);
    if (from >= limit) from = limit = 0;
#endif
#pragma unroll
    for (u32 i = 0; i < QUERIES; ++i) {
        const u32 at = i * THREADS + threadIdx.x;
        if (at < R * DT) queries[at] = loaded[i] * p.scale;
    }
    // The keys that each row sees, and the most and the fewest.
    u32 ends[R], top = 0, low = 0xffffffffu;
#pragma unroll
    for (u32 r = 0; r < R; ++r) {
        ends[r] = __shfl_sync(FULL, limit, r);
        top = ends[r] > top ? ends[r] : top;
        if (r < count && ends[r] < low) low = ends[r];
    }
#if defined(VARIANT)
    u32 starts[R], bottom = 0xffffffffu, highest = 0;
#pragma unroll
    for (u32 r = 0; r < R; ++r) {
        starts[r] = __shfl_sync(FULL, from, r);
        if (ends[r] && starts[r] < bottom) bottom = starts[r];
        highest = starts[r] > highest ? starts[r] : highest;
    }
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
    __syncthreads();

    // Of row `mine`: weights are relative to `base`, the largest score, or at most SLACK less.
    f32 base = -INF, total = 0.f;
    float4 out[R];
#pragma unroll
    for (u32 r = 0; r < R; ++r) out[r] = make_float4(0.f, 0.f, 0.f, 0.f);

    for (; tile < tiles; tile += apart) {
        f32 s[SCORES];
#pragma unroll
        for (u32 r = 0; r < R; ++r) {
            const float4 a = *(const float4*)(queries + r * DT + sub * 4);
            const float4 z = *(const float4*)(queries + r * DT + DT / 2 + sub * 4);
#pragma unroll
            for (u32 u = 0; u < U; ++u) {
                f32 dot = a.x * key[u][0].x;
                dot += a.y * key[u][0].y;
                dot += a.z * key[u][0].z;
                dot += a.w * key[u][0].w;
                dot += z.x * key[u][1].x;
                dot += z.y * key[u][1].y;
                dot += z.z * key[u][1].z;
                dot += z.w * key[u][1].w;
                s[u * R + r] = dot;
            }
        }
        if (tile + apart < tiles) load_keys(tile + apart, top);
        u32 place[LEFT];  // of a key in the tile
#pragma unroll
        for (u32 i = 0; i < LEFT; ++i) place[i] = ((i << BITS | lane % (1u << BITS)) / R) * SLOTS + slot;
#if defined(VARIANT)
        f32 more[LEFT];
#pragma unroll
        for (u32 i = 0; i < LEFT; ++i) {
            const u32 j = tile * STEP + place[i];
            more[i] = j >= from && j < limit ? added(p, bias, slope, position, j) : 0.f;
        }
#endif
        spread<0, log2_of(LANES), SCORES>(s);

        // Softmax. NaN is never the maximum, but propagates through the weights.
        f32 most = -INF;
#pragma unroll
        for (u32 i = 0; i < LEFT; ++i) {
            const u32 j = tile * STEP + place[i];
#if defined(VARIANT)
            s[i] = j >= from && j < limit ? capped(p, s[i]) + more[i] : -INF;
#else
            if (j >= limit) s[i] = -INF;
#endif
            most = s[i] > most ? s[i] : most;
        }
        // Each row decides for itself.
        if (__any_sync(FULL, most > base + SLACK)) {
#pragma unroll
            for (u32 d = R; d < WARP; d *= 2) most = fmaxf(most, __shfl_xor_sync(FULL, most, d));
            const f32 now = most > base + SLACK ? most : base, fade = factor(base, now);
            base = now;
            total *= fade;
#pragma unroll
            for (u32 r = 0; r < R; ++r) {
                const f32 its = __shfl_sync(FULL, fade, r);
                out[r].x *= its, out[r].y *= its, out[r].z *= its, out[r].w *= its;
            }
        }
#pragma unroll
        for (u32 i = 0; i < LEFT; ++i) {
            const f32 weight = s[i] == -INF ? 0.f : EXP(s[i] - base);
            // Of lanes with the same scores, the first one adds them.
            if (sub >> BITS == 0) {
                total += weight;
                weights[place[i] * R + mine] = weight;
            }
        }
        __syncwarp();

        // Values. A weight of 0 does not erase a NaN, and keys that a row does not see may contain one.
#if defined(VARIANT)
        const bool is_whole = (tile + 1) * STEP <= low && tile * STEP >= highest;
        auto sees = [&](u32 r, u32 j) { return j >= starts[r] && j < ends[r]; };
#else
        const bool is_whole = (tile + 1) * STEP <= low;
        auto sees = [&](u32 r, u32 j) { return j < ends[r]; };
#endif
#pragma unroll
        for (u32 i = 0; i < LOADS; ++i) {
            const u32 at = i * AT_ONCE + which;
            f32 weight[R];
            if constexpr (R == 4) {
                const float4 all = *(const float4*)(weights + at * 4);
                weight[0] = all.x, weight[1] = all.y, weight[2] = all.z, weight[3] = all.w;
            } else if constexpr (R == 2) {
                const float2 all = *(const float2*)(weights + at * 2);
                weight[0] = all.x, weight[1] = all.y;
            } else {
                weight[0] = weights[at];
            }
#pragma unroll
            for (u32 r = 0; r < R; ++r) {
                if (is_whole || sees(r, tile * STEP + at)) {
                    out[r].x += weight[r] * value[i].x;
                    out[r].y += weight[r] * value[i].y;
                    out[r].z += weight[r] * value[i].z;
                    out[r].w += weight[r] * value[i].w;
                }
            }
        }
        if (tile + apart < tiles) load_values(tile + apart, top);
        __syncwarp();
    }

    // Adds the lanes of a row, and those of an element.
#pragma unroll
    for (u32 d = R; d < WARP; d *= 2) total += __shfl_xor_sync(FULL, total, d);
#pragma unroll
    for (u32 d = ROW; d < WARP; d *= 2) {
#pragma unroll
        for (u32 r = 0; r < R; ++r) {
            out[r].x += __shfl_xor_sync(FULL, out[r].x, d);
            out[r].y += __shfl_xor_sync(FULL, out[r].y, d);
            out[r].z += __shfl_xor_sync(FULL, out[r].z, d);
            out[r].w += __shfl_xor_sync(FULL, out[r].w, d);
        }
    }
    if (lane < count) {
        sums[2 * (warp * count + lane)] = base;
        sums[2 * (warp * count + lane) + 1] = total;
    }
#pragma unroll
    for (u32 r = 0; r < R; ++r) {
        if (r < count && which == 0) *(float4*)(values + (warp * count + r) * DT + four * 4) = out[r];
    }
    merge<THREADS>(p, share, sums, values, DT, parts, alone);
}

// Blocks of a multiprocessor, as registers allow.
#if defined(VARIANT)
#define BLOCKS(R) (R == 1 ? 2 : 1)
#else
#define BLOCKS(R) 2
#endif
#define ATTEND(DT, R)                                                                           \
    KERNEL(attend_##DT##_##R, THREADS, RESIDENT(BLOCKS(R)))(const __grid_constant__ Params p) { \
        attend<DT, R>(p);                                                                       \
    }
ATTEND(64, 1)
ATTEND(64, 2)
ATTEND(64, 4)
ATTEND(128, 1)
ATTEND(128, 2)
ATTEND(128, 4)

// Attention without tensor cores, for few queries and many keys. A block processes up to R rows (queries
// times the heads of a group) of one key head, and a part of the keys. Several lanes share a key, with 8
// elements each; every such group of lanes (a slot) runs its own online softmax. They are merged at the end.
//
// It also handles f32, and head sizes that the tensor cores do not support; with WIDE, heads of more than 256 elements, one
// row per block.
// Types: floats
// Also: VARIANT
// Also: VARIANT WIDE
#include "common.cuh"
#include "attention.cuh"

// Elements of a head per lane.
#if defined(WIDE)
#define EACH 32
#else
#define EACH 8
#endif

#define THREADS 128
#define WARPS (THREADS / WARP)

struct alignas(16) Part {
    T at[EACH];
};

// Loads elements `first ..` of a head with `size` elements, and zeros beyond it.
DEVICE Part load(const T* head, u64 stride, u32 first, u32 size, u32 vector) {
    Part part;
    if (vector && first < size) {
#pragma unroll
        for (u32 i = 0; i < sizeof(Part) / 16; ++i) {
#if defined(WIDE)
            // The size is a multiple of 8, not of EACH.
            if (first + i * (16 / sizeof(T)) >= size) {
                ((Words*)&part)[i] = Words{{0, 0, 0, 0}};
                continue;
            }
#endif
            ((Words*)&part)[i] = ((const Words*)(head + first))[i];
        }
    } else {
#pragma unroll
        for (u32 e = 0; e < EACH; ++e) part.at[e] = first + e < size ? head[(first + e) * stride] : from_f32<T>(0.f);
    }
    return part;
}

template <int R> DEVICE void attend(const Params& p) {
    // Keys of a slot at a time, as registers allow.
#if defined(WIDE)
    constexpr u32 U = 1;
#else
    constexpr u32 U = R <= 4 ? 2 : 1;
#endif
    start_dependents();
#if __CUDA_ARCH__ >= 900
    if (cluster_size() > 1) Cluster::begin();
#endif
    const Share share(p, R);
    const u32 split = share.split, chunk = share.chunk, head = share.head, b = share.b;
    const u32 rows = p.times * p.group, first = share.first, count = share.count;

    extern __shared__ __align__(16) f32 room[];
    const u32 width = p.lanes * EACH;
    f32* queries = room;                               // R * width
    f32* values_of_warps = queries + R * width;        // WARPS * count * width
    f32* sums = values_of_warps + WARPS * count * width;  // WARPS * count * 2
    f32* parts = sums + WARPS * count * 2;             // cluster * count * (width + 2)

    const u32 lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    const u32 sub = lane % p.lanes;
    const u32 slots = THREADS / p.lanes;
    const u32 slot = threadIdx.x / p.lanes;
    // A slot has every so many keys, so that the parts are even, whatever the capacity of the cache.
    const u32 apart = p.splits * slots * U;
    const T* k = (const T*)p.k + b * p.k_strides[0] + head * p.k_strides[2];
    const T* v = (const T*)p.v + b * p.v_strides[0] + head * p.v_strides[2];
    Part next_k[U], next_v[U];
    auto fetch = [&](u64 base, u32 end) {
#pragma unroll
        for (u32 u = 0; u < U; ++u) {
            const u64 j = base + u * slots + slot;
            if (j < end) {
                next_k[u] = load(k + j * p.k_strides[1], p.k_strides[3], sub * EACH, p.size, p.vector);
                next_v[u] = load(v + j * p.v_strides[1], p.v_strides[3], sub * EACH, p.size_v, p.vector);
            }
        }
    };
#if !defined(VARIANT)
    // Before it is known how many keys there are; one chunk asks for all.
    const u64 start = (u64)split * slots * U;
#pragma unroll
    for (u32 u = 0; u < U; ++u) {
        const u64 j = start + u * slots + slot;
        if (chunk == 0 && j < p.keys && sub * EACH * sizeof(T) % 128 == 0) {
            if (sub * EACH < p.size) ask(k + j * p.k_strides[1] + sub * EACH * p.k_strides[3]);
            if (sub * EACH < p.size_v) ask(v + j * p.v_strides[1] + sub * EACH * p.v_strides[3]);
        }
    }
    wait_for_earlier();
    fetch(start, p.keys);
#else
    wait_for_earlier();
#endif

    for (u32 i = threadIdx.x; i < R * width; i += THREADS) {
        const u32 r = first + i / width, e = i % width;
        f32 x = 0.f;
        if (r < rows && e < p.size) {
            const u64 h = head * p.group + r % p.group;
            x = to_f32(((const T*)p.q)[b * p.q_strides[0] + (r / p.group) * p.q_strides[1] + h * p.q_strides[2] +
                                       e * p.q_strides[3]]);
        }
        // The first four elements of every lane, then the other four, so that a load has no bank conflicts.
        queries[i / width * width + e % EACH / 4 * p.lanes * 4 + e / EACH * 4 + e % 4] = x * p.scale;
    }
    u32 limit[R];
    u32 top = 0;
#if defined(VARIANT)
    // The first visible key of each row, its position, and what else its scores need; `bottom`: the first of all.
    u32 low[R], bottom = 0xffffffffu;
    i64 position[R];
    f32 slope[R];
    const T* bias[R];
#endif
#pragma unroll
    for (int r = 0; r < R; ++r) {
        limit[r] = first + r < rows ? visible(p, b, (first + r) / p.group) : 0;
#if defined(VARIANT)
        const u32 row = first + r < rows ? first + r : 0, t = row / p.group, h = head * p.group + row % p.group;
        position[r] = position_of(p, b, t);
        slope[r] = slope_of(p, h);
        bias[r] = bias_of(p, b, h, t);
        low[r] = first_visible(p, position[r], limit[r]);
        if (low[r] < limit[r] && low[r] < bottom) bottom = low[r];
        if (low[r] >= limit[r]) limit[r] = 0;
#endif
        top = limit[r] > top ? limit[r] : top;
    }
#if defined(VARIANT)
    // From a multiple of what all slots have, so that a key's slot does not depend on other rows.
    const u64 start = (bottom < top ? bottom / apart * apart : 0) + (u64)split * slots * U;
    fetch(start, top);
#endif
    __syncthreads();

    f32 max[R], total[R], values[R][EACH];
#pragma unroll
    for (int r = 0; r < R; ++r) {
        max[r] = -INF;
        total[r] = 0.f;
#pragma unroll
        for (int e = 0; e < EACH; ++e) values[r][e] = 0.f;
    }

    // All lanes of a warp run the same number of iterations, because they shuffle.
    for (u64 base = start; base < top; base += apart) {
        Part key[U], value[U];
#pragma unroll
        for (u32 u = 0; u < U; ++u) {
            key[u] = next_k[u];
            value[u] = next_v[u];
        }
        // The next ones, while these are multiplied. What no row sees may be anything.
        if (base + apart < top) fetch(base + apart, top);
        f32 score[R][U];
#if defined(VARIANT)
        // Loaded before the products are computed.
        f32 more[R][U];
#pragma unroll
        for (int r = 0; r < R; ++r) {
#pragma unroll
            for (u32 u = 0; u < U; ++u) {
                const u64 j = base + u * slots + slot;
                more[r][u] = j >= low[r] && j < limit[r] ? added(p, bias[r], slope[r], position[r], (u32)j) : 0.f;
            }
        }
#endif
#pragma unroll
        for (int r = 0; r < R; ++r) {
            const float4* q = (const float4*)(queries + r * width);
#pragma unroll
            for (u32 u = 0; u < U; ++u) {
                f32 dot = 0.f;
#pragma unroll
                for (u32 m = 0; m < EACH / 4; ++m) {
                    const float4 a = q[m * p.lanes + sub];
                    dot += a.x * to_f32(key[u].at[4 * m]);
                    dot += a.y * to_f32(key[u].at[4 * m + 1]);
                    dot += a.z * to_f32(key[u].at[4 * m + 2]);
                    dot += a.w * to_f32(key[u].at[4 * m + 3]);
                }
                score[r][u] = dot;
            }
        }
        for (u32 d = p.lanes / 2; d; d /= 2) {
#pragma unroll
            for (int r = 0; r < R; ++r) {
#pragma unroll
                for (u32 u = 0; u < U; ++u) score[r][u] += __shfl_xor_sync(FULL, score[r][u], d);
            }
        }
#pragma unroll
        for (int r = 0; r < R; ++r) {
            // Keys that a row does not see may contain anything, including NaN, so they are not multiplied by 0.
            bool sees[U];
            f32 most = max[r];
#pragma unroll
            for (u32 u = 0; u < U; ++u) {
                const u64 j = base + u * slots + slot;
                sees[u] = j < limit[r];
#if defined(VARIANT)
                sees[u] = sees[u] && j >= low[r];
                score[r][u] = capped(p, score[r][u]) + more[r][u];
#endif
                if (sees[u] && score[r][u] > most) most = score[r][u];
            }
            const f32 fade = factor(max[r], most);
            total[r] *= fade;
            max[r] = most;
#pragma unroll
            for (int e = 0; e < EACH; ++e) values[r][e] *= fade;
#pragma unroll
            for (u32 u = 0; u < U; ++u) {
                if (!sees[u]) continue;
                f32 weight = 0.f;
                if (score[r][u] != -INF) weight = EXP(score[r][u] - most);
                total[r] += weight;
#pragma unroll
                for (int e = 0; e < EACH; ++e) values[r][e] += weight * to_f32(value[u].at[e]);
            }
        }
    }

    // Merges the slots of a warp.
    for (u32 d = p.lanes; d < WARP; d *= 2) {
#pragma unroll
        for (int r = 0; r < R; ++r) {
            const f32 other = __shfl_xor_sync(FULL, max[r], d);
            const f32 most = other > max[r] ? other : max[r];
            const f32 mine = factor(max[r], most), its = factor(other, most);
            max[r] = most;
            total[r] = total[r] * mine + __shfl_xor_sync(FULL, total[r], d) * its;
#pragma unroll
            for (int e = 0; e < EACH; ++e) {
                values[r][e] = values[r][e] * mine + __shfl_xor_sync(FULL, values[r][e], d) * its;
            }
        }
    }
    if (lane < p.lanes) {
#pragma unroll
        for (u32 r = 0; r < R; ++r) {
            if (r >= count) continue;
            const u32 part = warp * count + r;
            if (sub == 0) {
                sums[2 * part] = max[r];
                sums[2 * part + 1] = total[r];
            }
#pragma unroll
            for (int e = 0; e < EACH; ++e) values_of_warps[part * width + sub * EACH + e] = values[r][e];
        }
    }
    merge<THREADS>(p, share, sums, values_of_warps, width, parts);
}

#define ATTEND(R)                                                      \
    KERNEL(attend_##R, THREADS, 2)(const __grid_constant__ Params p) { \
        attend<R>(p);                                                  \
    }
ATTEND(1)
#if !defined(WIDE)
ATTEND(2)
ATTEND(4)
#endif
#if !defined(VARIANT)
ATTEND(8)
#endif

// Merges the splits of a row; one block per row.
KERNEL(attend_join, THREADS)(const __grid_constant__ Params p) { in_order();
    const u32 rows = p.times * p.group;
    const u32 row = blockIdx.x % rows;
    const u32 record = p.size_v + 2;
    const f32* parts = (const f32*)p.partials + (u64)blockIdx.x * p.splits * record;
    // A share of all keys.
    Share share(p, 1);
    share.head = blockIdx.x / rows % p.key_heads;
    share.b = blockIdx.x / rows / p.key_heads;
    share.set_rows(p, row, 1);
    const Parts blocks = {parts, parts + 2, record, record};
    T* y = share.result(p, 0);
    for (u32 e = threadIdx.x; e < p.size_v; e += THREADS) y[e] = share.joined(p, 0, blocks, p.splits, e);
}

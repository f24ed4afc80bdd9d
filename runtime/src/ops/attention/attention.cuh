// What the sources of attention share: their parameter, the mask, how parts of the keys are added, and tensor cores.

#define INF __int_as_float(0x7f800000)
#if defined(T_f32)
#define EXP expf
#else
#define EXP __expf
#endif

// The parameter of all kernels, and the mask. With VARIANT, what changes the scores besides the mask: those who
// need none of it have kernels without it.

struct Params {
    u64 q, k, v, y;
    u64 limits;    // lengths or positions
    u64 real;  // u32*: the number of real keys, which padding follows; 0: all are real
    u64 partials;  // for each row and split: maximum, sum, values
    u64 q_strides[4], k_strides[4], v_strides[4];
    u64 limit_strides[2];
    u32 times, keys;
    u32 key_heads, group;
    u32 size, size_v;
    u32 mask;    // none, causal, lengths, positions
    u32 splits;  // parts of the keys
    u32 chunks;  // blocks that share the rows of a key head; of many queries, tiles
    u32 lanes;   // lanes per key, a power of two
    u32 vector;  // heads are contiguous and aligned to 16 bytes, and their size is a multiple of 8
    f32 scale;
#if defined(VARIANT)
    u64 bias;    // of type T, as scores: batch, query head, query, key; 0: none
    u64 slopes;  // f32, for each query head; 0: none, or those of `alibi`
    u64 sinks;   // of type T, for each query head; 0: none
    u64 bias_strides[4];
    u64 slope_stride, sink_stride;
    u32 window;       // if set, keys from `left` before to `right` after the position of a query are visible
    u32 left, right;
    u32 alibi;        // the largest power of two that is at most the number of query heads; 0: no slopes
    f32 soft_cap;     // 0: none
    u32 pad;
#endif
};
#if defined(VARIANT)
static_assert(sizeof(Params) == 312, "mirrored by cuda.rs");
#else
static_assert(sizeof(Params) == 216, "mirrored by cuda.rs");
#endif

// The length or the position of query (b, t), if the mask has some.
DEVICE u32 limit_of(const Params& p, u32 b, u32 t) {
    if (p.mask < 2) return 0;
    return ((const u32*)p.limits)[b * p.limit_strides[0] + (p.mask == 3 ? t * p.limit_strides[1] : 0)];
}

// How many keys are real, as memory has it.
DEVICE u32 real_of(const Params& p) { return p.real ? *(const u32*)p.real : p.keys; }

// The number of keys that query (b, t) sees, counted from the first, of which it is known what `limit_of` and `real_of` return: several of
// them are loaded at a time.
DEVICE u32 visible(const Params& p, u32 t, u32 limit, u32 real) {
    u64 n = p.keys;
    if (p.mask == 1) {
        const u64 end = (u64)t + 1 + p.keys;
        n = end > p.times ? end - p.times : 0;
    } else if (p.mask >= 2) {
        n = (u64)limit + (p.mask == 3 ? 1 : 0);
    }
    const u64 most = real < p.keys ? real : p.keys;
    return (u32)(n < most ? n : most);
}
DEVICE u32 visible(const Params& p, u32 b, u32 t) { return visible(p, t, limit_of(p, b, t), real_of(p)); }

#if defined(VARIANT)

// The position of query (b, t), from which a window and the distance of a key count.
DEVICE i64 position_of(const Params& p, u32 b, u32 t) {
    if (p.mask == 3) return ((const u32*)p.limits)[b * p.limit_strides[0] + t * p.limit_strides[1]];
    return p.mask == 2 ? (i64)t : (i64)t + p.keys - p.times;
}

// The first visible key of a query, of which those before `limit` are visible; the window may lower `limit`.
DEVICE u32 first_visible(const Params& p, i64 position, u32& limit) {
    if (!p.window) return 0;
    const i64 end = limit;
    i64 start = position - p.left, after = position + p.right + 1;
    start = start < 0 ? 0 : start < end ? start : end;
    after = after < start ? start : after < end ? after : end;
    limit = (u32)after;
    return (u32)start;
}

DEVICE f32 slope_of(const Params& p, u32 head) {
    if (!p.alibi) return 0.f;
    if (p.slopes) return ((const f32*)p.slopes)[head * p.slope_stride];
    if (head < p.alibi) return exp2f(-8.f * (f32)(head + 1) / (f32)p.alibi);
    return exp2f(-4.f * (f32)(2 * (head - p.alibi) + 1) / (f32)p.alibi);  // every second one of twice as many heads
}

// The bias of query (b, t) of a head, for key 0; keys are `bias_strides[3]` apart.
DEVICE const T* bias_of(const Params& p, u32 b, u32 head, u32 t) {
    return (const T*)p.bias + b * p.bias_strides[0] + head * p.bias_strides[1] + t * p.bias_strides[2];
}

// What is added to the score of key `j`.
DEVICE f32 added(const Params& p, const T* bias, f32 slope, i64 position, u32 j) {
    f32 sum = p.bias ? to_f32(bias[j * p.bias_strides[3]]) : 0.f;
    if (p.alibi) {
        const i64 away = (i64)j - position;
        sum -= slope * (f32)(away < 0 ? -away : away);
    }
    return sum;
}

DEVICE f32 capped(const Params& p, f32 score) {
    return p.soft_cap != 0.f ? p.soft_cap * tanhf(score / p.soft_cap) : score;
}

// The score of a head without a key.
DEVICE f32 sink_of(const Params& p, u32 head) {
    return p.sinks ? to_f32(((const T*)p.sinks)[head * p.sink_stride]) : -__int_as_float(0x7f800000);
}

#endif

// Blocks of a multiprocessor for which registers are limited, on devices where that was measured; others may use all.
#if __CUDA_ARCH__ == 900
#define RESIDENT(N) (N)
#else
#define RESIDENT(N) 1
#endif

// Keys of which the first are loaded before it is known how many there are.
#define AHEAD 256u

// ---- rows whose keys are divided: each part has the maximum of its scores, or less, the sum of its weights, and values

DEVICE f32 factor(f32 max, f32 of) { return max == of ? 1.f : EXP(max - of); }

// Parts of a row: the maximum and the sum of each, and its values.
struct Parts {
    const f32* sums;
    const f32* values;
    u32 sums_apart, values_apart;  // of two parts

    // Adds the sums of `count` parts, all relative to the largest score, which becomes `most`, to `sum`: that of the call must be
    // relative to the largest already, or 0.
    DEVICE void add_sums(u32 count, f32& most, f32& sum) const {
#pragma unroll 8
        for (u32 s = 0; s < count; ++s) most = fmaxf(most, sums[s * sums_apart]);
#pragma unroll 8
        for (u32 s = 0; s < count; ++s) {
            const f32 max = sums[s * sums_apart], its = sums[s * sums_apart + 1];
            if (max != -INF || its != 0.f) sum += its * factor(max, most);
        }
    }

    // The same, and returns element `e` of all parts, which is not divided by the sum.
    DEVICE f32 add(u32 count, u32 e, f32& most, f32& sum) const {
#pragma unroll 8
        for (u32 s = 0; s < count; ++s) most = fmaxf(most, sums[s * sums_apart]);
        f32 value = 0.f;
#pragma unroll 8
        for (u32 s = 0; s < count; ++s) {
            const f32 max = sums[s * sums_apart], its = sums[s * sums_apart + 1];
            if (max == -INF && its == 0.f) continue;  // no visible keys, and no values
            const f32 weight = factor(max, most);
            sum += its * weight;
            value += values[s * values_apart + e] * weight;
        }
        return value;
    }
};

// What a block of the decode kernels has: some rows of a key head, and a part of its keys.
struct Share {
    u32 split, chunk, head, b;
    u32 first, count;        // rows
    u32 first_time, first_of_group;

    // With up to `most` rows of a block.
    DEVICE Share(const Params& p, u32 most) {
        u32 at = blockIdx.x;
        split = at % p.splits;
        at /= p.splits;
        chunk = at % p.chunks;
        at /= p.chunks;
        head = at % p.key_heads;
        b = at / p.key_heads;
        set_rows(p, chunk * most, most);
    }

    DEVICE void set_rows(const Params& p, u32 from, u32 most) {
        const u32 rest = p.times * p.group - from;
        first = from;
        count = rest < most ? rest : most;
        first_time = first / p.group;
        first_of_group = first % p.group;
    }

    // The token of row `first + r`, and its query head. Blocks have few rows, so this takes less time than to divide.
    struct Place {
        u32 t, h;
    };
    DEVICE Place place(const Params& p, u32 r) const {
        Place at = {first_time, first_of_group + r};
        for (; at.h >= p.group; at.h -= p.group) ++at.t;
        at.h += head * p.group;
        return at;
    }

    DEVICE const T* query(const Params& p, u32 r) const {
        const Place at = place(p, r);
        return (const T*)p.q + b * p.q_strides[0] + at.t * p.q_strides[1] + at.h * p.q_strides[2];
    }

    DEVICE T* result(const Params& p, u32 r) const {
        const Place at = place(p, r);
        return (T*)p.y + (((u64)b * p.times + at.t) * p.key_heads * p.group + at.h) * p.size_v;
    }

    // Rounds element `e` of a row whose parts are `parts`.
    DEVICE T joined(const Params& p, u32 r, const Parts& parts, u32 count, u32 e) const {
        f32 most = -INF, sum = 0.f;
#if defined(VARIANT)
        most = sink_of(p, place(p, r).h);
        if (most != -INF) {
            const f32 sink = most;
            for (u32 s = 0; s < count; ++s) most = fmaxf(most, parts.sums[s * parts.sums_apart]);
            sum = EXP(sink - most);
        }
#endif
        const f32 value = parts.add(count, e, most, sum);
        return from_f32<T>(sum != 0.f ? value / sum : value);
    }
};

// Blocks of the cluster of this one, read anew each time rather than held in a register.
DEVICE u32 cluster_size() {
#if __CUDA_ARCH__ >= 900
    u32 size;
    asm volatile("mov.u32 %0, %%cluster_nctaid.x;" : "=r"(size));
    return size;
#else
    return 1;
#endif
}

// Returns whether the first block of a cluster has all keys of its rows, so that the others have nothing to do. What the others would
// add to its sums is nothing, but a sink would be added to sums of other parts.
DEVICE bool is_alone(u32 tiles, u32 warps) {
#if __CUDA_ARCH__ >= 900 && !defined(VARIANT)
    return cluster_size() > 1 && tiles <= warps;
#else
    return false;
#endif
}

// Before a block ends that exchanges nothing with those of its cluster: all have begun.
DEVICE void leave() {
#if __CUDA_ARCH__ >= 900
    if (cluster_size() > 1) Cluster::wait();
#endif
}

#if __CUDA_ARCH__ >= 900
// Where an address of this block's shared memory is in that of another block of its cluster.
DEVICE f32* in_block(u32 block, f32* here) {
    u64 there;
    asm("mapa.u64 %0, %1, %2;" : "=l"(there) : "l"((u64)here), "r"(block));
    return (f32*)there;
}
#endif

// Adds what the warps of a block have for its rows: `sums` and `values`, of rows `width` apart, by warp and row. The blocks of a
// cluster, a power of two of them, have a part of the keys each; they have arrived at its barrier before. Each adds every so many
// elements of all parts, unless one has all keys (`is_alone`). Other parts are left to `attend_join`.
template <u32 SIZE>
DEVICE void merge(
    const Params& p, const Share& share, const f32* sums, const f32* values, u32 width, f32* parts, bool is_alone = false) {
    constexpr u32 WARPS_OF_BLOCK = SIZE / WARP;
    const u32 count = share.count, all = count * width, cluster = is_alone ? 1 : cluster_size();
    auto warps = [&](u32 r) { return Parts{sums + 2 * r, values + r * width, 2 * count, all}; };
    __syncthreads();
#if __CUDA_ARCH__ >= 900
    if (cluster > 1) {
        f32* part_values = parts + 2 * cluster * count;
        const u32 shift = 31 - __clz(cluster), first = share.split * count;
        // All blocks have begun: there is memory to write to.
        Cluster::wait();
        for (u32 i = threadIdx.x; i < count << shift; i += SIZE) {
            const u32 r = i >> shift;
            f32 most = -INF, sum = 0.f;
            warps(r).add_sums(WARPS_OF_BLOCK, most, sum);
            *(float2*)in_block(i & (cluster - 1), parts + 2 * (first + r)) = make_float2(most, sum);
        }
        for (u32 i = threadIdx.x; i < all; i += SIZE) {
            const u32 r = i / width, e = i % width;
            if (e >= p.size_v) continue;
            f32 most = -INF, sum = 0.f;
            const f32 value = warps(r).add(WARPS_OF_BLOCK, e, most, sum);
            *in_block(i / WARP & (cluster - 1), part_values + first * width + i) = value;
        }
        Cluster::arrive();
        Cluster::wait();
        const u32 mine = (threadIdx.x / WARP << shift) + share.split;
        for (u32 i = mine * WARP + threadIdx.x % WARP; i < all; i += SIZE << shift) {
            const u32 r = i / width, e = i % width;
            if (e >= p.size_v) continue;
            const Parts blocks = {parts + 2 * r, part_values + r * width, 2 * count, all};
            share.result(p, r)[e] = share.joined(p, r, blocks, cluster, e);
        }
        return;
    }
#endif
    for (u32 i = threadIdx.x; i < all; i += SIZE) {
        const u32 r = i / width, e = i % width;
        if (e >= p.size_v) continue;
        if (p.splits == 1 || is_alone) {
            share.result(p, r)[e] = share.joined(p, r, warps(r), WARPS_OF_BLOCK, e);
            continue;
        }
        const u64 rows = (u64)p.times * p.group;
        const u64 record = (((u64)share.b * p.key_heads + share.head) * rows + share.first + r) * p.splits + share.split;
        f32* part = (f32*)p.partials + record * (p.size_v + 2);
        f32 most = -INF, sum = 0.f;
        part[2 + e] = warps(r).add(WARPS_OF_BLOCK, e, most, sum);
        if (e == 0) {
            part[0] = most;
            part[1] = sum;
        }
    }
}

// ---- tensor cores

#if !defined(T_f32)

DEVICE u32 shared_address(const void* at) { return (u32)__cvta_generic_to_shared(at); }

#if defined(T_f16)
#define HALF "f16"
#else
#define HALF "bf16"
#endif
DEVICE void multiply(f32 (&c)[4], const u32 (&a)[4], u32 b0, u32 b1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32." HALF "." HALF ".f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
DEVICE u32 pack(f32 low, f32 high) {
#if __CUDA_ARCH__ >= 800
    u32 two;
    asm("cvt.rn." HALF "x2.f32 %0, %1, %2;" : "=r"(two) : "f"(high), "f"(low));
    return two;
#else
    return (u32)from_f32<T>(low).bits | (u32)from_f32<T>(high).bits << 16;
#endif
}

// Returns whether one of two elements is infinite or NaN.
DEVICE bool unsound(u32 two) {
#if defined(T_f16)
    const u32 exponent = 0x7c00u;
#else
    const u32 exponent = 0x7f80u;
#endif
    return (two & exponent) == exponent || (two >> 16 & exponent) == exponent;
}

#endif

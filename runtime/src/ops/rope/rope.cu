// Rotary embedding: a block takes the heads of one position, so that the table of angles is
// computed once for all of them.
// Types: floats
#include "common.cuh"
#include "rope.cuh"

#define THREADS 256
#define PAIRS 512  // of the table

DEVICE u64 real_count(u64 count, u64 all) {
    if (!count) return all;
    const u64 real = *(const u32*)count;
    return real < all ? real : all;
}

// The length of the sequence: one more than the largest real position of the times that count. The whole block calls.
template <typename Counts> DEVICE double length_of(const RopeParams& p, Counts counts) {
    __shared__ u32 most;
    const u64 batches = real_count(p.real[0], p.rows / p.times), times = real_count(p.real[1], p.times);
    const u64 sections = p.sections ? p.sections : 1;
    if (threadIdx.x == 0) most = 0;
    __syncthreads();
    u32 mine = 0;
    for (u64 i = threadIdx.x; i < sections * batches * times; i += THREADS) {
        const u64 t = i % times, b = i / times % batches, section = i / times / batches;
        if (!counts(t)) continue;
        const u32 position = ((const u32*)p.positions)[section * p.position_strides[0] + b * p.position_strides[1] +
                                                       t * p.position_strides[2]];
        mine = position > mine ? position : mine;
    }
    atomicMax(&most, mine);
    __syncthreads();
    return (double)most + 1.0;
}

// The logarithm of the base. With dynamic scaling it grows with the length. The whole block calls.
template <typename Counts> DEVICE double base_of(const RopeParams& p, Counts counts) {
    if (p.growth == 0.0) return p.log2_theta;
    const double length = length_of(p, counts);
    if (length <= p.original) return p.log2_theta;
    return p.log2_theta + p.exponent * log2(p.growth * length / p.original - (p.growth - 1.0));
}

// Elements that a thread loads at a time, as one word: of more, there are too few registers.
const u32 PACK = 4;
using Word = Raw<sizeof(T) * PACK>;

// Returns whether heads are whole words, in `x` and in `y`.
DEVICE bool has_packs(const RopeParams& p) {
    const u64 elements = p.half | p.size | p.strides[0] | p.strides[1] | p.strides[2];
    return p.strides[3] == 1 && elements % PACK == 0 && (p.x | p.y) % sizeof(Word) == 0;
}

// Turns pairs of a head, of which both elements are read before one is written.
DEVICE void turn_packs(const T* in, T* out, u32 other, bool interleaved, const f32* sines, const f32* cosines) {
    Pack<T, PACK> from[2], to[2];
#pragma unroll
    for (u32 i = 0; i < 2; ++i) from[i].raw = *(const Word*)(in + i * other);
#pragma unroll
    for (u32 i = 0; i < PACK; ++i) {
        // Of interleaved pairs, each word has half of them.
        T& first = interleaved ? to[i / (PACK / 2)].v[i * 2 % PACK] : to[0].v[i];
        T& second = interleaved ? to[i / (PACK / 2)].v[i * 2 % PACK + 1] : to[1].v[i];
        const f32 a = to_f32(interleaved ? from[i / (PACK / 2)].v[i * 2 % PACK] : from[0].v[i]);
        const f32 z = to_f32(interleaved ? from[i / (PACK / 2)].v[i * 2 % PACK + 1] : from[1].v[i]);
        first = from_f32<T>(rope_first(a, z, sines[i], cosines[i]));
        second = from_f32<T>(rope_second(a, z, sines[i], cosines[i]));
    }
#pragma unroll
    for (u32 i = 0; i < 2; ++i) *(Word*)(out + i * other) = to[i].raw;
}

// Writes the rotated heads of row `row` of `x` to `y`, which holds all heads of one row. The whole block
// calls; heads are dealt out over grid.y. `divisor` is that of the frequency of a pair.
template <typename Divisor> DEVICE void turn(const RopeParams& p, double log2_base, u64 row, T* y, Divisor divisor) {
    __shared__ f32 sines[PAIRS], cosines[PAIRS];
    const u64 first = p.heads * blockIdx.y / gridDim.y;
    const u64 heads = p.heads * (blockIdx.y + 1) / gridDim.y - first;
    const u64 rest = p.size - 2ull * p.half;
    const u64 b = row / p.times, t = row % p.times;
    const T* x = (const T*)p.x + b * p.strides[0] + t * p.strides[1] + first * p.strides[2];
    y += first * p.size;
    for (u32 from = 0; from < p.half; from += PAIRS) {
        const u32 n = p.half - from < PAIRS ? p.half - from : PAIRS;
        __syncthreads();
        for (u32 i = threadIdx.x; i < n; i += THREADS) {
            const double turns = turns_of(p, log2_base, from + i) / divisor(from + i);
            rope_angle(p, *rope_position(p, row, from + i), turns, &sines[i], &cosines[i]);
        }
        __syncthreads();
        if (has_packs(p)) {
            const u32 packs = n / PACK;
            for (u32 e = threadIdx.x; e < (u32)heads * packs; e += THREADS) {
                const u32 head = e / packs, i = (e - head * packs) * PACK;
                const T* const in = x + head * p.strides[2];
                T* const out = y + head * p.size;
                if (p.interleaved) turn_packs(in + 2 * (from + i), out + 2 * (from + i), PACK, true, sines + i, cosines + i);
                else turn_packs(in + from + i, out + from + i, p.half, false, sines + i, cosines + i);
            }
            continue;
        }
        for (u64 e = threadIdx.x; e < heads * n; e += THREADS) {
            const u64 head = e / n;
            const u32 i = (u32)(e - head * n);
            const u64 at = p.interleaved ? 2ull * (from + i) : from + i;
            const u64 other = p.interleaved ? at + 1 : at + p.half;
            const T* in = x + head * p.strides[2];
            const f32 a = to_f32(in[at * p.strides[3]]), z = to_f32(in[other * p.strides[3]]);
            y[head * p.size + at] = from_f32<T>(rope_first(a, z, sines[i], cosines[i]));
            y[head * p.size + other] = from_f32<T>(rope_second(a, z, sines[i], cosines[i]));
        }
    }
    for (u64 e = threadIdx.x; e < heads * rest; e += THREADS) {
        const u64 head = e / rest;
        const u64 at = 2ull * p.half + e - head * rest;
        y[head * p.size + at] = x[head * p.strides[2] + at * p.strides[3]];
    }
}

// The divisor of all pairs.
struct One {
    DEVICE double operator()(u32) const { return 1.0; }
};

// With fewer registers than four blocks allow, some would spill.
KERNEL(rope, THREADS, 4)(const __grid_constant__ RopeParams p) { in_order();
    const double log2_base = base_of(p, [](u64) { return true; });
    for (u64 row = blockIdx.x; row < p.rows; row += gridDim.x) turn(p, log2_base, row, (T*)p.y + row * p.heads * p.size, One());
}

// Each row goes to a row of a state, if it is written.
struct ScatterParams {
    RopeParams rope;  // `y` is the state
    Places to;
};
static_assert(sizeof(ScatterParams) == 312, "mirrored by cuda.rs");

KERNEL(rope_scatter, THREADS, 4)(const __grid_constant__ ScatterParams p) { in_order();
    const u64 n = p.to.count();
    // Rows that are skipped turn by nothing.
    const double log2_base = base_of(p.rope, [&](u64 i) {
        const u32 row = p.to.at(i);
        return row != SKIP && row < p.to.rows;
    });
    for (u64 row = blockIdx.x; row < n; row += gridDim.x) {
        u64 slot;
        if (p.to.place(row, n, &slot)) turn(p.rope, log2_base, row, (T*)p.rope.y + slot * p.rope.heads * p.rope.size, One());
    }
}

#define DIVISORS 128

// Divisors of pairs, of short sequences and of long ones.
struct Divisors {
    f32 of[2][DIVISORS];
};

struct LongParams {
    RopeParams rope;
    Divisors divisors;
};
static_assert(sizeof(LongParams) == 1256, "mirrored by cuda.rs");

KERNEL(rope_long, THREADS, 4)(const __grid_constant__ LongParams p) { in_order();
    const bool is_long = length_of(p.rope, [](u64) { return true; }) > p.rope.original;
    for (u64 row = blockIdx.x; row < p.rope.rows; row += gridDim.x) {
        turn(p.rope, p.rope.log2_theta, row, (T*)p.rope.y + row * p.rope.heads * p.rope.size,
             [&](u32 i) { return (double)p.divisors.of[is_long][i]; });
    }
}

struct LongScatterParams {
    ScatterParams scatter;
    Divisors divisors;
};
static_assert(sizeof(LongScatterParams) == 1336, "mirrored by cuda.rs");

KERNEL(rope_scatter_long, THREADS, 4)(const __grid_constant__ LongScatterParams p) { in_order();
    const RopeParams& rope = p.scatter.rope;
    const u64 n = p.scatter.to.count();
    const bool is_long = length_of(rope, [&](u64 i) {
        const u32 row = p.scatter.to.at(i);
        return row != SKIP && row < p.scatter.to.rows;
    }) > rope.original;
    for (u64 row = blockIdx.x; row < n; row += gridDim.x) {
        u64 slot;
        if (p.scatter.to.place(row, n, &slot)) {
            turn(rope, rope.log2_theta, row, (T*)rope.y + slot * rope.heads * rope.size,
                 [&](u32 i) { return (double)p.divisors.of[is_long][i]; });
        }
    }
}

// What the sources of attention for many queries share: what threads have of their queries, the softmax and its variants.
// Behind: attention.cuh

// Copies 16 bytes, or writes zeros.
DEVICE void copy_async(u32 to, const void* from, bool real) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(real ? 16 : 0) : "memory");
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

// What a thread has of two rows of its warp, eight apart. `Layout::at` is where eight elements of a row of a tile are, in bytes.
template <int DT, int BN, class Layout> struct Rows {
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
    // propagates through the weights. What rows add up to so far is to be multiplied by `fade` (`shrink`), which others may do later.
    DEVICE void weigh(const Params& p, u32 first, bool masked, f32 slope, f32 (&fade)[2]) {
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
            fade[r] = max[r] == most[r] ? 1.f : power((max[r] - from) * UNIT);
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
            total[r] = total[r] * fade[r] + sum;
        }
    }

    // Makes what rows add up to relative to their new maximum.
    DEVICE void shrink(const f32 (&fade)[2]) {
#pragma unroll
        for (int i = 0; i < DT / 8; ++i) {
#pragma unroll
            for (int c = 0; c < 4; ++c) out[i][c] *= fade[c / 2];
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
                const u32 two = *(const u32*)(tile_v + Layout::at(row, d) + quad * 4);
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

    // What the sums of two rows are multiplied by in the end. `sink` is one more score of each row.
    DEVICE void factors(const Params& p, f32 sink, f32 (&factor)[2]) {
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
    }
};

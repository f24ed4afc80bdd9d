// Products of few rows, with K contiguous on both sides: every weight is read once, in full lines, by one thread.
//
// A block has at most `ROWS` rows and `GROUPS` groups of 8 columns. Its 8 warps share K: of the steps of 128 bytes, warp `i` takes every eighth from the
// `i`-th on. In a step, four lanes have a column, each of them two chunks of 16 bytes: chunk `l` and chunk `4 + l`. A lane adds
// (or, with 16-bit floats, the tensor cores add) what it has in the order of K; then the four lanes are added pairwise, and then
// the warps in order. So the order of a sum depends on K and the element type alone: not on the numbers of rows and columns, nor on
// what else the kernel computes.
#pragma once

namespace thin {

const u32 SLICES = 8;   // warps of a block
const u32 COLUMNS = 8;  // of a group
const u32 CHUNKS = 8;   // of a step

// Reads weights, which are used once: they need no room in L1. Volatile, so that it stays on its side of `in_order()`.
DEVICE Words stream(const void* from) {
    Words r;
    asm volatile("ld.global.L1::no_allocate.L2::128B.v4.u32 {%0, %1, %2, %3}, [%4];"
        : "=r"(r.w[0]), "=r"(r.w[1]), "=r"(r.w[2]), "=r"(r.w[3]) : "l"(from));
    return r;
}

// Tensor cores: 16 rows, 8 columns, 16 places of K. `c` has the results of row `lane / 4`, then those of the row 8 below it.
template <typename E> struct Mma { static constexpr bool IS = false; };
#if __CUDA_ARCH__ >= 800
#define THIN_MMA(E)                                                                                                        \
    template <> struct Mma<E> {                                                                                            \
        static constexpr bool IS = true;                                                                                   \
        static DEVICE void add(f32 (&c)[4], u32 a0, u32 a1, u32 a2, u32 a3, u32 b0, u32 b1) {                              \
            asm("mma.sync.aligned.m16n8k16.row.col.f32." #E "." #E ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "   \
                "{%0, %1, %2, %3};"                                                                                        \
                : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])                                                           \
                : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));                                                   \
        }                                                                                                                  \
    };
THIN_MMA(f16)
THIN_MMA(bf16)
#undef THIN_MMA
#endif

template <typename E> DEVICE void unpack(const Words& words, f32 (&out)[16 / sizeof(E)]) {
#pragma unroll
    for (u32 i = 0; i < 4; ++i) {
        if constexpr (sizeof(E) == 4) {
            out[i] = __uint_as_float(words.w[i]);
        } else {
            E low, high;
            low.bits = (u16)words.w[i];
            high.bits = (u16)(words.w[i] >> 16);
            out[2 * i] = to_f32(low);
            out[2 * i + 1] = to_f32(high);
        }
    }
}

// Steps whose rows are on their way at a time, if there are registers for 8 rows.
template <typename E> DEVICE constexpr u32 near(u32 rows, u32 depth) {
    const u32 held = Mma<E>::IS ? (rows + 7) / 8 : rows;
    return held * depth <= 8 ? depth : 8 / held;
}

// The weights of `DEPTH` steps, and rows of `NEAR` steps, are on their way at a time. `K` is a whole number of chunks, all of which can be
// loaded at once.
template <typename E, u32 ROWS, u32 GROUPS, u32 DEPTH, u32 NEAR = near<E>(ROWS, DEPTH), bool ONCE = false> struct Product {
    static constexpr bool MMA = Mma<E>::IS;
    // Elements of a chunk, and from a step of a warp to its next.
    static constexpr u32 N = 16 / sizeof(E), APART = SLICES * CHUNKS * N;
    static constexpr u32 WIDTH = GROUPS * COLUMNS;
    // Rows of which a lane holds chunks: those that it passes to the tensor cores, or all.
    static constexpr u32 HELD = MMA ? (ROWS + 7) / 8 : ROWS;
    static constexpr u32 SUMS = MMA ? 4 : ROWS;
    // Chunks from the lane's first one to the end of K.
    const i32 all;
    // From the next weights that are asked for; of a group without columns, 0. All groups have some if columns are set `ONCE`.
    i32 left[ONCE ? 1 : GROUPS];
    // The lane's next chunk in the column of each group, and in each row that it holds, of which there are chunks or none.
    const E* w[GROUPS];
    const E* a[HELD];
    bool is_row[HELD];
    Words weights[DEPTH][GROUPS][2];
    Words rows[NEAR][HELD][2];
    f32 sums[GROUPS][SUMS];

    DEVICE Product(u64 k) : all((i32)(k / N) - (i32)first()) {}

    static DEVICE u32 lane() { return threadIdx.x % WARP; }
    static DEVICE u32 warp() { return threadIdx.x / WARP; }
    // The lane's first chunk.
    static DEVICE u32 first() { return warp() * CHUNKS + lane() % 4; }
    // The column of a group that the lane reads.
    static DEVICE u32 column() { return lane() / 4; }
    // Says where the weights of `column()` of a group are, if it has columns.
    DEVICE void set_column(u32 g, const E* weights, bool is_there = true) {
        w[g] = weights + first() * N;
        left[ONCE ? 0 : g] = is_there ? all : 0;
    }

    // Asks for the weights of step `d` from the next ones on.
    DEVICE void load_weights(u32 d) {
#pragma unroll
        for (u32 half = 0; half < 2; ++half) {
#pragma unroll
            for (u32 g = 0; g < GROUPS; ++g) {
                weights[d][g][half] = Words{{0, 0, 0, 0}};
                if ((i32)(d * SLICES * CHUNKS + half * 4) < left[ONCE ? 0 : g]) weights[d][g][half] = stream(w[g] + d * APART + half * 4 * N);
            }
        }
    }

    // The rows of step `d`, of which `rest` chunks are left before the first of `ahead` steps.
    DEVICE void load_rows(u32 d, u32 ahead, i32 rest) {
#pragma unroll
        for (u32 half = 0; half < 2; ++half) {
#pragma unroll
            for (u32 h = 0; h < HELD; ++h) {
                rows[d % NEAR][h][half] = Words{{0, 0, 0, 0}};
                if (is_row[h] && (i32)((d + ahead) * SLICES * CHUNKS + half * 4) < rest) {
                    rows[d % NEAR][h][half] = *(const Words*)(a[h] + (d + ahead) * APART + half * 4 * N);
                }
            }
        }
    }

    DEVICE void multiply_on_tensor_cores(u32 d, u32 half) {
        const Words& x = rows[d % NEAR][0][half];
        const Words z = HELD > 1 ? rows[d % NEAR][HELD - 1][half] : Words{{0, 0, 0, 0}};
#pragma unroll
        for (u32 g = 0; g < GROUPS; ++g) {
            const Words& y = weights[d][g][half];
            // The instruction's places of K are others than these, but the same on both sides.
            Mma<E>::add(sums[g], x.w[0], z.w[0], x.w[1], z.w[1], y.w[0], y.w[1]);
            Mma<E>::add(sums[g], x.w[2], z.w[2], x.w[3], z.w[3], y.w[2], y.w[3]);
        }
    }

    DEVICE void multiply(u32 d, u32 half) {
        f32 y[GROUPS][N];
#pragma unroll
        for (u32 g = 0; g < GROUPS; ++g) unpack<E>(weights[d][g][half], y[g]);
#pragma unroll
        for (u32 r = 0; r < ROWS; ++r) {
            f32 x[N];
            unpack<E>(rows[d % NEAR][r < HELD ? r : 0][half], x);
#pragma unroll
            for (u32 g = 0; g < GROUPS; ++g) {
#pragma unroll
                for (u32 i = 0; i < N; ++i) sums[g][r] = __fmaf_rn(x[i], y[g][i], sums[g][r]);
            }
        }
    }

    // Asks for the first weights: before the rows are there, if nothing else writes weights.
    DEVICE void begin() {
#pragma unroll
        for (u32 d = 0; d < DEPTH; ++d) load_weights(d);
    }

    // Multiplies `count` rows, `row` elements apart, which may be in shared memory, by the columns of `set_column`. `next` sets
    // those that follow, if it returns that there are some: their first weights are asked for while the last ones are multiplied.
    template <typename Next> DEVICE void run(const E* from, u64 row, u32 count, Next next) {
        i32 rest = all;
#pragma unroll
        for (u32 h = 0; h < HELD; ++h) {
            const u32 mine = MMA ? h * 8 + lane() / 4 : h;
            a[h] = from + mine * row + first() * N;
            is_row[h] = mine < count;
        }
#pragma unroll
        for (u32 g = 0; g < GROUPS; ++g) {
#pragma unroll
            for (u32 i = 0; i < SUMS; ++i) sums[g][i] = 0;
        }
#pragma unroll
        for (u32 d = 0; d < NEAR; ++d) load_rows(d, 0, rest);
        // The same number of times for all lanes of a warp.
#pragma unroll 1
        for (bool is_last = false; !is_last;) {
            constexpr i32 PASSED = DEPTH * SLICES * CHUNKS;
            is_last = rest - PASSED + (i32)(lane() % 4) <= 0;
            if (ONCE || !is_last) {
#pragma unroll
                for (u32 g = 0; g < GROUPS; ++g) w[g] += DEPTH * APART;
#pragma unroll
                for (u32 g = 0; g < (ONCE ? 1 : GROUPS); ++g) left[g] = ONCE ? rest - PASSED : left[g] - PASSED;
            } else if (!next()) {
#pragma unroll
                for (u32 g = 0; g < (ONCE ? 1 : GROUPS); ++g) left[g] = 0;
            }
#pragma unroll
            for (u32 d = 0; d < DEPTH; ++d) {
#pragma unroll
                for (u32 half = 0; half < 2; ++half) {
                    if constexpr (MMA) multiply_on_tensor_cores(d, half);
                    else multiply(d, half);
                }
                load_weights(d);
                load_rows(d, NEAR, rest);
            }
            rest -= PASSED;
#pragma unroll
            for (u32 h = 0; h < HELD; ++h) a[h] += DEPTH * APART;
        }
    }

    DEVICE void run(const E* from, u64 row, u32 count) {
        run(from, row, count, [] { return false; });
    }

    // What the warps exchange. A row is the columns of all groups.
    typedef f32 Parts[SLICES][ROWS][WIDTH];

    // Adds what the lanes of a column have, for the other warps.
    DEVICE void share(Parts& parts) const {
#pragma unroll
        for (u32 g = 0; g < GROUPS; ++g) {
#pragma unroll
            for (u32 i = 0; i < SUMS; ++i) {
                f32 sum = sums[g][i];
                if constexpr (MMA) {
                    const u32 row = lane() / 4 + i / 2 * 8, column = lane() % 4 * 2 + i % 2;
                    if (row < ROWS) parts[warp()][row][g * COLUMNS + column] = sum;
                } else {
                    sum += __shfl_xor_sync(FULL, sum, 1);
                    sum += __shfl_xor_sync(FULL, sum, 2);
                    if (lane() % 4 == i % 4) parts[warp()][i][g * COLUMNS + lane() / 4] = sum;
                }
            }
        }
    }

    static DEVICE f32 sum(const Parts& parts, u32 row, u32 column) {
        // Added to 0, whose sign does not depend on how many steps there were beyond K.
        f32 sum = 0.f + parts[0][row][column];
#pragma unroll
        for (u32 s = 1; s < SLICES; ++s) sum += parts[s][row][column];
        return sum;
    }
};

// The warps of a block of `threads` meet after they have shared their sums, each pass at another of as many barriers as there are warps. One
// warp waits for the others, which go on.
DEVICE void meet(u32 barrier, u32 threads, bool waits) {
    if (waits) asm volatile("bar.sync %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
    else asm volatile("bar.arrive %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

// How many rows of few count, and the row of a state to which one of them goes.
struct Destination {
    u32 count, row;
};
DEVICE Destination destination(const Places& to, u64 row) { return {(u32)to.count(), to.at(row)}; }

// Returns whether row `row` of few is written: as `Places::place`, by each thread for itself. One thread of each row reports.
DEVICE bool place(const Places& to, u64 row, bool reports, const Destination& where) {
    const u64 count = where.count;
    if (row >= count) return false;
    const u32 mine = where.row;
    if (mine == SKIP) return false;
    if (mine >= to.rows) {
        auto bad = [&](u64 j) { return to.at(j) >= to.rows && to.at(j) != SKIP; };
        if (reports && is_first(to.sink, row, bad)) report(to.sink, to.op, mine, to.rows);
        return false;
    }
    for (u64 j = row + 1; j < count; ++j) {
        if (to.at(j) == mine) return false;
    }
    return true;
}

}  // namespace thin

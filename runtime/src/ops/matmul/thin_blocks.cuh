// Products of few rows with weights in blocks: every block is read once, and multiplied as the integers that it has.
//
// As in `thin.cuh`, a block of threads has groups of 8 columns, and its warps share K: of the units of the format, warp `i` of 8 takes every
// eighth from the `i`-th on; of 16, which share a large K, every sixteenth, and of 9 every ninth. Four lanes have a column. Of each run of 32 elements, a
// lane adds what it has in the order of K (or, with 16-bit floats, the tensor cores add what the four lanes have); that times the scale is
// added to the lane's sum. Minima times sums of activations are added for a unit, in the order of its runs, and then subtracted; where scales
// and minima are in steps, so are the sums of a unit, which are multiplied by these before they are added. On tensor cores, such a unit,
// which has eight runs, is four quarters, each of the runs `q` and `q + 4`, and each quarter has a sum of its own.
// At the end the four lanes, or the four quarters, are added pairwise, and then the warps in order. So the order of a sum depends on K, the
// element type and the format alone. Integers are exact in every type, so that a product differs from one with the values of the blocks only
// in how f32 rounds.
#pragma once

namespace thin {

// Two integers, or floats of 8 bits, as 16-bit floats in a word: exact.
//
// Since the least floats are as far from each other as from 0, integers mean themselves times the least one. So one instruction multiplies
// two of them by the largest power of two and subtracts what stands for 0. Products with them are multiplied by `TIMES` at the end.
template <typename E> struct Integers;
// Two floats of 8 bits, without an instruction for it: each in the upper half of 16. Exponent and mantissa are where wider floats have
// theirs, and mean as much but for a power of two; NaN gets all bits of the exponent.
template <class I> DEVICE void pairs_of_floats(u32 quad, u32 (&to)[2]) {
    to[0] = I::wider(__byte_perm(quad, 0u, 0x1404u));
    to[1] = I::wider(__byte_perm(quad, 0u, 0x3424u));
}
template <> struct Integers<f16> {
    static DEVICE u32 multiply_add(u32 a, u32 b, u32 c) {
        u32 r;
        asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(c));
        return r;
    }
    static DEVICE u32 wider(u32 pair) {
        u32 size = pair >> 1 & 0x3f803f80u;
        size |= size + 0x00800080u & 0x40004000u;
        // 2^8, and -0, which changes no sign.
        return multiply_add(pair & 0x80008000u | size, 0x5c005c00u, 0x80008000u);
    }
    static DEVICE void floats(u32 quad, u32 (&to)[2]) {
#ifdef HAS_FLOATS_OF_8_BITS
        blocks::half_floats(quad, to);
#else
        pairs_of_floats<Integers>(quad, to);
#endif
    }
    // 2^-24 to 2^-9.
    static constexpr f32 TIMES = 512.f;
    static constexpr u32 LARGEST = 15, BIAS = 15, MANTISSA = 10;
    // 1 / TIMES: what activations are multiplied by to be added in the same units.
    static constexpr u32 UNITS = 0x18001800u;
};
#if __CUDA_ARCH__ >= 800
template <> struct Integers<bf16> {
    static DEVICE u32 multiply_add(u32 a, u32 b, u32 c) {
        u32 r;
        asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(c));
        return r;
    }
    static DEVICE u32 wider(u32 pair) {
        u32 size = pair >> 4 & 0x07f007f0u;
        size |= (size + 0x00100010u & 0x08000800u) * 15u;
        // 2^120, and -0, which changes no sign.
        return multiply_add(pair & 0x80008000u | size, 0x7b807b80u, 0x80008000u);
    }
    // Of two floats in half precision.
    static DEVICE u32 shorter(u32 pair) {
        u32 r;
        asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(blocks::half(pair >> 16)), "f"(blocks::half(pair)));
        return r;
    }
    static DEVICE void floats(u32 quad, u32 (&to)[2]) {
#ifdef HAS_FLOATS_OF_8_BITS
        blocks::half_floats(quad, to);
        to[0] = shorter(to[0]);
        to[1] = shorter(to[1]);
#else
        pairs_of_floats<Integers>(quad, to);
#endif
    }
    // 2^-133 to 2^-6.
    static constexpr f32 TIMES = 64.f;
    static constexpr u32 LARGEST = 127, BIAS = 127, MANTISSA = 7;
    // 1 / TIMES: what activations are multiplied by to be added in the same units.
    static constexpr u32 UNITS = 0x3c803c80u;
};
#endif

// 2^`exponent` in both halves.
template <typename E> DEVICE constexpr u32 powers(u32 exponent) { return (exponent + Integers<E>::BIAS << Integers<E>::MANTISSA) * 0x10001u; }
// The exponent of a power of two.
DEVICE constexpr u32 power(u32 of) {
    u32 exponent = 0;
    while (of >> exponent + 1 != 0) ++exponent;
    return exponent;
}
// How many bits below its integers a quad has: four in half of the quads of formats with two integers in a byte, otherwise none.
template <class F> DEVICE constexpr u32 up(u32 run, u32 i) {
    if constexpr (F::NIBBLES) return F::up(run, i);
    else return 0;
}

// The lane's elements of a run, as the tensor cores take them.
template <typename E, class F, class R> DEVICE void halves(const R& held, u32 run, u32 lane, u32 (&to)[2][2]) {
    using I = Integers<E>;
    u32 quads[2];
    if constexpr (F::NIBBLES) {
#pragma unroll
        for (u32 i = 0; i < 2; ++i) quads[i] = F::word(held, run, i);
    } else {
        F::quads(held, run, lane, quads);
    }
    if constexpr (F::FLOATS) {
#pragma unroll
        for (u32 i = 0; i < 2; ++i) I::floats(quads[i], to[i]);
        return;
    }
    // The opposite of what stands for 0.
    u32 zeros = F::OFFSET == 0 ? 0x80008000u : powers<E>(power(F::OFFSET) + I::LARGEST - I::BIAS - I::MANTISSA + 1) | 0x80008000u;
    if constexpr (F::ZEROS) zeros = I::multiply_add(F::zeros(held, run), powers<E>(I::LARGEST) | 0x80008000u, 0x80008000u);
#pragma unroll
    for (u32 i = 0; i < 2; ++i) {
        const u32 bits = up<F>(run, i), mask = F::NIBBLES ? 0x000f000fu << bits : 0x00ff00ffu;
        const u32 above = F::NIBBLES ? quads[i] >> 8 & mask : __byte_perm(quads[i], 0u, 0x4341u);
        to[i][0] = I::multiply_add(quads[i] & mask, powers<E>(I::LARGEST - bits), zeros);
        to[i][1] = I::multiply_add(above, powers<E>(I::LARGEST - bits), zeros);
    }
}

// Where activations are: in shared memory, of which an address is 32 bits and is found once, or anywhere.
template <typename E, bool SHARED> struct Activations {
    const E* from;
    DEVICE void set(const E* at) { from = at; }
    template <u32 BYTES> DEVICE Raw<BYTES> load(u32 at) const { return *(const Raw<BYTES>*)(from + at); }
    // Those from `at` on, or others.
    DEVICE Activations or_else(bool is_mine, u32 at, const E* others) const { return {is_mine ? from + at : others}; }
};
template <typename E> struct Activations<E, true> {
    u32 from;
    // Volatile, so that the address is kept.
    DEVICE void set(const E* at) { asm volatile("mov.u32 %0, %1;" : "=r"(from) : "r"((u32)__cvta_generic_to_shared(at))); }
    template <u32 BYTES> DEVICE Raw<BYTES> load(u32 at) const {
        Raw<BYTES> raw;
        const u32 place = from + at * (u32)sizeof(E);
        if constexpr (BYTES == 8) {
            asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];" : "=r"(raw.w[0]), "=r"(raw.w[1]) : "r"(place));
        } else {
            asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                : "=r"(raw.w[0]), "=r"(raw.w[1]), "=r"(raw.w[2]), "=r"(raw.w[3]) : "r"(place));
        }
        return raw;
    }
    DEVICE Activations or_else(bool is_mine, u32 at, const E* others) const {
        return {is_mine ? from + at * (u32)sizeof(E) : (u32)__cvta_generic_to_shared(others)};
    }
};

// As `Product`: two groups of columns of weights in format `F`. The weights of `DEPTH` units are on their way at a time: all that a warp
// has of `PASSES` passes, each over two groups of columns, or with 0 of one pass that has more. Rows are in shared
// memory, or anywhere; they are a number of whole units (`WHOLE`), or of runs.
template <typename E, class F, u32 ROWS, u32 SLICES, u32 DEPTH, u32 PASSES, bool SHARED, bool WHOLE> struct BlockProduct {
    static constexpr bool MMA = Mma<E>::IS;
    // Elements of 16 bytes.
    static constexpr u32 N = 16 / sizeof(E);
    static constexpr u32 GROUPS = 2, WIDTH = GROUPS * COLUMNS, RUNS = F::UNIT / 32, PARTS = F::SPLIT ? 2 : 1;
    static constexpr u32 TILE_BYTES = blocks::TILE * F::BYTES;
    // Of a pass.
    static constexpr u32 STEPS = PASSES > 0 ? DEPTH / PASSES : DEPTH;
    // Rows of which a lane holds elements: those that it passes to the tensor cores, or all.
    static constexpr u32 HELD = MMA ? (ROWS + 7) / 8 : ROWS;
    // Rows of which a lane has sums: with tensor cores, two of eight.
    static constexpr u32 EACH = MMA ? (ROWS > 1 ? 2 : 1) : ROWS;
    static constexpr u32 SUMS = (MMA ? HELD : 1) * GROUPS * EACH;
    // Of one row, each of the four lanes of a column has a quarter of each unit: the other lanes have no use for its scales.
    static constexpr u32 QUARTERS = MMA && F::STEPS ? 4 : 1;
    static constexpr bool OF_LANES = QUARTERS > 1 && ROWS == 1;
    static_assert(QUARTERS == 1 || RUNS == 8 && WHOLE, "a quarter is two runs, which are there");
    const u32 k;
    // Bytes of the tiles of eight columns.
    const u32 of_tiles;
    // Units from the warp's first one to the end of K.
    const i32 all;
    // From the next weights that are asked for; of a group without columns, 0.
    i32 left[GROUPS];
    // The bytes of each group's column, in the tile of the warp's next unit.
    typename F::At at_tile[GROUPS];
    // A row that is not there is another one, whose sums nobody reads.
    Activations<E, SHARED> a[HELD];
    typename F::Held held[DEPTH][GROUPS];
    f32 sums[OF_LANES ? 1 : QUARTERS][SUMS];

    DEVICE BlockProduct(u64 k) : k((u32)k), of_tiles(units((u32)k) * TILE_BYTES), all((i32)units((u32)k) - (i32)warp()) {
        if constexpr (OF_LANES) {
            if (threadIdx.x < F::UNIT * sizeof(E) / 4) zeros()[threadIdx.x] = 0;
            // Otherwise they meet before they read the row.
            if (!SHARED) __syncthreads();
        }
    }

    // As many zeros as a unit has elements, for all threads.
    static DEVICE u32* zeros() {
        __shared__ __align__(16) u32 all[F::UNIT * sizeof(E) / 4];
        return all;
    }

    static DEVICE u32 units(u32 k) { return (k + F::UNIT - 1) / F::UNIT; }

    static DEVICE u32 lane() { return threadIdx.x % WARP; }
    static DEVICE u32 warp() { return threadIdx.x / WARP; }
    // The column of a group that the lane reads.
    static DEVICE u32 column() { return lane() / 4; }
    // Says which column of the weight `column()` of a group is, if the group has columns.
    DEVICE void set_column(u32 g, const u8* weight, u32 column, bool is_there) {
        set_place(g, weight, column / blocks::TILE, column % blocks::TILE, is_there);
    }
    // Says that a group has the columns of a tile of the weight, if it has columns.
    DEVICE void set_tile(u32 g, const u8* weight, u32 tile, bool is_there) { set_place(g, weight, tile, column(), is_there); }
    DEVICE void set_place(u32 g, const u8* weight, u32 tile, u32 place, bool is_there) {
        at_tile[g] = typename F::At(weight + (u64)tile * of_tiles + warp() * TILE_BYTES, place, lane() % 4);
        left[g] = is_there ? all : 0;
    }

    // Asks for the weights of unit `d` from the next ones on, of pass `pass` of those on their way. What is not there is not multiplied, or
    // its sums are not read.
    DEVICE void load_weights(u32 d, u32 pass) {
#pragma unroll
        for (u32 g = 0; g < GROUPS; ++g) {
            if ((i32)(d * SLICES) < left[g]) F::load(held[pass * STEPS + d][g], at_tile[g], d * (SLICES * TILE_BYTES));
        }
    }

    // Asks for the first weights of a pass: before the rows are there, if nothing else writes weights.
    DEVICE void begin(u32 pass) {
#pragma unroll
        for (u32 d = 0; d < STEPS; ++d) load_weights(d, pass);
    }

    // Returns whether a run that begins at `at` is there. The second one of an odd number is not: its activations are zeros.
    DEVICE bool is_run(u32 at) const { return WHOLE || at < k; }

    // The lane's elements of a run that begins at `at`, of the tensor cores' row.
    DEVICE void load_pairs(const Activations<E, SHARED>& from, u32 at, u32 (&to)[2][2]) const {
#pragma unroll
        for (u32 i = 0; i < 2; ++i) {
            Raw<8> raw = {{0, 0}};
            if (is_run(at)) raw = from.template load<8>(at + i * 16);
            to[i][0] = raw.w[0];
            to[i][1] = raw.w[1];
        }
    }

    DEVICE void load_floats(u32 r, u32 at, f32 (&to)[2][4]) const {
#pragma unroll
        for (u32 i = 0; i < 2; ++i) {
            Pack<E, 4> pack = {};
            if (is_run(at)) pack.raw = a[r].template load<sizeof(E) * 4>(at + i * 16);
#pragma unroll
            for (u32 j = 0; j < 4; ++j) to[i][j] = to_f32(pack.v[j]);
        }
    }

    // Adds a run, of which the activations begin at `at`, to the sums, and minima that are subtracted from them to others.
    template <class R>
    DEVICE void multiply_on_tensor_cores(const R& one, const R& other, u32 run, u32 at, f32 (&sums)[SUMS], f32 (&minima)[SUMS]) {
        u32 x[GROUPS][2][2];
        halves<E, F>(one, run, lane() % 4, x[0]);
        halves<E, F>(other, run, lane() % 4, x[1]);
#pragma unroll
        for (u32 h = 0; h < HELD; ++h) {
            u32 y[2][2];
            load_pairs(a[h], at, y);
#pragma unroll
            for (u32 part = 0; part < PARTS; ++part) {
                f32 products[4] = {0, 0, 0, 0}, all[4] = {0, 0, 0, 0};
#pragma unroll
                for (u32 i = part; i < (F::SPLIT ? part + 1 : 2); ++i) {
                    Mma<E>::add(products, x[0][i][0], x[1][i][0], x[0][i][1], x[1][i][1], y[i][0], y[i][1]);
                    if (F::MINIMA) add_all(all, y[i]);
                }
#pragma unroll
                for (u32 g = 0; g < GROUPS; ++g) {
                    const R& of = g == 0 ? one : other;
                    const f32 scale = F::scale(of, run, part);
#pragma unroll
                    for (u32 j = 0; j < EACH; ++j) {
                        const u32 i = (h * GROUPS + g) * EACH + j;
                        sums[i] = __fmaf_rn(scale, products[g * 2 + j], sums[i]);
                        if (F::MINIMA) minima[i] = __fmaf_rn(F::minimum(of, run, part), all[g * 2 + j], minima[i]);
                    }
                }
            }
        }
    }

    // Adds the activations of each row that the lanes have, in the units of products.
    static DEVICE void add_all(f32 (&all)[4], const u32 (&y)[2]) {
        constexpr u32 UNITS = Integers<E>::UNITS;
        Mma<E>::add(all, UNITS, UNITS, UNITS, UNITS, y[0], y[1]);
    }

    // Adds a unit, of one row, to the sums. Of the eight columns that the tensor cores multiply by, every other one has a quarter of the row and
    // zeros, so that each lane gets the sums of its own quarter.
    template <class R> DEVICE void multiply_quarters(const R& one, const R& other, u32 at) {
        const u32 column = lane() / 4;
        Activations<E, SHARED> quarters[QUARTERS];
#pragma unroll
        for (u32 q = 0; q < QUARTERS; ++q) quarters[q] = a[0].or_else(column == q * 2, at, (const E*)zeros());
        f32 products[2][PARTS][4] = {}, all[PARTS][4] = {};
#pragma unroll
        for (u32 run = 0; run < RUNS; ++run) {
            u32 y[2][2];
            load_pairs(quarters[run % QUARTERS], run * 32, y);
            u32 x[GROUPS][2][2];
            halves<E, F>(one, run, lane() % 4, x[0]);
            halves<E, F>(other, run, lane() % 4, x[1]);
#pragma unroll
            for (u32 i = 0; i < 2; ++i) {
                Mma<E>::add(products[run / QUARTERS][i % PARTS], x[0][i][0], x[1][i][0], x[0][i][1], x[1][i][1], y[i][0], y[i][1]);
            }
        }
        if (F::MINIMA) {
            // Columns are runs, in the order that gives a lane both of its quarter.
            u32 y[2][2];
            load_pairs(a[0], at + (column / 2 + column % 2 * QUARTERS) * 32, y);
#pragma unroll
            for (u32 i = 0; i < 2; ++i) add_all(all[i % PARTS], y[i]);
        }
#pragma unroll
        for (u32 g = 0; g < GROUPS; ++g) {
            const R& of = g == 0 ? one : other;
            u32 scales[PARTS], least[PARTS];
            F::scales_of(of, lane() % 4, scales);
            if (F::MINIMA) F::minima_of(of, lane() % 4, least);
            f32 steps = 0, minima = 0;
#pragma unroll
            for (u32 run = 0; run < 2; ++run) {
#pragma unroll
                for (u32 part = 0; part < PARTS; ++part) {
                    steps = __fmaf_rn(blocks::half(scales[part] >> run * 16), products[run][part][g * 2], steps);
                    if (F::MINIMA) minima = __fmaf_rn(blocks::half(least[part] >> run * 16), all[part][run], minima);
                }
            }
            add_steps(of, steps, minima, sums[0][g]);
        }
    }

    // Adds what is in steps of a unit.
    template <class R> static DEVICE void add_steps(const R& of, f32 steps, f32 minima, f32& sum) {
        sum = __fmaf_rn(F::step(of), steps, sum);
        if (F::MINIMA) sum = __fmaf_rn(-F::step_of_minima(of), minima, sum);
    }

    template <class R>
    DEVICE void multiply(const R& one, const R& other, u32 run, u32 at, f32 (&sums)[SUMS], f32 (&minima)[SUMS]) {
        u32 quads[GROUPS][2];
        F::quads(one, run, lane() % 4, quads[0]);
        F::quads(other, run, lane() % 4, quads[1]);
        f32 q[GROUPS][2][4];
#pragma unroll
        for (u32 g = 0; g < GROUPS; ++g) {
            const u32 zeros = blocks::zeros_of<F>(g == 0 ? one : other, run);
#pragma unroll
            for (u32 i = 0; i < 2; ++i) blocks::integers<F>(quads[g][i], zeros, q[g][i]);
        }
#pragma unroll
        for (u32 r = 0; r < ROWS; ++r) {
            f32 x[2][4];
            load_floats(r, at, x);
#pragma unroll
            for (u32 part = 0; part < PARTS; ++part) {
                f32 products[GROUPS] = {0, 0}, all = 0;
#pragma unroll
                for (u32 i = part; i < (F::SPLIT ? part + 1 : 2); ++i) {
#pragma unroll
                    for (u32 j = 0; j < 4; ++j) {
#pragma unroll
                        for (u32 g = 0; g < GROUPS; ++g) products[g] = __fmaf_rn(x[i][j], q[g][i][j], products[g]);
                        if (F::MINIMA) all = __fadd_rn(all, x[i][j]);
                    }
                }
                const f32 scales[GROUPS] = {F::scale(one, run, part), F::scale(other, run, part)};
#pragma unroll
                for (u32 g = 0; g < GROUPS; ++g) {
                    const u32 i = g * EACH + r;
                    sums[i] = __fmaf_rn(scales[g], products[g], sums[i]);
                    if (F::MINIMA) minima[i] = __fmaf_rn(F::minimum(g == 0 ? one : other, run, part), all, minima[i]);
                }
            }
        }
    }

    // Adds a unit, of which the activations begin at `at`, to the sums.
    template <class R> DEVICE void multiply_unit(const R& one, const R& other, u32 at) {
        if constexpr (OF_LANES) multiply_quarters(one, other, at);
        else multiply_rows(one, other, at);
    }

    template <class R> DEVICE void multiply_rows(const R& one, const R& other, u32 at) {
#pragma unroll
        for (u32 q = 0; q < QUARTERS; ++q) {
            f32 steps[SUMS], minima[SUMS];
#pragma unroll
            for (u32 i = 0; i < SUMS; ++i) steps[i] = minima[i] = 0;
#pragma unroll
            for (u32 run = q; run < RUNS; run += QUARTERS) {
                f32 (&to)[SUMS] = F::STEPS ? steps : sums[0];
                if constexpr (MMA) multiply_on_tensor_cores(one, other, run, at + run * 32, to, minima);
                else multiply(one, other, run, at + run * 32, to, minima);
            }
#pragma unroll
            for (u32 i = 0; i < SUMS; ++i) {
                const R& of = i / EACH % GROUPS == 0 ? one : other;
                if constexpr (F::STEPS) add_steps(of, steps[i], minima[i], sums[q][i]);
                else if (F::MINIMA) sums[q][i] = __fsub_rn(sums[q][i], minima[i]);
            }
        }
    }

    // Multiplies `count` rows, `row` elements apart, which may be in shared memory, by the columns of pass `pass` of those on their way. `next`
    // sets the columns that are as many passes behind it, if it returns that there are some: their first weights are asked for while the last
    // ones are multiplied.
    template <typename Next> DEVICE void run(const E* from, u64 row, u32 count, u32 pass, Next next) {
#pragma unroll
        for (u32 h = 0; h < HELD; ++h) {
            const u32 mine = MMA ? h * 8 + lane() / 4 : h;
            a[h].set(from + (mine < count ? mine : count - 1) * row + lane() % 4 * 4);
        }
#pragma unroll
        for (auto& of : sums) {
#pragma unroll
            for (u32 i = 0; i < SUMS; ++i) of[i] = 0;
        }
        i32 rest = all;
        u32 at = warp() * F::UNIT;
        // The same number of times for all lanes of a warp.
#pragma unroll 1
        for (bool is_last = PASSES > 0;;) {
            constexpr i32 PASSED = STEPS * SLICES;
            if constexpr (PASSES == 0) is_last = rest - PASSED <= 0;
            if (!is_last) {
#pragma unroll
                for (u32 g = 0; g < GROUPS; ++g) {
                    at_tile[g].move(PASSED * TILE_BYTES);
                    left[g] -= PASSED;
                }
            } else if (!next()) {
#pragma unroll
                for (u32 g = 0; g < GROUPS; ++g) left[g] = 0;
            }
#pragma unroll
            for (u32 d = 0; d < STEPS; ++d) {
                if ((i32)(d * SLICES) < rest) {
                    const auto& one = F::ready(held[pass * STEPS + d][0]);
                    const auto& other = F::ready(held[pass * STEPS + d][1]);
                    multiply_unit(one, other, at + d * (SLICES * F::UNIT));
                }
                load_weights(d, pass);
            }
            if (is_last) break;
            rest -= PASSED;
            at += PASSED * F::UNIT;
        }
    }

    // What the warps exchange. A row is the columns of both groups.
    typedef f32 Parts[SLICES][ROWS][WIDTH];

    // The sum of all quarters, which the lanes have, or each lane.
    DEVICE f32 of_quarters(u32 i) const {
        if constexpr (OF_LANES) {
            const f32 pair = sums[0][i] + __shfl_xor_sync(FULL, sums[0][i], 1);
            return pair + __shfl_xor_sync(FULL, pair, 2);
        } else if constexpr (QUARTERS > 1) {
            return (sums[0][i] + sums[1][i]) + (sums[2][i] + sums[3][i]);
        } else {
            return sums[0][i];
        }
    }

    // Adds what the lanes of a column have, for the other warps.
    DEVICE void share(Parts& parts) const {
        if constexpr (MMA) {
#pragma unroll
            for (u32 i = 0; i < SUMS; ++i) {
                const u32 row = i / (GROUPS * EACH) * 8 + lane() % 4 * 2 + i % EACH;
                const f32 sum = of_quarters(i);
                if (row < ROWS) parts[warp()][row][i / EACH % GROUPS * COLUMNS + lane() / 4] = sum * (F::FLOATS ? 1.f : Integers<E>::TIMES);
            }
        } else {
#pragma unroll
            for (u32 i = 0; i < SUMS; ++i) {
                f32 sum = sums[0][i];
                sum += __shfl_xor_sync(FULL, sum, 1);
                sum += __shfl_xor_sync(FULL, sum, 2);
                if (lane() % 4 == i % 4) parts[warp()][i % ROWS][i / ROWS * COLUMNS + lane() / 4] = sum;
            }
        }
    }

    static DEVICE f32 sum(const Parts& parts, u32 row, u32 column) {
        // Added to 0, whose sign does not depend on how many units there were beyond K.
        f32 sum = 0.f + parts[0][row][column];
#pragma unroll
        for (u32 s = 1; s < SLICES; ++s) sum += parts[s][row][column];
        return sum;
    }
};

}  // namespace thin

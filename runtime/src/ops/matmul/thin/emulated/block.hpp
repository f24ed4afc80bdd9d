// A block of threads on the CPU, as far as the text of products with weights in blocks needs one. Each thread has a stack; the threads of a
// block run in turn, each up to the next exchange with others. Instructions of a GPU are functions with their meaning.
#pragma once
#include <ucontext.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <vector>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int32_t i32;
typedef float f32;
typedef double f64;

#define DEVICE inline
#define __shared__ static
#define __align__(bytes) __attribute__((aligned(bytes)))
#define WARP 32u
#define FULL 0xffffffffu
// Of an architecture with tensor cores, and without conversions from 8 bits.
#define __CUDA_ARCH__ 800

// ---- floats

inline f32 __uint_as_float(u32 bits) {
    f32 x;
    memcpy(&x, &bits, 4);
    return x;
}

// Floats of 16 bits, `MANTISSA` of which are mantissa.
template <int MANTISSA> struct Half {
    u16 bits;
    static constexpr int EXPONENTS = 1 << (15 - MANTISSA), BIAS = EXPONENTS / 2 - 1, ONE = 1 << MANTISSA;

    f64 value() const {
        const int exponent = bits >> MANTISSA & (EXPONENTS - 1), mantissa = bits & (ONE - 1);
        f64 size = std::ldexp(f64(mantissa), 1 - BIAS - MANTISSA);
        if (exponent == EXPONENTS - 1) size = mantissa ? NAN : INFINITY;
        else if (exponent != 0) size = std::ldexp(f64(mantissa + ONE), exponent - BIAS - MANTISSA);
        return bits >> 15 ? -size : size;
    }

    // The nearest one.
    static Half of(f64 x) {
        const u32 sign = std::signbit(x) ? 0x8000 : 0, infinite = (EXPONENTS - 1) << MANTISSA;
        if (x == 0) return {u16(sign)};
        if (!std::isfinite(x)) return {u16(sign | infinite | (std::isnan(x) ? ONE / 2 : 0))};
        int exponent = 0;
        std::frexp(x, &exponent);
        // Of the last bit, counted from that of the least float.
        const int last = std::max(exponent - 2 + BIAS, 0);
        const f64 units = std::nearbyint(std::ldexp(std::fabs(x), BIAS - 1 + MANTISSA - last));
        // Bits count floats in their order.
        const f64 bits = units + std::ldexp(f64(last), MANTISSA);
        return {u16(sign | u32(std::min(bits, f64(infinite))))};
    }
};
typedef Half<10> f16;
typedef Half<7> bf16;

inline f32 to_f32(f32 x) { return x; }
template <int M> f32 to_f32(Half<M> x) { return f32(x.value()); }
template <typename E> E from_f32(f32 x) { return E::of(x); }
template <> inline f32 from_f32<f32>(f32 x) { return x; }

namespace emulated {
// Results that were rounded, where the text says that none is.
inline u32 rounded = 0;

template <typename E> u32 multiply_add(u32 a, u32 b, u32 c) {
    u32 pair = 0;
    for (int half = 0; half < 32; half += 16) {
        const f64 exact = E{u16(a >> half)}.value() * E{u16(b >> half)}.value() + E{u16(c >> half)}.value();
        const E to = E::of(exact);
        rounded += std::isfinite(exact) && to.value() != exact;
        pair |= u32(to.bits) << half;
    }
    return pair;
}
}  // namespace emulated

// Volatile: nothing is contracted.
inline f32 __fmaf_rn(f32 a, f32 b, f32 c) { return std::fma(a, b, c); }
inline f32 __fmul_rn(f32 a, f32 b) { volatile f32 x = a * b; return x; }
inline f32 __fadd_rn(f32 a, f32 b) { volatile f32 x = a + b; return x; }
inline f32 __fsub_rn(f32 a, f32 b) { volatile f32 x = a - b; return x; }

inline u32 __byte_perm(u32 low, u32 high, u32 selector) {
    const u64 both = u64(high) << 32 | low;
    u32 to = 0;
    for (u32 i = 0; i < 4; ++i) {
        const u32 which = selector >> i * 4 & 15;
        u32 byte = u32(both >> (which & 7) * 8) & 0xff;
        if (which & 8) byte = byte & 0x80 ? 0xff : 0;
        to |= byte << i * 8;
    }
    return to;
}
inline size_t __cvta_generic_to_shared(const void* at) { return size_t(at); }

template <int BYTES> struct alignas(BYTES) Raw { u32 w[BYTES / 4]; };
template <typename E, int V> union Pack {
    Raw<sizeof(E) * V> raw;
    E v[V];
};

// ---- threads

struct Thread {
    ucontext_t context;
    std::vector<char> stack = std::vector<char>(1 << 15);
    bool is_done = false;
    u32 turn = 0;
};
// What a lane shows the others of its warp.
struct Shown {
    u32 words[6];
    f32 sums[4];
};
struct Block {
    ucontext_t main;
    std::vector<Thread> threads;
    u32 current = 0, waiting = 0, phase = 0;
    std::function<void()> body;
    // By warp, turn and lane.
    std::vector<Shown> shown;

    void give_way() { swapcontext(&threads[current].context, &main); }

    void run(u32 count, std::function<void()> of_thread);

    void synchronize() {
        const u32 mine = phase;
        if (++waiting == threads.size()) waiting = 0, ++phase;
        while (phase == mine) give_way();
    }

    // What the lanes of the warp show, each at its own place, once all have come.
    const Shown* exchange(const Shown& mine) {
        Thread& thread = threads[current];
        Shown* const warp = &shown[(current / WARP * 2 + (thread.turn ^= 1)) * WARP];
        warp[current % WARP] = mine;
        give_way();
        return warp;
    }
};
inline Block block;
inline struct { u32 x; } threadIdx, blockIdx, blockDim, gridDim;

inline void enter() {
    block.body();
    block.threads[block.current].is_done = true;
    block.give_way();
}
inline void Block::run(u32 count, std::function<void()> of_thread) {
    threads.assign(count, {});
    shown.assign(count * 2, {});
    body = of_thread;
    for (Thread& thread : threads) {
        getcontext(&thread.context);
        thread.context.uc_stack.ss_sp = thread.stack.data();
        thread.context.uc_stack.ss_size = thread.stack.size();
        makecontext(&thread.context, enter, 0);
    }
    for (bool is_any = true; is_any;) {
        is_any = false;
        for (current = 0; current < count; ++current) {
            if (threads[current].is_done) continue;
            is_any = true;
            threadIdx.x = current;
            swapcontext(&main, &threads[current].context);
        }
    }
}

inline void __syncthreads() { block.synchronize(); }
inline void __syncwarp() { block.exchange({}); }
inline f32 __shfl_xor_sync(u32, f32 x, u32 by) {
    return block.exchange({{}, {x}})[block.current % WARP ^ by].sums[0];
}

namespace thin {
const u32 SLICES = 8, COLUMNS = 8;

// Tensor cores: as `thin.cuh` has them, with products of a step added exactly.
template <typename E> struct Mma {
    static constexpr bool IS = true;
    static void add(f32 (&c)[4], u32 a0, u32 a1, u32 a2, u32 a3, u32 b0, u32 b1) {
        const u32 lane = block.current % WARP;
        const Shown* const all = block.exchange({{a0, a1, a2, a3, b0, b1}, {}});
        auto value = [](u32 word, u32 k) { return E{u16(word >> k % 2 * 16)}.value(); };
        for (u32 i = 0; i < 4; ++i) {
            const u32 row = lane / 4 + i / 2 * 8, column = lane % 4 * 2 + i % 2;
            f64 sum = c[i];
            for (u32 k = 0; k < 16; ++k) {
                const u32 quad = k % 8 / 2;
                sum += value(all[row % 8 * 4 + quad].words[k / 8 * 2 + row / 8], k) * value(all[column * 4 + quad].words[4 + k / 8], k);
            }
            c[i] = f32(sum);
        }
    }
};
template <> struct Mma<f32> { static constexpr bool IS = false; };
}  // namespace thin

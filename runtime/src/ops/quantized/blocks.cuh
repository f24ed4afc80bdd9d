// Weights in blocks, as they are in a GPU's memory: `quantized/tiles.rs` has the order, `quantized/parts.rs` what the bits mean.
//
// A format says what a lane loads of a unit of a row (`Held`, with `load`, of the tile so many bytes behind that of `At`), and what that
// means. `ready` takes scales and minima apart, which are in words of four. Of each run of 32 elements, lane `l` of the four that share a
// row has elements 4 l to 4 l + 3 and 16 + 4 l to 16 + 4 l + 3: `quads` has them as bytes, from which `OFFSET` is subtracted, or, with
// `ZEROS`, the integer of the run in `zeros`. The second and the third of four are in each other's place, so that the first two are in the
// halves of a word by a mask. Element = scale * integer - minimum; 32 elements share both, or each 16 have their own (`SPLIT`), and both are
// in steps of the unit's (`STEPS`). Of such a unit, which has eight runs, `scales_of` and `minima_of` have those of the runs `q` and `q + 4` in
// halves, as so many of the least floats, for each part. Where elements are floats of 8 bits (`FLOATS`), these take the place of the
// integers, in their order.
#pragma once

namespace blocks {

// Rows of a tile, lanes of a row.
const u32 TILE = 8, LANES = 4;

// Loads words that are used once: they need no room in L1. Volatile, so that they stay on their side of `in_order()`.
DEVICE void stream(const u8* from, u32 (&to)[4]) {
    asm volatile("ld.global.L1::no_allocate.L2::128B.v4.u32 {%0, %1, %2, %3}, [%4];"
        : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "l"(from));
}
DEVICE void stream(const u8* from, u32 (&to)[2]) {
    asm volatile("ld.global.L1::no_allocate.L2::128B.v2.u32 {%0, %1}, [%2];" : "=r"(to[0]), "=r"(to[1]) : "l"(from));
}
DEVICE void stream(const u8* from, u32& to) {
    asm volatile("ld.global.L1::no_allocate.L2::128B.u32 %0, [%1];" : "=r"(to) : "l"(from));
}
// Two bytes: of a word, the lower half.
DEVICE void stream_half(const u8* from, u32& to) {
    asm volatile("ld.global.L1::no_allocate.L2::128B.u16 %0, [%1];" : "=r"(to) : "l"(from));
}

DEVICE f32 half(u32 bits) {
    f16 x;
    x.bits = (u16)bits;
    return to_f32(x);
}
// Byte `i` less `zero`, as so many of the least floats of 16 bits: in units of 1 / LEAST.
const f32 LEAST = 16777216.f;
DEVICE u32 less(u32 pair, u32 zero) {
    if (zero != 0) asm("sub.f16x2 %0, %1, %2;" : "=r"(pair) : "r"(pair), "r"(zero * 0x10001u));
    return pair;
}
DEVICE f32 byte(u32 word, u32 i, u32 zero = 0) { return half(less(word >> i % 2 * 8 & 0x00ff00ffu, zero) >> i / 2 * 16); }
// Byte `i` of each of two words, in halves.
DEVICE u32 two_bytes(u32 low, u32 high, u32 i) { return __byte_perm(low, high, i * 0x1111u + 0x4400u) & 0x00ff00ffu; }
// The low four bits as bit 4 of a byte each, in the order of `quads`.
DEVICE u32 fifths(u32 bits) { return ((bits & 0xfu) * 0x00208041u & 0x01010101u) << 4; }

// Where a lane of a row has its bytes in a tile: of parts in which lanes have `OF_LANE` bytes each, and of those in which rows have `OF_ROW`.
// Both are found once, so that what is added for a part or for another tile is a number in an instruction.
template <u32 OF_LANE, u32 OF_ROW> struct Bytes {
    const u8 *lane, *row;
    u32 place, number;

    DEVICE Bytes() {}
    // For lane `number` of row `place`.
    DEVICE Bytes(const u8* tile, u32 place, u32 number)
        : lane(tile + (place * LANES + number) * OF_LANE), row(tile + place * OF_ROW), place(place), number(number) {}
    // Goes on to a tile so many bytes behind.
    DEVICE void move(u32 bytes) {
        lane += bytes;
        row += bytes;
    }
    // In parts in which lanes, and rows, have another number of bytes.
    template <u32 BYTES> DEVICE const u8* lane_of() const { return lane - (place * LANES + number) * (OF_LANE - BYTES); }
    template <u32 BYTES> DEVICE const u8* row_of() const { return row - place * (OF_ROW - BYTES); }
};

// Two blocks of 32 elements, or one of 64.
struct Pair {
    static constexpr u32 UNIT = 64;
    static constexpr bool SPLIT = false, FLOATS = false, ZEROS = false, NIBBLES = false, STEPS = false;
};

// Four elements, which are four bits of each byte of a word.
DEVICE u32 nibbles(u32 word, u32 up) { return word >> up & 0x0f0f0f0fu; }

// Of which each lane holds a word of four bits for each element of a run. With `NIBBLES`, a quad is the bits of `word` from `up` on.
struct Nibbles : Pair {
    static constexpr bool NIBBLES = true;
    template <class H> static DEVICE u32 word(const H& h, u32 run, u32) { return h.q[run]; }
    static DEVICE constexpr u32 up(u32, u32 i) { return i * 4; }
    template <class H> static DEVICE void quads(const H& h, u32 run, u32, u32 (&q)[2]) {
#pragma unroll
        for (u32 i = 0; i < 2; ++i) q[i] = nibbles(word(h, run, i), up(run, i));
    }
};

struct Q4_0 : Nibbles {
    static constexpr u32 BYTES = 36, OFFSET = 8;
    static constexpr bool MINIMA = false;
    struct Held {
        u32 q[2], d;
    };
    typedef Held Ready;
    typedef Bytes<8, 4> At;
    static DEVICE void load(Held& h, const At& at, u32 tile) {
        stream(at.lane + tile, h.q);
        stream(at.row + tile + 256, h.d);
    }
    static DEVICE const Held& ready(const Held& h) { return h; }
    static DEVICE f32 scale(const Held& h, u32 run, u32) { return half(h.d >> run * 16); }
    static DEVICE f32 minimum(const Held&, u32, u32) { return 0; }
};

struct Q4_1 : Nibbles {
    static constexpr u32 BYTES = 40, OFFSET = 0;
    static constexpr bool MINIMA = true;
    struct Held {
        u32 q[2], d[2];
    };
    typedef Held Ready;
    typedef Bytes<8, 8> At;
    static DEVICE void load(Held& h, const At& at, u32 tile) {
        stream(at.lane + tile, h.q);
        stream(at.row + tile + 256, h.d);
    }
    static DEVICE const Held& ready(const Held& h) { return h; }
    static DEVICE f32 scale(const Held& h, u32 run, u32) { return half(h.d[run]); }
    static DEVICE f32 minimum(const Held& h, u32 run, u32) { return -half(h.d[run] >> 16); }
};

struct Q5_0 : Pair {
    static constexpr u32 BYTES = 44, OFFSET = 16;
    static constexpr bool MINIMA = false;
    struct Held {
        u32 q[2], h[2], d;
    };
    typedef Held Ready;
    typedef Bytes<8, 8> At;
    static DEVICE void load(Held& h, const At& at, u32 tile) {
        stream(at.lane + tile, h.q);
        stream(at.row + tile + 256, h.h);
        stream(at.row_of<4>() + tile + 320, h.d);
    }
    static DEVICE const Held& ready(const Held& h) { return h; }
    static DEVICE void quads(const Held& h, u32 run, u32 lane, u32 (&q)[2]) {
        const u32 high = h.h[run] >> lane * 4;
        q[0] = h.q[run] & 0x0f0f0f0fu | fifths(high);
        q[1] = h.q[run] >> 4 & 0x0f0f0f0fu | fifths(high >> 16);
    }
    static DEVICE f32 scale(const Held& h, u32 run, u32) { return half(h.d >> run * 16); }
    static DEVICE f32 minimum(const Held&, u32, u32) { return 0; }
};

struct Q5_1 : Pair {
    static constexpr u32 BYTES = 48, OFFSET = 0;
    static constexpr bool MINIMA = true;
    struct Held {
        u32 q[2], h[2], d[2];
    };
    typedef Held Ready;
    typedef Bytes<8, 8> At;
    static DEVICE void load(Held& h, const At& at, u32 tile) {
        stream(at.lane + tile, h.q);
        stream(at.row + tile + 256, h.h);
        stream(at.row + tile + 320, h.d);
    }
    static DEVICE const Held& ready(const Held& h) { return h; }
    static DEVICE void quads(const Held& h, u32 run, u32 lane, u32 (&q)[2]) {
        const u32 high = h.h[run] >> lane * 4;
        q[0] = h.q[run] & 0x0f0f0f0fu | fifths(high);
        q[1] = h.q[run] >> 4 & 0x0f0f0f0fu | fifths(high >> 16);
    }
    static DEVICE f32 scale(const Held& h, u32 run, u32) { return half(h.d[run]); }
    static DEVICE f32 minimum(const Held& h, u32 run, u32) { return -half(h.d[run] >> 16); }
};

struct Q8_0 : Pair {
    static constexpr u32 BYTES = 68, OFFSET = 128;
    static constexpr bool MINIMA = false;
    struct Held {
        u32 q[4], d;
    };
    typedef Held Ready;
    typedef Bytes<16, 4> At;
    static DEVICE void load(Held& h, const At& at, u32 tile) {
        stream(at.lane + tile, h.q);
        stream(at.row + tile + 512, h.d);
    }
    static DEVICE const Held& ready(const Held& h) { return h; }
    static DEVICE void quads(const Held& h, u32 run, u32, u32 (&q)[2]) {
        q[0] = h.q[run * 2];
        q[1] = h.q[run * 2 + 1];
    }
    static DEVICE f32 scale(const Held& h, u32 run, u32) { return half(h.d >> run * 16); }
    static DEVICE f32 minimum(const Held&, u32, u32) { return 0; }
};

// Four bits are a place in a table.
struct IQ4_NL : Pair {
    static constexpr u32 BYTES = 36, OFFSET = 128;
    static constexpr bool MINIMA = false;
    typedef Q4_0::Held Held;
    typedef Held Ready;
    typedef Q4_0::At At;
    static DEVICE void load(Held& h, const At& at, u32 tile) { Q4_0::load(h, at, tile); }
    static DEVICE const Held& ready(const Held& h) { return h; }
    // The values at four places, the low bits of 16.
    static DEVICE u32 values(u32 places) {
        const u32 of_eight = places & 0x7777u;
        // 128 and -127 -104 -83 -65, -49 -35 -22 -10, 1 13 25 38, 53 69 89 113.
        const u32 below = __byte_perm(0x3f2d1801u, 0x766a5d4fu, of_eight), above = __byte_perm(0xa6998d81u, 0xf1d9c5b5u, of_eight);
        // A place from 8 on chooses the other one.
        return __byte_perm(below, above, 0x3210u | (places & 0x8888u) >> 1);
    }
    static DEVICE void quads(const Held& h, u32 run, u32, u32 (&q)[2]) {
        const u32 first = values(h.q[run]), second = values(h.q[run] >> 16);
        q[0] = __byte_perm(first, second, 0x6420u);
        q[1] = __byte_perm(first, second, 0x7531u);
    }
    static DEVICE f32 scale(const Held& h, u32 run, u32) { return half(h.d >> run * 16); }
    static DEVICE f32 minimum(const Held&, u32, u32) { return 0; }
};

// As Q8_0, of floats with one scale, in f32.
struct F8_E4M3 : Q8_0 {
    static constexpr bool FLOATS = true;
    static DEVICE f32 scale(const Held& h, u32, u32) { return __uint_as_float(h.d); }
};

// Each run has an integer that stands for 0, of up to 8 bits.
struct INT4 : Nibbles {
    static constexpr u32 BYTES = 38, OFFSET = 0;
    static constexpr bool MINIMA = false, ZEROS = true;
    struct Held {
        u32 q[2], d, zeros;
    };
    typedef Held Ready;
    struct At : Bytes<8, 4> {
        const u8* zeros;
        DEVICE At() {}
        DEVICE At(const u8* tile, u32 place, u32 number) : Bytes(tile, place, number), zeros(tile + 288 + place * 2) {}
        DEVICE void move(u32 bytes) {
            Bytes::move(bytes);
            zeros += bytes;
        }
    };
    static DEVICE void load(Held& h, const At& at, u32 tile) {
        stream(at.lane + tile, h.q);
        stream(at.row + tile + 256, h.d);
        stream_half(at.zeros + tile, h.zeros);
    }
    static DEVICE const Held& ready(const Held& h) { return h; }
    // The zero of a run in the lower byte of both halves.
    static DEVICE u32 zeros(const Held& h, u32 run) { return __byte_perm(h.zeros, 0u, run == 0 ? 0x4040u : 0x4141u); }
    static DEVICE f32 scale(const Held& h, u32 run, u32) { return half(h.d >> run * 16); }
    // Of an element alone, as on the host.
    static DEVICE f32 minimum(const Held& h, u32 run, u32) { return __fmul_rn(half(h.d >> run * 16), byte(h.zeros, run) * LEAST); }
};

// One block of 256 elements. Scales and minima of its runs are whole numbers of steps, whose size is that of the block.
struct Large {
    static constexpr u32 UNIT = 256;
    static constexpr bool FLOATS = false, ZEROS = false, NIBBLES = false, STEPS = true;
    // Of sixteen bytes, two for each run, those of the runs `q` and `q + 4`, for each part.
    static DEVICE void of_groups(const u32 (&bytes)[4], u32 q, u32 (&to)[2]) {
        const u32 low = q < 2 ? bytes[0] : bytes[1], high = q < 2 ? bytes[2] : bytes[3];
#pragma unroll
        for (u32 part = 0; part < 2; ++part) to[part] = two_bytes(low, high, q % 2 * 2 + part);
    }
};

struct Q2_K : Large {
    static constexpr u32 BYTES = 84, OFFSET = 0;
    static constexpr bool MINIMA = true, SPLIT = true;
    struct Held {
        u32 q[4], scales[4], d;
    };
    typedef Held Ready;
    typedef Bytes<16, 16> At;
    static DEVICE void load(Held& h, const At& at, u32 tile) {
        stream(at.lane + tile, h.q);
        stream(at.row + tile + 512, h.scales);
        stream(at.row_of<4>() + tile + 640, h.d);
    }
    static DEVICE const Held& ready(const Held& h) { return h; }
    static DEVICE void quads(const Held& h, u32 run, u32, u32 (&q)[2]) {
#pragma unroll
        for (u32 i = 0; i < 2; ++i) q[i] = h.q[run / 4 * 2 + i] >> run % 4 * 2 & 0x03030303u;
    }
    static DEVICE f32 step(const Held& h) { return half(h.d) * LEAST; }
    static DEVICE f32 step_of_minima(const Held& h) { return half(h.d >> 16) * LEAST; }
    static DEVICE f32 scale(const Held& h, u32 run, u32 part) {
        const u32 group = run * 2 + part;
        return byte(h.scales[group / 4] & 0x0f0f0f0fu, group % 4);
    }
    static DEVICE f32 minimum(const Held& h, u32 run, u32 part) {
        const u32 group = run * 2 + part;
        return byte(h.scales[group / 4] >> 4 & 0x0f0f0f0fu, group % 4);
    }
    static DEVICE void scales_of(const Held& h, u32 q, u32 (&to)[2]) {
        of_groups(h.scales, q, to);
#pragma unroll
        for (u32 part = 0; part < 2; ++part) to[part] &= 0x000f000fu;
    }
    static DEVICE void minima_of(const Held& h, u32 q, u32 (&to)[2]) {
        of_groups(h.scales, q, to);
#pragma unroll
        for (u32 part = 0; part < 2; ++part) to[part] = to[part] >> 4 & 0x000f000fu;
    }
};

struct Q3_K : Large {
    static constexpr u32 BYTES = 110, OFFSET = 4;
    static constexpr bool MINIMA = false, SPLIT = true;
    struct Held {
        u32 q[4], h[2], scales[3], d;
    };
    struct Ready {
        const Held& h;
        u32 scales[4];
    };
    typedef Bytes<16, 12> At;
    static DEVICE void load(Held& h, const At& at, u32 tile) {
        stream(at.lane + tile, h.q);
        stream(at.lane_of<8>() + tile + 512, h.h);
#pragma unroll
        for (u32 i = 0; i < 3; ++i) stream(at.row + tile + 768 + i * 4, h.scales[i]);
        stream_half(at.row_of<2>() + tile + 864, h.d);
    }
    // Scales of six bits: four of them, and two above these.
    static DEVICE Ready ready(const Held& h) {
        Ready r = {h, {}};
#pragma unroll
        for (u32 i = 0; i < 4; ++i) {
            r.scales[i] = h.scales[i % 2] >> i / 2 * 4 & 0x0f0f0f0fu | (h.scales[2] >> i * 2 & 0x03030303u) << 4;
        }
        return r;
    }
    static DEVICE void quads(const Ready& r, u32 run, u32, u32 (&q)[2]) {
#pragma unroll
        for (u32 i = 0; i < 2; ++i) {
            q[i] = r.h.q[run / 4 * 2 + i] >> run % 4 * 2 & 0x03030303u | (r.h.h[i] >> run & 0x01010101u) << 2;
        }
    }
    static DEVICE f32 step(const Ready& r) { return half(r.h.d) * LEAST; }
    static DEVICE f32 step_of_minima(const Ready&) { return 0; }
    static DEVICE f32 scale(const Ready& r, u32 run, u32 part) {
        const u32 group = run * 2 + part;
        return byte(r.scales[group / 4], group % 4, 32);
    }
    static DEVICE void scales_of(const Ready& r, u32 q, u32 (&to)[2]) {
        of_groups(r.scales, q, to);
#pragma unroll
        for (u32 part = 0; part < 2; ++part) to[part] = less(to[part], 32);
    }
    static DEVICE f32 minimum(const Ready&, u32, u32) { return 0; }
    static DEVICE void minima_of(const Ready&, u32, u32 (&)[2]) {}
};

// Scales and minima of six bits, eight of each.
struct Sixes {
    u32 d, scales[2], minima[2];

    DEVICE Sixes(const u32 (&head)[4])
        : d(head[0]),
          scales{head[1] & 0x3f3f3f3fu, head[3] & 0x0f0f0f0fu | head[1] >> 2 & 0x30303030u},
          minima{head[2] & 0x3f3f3f3fu, head[3] >> 4 & 0x0f0f0f0fu | head[2] >> 2 & 0x30303030u} {}
    DEVICE f32 scale(u32 run) const { return byte(scales[run / 4], run % 4); }
    DEVICE f32 minimum(u32 run) const { return byte(minima[run / 4], run % 4); }
};

struct Q4_K : Large {
    static constexpr u32 BYTES = 144, OFFSET = 0;
    static constexpr bool MINIMA = true, SPLIT = false, NIBBLES = true;
    struct Held {
        u32 q[2][4], head[4];
    };
    struct Ready {
        const Held& h;
        Sixes of;
    };
    typedef Bytes<16, 16> At;
    static DEVICE void load(Held& h, const At& at, u32 tile) {
        stream(at.lane + tile, h.q[0]);
        stream(at.lane + tile + 512, h.q[1]);
        stream(at.row + tile + 1024, h.head);
    }
    static DEVICE Ready ready(const Held& h) { return Ready{h, Sixes(h.head)}; }
    static DEVICE u32 word(const Ready& r, u32 run, u32 i) { return r.h.q[run / 4][run / 2 % 2 * 2 + i]; }
    static DEVICE constexpr u32 up(u32 run, u32) { return run % 2 * 4; }
    static DEVICE void quads(const Ready& r, u32 run, u32, u32 (&q)[2]) {
#pragma unroll
        for (u32 i = 0; i < 2; ++i) q[i] = nibbles(word(r, run, i), up(run, i));
    }
    static DEVICE f32 step(const Ready& r) { return half(r.of.d) * LEAST; }
    static DEVICE f32 step_of_minima(const Ready& r) { return half(r.of.d >> 16) * LEAST; }
    static DEVICE f32 scale(const Ready& r, u32 run, u32) { return r.of.scale(run); }
    static DEVICE void scales_of(const Ready& r, u32 q, u32 (&to)[1]) { to[0] = two_bytes(r.of.scales[0], r.of.scales[1], q); }
    static DEVICE f32 minimum(const Ready& r, u32 run, u32) { return r.of.minimum(run); }
    static DEVICE void minima_of(const Ready& r, u32 q, u32 (&to)[1]) { to[0] = two_bytes(r.of.minima[0], r.of.minima[1], q); }
};

struct Q5_K : Large {
    static constexpr u32 BYTES = 176, OFFSET = 0;
    static constexpr bool MINIMA = true, SPLIT = false;
    struct Held {
        u32 q[2][4], h[2], head[4];
    };
    struct Ready {
        const Held& h;
        Sixes of;
    };
    typedef Bytes<16, 16> At;
    static DEVICE void load(Held& h, const At& at, u32 tile) {
        stream(at.lane + tile, h.q[0]);
        stream(at.lane + tile + 512, h.q[1]);
        stream(at.lane_of<8>() + tile + 1024, h.h);
        stream(at.row + tile + 1280, h.head);
    }
    static DEVICE Ready ready(const Held& h) { return Ready{h, Sixes(h.head)}; }
    static DEVICE void quads(const Ready& r, u32 run, u32, u32 (&q)[2]) {
#pragma unroll
        for (u32 i = 0; i < 2; ++i) {
            q[i] = r.h.q[run / 4][run / 2 % 2 * 2 + i] >> run % 2 * 4 & 0x0f0f0f0fu | (r.h.h[i] >> run & 0x01010101u) << 4;
        }
    }
    static DEVICE f32 step(const Ready& r) { return half(r.of.d) * LEAST; }
    static DEVICE f32 step_of_minima(const Ready& r) { return half(r.of.d >> 16) * LEAST; }
    static DEVICE f32 scale(const Ready& r, u32 run, u32) { return r.of.scale(run); }
    static DEVICE void scales_of(const Ready& r, u32 q, u32 (&to)[1]) { to[0] = two_bytes(r.of.scales[0], r.of.scales[1], q); }
    static DEVICE f32 minimum(const Ready& r, u32 run, u32) { return r.of.minimum(run); }
    static DEVICE void minima_of(const Ready& r, u32 q, u32 (&to)[1]) { to[0] = two_bytes(r.of.minima[0], r.of.minima[1], q); }
};

struct Q6_K : Large {
    static constexpr u32 BYTES = 210, OFFSET = 32;
    static constexpr bool MINIMA = false, SPLIT = true;
    struct Held {
        u32 q[2][4], h[4], scales[4], d;
    };
    typedef Held Ready;
    typedef Bytes<16, 16> At;
    static DEVICE void load(Held& h, const At& at, u32 tile) {
        stream(at.lane + tile, h.q[0]);
        stream(at.lane + tile + 512, h.q[1]);
        stream(at.lane + tile + 1024, h.h);
        stream(at.row + tile + 1536, h.scales);
        stream_half(at.row_of<2>() + tile + 1664, h.d);
    }
    static DEVICE const Held& ready(const Held& h) { return h; }
    static DEVICE void quads(const Held& h, u32 run, u32, u32 (&q)[2]) {
#pragma unroll
        for (u32 i = 0; i < 2; ++i) {
            q[i] = h.q[run / 4][run % 2 * 2 + i] >> run % 4 / 2 * 4 & 0x0f0f0f0fu
                | (h.h[run / 4 * 2 + i] >> run % 4 * 2 & 0x03030303u) << 4;
        }
    }
    static DEVICE f32 step(const Held& h) { return half(h.d) * LEAST; }
    static DEVICE f32 step_of_minima(const Held&) { return 0; }
    // Of a sign and seven bits.
    static DEVICE f32 scale(const Held& h, u32 run, u32 part) {
        const u32 group = run * 2 + part;
        return byte(h.scales[group / 4] ^ 0x80808080u, group % 4, 128);
    }
    static DEVICE void scales_of(const Held& h, u32 q, u32 (&to)[2]) {
        of_groups(h.scales, q, to);
#pragma unroll
        for (u32 part = 0; part < 2; ++part) to[part] = less(to[part] ^ 0x00800080u, 128);
    }
    static DEVICE f32 minimum(const Held&, u32, u32) { return 0; }
    static DEVICE void minima_of(const Held&, u32, u32 (&)[2]) {}
};

// Four floats of 8 bits as floats of 16.
#if __CUDA_ARCH__ >= 900 || __CUDA_ARCH__ >= 890 && __CUDACC_VER_MAJOR__ * 100 + __CUDACC_VER_MINOR__ >= 1201
#define HAS_FLOATS_OF_8_BITS
DEVICE void half_floats(u32 quad, u32 (&to)[2]) {
    asm("{ .reg .b16 low, high; mov.b32 {low, high}, %2; cvt.rn.f16x2.e4m3x2 %0, low; cvt.rn.f16x2.e4m3x2 %1, high; }"
        : "=r"(to[0]), "=r"(to[1]) : "r"(quad));
}
#endif

// Four floats of 8 bits as floats of 32. Without an instruction for it, exponent and mantissa are where wider floats have theirs, and mean
// as much but for a power of two; NaN gets all bits of the exponent.
DEVICE void floats(u32 quad, f32 (&to)[4]) {
#ifdef HAS_FLOATS_OF_8_BITS
    u32 pairs[2];
    half_floats(quad, pairs);
#pragma unroll
    for (u32 i = 0; i < 4; ++i) to[i] = half(pairs[i / 2] >> i % 2 * 16);
#else
#pragma unroll
    for (u32 i = 0; i < 4; ++i) {
        const u32 bits = __byte_perm(quad, 0u, 0x0444u | i << 12);
        u32 size = bits >> 4 & 0x07f00000u;
        size |= (size + 0x00100000u & 0x08000000u) * 15u;
        // 2^120.
        to[i] = __fmul_rn(__uint_as_float(bits & 0x80000000u | size), __uint_as_float(0x7b800000u));
    }
#endif
}

// The scale of a run, or of a part of it, and its minimum.
template <class F, class R> DEVICE f32 scale_of(const R& held, u32 run, u32 part) {
    if constexpr (F::STEPS) return __fmul_rn(F::step(held), F::scale(held, run, part));
    else return F::scale(held, run, part);
}
template <class F, class R> DEVICE f32 minimum_of(const R& held, u32 run, u32 part) {
    if constexpr (F::STEPS) return __fmul_rn(F::step_of_minima(held), F::minimum(held, run, part));
    else return F::minimum(held, run, part);
}

// What stands for 0 in a run in the lower byte of both halves.
template <class F, class R> DEVICE u32 zeros_of(const R& held, u32 run) {
    if constexpr (F::ZEROS) return F::zeros(held, run);
    else return F::OFFSET * 0x10001u;
}

// Four elements as floats. Of integers, these are bytes behind a number of which they are the last bits.
template <class F> DEVICE void integers(u32 quad, u32 zeros, f32 (&to)[4]) {
    if constexpr (F::FLOATS) return floats(quad, to);
    const f32 from = __uint_as_float(0x4b000000u | zeros & 0xffu);
#pragma unroll
    for (u32 i = 0; i < 4; ++i) {
        const u32 place = i % 2 * 2 + i / 2;
        to[i] = __fsub_rn(__uint_as_float(__byte_perm(quad, 0x4b000000u, 0x7440u | place)), from);
    }
}

}  // namespace blocks

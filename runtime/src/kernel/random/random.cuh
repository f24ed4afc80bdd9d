// Random numbers in kernels written in Rust: `random/mod.rs` and `philox.rs` say the same for the CPU.

// Two of the four words that a block of Philox has.
struct Random { u32 first; u32 second; };

namespace lang {

struct Block { u32 word[4]; };

// `UNROLLED` rounds are written out: all of them are fastest where a thread makes few numbers; one needs the fewest registers.
template <int UNROLLED> DEVICE Block philox(u32 a, u32 b, u32 c, u32 d, u32 key0, u32 key1) {
#pragma unroll UNROLLED
    for (int round = 0; round < 10; ++round) {
        if (round > 0) {
            key0 += 0x9e3779b9u;
            key1 += 0xbb67ae85u;
        }
        const u32 high0 = __umulhi(0xd2511f53u, a), low0 = 0xd2511f53u * a;
        const u32 high1 = __umulhi(0xcd9e8d57u, c), low1 = 0xcd9e8d57u * c;
        a = high1 ^ b ^ key0;
        b = low1;
        c = high0 ^ d ^ key1;
        d = low0;
    }
    return {{a, b, c, d}};
}

// A generator in a launch: its seed, and the number of the call.
struct Generator { u64 seed; u64 call; };

// `state` has the seed and the number of the next call.
DEVICE Generator generator(u64 state, u64 ahead) {
    const u64* words = (const u64*)state;
    return {words[0], words[1] + ahead};
}

// The number of an element, whose index is that without padding.
template <int UNROLLED = 10> DEVICE Random number(const Generator& g, u64 index) {
    const u64 block = index >> 1;
    const Block all = philox<UNROLLED>(
        (u32)block, (u32)(block >> 32), (u32)g.call, (u32)(g.call >> 32), (u32)g.seed, (u32)(g.seed >> 32));
    return (index & 1u) ? Random{all.word[2], all.word[3]} : Random{all.word[0], all.word[1]};
}

// The sizes of a result, and the real ones of those that are padded; 0 for the others.
struct Unpadded { u64 rank; u64 sizes[MAX_RANK]; u64 real[MAX_RANK]; };

// The index of element `n` of a result among those that are not padding.
DEVICE u64 unpadded(const Unpadded& of, u64 n) {
    u64 index = 0, weight = 1;
    for (int axis = (int)of.rank - 1; axis >= 0; --axis) {
        const u64 size = of.sizes[axis], rest = n / size;
        index += (n - rest * size) * weight;
        u64 real = size;
        if (of.real[axis]) {
            const u64 count = *(const u32*)of.real[axis];
            real = count < size ? count : size;
        }
        weight *= real;
        n = rest;
    }
    return index;
}

#define UNIT 2.3283064365386963e-10f

DEVICE u32 bits(Random r) { return r.first; }
DEVICE u32 more_bits(Random r) { return r.second; }
DEVICE f32 uniform(Random r) { return (f32)(r.first >> 8) * 5.9604644775390625e-8f; }
DEVICE u32 below(Random r, u32 n) {
    const u64 carried = (u64)r.second * n >> 32;
    return (u32)(((u64)r.first * n + carried) >> 32);
}
DEVICE f32 normal(Random r) {
    const f32 radius = __fsqrt_rn(-2.0f * logf(((f32)r.first + 0.5f) * UNIT));
    return radius * cosf(6.2831855f * ((f32)r.second * UNIT));
}
DEVICE f32 exponential(Random r) {
    const bool far = r.first >= 0x80000000u;
    const u32 first = far ? ~r.first : r.first, second = far ? ~r.second : r.second;
    const f32 tail = (f32)first * UNIT + ((f32)second + 0.5f) * (UNIT * UNIT);
    return far ? -logf(tail) : -log1pf(-tail);
}
DEVICE f32 gumbel(Random r) { return -logf(exponential(r)); }

#undef UNIT

}  // namespace lang

// The angles of rotary embedding. Sources that include it are compiled without contraction, so that all of them have the same
// bits.
#pragma once

struct RopeParams {
    u64 x;
    u64 y;  // contiguous
    u64 positions;
    u64 rows;   // B * T
    u64 times;  // T
    u64 heads;
    u64 size;        // elements of a head
    u64 strides[4];  // of x
    u64 position_strides[3];  // of a section, a batch, a time
    double log2_theta;
    // Of the frequency of a pair, the part `kept` is not scaled by `inverse` (frequencies.rs).
    double inverse, offset, per_pair, per_frequency;
    double magnitude;  // factor of sines and cosines
    double growth, original, exponent;  // of dynamic scaling; growth 0: none. `original` is also that of divisors
    u64 real[2];      // u32*: the number of real batches and times, for dynamic scaling; 0: all
    u32 half;         // pairs that rotate
    u32 interleaved;  // how they pair
    u32 sections;     // with a position each; 0: one position for all pairs
    u32 take_turns;   // whether the sections do
    u32 pairs[4];     // of each section
};
static_assert(sizeof(RopeParams) == 232, "mirrored by cuda.rs");

// The section of pair `i`; there are at least two.
DEVICE u32 section_of(const RopeParams& p, u32 i) {
    if (p.take_turns) {
        const u32 turn = i % p.sections;
        return i / p.sections < p.pairs[turn] ? turn : 0;
    }
    u32 section = 0, end = p.pairs[0];
    while (i >= end && section + 1 < p.sections) end += p.pairs[++section];
    return section;
}

// Turns per position of pair `i`.
DEVICE double turns_of(const RopeParams& p, double log2_base, u32 i) {
    // To divide by a power of two takes one instruction, and by another number many.
    const bool is_power = (p.half & (p.half - 1u)) == 0u;
    const double inverse_half = __hiloint2double((int)(1023u - (31u - (u32)__clz((int)p.half)) << 20), 0);
    const double part = is_power ? (double)i * inverse_half : (double)i / (double)p.half;
    double frequency = exp2(-part * log2_base);
    if (p.inverse != 1.0) {
        const double kept = fmin(fmax(p.offset + p.per_pair * (double)i + p.per_frequency * frequency, 0.0), 1.0);
        frequency *= (1.0 - kept) * p.inverse + kept;
    }
    return frequency * 0.15915494309189535;
}

// Where the position of pair `i` at row `row` is.
DEVICE const u32* rope_position(const RopeParams& p, u64 row, u32 i) {
    const u32* positions =
        (const u32*)p.positions + row / p.times * p.position_strides[1] + row % p.times * p.position_strides[2];
    return positions + (p.sections > 1 ? section_of(p, i) * p.position_strides[0] : 0);
}

// The sine and the cosine at position `at` of a pair that turns so often per position, times their factor.
DEVICE void rope_angle(const RopeParams& p, u32 at, double per_position, f32* sine, f32* cosine) {
    // In f64: in f32 the angle of a far position is off by more than a bf16 ulp.
    const double turns = (double)at * per_position;
    double s, c;
    sincospi(2.0 * (turns - rint(turns)), &s, &c);
    *sine = (f32)(s * p.magnitude);
    *cosine = (f32)(c * p.magnitude);
}

// The first and the second element of a pair, turned.
DEVICE f32 rope_first(f32 a, f32 z, f32 sine, f32 cosine) { return a * cosine - z * sine; }
DEVICE f32 rope_second(f32 a, f32 z, f32 sine, f32 cosine) { return a * sine + z * cosine; }

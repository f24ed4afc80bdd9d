// The number of the body that runs next, from a value on the device.
// Types: none
#include "common.cuh"

#define STOP 1u
#define CASES 32u

// `*to = *pred ? 0 : 1`
struct ChooseParams {
    u64 pred;  // boolean*
    u64 to;    // u32*
};
static_assert(sizeof(ChooseParams) == 16, "mirrored by cuda.rs");

extern "C" __global__ void choose(const ChooseParams p) {
    in_order();
    *(u32*)p.to = *(const u8*)p.pred ? 0u : 1u;
}

// `*to` is the body of the value that is `*index`, among `n`; if there is none, the default, unless earlier values
// were looked at.
struct CaseParams {
    u64 index;  // u32*
    u64 to;     // u32*
    u32 n;
    u32 is_first;
    u32 other;  // the default
    u32 pad;
    u32 values[CASES];
    u32 bodies[CASES];
};
static_assert(sizeof(CaseParams) == 288, "mirrored by cuda.rs");

extern "C" __global__ void choose_case(const CaseParams p) {
    in_order();
    const u32 index = *(const u32*)p.index;
    for (u32 i = 0; i < p.n; ++i) {
        if (p.values[i] == index) {
            *(u32*)p.to = p.bodies[i];
            return;
        }
    }
    if (p.is_first) *(u32*)p.to = p.other;
}

struct LoopParams {
    u64 pred;    // boolean*
    u64 to;      // u32*: 0, or `STOP`
    u64 rounds;  // u32*
    FaultSink sink;
    u32 op;
    u32 limit;
};
static_assert(sizeof(LoopParams) == 48, "mirrored by cuda.rs");

extern "C" __global__ void begin_loop(const LoopParams p) {
    in_order();
    *(u32*)p.to = *(const u8*)p.pred ? 0u : STOP;
    *(u32*)p.rounds = 0u;
}

extern "C" __global__ void next_round(const LoopParams p) {
    in_order();
    const u32 rounds = *(const u32*)p.rounds + 1u;
    const bool goes_on = *(const u8*)p.pred, is_over = rounds >= p.limit;
    *(u32*)p.rounds = rounds;
    *(u32*)p.to = goes_on && !is_over ? 0u : STOP;
    if (goes_on && is_over) report(p.sink, p.op, rounds, p.limit);
}

// Generators of random numbers: a seed, and the number of the next call.
// Types: none
#include "common.cuh"
#include "random.cuh"

struct AdvanceParams { u64 state; u64 by; };
static_assert(sizeof(AdvanceParams) == 16, "mirrored by cuda.rs");

extern "C" __global__ void advance(const __grid_constant__ AdvanceParams p) { in_order();
    ((u64*)p.state)[1] += p.by;
}

struct ForkParams { u64 parent; u64 child; };
static_assert(sizeof(ForkParams) == 16, "mirrored by cuda.rs");

extern "C" __global__ void fork(const __grid_constant__ ForkParams p) { in_order();
    u64 *const parent = (u64*)p.parent, *const child = (u64*)p.child;
    const Random seed = lang::number(lang::generator(p.parent, 0), 0);
    child[0] = (u64)seed.second << 32 | seed.first;
    child[1] = 0;
    parent[1] += 1;
}

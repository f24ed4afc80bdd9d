// Tells a conditional node what to run, from the number of a body on the device.
// Types: none
#include "common.cuh"

// Of the device's runtime; the driver supplies it.
extern "C" __device__ void cudaGraphSetConditional(u64 handle, u32 value);

// With `is_switch`, the node runs the body of that number; without, it runs its one body if the number is `body`.
struct ConditionalParams {
    u64 handle;
    u64 selector;  // u32*
    u32 is_switch;
    u32 body;
};
static_assert(sizeof(ConditionalParams) == 24, "mirrored by conditional.rs");

extern "C" __global__ void set_conditional(const ConditionalParams p) {
    in_order();
    const u32 selected = *(const u32*)p.selector;
    cudaGraphSetConditional(p.handle, p.is_switch ? selected : (selected == p.body ? 1u : 0u));
}

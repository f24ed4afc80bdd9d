// Elements for memory of the host, which reads it meanwhile.
// Types: none
#include "common.cuh"

struct AppendParams {
    u64 from;   // elements of `size` bytes
    u64 count;  // u32*: how many of the rows are real; 0 if all are
    u64 state;  // u32*: the number of the reading, and how many elements it was given
    u64 log;    // on the host: a header of 8 bytes, and behind it a word for each element
    u32 elements;
    u32 width;  // elements of a row
    u32 size;
    u32 capacity;
};
static_assert(sizeof(AppendParams) == 48, "mirrored by cuda.rs");

DEVICE u32 bits_of(u64 from, u32 i, u32 size) {
    if (size == 1) return ((const u8*)from)[i];
    if (size == 2) return ((const unsigned short*)from)[i];
    return ((const u32*)from)[i];
}

// One block, so that one thread can say when all elements are there.
extern "C" __global__ void append(const __grid_constant__ AppendParams p) {
    in_order();
    u32* const state = (u32*)p.state;
    const u32 number = state[0], given = state[1];
    u32 real = p.elements;
    if (p.count) {
        const u64 rows = *(const u32*)p.count;
        real = rows * p.width < p.elements ? (u32)(rows * p.width) : p.elements;
    }
    volatile u32* const words = (volatile u32*)(p.log + 8);
    for (u64 i = threadIdx.x; i < real && given + i < p.capacity; i += blockDim.x) {
        words[given + i] = bits_of(p.from, (u32)i, p.size);
    }
    // What a thread has written is on the host before the header that counts it.
    __threadfence_system();
    __syncthreads();
    if (threadIdx.x == 0) {
        const u32 now = given + real < given ? 0xffffffffu : given + real;
        state[1] = now;
        __threadfence_system();
        *(volatile u64*)p.log = (u64)number << 32 | now;
    }
}

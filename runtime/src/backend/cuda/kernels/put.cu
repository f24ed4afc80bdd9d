// The first kernel of a graph: host values and device inputs, scattered to where the graph reads
// them. Everything travels as the kernel's parameters, which are replaced before each launch, so
// nothing is staged and nobody waits.
#include "common.cuh"

// One destination. `from` is an offset into the payload (kind 0) or a device address (kind 1).
struct Put {
    u64 to;
    u64 from;
    u32 bytes;
    u32 kind;
};

#define PUT(NAME, PAYLOAD)                                                            \
    struct NAME##Params {                                                             \
        u32 count;                                                                    \
        u32 pad[3];                                                                   \
        alignas(16) u8 payload[PAYLOAD];                                              \
    };                                                                                \
    extern "C" __global__ void __launch_bounds__(256)                                 \
        NAME(const __grid_constant__ NAME##Params p) {                                \
        run(p.count, (const u8*)p.payload);                                           \
    }

// The payload starts with `count` puts; what they copy from follows.
DEVICE void run(u32 count, const u8* payload) {
    for (u32 n = blockIdx.x; n < count; n += gridDim.x) {
        const Put put = ((const Put*)payload)[n];
        const u8* from = put.kind ? (const u8*)put.from : payload + put.from;
        u8* to = (u8*)put.to;
        if (((put.to | (u64)from | put.bytes) & 15u) == 0) {
            for (u32 i = threadIdx.x; i < put.bytes / 16; i += blockDim.x) {
                ((Words*)to)[i] = ((const Words*)from)[i];
            }
        } else {
            for (u32 i = threadIdx.x; i < put.bytes; i += blockDim.x) to[i] = from[i];
        }
    }
}

PUT(put_240, 240)
PUT(put_1k, 1008)
PUT(put_4k, 4064)

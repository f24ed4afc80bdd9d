// Elements made from nothing.
// Types: none
#include "common.cuh"

// `pattern` is the element, repeated to eight bytes.
struct FillParams { u64 to; u64 bytes; u64 pattern; };
static_assert(sizeof(FillParams) == 24, "mirrored by cuda.rs");

KERNEL(fill, 256)(const __grid_constant__ FillParams p) { in_order();
    u64 first = (u64)blockIdx.x * blockDim.x + threadIdx.x, all = (u64)gridDim.x * blockDim.x;
    u64 words = (p.to & 15) == 0 ? p.bytes / 16 : 0;
    const u32 low = (u32)p.pattern, high = (u32)(p.pattern >> 32);
    Raw<16> word = {{low, high, low, high}};
    for (u64 n = first; n < words; n += all) ((Raw<16>*)p.to)[n] = word;
    for (u64 n = words * 16 + first; n < p.bytes; n += all) {
        ((u8*)p.to)[n] = (u8)(p.pattern >> (8 * (n & 7)));
    }
}

struct ArangeParams { u64 to; u64 count; double start; double step; };
static_assert(sizeof(ArangeParams) == 32, "mirrored by cuda.rs");

// Two roundings, as on the host: no fused multiply and add.
#define ARANGE(NAME, E, VALUE)                                                       \
    KERNEL(arange_##NAME, 256)(const __grid_constant__ ArangeParams p) { in_order(); \
        u64 first = (u64)blockIdx.x * blockDim.x + threadIdx.x;                      \
        for (u64 n = first; n < p.count; n += (u64)gridDim.x * blockDim.x) {         \
            double v = __dadd_rn(p.start, __dmul_rn((double)n, p.step));             \
            ((E*)p.to)[n] = VALUE;                                                   \
        }                                                                            \
    }
ARANGE(f32, f32, (f32)v)
ARANGE(f16, f16, from_f32<f16>(odd_f32(v)))
ARANGE(bf16, bf16, from_f32<bf16>(odd_f32(v)))
ARANGE(i32, i32, Saturate<i32>::of(v))
ARANGE(u32, u32, Saturate<u32>::of(v))
ARANGE(u8, u8, Saturate<u8>::of(v))
ARANGE(f64, f64, v)
ARANGE(i64, i64, Saturate<i64>::of(v))
ARANGE(i8, i8, Saturate<i8>::of(v))
ARANGE(boolean, u8, (u8)(v != 0.0 ? 1 : 0))

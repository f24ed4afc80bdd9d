// Rotary embedding: a block takes the heads of one position, so that the table of angles is
// computed once for all of them.
// Types: floats
#include "common.cuh"

#define THREADS 256
#define PAIRS 512  // of the table

struct Params {
    u64 x;
    u64 y;  // contiguous
    u64 positions;
    u64 rows;   // B * T
    u64 times;  // T
    u64 heads;
    u64 size;        // elements of a head
    u64 strides[4];  // of x
    u64 position_strides[2];
    double log2_theta;
    u32 half;         // pairs that rotate
    u32 interleaved;  // how they pair
};
static_assert(sizeof(Params) == 120, "mirrored by cuda.rs");

// Writes the rotated heads of row `row` of `x` to `y`, which holds all heads of one row. The whole block
// calls; heads are dealt out over grid.y.
DEVICE void turn(const Params& p, u64 row, T* y) {
    __shared__ f32 sines[PAIRS], cosines[PAIRS];
    const u64 first = p.heads * blockIdx.y / gridDim.y;
    const u64 heads = p.heads * (blockIdx.y + 1) / gridDim.y - first;
    const u64 rest = p.size - 2ull * p.half;
    const u64 b = row / p.times, t = row % p.times;
    const T* x = (const T*)p.x + b * p.strides[0] + t * p.strides[1] + first * p.strides[2];
    y += first * p.size;
    const u32 position = ((const u32*)p.positions)[b * p.position_strides[0] + t * p.position_strides[1]];
    for (u32 from = 0; from < p.half; from += PAIRS) {
        const u32 n = p.half - from < PAIRS ? p.half - from : PAIRS;
        __syncthreads();
        for (u32 i = threadIdx.x; i < n; i += THREADS) {
            // In f64: in f32 the angle of a far position is off by more than a bf16 ulp.
            const double turns =
                (double)position * exp2(-(double)(from + i) / (double)p.half * p.log2_theta) * 0.15915494309189535;
            double s, c;
            sincospi(2.0 * (turns - rint(turns)), &s, &c);
            sines[i] = (f32)s;
            cosines[i] = (f32)c;
        }
        __syncthreads();
        for (u64 e = threadIdx.x; e < heads * n; e += THREADS) {
            const u64 head = e / n;
            const u32 i = (u32)(e - head * n);
            const u64 at = p.interleaved ? 2ull * (from + i) : from + i;
            const u64 other = p.interleaved ? at + 1 : at + p.half;
            const T* in = x + head * p.strides[2];
            const f32 a = to_f32(in[at * p.strides[3]]), z = to_f32(in[other * p.strides[3]]);
            y[head * p.size + at] = from_f32<T>(a * cosines[i] - z * sines[i]);
            y[head * p.size + other] = from_f32<T>(a * sines[i] + z * cosines[i]);
        }
    }
    for (u64 e = threadIdx.x; e < heads * rest; e += THREADS) {
        const u64 head = e / rest;
        const u64 at = 2ull * p.half + e - head * rest;
        y[head * p.size + at] = x[head * p.strides[2] + at * p.strides[3]];
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) rope(const __grid_constant__ Params p) { in_order();
    for (u64 row = blockIdx.x; row < p.rows; row += gridDim.x) turn(p, row, (T*)p.y + row * p.heads * p.size);
}

// Each row goes to a row of a state, if it is written.
struct ScatterParams {
    Params rope;  // `y` is the state
    Places to;
};
static_assert(sizeof(ScatterParams) == 200, "mirrored by cuda.rs");

extern "C" __global__ void __launch_bounds__(THREADS) rope_scatter(const __grid_constant__ ScatterParams p) { in_order();
    const u64 n = p.to.count();
    for (u64 row = blockIdx.x; row < n; row += gridDim.x) {
        u64 slot;
        if (p.to.place(row, n, &slot)) turn(p.rope, row, (T*)p.rope.y + slot * p.rope.heads * p.rope.size);
    }
}

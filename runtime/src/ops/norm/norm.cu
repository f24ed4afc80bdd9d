// Layer norm and RMS norm over the last axis: `lanes` threads to a row.
// Types: floats
#include "common.cuh"

#define THREADS 256
#define HELD 4  // vectors of a row that a thread keeps

struct Params {
    View rows;  // first elements of the rows
    u64 weight;
    u64 bias;  // 0: none
    u64 y;     // contiguous
    u64 count;
    u64 len;
    u64 stride;
    u64 weight_stride;
    u64 bias_stride;
    u32 lanes;   // a power of two
    u32 vector;  // all is contiguous, aligned to 16 bytes, and fits in what threads hold
    f32 eps;
    u32 pad;
};
static_assert(sizeof(Params) == 192, "mirrored by cuda.rs");

// What is added to each row first, and where the sum goes.
struct Added {
    View rows;
    u64 stride;
    u64 sum;  // contiguous
};

struct AddParams {
    Params norm;
    Added added;
};
static_assert(sizeof(AddParams) == 320, "mirrored by cuda.rs");

#define V ((u32)(16 / sizeof(T)))
union Vector {
    Words words;
    T at[16 / sizeof(T)];
    DEVICE Vector() {}
};

// The sum over the lanes of each row, known to all of them. All threads of the block call.
DEVICE f32 across(u32 lanes, f32 x) {
    __shared__ f32 sums[THREADS / WARP];
    if (lanes <= WARP) {
        for (u32 d = lanes / 2; d; d /= 2) x += __shfl_xor_sync(FULL, x, d);
        return x;
    }
    x = warp_sum(x);
    __syncthreads();
    if (threadIdx.x % WARP == 0) sums[threadIdx.x / WARP] = x;
    __syncthreads();
    const u32 warps = lanes / WARP;
    const u32 first = threadIdx.x / lanes * warps;
    f32 sum = 0.f;
    for (u32 i = 0; i < warps; ++i) sum += sums[first + i];
    return sum;
}

// `added`, unless null, is added to the row; `total` gets the sum.
template <bool LAYER, bool ADD>
DEVICE void held(const Params& p, const T* x, const T* added, T* total, T* y, u32 lane, bool real) {
    const T* weight = (const T*)p.weight;
    const T* bias = (const T*)p.bias;
    const u64 step = (u64)p.lanes * V;
    const u64 len = real ? p.len : 0;
    Vector v[HELD];
    f32 sum = 0.f;
#pragma unroll
    for (u32 i = 0; i < HELD; ++i) {
        const u64 k = i * step + (u64)lane * V;
        if (k >= len) continue;
        v[i].words = *(const Words*)(x + k);
        if (ADD) {
            Vector a;
            a.words = *(const Words*)(added + k);
#pragma unroll
            for (u32 j = 0; j < V; ++j) v[i].at[j] = from_f32<T>(to_f32(v[i].at[j]) + to_f32(a.at[j]));
            *(Words*)(total + k) = v[i].words;
        }
    }
#pragma unroll
    for (u32 i = 0; i < HELD; ++i) {
        if (i * step + (u64)lane * V >= len) continue;
#pragma unroll
        for (u32 j = 0; j < V; ++j) {
            const f32 e = to_f32(v[i].at[j]);
            sum += LAYER ? e : e * e;
        }
    }
    sum = across(p.lanes, sum) / (f32)p.len;
    f32 mean = 0.f;
    if (LAYER) {
        mean = sum;
        sum = 0.f;
#pragma unroll
        for (u32 i = 0; i < HELD; ++i) {
            if (i * step + (u64)lane * V >= len) continue;
#pragma unroll
            for (u32 j = 0; j < V; ++j) {
                const f32 e = to_f32(v[i].at[j]) - mean;
                sum += e * e;
            }
        }
        sum = across(p.lanes, sum) / (f32)p.len;
    }
    const f32 factor = 1.f / sqrtf(sum + p.eps);
#pragma unroll
    for (u32 i = 0; i < HELD; ++i) {
        const u64 k = i * step + (u64)lane * V;
        if (k >= len) continue;
        Vector w, b;
        w.words = *(const Words*)(weight + k);
        if (LAYER && bias) b.words = *(const Words*)(bias + k);
#pragma unroll
        for (u32 j = 0; j < V; ++j) {
            f32 e = (to_f32(v[i].at[j]) - mean) * factor * to_f32(w.at[j]);
            if (LAYER && bias) e += to_f32(b.at[j]);
            v[i].at[j] = from_f32<T>(e);
        }
        *(Words*)(y + k) = v[i].words;
    }
}

// Any strides and lengths; rows are read again for each pass.
template <bool LAYER, bool ADD>
DEVICE void reread(const Params& p, const T* x, const T* added, u64 added_stride, T* total, T* y, u32 lane, bool real) {
    const u64 len = real ? p.len : 0;
    u64 stride = p.stride;
    if (ADD) {
        // Each thread reads back only what it wrote.
        for (u64 k = lane; k < len; k += p.lanes)
            total[k] = from_f32<T>(to_f32(x[k * stride]) + to_f32(added[k * added_stride]));
        x = total;
        stride = 1;
    }
    f32 sum = 0.f;
    for (u64 k = lane; k < len; k += p.lanes) {
        const f32 e = to_f32(x[k * stride]);
        sum += LAYER ? e : e * e;
    }
    sum = across(p.lanes, sum) / (f32)p.len;
    f32 mean = 0.f;
    if (LAYER) {
        mean = sum;
        sum = 0.f;
        for (u64 k = lane; k < len; k += p.lanes) {
            const f32 e = to_f32(x[k * stride]) - mean;
            sum += e * e;
        }
        sum = across(p.lanes, sum) / (f32)p.len;
    }
    const f32 factor = 1.f / sqrtf(sum + p.eps);
    for (u64 k = lane; k < len; k += p.lanes) {
        f32 e = (to_f32(x[k * stride]) - mean) * factor * to_f32(((const T*)p.weight)[k * p.weight_stride]);
        if (LAYER && p.bias) e += to_f32(((const T*)p.bias)[k * p.bias_stride]);
        y[k] = from_f32<T>(e);
    }
}

template <bool LAYER, bool ADD> DEVICE void rows(const Params& p, const Added* a) {
    const u32 lane = threadIdx.x % p.lanes;
    const u64 together = THREADS / p.lanes;
    for (u64 base = blockIdx.x * together; base < p.count; base += gridDim.x * together) {
        const u64 row = base + threadIdx.x / p.lanes;
        const bool real = row < p.count;
        const T* x = (const T*)p.rows.addr + (real ? offset_of(p.rows, row) : 0);
        T* y = (T*)p.y + row * p.len;
        const T* added = ADD ? (const T*)a->rows.addr + (real ? offset_of(a->rows, row) : 0) : nullptr;
        T* total = ADD ? (T*)a->sum + row * p.len : nullptr;
        if (p.vector) {
            held<LAYER, ADD>(p, x, added, total, y, lane, real);
        } else {
            reread<LAYER, ADD>(p, x, added, ADD ? a->stride : 0, total, y, lane, real);
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) layer_norm(const __grid_constant__ Params p) { in_order(); rows<true, false>(p, nullptr); }
extern "C" __global__ void __launch_bounds__(THREADS) rms_norm(const __grid_constant__ Params p) { in_order(); rows<false, false>(p, nullptr); }
// Four blocks: for five, the compiler spills.
extern "C" __global__ void __launch_bounds__(THREADS, 4) add_rms_norm(const __grid_constant__ AddParams p) { in_order(); rows<false, true>(p.norm, &p.added); }

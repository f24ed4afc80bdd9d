// Reductions over one axis, and what normalises a slice by one: softmax and the L2 norm.
//
// A block takes some slices at once, each with `lanes` threads. Where the axis is contiguous the
// lanes of a slice are neighbours; else neighbours are different slices, so that loads coalesce.
// Few, long slices are cut into `splits` pieces (grid.y): partial results go through the workspace.
// Types: narrow
#include "common.cuh"

#define THREADS 256

struct Params {
    View starts;  // first elements of the slices
    View mask;    // the same for the mask
    u64 mask_stride;
    u64 real;  // u32*: how many elements of a slice are real, those behind being padding; 0: all
    u64 y;
    u64 partials;  // count * splits accumulators
    u64 count;     // slices
    u64 len;       // elements of a slice
    u64 stride;
    u64 inner;  // elements of y between neighbours of a slice
    u64 chunk;  // elements of a piece
    u32 lanes;  // a power of two
    u32 splits;
    u32 along;       // lanes of a slice are neighbours
    u32 vector;      // slices are contiguous and aligned to 16 bytes
    u32 vector_out;  // and so are those of y
    f32 eps;
    u32 total;  // of masked elements: their sum, not their mean
    u32 pad;
};
static_assert(sizeof(Params) == 328, "mirrored by cuda.rs");

// What T computes in.
#if defined(T_f32) || defined(T_f16) || defined(T_bf16)
#define FLOAT 1
typedef f32 C;
DEVICE C up(T x) { return to_f32(x); }
DEVICE T down(C x) { return from_f32<T>(x); }
#define LOWEST __int_as_float(0xff800000)
DEVICE bool is_nan(C x) { return x != x; }
#else
#define FLOAT 0
#if defined(T_i32)
typedef i32 C;
#define LOWEST ((i32)0x80000000)
#else
typedef u32 C;
#define LOWEST 0u
#endif
#if defined(T_boolean)
DEVICE C up(T x) { return x.bits; }
DEVICE T down(C x) { T r; r.bits = (u8)x; return r; }
#else
DEVICE C up(T x) { return (C)x; }
DEVICE T down(C x) { return (T)x; }
#endif
DEVICE bool is_nan(C) { return false; }
#endif

// Integers wrap.
#if defined(T_i32)
DEVICE C add(C a, C b) { return (C)((u32)a + (u32)b); }
#else
DEVICE C add(C a, C b) { return a + b; }
#endif

#define V ((u32)(16 / sizeof(T)))
union Vector {
    Words words;
    T at[16 / sizeof(T)];
    DEVICE Vector() {}
};

// ---- accumulators: `take` an element, `join` another accumulator, `finish` to the result

struct Sum {
    typedef T Out;
    C sum;
    static DEVICE Sum none() { return {0}; }
    DEVICE void take(C x, u64) { sum = add(sum, x); }
    DEVICE void join(const Sum& o) { sum = add(sum, o.sum); }
    DEVICE T finish(const Params&) const { return down(sum); }
};

struct Mean {
    typedef T Out;
#if FLOAT
    f32 sum;
    static DEVICE Mean none() { return {0.f}; }
    DEVICE void take(C x, u64) { sum += x; }
    DEVICE void join(const Mean& o) { sum += o.sum; }
    DEVICE T finish(const Params& p) const { return down(sum / (f32)p.len); }
#else
    double sum;
    static DEVICE Mean none() { return {0.0}; }
    DEVICE void take(C x, u64) { sum += (double)x; }
    DEVICE void join(const Mean& o) { sum += o.sum; }
    DEVICE T finish(const Params& p) const { return down(p.len ? (C)(sum / (double)p.len) : (C)0); }
#endif
};

struct Max {
    typedef T Out;
    C max;
    static DEVICE Max none() { return {LOWEST}; }
    DEVICE void take(C x, u64) { if (x > max || is_nan(x)) max = x; }
    DEVICE void join(const Max& o) { take(o.max, 0); }
    DEVICE T finish(const Params&) const { return down(max); }
};

#if FLOAT
#define INF __int_as_float(0x7f800000)

// The largest number (NaN does not count) and the sum of e^(x - max), in which NaN spreads.
struct Exps {
    f32 max;
    f32 sum;
    static DEVICE Exps none() { return {-INF, 0.f}; }
    DEVICE void take(f32 x, u64) {
        if (x > max) {
            // x - x: infinity gives NaN, as it does where the maximum is known beforehand.
            sum = sum * expf(max - x) + expf(x - x);
            max = x;
        } else if (x != -INF) {
            sum += expf(x - max);
        }
    }
    DEVICE void join(const Exps& o) {
        if (o.max > max) {
            sum = sum * expf(max - o.max) + o.sum;
            max = o.max;
        } else {
            sum += o.sum * (o.max == max ? 1.f : expf(o.max - max));
        }
    }
};

struct Softmax : Exps {
    DEVICE Softmax(const Exps& e) : Exps(e) {}
    DEVICE Softmax() {}
    static DEVICE Softmax none() { return Exps::none(); }
    DEVICE void prepare(const Params&) {}
    DEVICE f32 map(f32 x) const {
        if (max == -INF) return sum;  // 0, or NaN if there was one
        return expf(x - max) / sum;
    }
};

struct LogSoftmax : Exps {
    DEVICE LogSoftmax(const Exps& e) : Exps(e) {}
    DEVICE LogSoftmax() {}
    static DEVICE LogSoftmax none() { return Exps::none(); }
    DEVICE void prepare(const Params&) { if (max != -INF) sum = logf(sum); }
    DEVICE f32 map(f32 x) const {
        if (max == -INF) return is_nan(sum) ? sum : -INF;
        return x - max - sum;
    }
};

struct Norm {
    f32 sum;
    static DEVICE Norm none() { return {0.f}; }
    DEVICE void take(f32 x, u64) { sum += x * x; }
    DEVICE void join(const Norm& o) { sum += o.sum; }
    DEVICE void prepare(const Params& p) {
        sum = sqrtf(sum);
        if (sum < p.eps) sum = p.eps;
    }
    DEVICE f32 map(f32 x) const { return x / sum; }
};

struct Weighted {
    typedef T Out;
    f32 sum;
    f32 weights;
    static DEVICE Weighted none() { return {0.f, 0.f}; }
    // A weight of 0 drops the element whatever it holds: padding may be NaN.
    DEVICE void take(f32 x, f32 m) {
        if (m != 0.f) sum += x * m;
        weights += m;
    }
    DEVICE void join(const Weighted& o) { sum += o.sum; weights += o.weights; }
    DEVICE T finish(const Params& p) const {
        return down(p.total ? sum : sum / (weights < 1e-9f ? 1e-9f : weights));
    }
};
#endif

// ---- the part of a thread

struct Place {
    u32 slice;  // within the block
    u32 lane;
    u32 slices;  // of the block
    u32 step;    // threads between neighbouring lanes
};

DEVICE Place place(const Params& p) {
    Place at;
    at.slices = THREADS / p.lanes;
    if (p.along) {
        at.lane = threadIdx.x % p.lanes;
        at.slice = threadIdx.x / p.lanes;
        at.step = 1;
    } else {
        at.slice = threadIdx.x % at.slices;
        at.lane = threadIdx.x / at.slices;
        at.step = at.slices;
    }
    return at;
}

template <class A> DEVICE A gather(const Params& p, const T* x, u64 from, u64 to, u32 lane) {
    A acc = A::none();
    if (p.vector) {
        u64 whole = from + (to - from) / V * V;
#pragma unroll 4
        for (u64 k = from + (u64)lane * V; k < whole; k += (u64)p.lanes * V) {
            Vector v;
            v.words = *(const Words*)(x + k);
#pragma unroll
            for (u32 j = 0; j < V; ++j) acc.take(up(v.at[j]), k + j);
        }
        for (u64 k = whole + lane; k < to; k += p.lanes) acc.take(up(x[k]), k);
    } else {
        // Sums of 64 each: the rounding error does not grow with the length alone.
        for (u64 k = from + lane; k < to;) {
            A part = A::none();
            u64 end = k + 64ull * p.lanes;
            if (end > to) end = to;
#pragma unroll 4
            for (; k < end; k += p.lanes) part.take(up(x[k * p.stride]), k);
            acc.join(part);
        }
    }
    return acc;
}

// Joins the lanes of each slice; all of its threads get the result. All threads of the block call.
template <class A> DEVICE A across(const Params& p, const Place& at, A acc) {
    __shared__ __align__(16) u8 room[THREADS * 16];
    static_assert(sizeof(A) <= 16, "room for accumulators");
    A* all = (A*)room;
    __syncthreads();
    all[threadIdx.x] = acc;
    for (u32 d = p.lanes / 2; d; d /= 2) {
        __syncthreads();
        if (at.lane < d) {
            acc.join(all[threadIdx.x + d * at.step]);
            all[threadIdx.x] = acc;
        }
    }
    __syncthreads();
    return all[threadIdx.x - at.lane * at.step];
}

// ---- reductions

template <class A> DEVICE void store_slice(const Params& p, const Place& at, u64 s, A acc) {
    acc = across(p, at, acc);
    if (at.lane == 0 && s < p.count) {
        if (p.splits > 1) {
            ((A*)p.partials)[s * p.splits + blockIdx.y] = acc;
        } else {
            ((typename A::Out*)p.y)[s] = acc.finish(p);
        }
    }
}

template <class A> DEVICE void fold(const Params& p) {
    const Place at = place(p);
    const u64 from = blockIdx.y * p.chunk;
    const u64 to = from + p.chunk < p.len ? from + p.chunk : p.len;
    for (u64 base = (u64)blockIdx.x * at.slices; base < p.count; base += (u64)gridDim.x * at.slices) {
        const u64 s = base + at.slice;
        A acc = A::none();
        if (s < p.count) acc = gather<A>(p, (const T*)p.starts.addr + offset_of(p.starts, s), from, to, at.lane);
        store_slice(p, at, s, acc);
    }
}

// The second pass over pieces: a warp per slice.
template <class A> DEVICE A pieces(const Params& p, u64 s, u32 lane) {
    A acc = A::none();
    for (u32 i = lane; i < p.splits; i += p.lanes) acc.join(((const A*)p.partials)[s * p.splits + i]);
    return acc;
}

template <class A> DEVICE void join(const Params& p) {
    const Place at = place(p);
    for (u64 base = (u64)blockIdx.x * at.slices; base < p.count; base += (u64)gridDim.x * at.slices) {
        const u64 s = base + at.slice;
        A acc = A::none();
        if (s < p.count) acc = pieces<A>(p, s, at.lane);
        acc = across(p, at, acc);
        if (at.lane == 0 && s < p.count) ((typename A::Out*)p.y)[s] = acc.finish(p);
    }
}

#define REDUCE(NAME, BODY)                                                   \
    KERNEL(NAME, THREADS, 2)(const __grid_constant__ Params p) { in_order(); \
        BODY;                                                                \
    }
#define FOLD(NAME, A) REDUCE(NAME, fold<A>(p)) REDUCE(NAME##_join, join<A>(p))

FOLD(reduce_sum, Sum)
FOLD(reduce_mean, Mean)
FOLD(reduce_max, Max)

#if FLOAT
// ---- masked mean

DEVICE void masked(const Params& p) {
    const Place at = place(p);
    u64 len = p.len;
    if (p.real) {
        const u64 real = *(const u32*)p.real;
        len = real < len ? real : len;
    }
    const u64 from = blockIdx.y * p.chunk;
    const u64 to = from + p.chunk < len ? from + p.chunk : len;
    for (u64 base = (u64)blockIdx.x * at.slices; base < p.count; base += (u64)gridDim.x * at.slices) {
        const u64 s = base + at.slice;
        Weighted acc = Weighted::none();
        if (s < p.count && from < to) {
            const T* x = (const T*)p.starts.addr + offset_of(p.starts, s);
            const boolean* mask = (const boolean*)p.mask.addr + offset_of(p.mask, s);
            for (u64 k = from + at.lane; k < to;) {
                Weighted part = Weighted::none();
                u64 end = k + 64ull * p.lanes;
                if (end > to) end = to;
#pragma unroll 4
                for (; k < end; k += p.lanes) part.take(up(x[k * p.stride]), mask[k * p.mask_stride].bits ? 1.f : 0.f);
                acc.join(part);
            }
        }
        store_slice(p, at, s, acc);
    }
}

REDUCE(masked_mean, masked(p))
REDUCE(masked_mean_join, join<Weighted>(p))

// ---- slices normalised by what they reduce to

template <class A> DEVICE void spread(const Params& p, const T* x, u64 s, u64 from, u64 to, u32 lane, A acc) {
    acc.prepare(p);
    T* y = (T*)p.y + s / p.inner * p.len * p.inner + s % p.inner;
    if (p.vector_out) {
        // len is a multiple of V, and so is every piece.
        for (u64 k = from + (u64)lane * V; k < to; k += (u64)p.lanes * V) {
            Vector v;
            v.words = *(const Words*)(x + k);
#pragma unroll
            for (u32 j = 0; j < V; ++j) v.at[j] = down(acc.map(up(v.at[j])));
            *(Words*)(y + k) = v.words;
        }
    } else {
        for (u64 k = from + lane; k < to; k += p.lanes) y[k * p.inner] = down(acc.map(up(x[k * p.stride])));
    }
}

template <class A> DEVICE void whole(const Params& p) {
    const Place at = place(p);
    for (u64 base = (u64)blockIdx.x * at.slices; base < p.count; base += (u64)gridDim.x * at.slices) {
        const u64 s = base + at.slice;
        const T* x = (const T*)p.starts.addr + (s < p.count ? offset_of(p.starts, s) : 0);
        A acc = A::none();
        if (s < p.count) acc = gather<A>(p, x, 0, p.len, at.lane);
        acc = across(p, at, acc);
        if (s < p.count) spread(p, x, s, 0, p.len, at.lane, acc);
    }
}

template <class A> DEVICE void piece(const Params& p) {
    const Place at = place(p);
    const u64 from = blockIdx.y * p.chunk;
    const u64 to = from + p.chunk < p.len ? from + p.chunk : p.len;
    for (u64 base = (u64)blockIdx.x * at.slices; base < p.count; base += (u64)gridDim.x * at.slices) {
        const u64 s = base + at.slice;
        A acc = A::none();
        if (s < p.count) acc = gather<A>(p, (const T*)p.starts.addr + offset_of(p.starts, s), from, to, at.lane);
        acc = across(p, at, acc);
        if (at.lane == 0 && s < p.count) ((A*)p.partials)[s * p.splits + blockIdx.y] = acc;
    }
}

template <class A> DEVICE void piece_spread(const Params& p) {
    const Place at = place(p);
    const u64 from = blockIdx.y * p.chunk;
    const u64 to = from + p.chunk < p.len ? from + p.chunk : p.len;
    for (u64 base = (u64)blockIdx.x * at.slices; base < p.count; base += (u64)gridDim.x * at.slices) {
        const u64 s = base + at.slice;
        A acc = A::none();
        if (s < p.count) acc = pieces<A>(p, s, at.lane);
        acc = across(p, at, acc);
        if (s < p.count) {
            spread(p, (const T*)p.starts.addr + offset_of(p.starts, s), s, from, to, at.lane, acc);
        }
    }
}

#define NORMALIZE(NAME, A)             \
    REDUCE(NAME, whole<A>(p))          \
    REDUCE(NAME##_piece, piece<A>(p))  \
    REDUCE(NAME##_spread, piece_spread<A>(p))

NORMALIZE(softmax, Softmax)
NORMALIZE(log_softmax, LogSoftmax)
NORMALIZE(l2_normalize, Norm)
#endif

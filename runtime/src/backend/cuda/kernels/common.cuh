// Shared by all kernel files: element types that need no toolkit header, so that NVRTC alone suffices,
// strided views, and the fault word.
#pragma once

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef int i32;
typedef long long i64;
typedef float f32;
typedef double f64;
typedef signed char i8;

static_assert(sizeof(u64) == 8, "the host writes 64-bit words");

struct f16 { u16 bits; };
struct bf16 { u16 bits; };
// Stored as 0 or 1.
struct boolean { u8 bits; };

#define MAX_RANK 6
#define DEVICE __device__ __forceinline__
#define WARP 32u
#define FULL 0xffffffffu

// ---- kernels

// `KERNEL(NAME, BOUNDS)(PARAMETERS) { BODY }` is a kernel with these launch bounds. With the macro `ALONE` a source is compiled
// for the one kernel for which `ALONE_<NAME>` is defined as `CHOSEN`: the others become templates, of which no code is made.
#ifdef ALONE
#define CHOSEN ~, extern "C"
#define SECOND_OF(FIRST, SECOND, ...) SECOND
#define LINKAGE_OF(...) SECOND_OF(__VA_ARGS__, template <int = 0>, )
#define KERNEL(NAME, ...) LINKAGE_OF(ALONE_##NAME) __global__ void __launch_bounds__(__VA_ARGS__) NAME
#else
#define KERNEL(NAME, ...) extern "C" __global__ void __launch_bounds__(__VA_ARGS__) NAME
#endif

// ---- order

// If the device supports it, a kernel is launched while the preceding one is still running.

// From here on, the next kernel may be launched.
DEVICE void start_dependents() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;");
#endif
}

// Waits until the preceding kernel has finished and its writes are visible. Every thread that reads what a kernel wrote, or
// writes anything, does so first; and at least one thread of each block: without waiting, a kernel could end before an earlier
// one.
DEVICE void wait_for_earlier() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// The first statement of every kernel that reads nothing before it waits.
DEVICE void in_order() {
    start_dependents();
    wait_for_earlier();
}

// Asks for a line of memory. That changes nothing but how soon it comes, so it is allowed before `wait_for_earlier`.
DEVICE void ask(const void* at) { asm volatile("prefetch.global.L2 [%0];" ::"l"(at)); }

// All threads of a cluster come to the end of `wait` after what the others did before `arrive`.
struct Cluster {
    static DEVICE void arrive() { asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory"); }
    // Of a block that says only that it has begun, so that others may write to its memory.
    static DEVICE void begin() { asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory"); }
    static DEVICE void wait() { asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"); }
};

// ---- conversions: all arithmetic is in f32 (integers: in their own type)

DEVICE f32 to_f32(f32 x) { return x; }
DEVICE f32 to_f32(f16 x) { f32 r; asm("cvt.f32.f16 %0, %1;" : "=f"(r) : "h"(x.bits)); return r; }
DEVICE f32 to_f32(bf16 x) { return __uint_as_float((u32)x.bits << 16); }
DEVICE f32 to_f32(i32 x) { return (f32)x; }
DEVICE f32 to_f32(u32 x) { return (f32)x; }
DEVICE f32 to_f32(u8 x) { return (f32)x; }
DEVICE f32 to_f32(boolean x) { return (f32)x.bits; }

template <typename E> struct From;  // `T` and `U` are macros
template <> struct From<f32> { static DEVICE f32 f(f32 x) { return x; } };
template <> struct From<f16> {
    static DEVICE f16 f(f32 x) { f16 r; asm("cvt.rn.f16.f32 %0, %1;" : "=h"(r.bits) : "f"(x)); return r; }
};
template <> struct From<bf16> {
    // A pair whose other half is zero: it is converted by another unit than a single one, four times as often, and its bits are the
    // rounded value as f32.
    static DEVICE bf16 f(f32 x) {
        u32 pair;
        asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(x), "f"(0.f));
        __builtin_assume((pair & 0xffffu) == 0u);
        bf16 r;
        r.bits = (u16)(pair >> 16);
        return r;
    }
};
// Rounds to nearest, ties to even.
template <typename E> DEVICE E from_f32(f32 x) { return From<E>::f(x); }

// ---- views

// A strided view; sizes and strides in elements, outermost first.
struct View {
    u64 addr;
    u32 rank;
    u32 pad;
    u64 shape[MAX_RANK];
    u64 strides[MAX_RANK];
};

// Returns the offset, in elements, of the element with the row-major index `i`.
DEVICE u64 offset_of(const View& v, u64 i) {
    u64 at = 0;
#pragma unroll
    for (int axis = MAX_RANK - 1; axis >= 0; --axis) {
        if (axis < (int)v.rank) {
            u64 n = v.shape[axis];
            u64 q = i / n;
            at += (i - q * n) * v.strides[axis];
            i = q;
        }
    }
    return at;
}

// ---- faults

// Reports an index out of range to the host. Only the first one is reported.
struct Fault {
    u32 op;     // 0: none; otherwise the number of the launch
    u32 pad;
    u64 index;
    u64 bound;
};

// Mapped host memory; `claim` is device memory that a single thread acquires.
struct FaultSink {
    u64 fault;  // Fault*
    u64 claim;  // u32*
};

DEVICE void report(const FaultSink& sink, u32 op, u64 index, u64 bound) {
    if (atomicCAS((u32*)sink.claim, 0u, 1u) != 0u) return;
    volatile Fault* fault = (volatile Fault*)sink.fault;
    fault->index = index;
    fault->bound = bound;
    __threadfence_system();
    fault->op = op;
    __threadfence_system();
}

// Only the first invalid index in the order of the list is reported. The search is slow, but faults are
// rare, and the search ends once one has been reported.
template <typename Bad> DEVICE bool is_first(const FaultSink& sink, u64 k, Bad bad) {
    for (u64 j = 0; j < k; ++j) {
        if (*(volatile u32*)sink.claim != 0u || bad(j)) return false;
    }
    return true;
}

#define SKIP 0xffffffffu

// The rows of a state to write: an index for each row of a source. Of equal indices, the last one
// counts. Mirrored by `Places` in ops/scatter/cuda/places.rs.
struct Places {
    u64 index;         // u32
    u64 real;          // u32*: the number of indices that count; 0: all
    FaultSink sink;
    u32 op;
    u32 base;          // the index of the first row
    u64 n;
    u64 index_stride;  // in elements
    u64 rows;          // of the state
    u64 table;         // u64*: the last index of each row, by open addressing; 0: few enough for a linear search
    u64 mask;          // the number of slots in the table, minus one

    DEVICE u64 count() const {
        if (!real) return n;
        const u64 most = *(const u32*)real;
        return most < n ? most : n;
    }

    DEVICE u32 at(u64 i) const { return ((const u32*)index)[i * index_stride] - base; }

    DEVICE u64 first_slot(u32 row) const { return (row * 0x9e3779b97f4a7c15ull >> 32) & mask; }

    // Enters row `i` into the table. A slot holds the row plus one in its upper half and the index in its lower
    // half, so the highest index wins, whatever the order of the threads.
    DEVICE void enter(u64 i) const {
        const u32 row = at(i);
        if (row == SKIP || row >= rows) return;
        const u64 mine = ((u64)row + 1) << 32 | i;
        u64* const slots = (u64*)table;
        for (u64 slot = first_slot(row);; slot = (slot + 1) & mask) {
            const u64 there = atomicCAS(slots + slot, 0ull, mine);
            if (there == 0) return;
            if (there >> 32 == mine >> 32) {
                atomicMax(slots + slot, mine);
                return;
            }
        }
    }

    // Returns the last index that refers to the row, which is in the table.
    DEVICE u64 last(u32 row) const {
        const u64* const slots = (const u64*)table;
        u64 slot = first_slot(row);
        while (slots[slot] >> 32 != (u64)row + 1) slot = (slot + 1) & mask;
        return slots[slot] & 0xffffffffu;
    }

    // Returns the destination of row `i` of `n`, if it is written; all threads of a block pass the same `i`. A row
    // to which a later index refers is left to that index, so each row is written once.
    DEVICE bool place(u64 i, u64 n, u64* to) const {
        const u32 row = at(i);
        if (row == SKIP) return false;
        if (row >= rows) {
            if (threadIdx.x == 0 && blockIdx.y == 0) {
                auto bad = [&](u64 j) { return at(j) >= rows && at(j) != SKIP; };
                if (is_first(sink, i, bad)) report(sink, op, row, rows);
            }
            return false;
        }
        *to = row;
        if (table) return last(row) == i;
        int again = 0;
        for (u64 j = i + 1 + threadIdx.x; j < n; j += blockDim.x) {
            if (at(j) == row) {
                again = 1;
                break;
            }
        }
        return !__syncthreads_or(again);
    }

    // Returns whether no later index refers to the row, which exists, of index `i`; each thread has an index of its own.
    DEVICE bool is_last(u64 i, u32 row) const {
        if (table) return last(row) == i;
        for (u64 j = i + 1; j < n; ++j) {
            if (at(j) == row) return false;
        }
        return true;
    }
};
static_assert(sizeof(Places) == 80, "mirrored by places.rs");

// ---- warps and blocks

DEVICE f32 warp_sum(f32 x) {
#pragma unroll
    for (int d = 16; d; d >>= 1) x += __shfl_xor_sync(FULL, x, d);
    return x;
}
// NaN takes precedence, as in the operation `max`.
DEVICE f32 max_nan(f32 a, f32 b) { return (a != a) ? a : ((b != b) ? b : (a > b ? a : b)); }
DEVICE f32 warp_max(f32 x) {
#pragma unroll
    for (int d = 16; d; d >>= 1) x = max_nan(x, __shfl_xor_sync(FULL, x, d));
    return x;
}

// 16 bytes, loaded and stored at once.
struct alignas(16) Words { u32 w[4]; };

// ---- host uploads, written by the first kernel of a graph

#define FROM_DEVICE (1ull << 63)

// One upload. `from` is an offset into the payload or, if `size` has FROM_DEVICE, a device address.
struct Upload {
    u64 to;
    u64 from;
    u64 size;  // bytes, with FROM_DEVICE or without
};

// Copies the part of threads `first`, `first + step`, …, in words of type `W` if both addresses are aligned to it.
template <typename W> DEVICE void upload_words(u8* to, const u8* from, u64 bytes, u64 first, u64 step) {
    u64 head = (0 - (u64)to) & (sizeof(W) - 1);
    if (head > bytes) head = bytes;
    const u64 words = (bytes - head) / sizeof(W), tail = head + words * sizeof(W);
    W* const out = (W*)(to + head);
    const W* const in = (const W*)(from + head);
    u64 i = first;
    // Four loads are in flight before the first store.
    for (; i + 3 * step < words; i += 4 * step) {
        const W a = in[i], b = in[i + step], c = in[i + 2 * step], d = in[i + 3 * step];
        out[i] = a, out[i + step] = b, out[i + 2 * step] = c, out[i + 3 * step] = d;
    }
    for (; i < words; i += step) out[i] = in[i];
    for (u64 j = first; j < head; j += step) to[j] = from[j];
    for (u64 j = tail + first; j < bytes; j += step) to[j] = from[j];
}

DEVICE void upload_bytes(u8* to, const u8* from, u64 bytes, u64 first, u64 step) {
    const u64 apart = (u64)to ^ (u64)from;
    if ((apart & 15u) == 0) upload_words<Words>(to, from, bytes, first, step);
    else if ((apart & 3u) == 0) upload_words<u32>(to, from, bytes, first, step);
    else upload_words<u8>(to, from, bytes, first, step);
}

// The payload begins with `count` uploads, followed by their data. One block copies a small upload; all blocks copy
// a large one together.
DEVICE void upload_all(u32 count, const u8* payload) {
    const u64 small = 16384;
    for (u32 n = 0; n < count; ++n) {
        const Upload upload = ((const Upload*)payload)[n];
        const u64 bytes = upload.size & ~FROM_DEVICE;
        const u8* from = upload.size & FROM_DEVICE ? (const u8*)upload.from : payload + upload.from;
        if (bytes > small) {
            const u64 thread = (u64)blockIdx.x * blockDim.x + threadIdx.x;
            upload_bytes((u8*)upload.to, from, bytes, thread, (u64)gridDim.x * blockDim.x);
        } else if (n % gridDim.x == blockIdx.x) {
            upload_bytes((u8*)upload.to, from, bytes, threadIdx.x, blockDim.x);
        }
    }
}

#define UPLOAD(NAME, PAYLOAD)                                               \
    struct NAME##Params {                                                   \
        u32 count;                                                          \
        u32 pad[3];                                                         \
        alignas(16) u8 payload[PAYLOAD];                                    \
    };                                                                      \
    KERNEL(NAME, 256)(const __grid_constant__ NAME##Params p) { in_order(); \
        upload_all(p.count, (const u8*)p.payload);                          \
    }

// ---- conversions to types other than f32

// Truncates and saturates; NaN becomes 0.
template <typename I> struct Saturate;
template <> struct Saturate<i32> {
    template <typename F> static DEVICE i32 of(F v) {
        return v != v ? 0 : v >= (F)2147483648.0 ? 2147483647 : v <= (F)-2147483648.0 ? -2147483647 - 1 : (i32)v;
    }
};
template <> struct Saturate<u32> {
    template <typename F> static DEVICE u32 of(F v) {
        return !(v > (F)0) ? 0u : v >= (F)4294967296.0 ? 0xffffffffu : (u32)v;
    }
};
template <> struct Saturate<u8> {
    template <typename F> static DEVICE u8 of(F v) {
        return !(v > (F)0) ? (u8)0 : v >= (F)256 ? (u8)255 : (u8)(u32)v;
    }
};

template <> struct Saturate<i8> {
    template <typename F> static DEVICE i8 of(F v) {
        return v != v ? (i8)0 : v >= (F)127 ? (i8)127 : v <= (F)-128 ? (i8)-128 : (i8)(i32)v;
    }
};
template <> struct Saturate<i64> {
    template <typename F> static DEVICE i64 of(F v) {
        return v != v ? 0ll : v >= (F)9223372036854775808.0 ? 9223372036854775807ll
                            : v <= (F)-9223372036854775808.0 ? -9223372036854775807ll - 1 : (i64)v;
    }
};

// Rounds so that a second rounding, to a narrower float, has the same result as a single one.
DEVICE f32 odd_f32(double v) {
    f32 near = __double2float_rz(v);
    return (double)near == v || near != near ? near : __uint_as_float(__float_as_uint(near) | 1u);
}
DEVICE f32 odd_f32(i32 v) {
    f32 near = __int2float_rz(v);
    return (i64)near == (i64)v ? near : __uint_as_float(__float_as_uint(near) | 1u);
}
DEVICE f32 odd_f32(u32 v) {
    f32 near = __uint2float_rz(v);
    return (i64)near == (i64)v ? near : __uint_as_float(__float_as_uint(near) | 1u);
}

// ---- iterating over several views at once: dimensions innermost first, so that the last needs no division

struct Dims {
    u32 rank;
    u32 wide;  // if set, an index or an offset may exceed 31 bits
    u64 shape[MAX_RANK];
};

template <int N> DEVICE void locate(const Dims& d, const u64 (*strides)[MAX_RANK], u64 i, u64* at) {
    if (d.rank <= 1 || d.wide) {
#pragma unroll
        for (int k = 0; k < N; ++k) at[k] = 0;
#pragma unroll
        for (int axis = 0; axis < MAX_RANK; ++axis) {
            u64 part = i;
            if (axis + 1 < (int)d.rank) {
                i = part / d.shape[axis];
                part -= i * d.shape[axis];
            }
#pragma unroll
            for (int k = 0; k < N; ++k) at[k] += part * strides[k][axis];
            if (axis + 1 >= (int)d.rank) break;
        }
    } else {
        u32 rest = (u32)i, near[N];
#pragma unroll
        for (int k = 0; k < N; ++k) near[k] = 0;
#pragma unroll
        for (int axis = 0; axis < MAX_RANK; ++axis) {
            u32 part = rest;
            if (axis + 1 < (int)d.rank) {
                u32 n = (u32)d.shape[axis];
                rest = part / n;
                part -= rest * n;
            }
#pragma unroll
            for (int k = 0; k < N; ++k) near[k] += part * (u32)strides[k][axis];
            if (axis + 1 >= (int)d.rank) break;
        }
#pragma unroll
        for (int k = 0; k < N; ++k) at[k] = near[k];
    }
}

// ---- slices picked by indices

// A padded dimension of the indices.
struct Padded {
    u64 real;    // u32*: how many of its places are real; 0: all
    u64 behind;  // indices behind it
    u64 size;
};

// Indices in device memory, and the slices that they pick. Mirrored by `Picks` in ops/gather/cuda.rs.
struct Picks {
    u64 index;  // u32
    FaultSink sink;
    u32 op;
    u32 pad;
    u64 rows;  // slices
    u64 real;  // u32*: how many slices are real, those behind being padding; 0: all
    Dims ids;
    u64 strides[1][MAX_RANK];
    Padded padded[MAX_RANK];

    DEVICE u32 at(u64 k) const {
        u64 at[1];
        locate<1>(ids, strides, k, at);
        return ((const u32*)index)[at[0]];
    }

    // Slices that there are.
    DEVICE u64 count() const {
        if (!real) return rows;
        const u64 there = *(const u32*)real;
        return there < rows ? there : rows;
    }

    // Whether index `k` stands in no padding: only such a one can be a mistake.
    DEVICE bool is_real(u64 k) const {
        for (u32 axis = 0; axis < MAX_RANK; ++axis) {
            const Padded& d = padded[axis];
            if (d.real && k / d.behind % d.size >= *(const u32*)d.real) return false;
        }
        return true;
    }

    // Index `k` is `row`, which is none of `there` slices.
    DEVICE void missing(u64 k, u32 row, u64 there) const {
        if (is_real(k) && is_first(sink, k, [&](u64 j) { return at(j) >= there && is_real(j); })) {
            report(sink, op, row, there);
        }
    }
};
static_assert(sizeof(Picks) == 296, "mirrored by cuda.rs");

// ---- packs: several elements in one load

template <int BYTES> struct Raw;
template <> struct Raw<1> { u8 w; };
template <> struct Raw<2> { u16 w; };
template <> struct Raw<4> { u32 w; };
template <> struct alignas(8) Raw<8> { u32 w[2]; };
template <> struct alignas(16) Raw<16> { u32 w[4]; };

template <typename E, int V> union Pack {
    Raw<sizeof(E) * V> raw;
    E v[V];
};

// ---- moves

// Copies a strided view to a strided view of the same shape.
struct Move {
    u64 from;
    u64 to;
    u64 count;  // words
    Dims dims;
    u64 strides[2][MAX_RANK];
};
static_assert(sizeof(Move) == 176, "mirrored by moves.rs");

template <int W> DEVICE void move_words(const Move& m) {
    for (u64 n = (u64)blockIdx.x * blockDim.x + threadIdx.x; n < m.count; n += (u64)gridDim.x * blockDim.x) {
        u64 at[2];
        locate<2>(m.dims, m.strides, n, at);
        ((Raw<W>*)m.to)[at[1]] = ((const Raw<W>*)m.from)[at[0]];
    }
}

// Rows of kernels written in Rust: `lang.rs` beside this file says the same for the CPU. What a row is made of is computed
// where it is used; `keep` and `hold` put it into registers if it fits.
//
// A reduction has one order on all devices: value `i` of a row goes to lane `i % 1024`, each lane takes its values one after
// the other, and the lanes are combined pairwise, neighbours first. A thread has the lanes of the elements that it loads.

namespace rows {

const u32 LANES = 1024;

// The `T` threads of a row, which load `V` elements at once. With `P` such packs for each thread the row is in registers; with
// `P == 0` it is read again for each use.
template <int T_, int P_, int V_> struct Cx {
    static constexpr int T = T_, P = P_, V = V_;
    // Packs of a thread that belong to different lanes, as far as there are any.
    static constexpr int M = P_ > 0 && P_ < LANES / (T_ * V_) ? P_ : LANES / (T_ * V_);
    u32 size, thread;
    FaultSink sink;
    u32 op;
    // Which of two buffers the next reduction exchanges its lanes in.
    mutable u32 turn;
    // Whether the row is none of the padding.
    bool is_real;
    DEVICE Cx(u32 size, const FaultSink& sink, u32 op)
        : size(size), thread(threadIdx.x % T_), sink(sink), op(op), turn(0), is_real(true) {}
};

// A padded dimension outside the rows.
struct Padded {
    u64 real;    // u32*: how many of its places are real
    u64 behind;  // rows of one place
    u64 size;
};

template <int N> DEVICE bool is_real(const Padded (&dims)[N], u64 row) {
    for (int i = 0; i < N; ++i) {
        if (row / dims[i].behind % dims[i].size >= *(const u32*)dims[i].real) return false;
    }
    return true;
}

// ---- rows: `pack` loads what a thread computes next, `at` one value

template <typename E, int V> struct Loaded {
    Pack<E, V> raw;
    DEVICE auto get(int j) const { return lang::read(raw.v[j]); }
};

template <typename E> struct Input {
    const E* from;
    u64 stride;
    template <class C> DEVICE Loaded<E, C::V> pack(const C& cx, int, u32 base) const {
        Loaded<E, C::V> to;
        if constexpr (C::V == 1) {
            to.raw.v[0] = from[base * stride];
        } else if (cx.size - base < C::V) {
#pragma unroll
            for (int j = 0; j < C::V; ++j) to.raw.v[j] = from[base + (base + j < cx.size ? j : 0)];
        } else {
            to.raw.raw = *(const Raw<sizeof(E) * C::V>*)(from + base);
        }
        return to;
    }
    DEVICE auto at(u32 i) const { return lang::read(from[i * stride]); }
};

template <typename E> DEVICE Input<E> input(u64 addr, u64 at, u64 stride) {
    return Input<E>{(const E*)addr + at, stride};
}

template <class C, class F> DEVICE void each(const C& cx, F f) {
    if constexpr (C::P > 0) {
#pragma unroll
        for (int p = 0; p < C::P; ++p) {
            const u32 base = (p * C::T + cx.thread) * C::V;
            if (base < cx.size) f(p, base);
        }
    } else {
        for (u32 start = cx.thread * C::V; start < cx.size; start += C::T * C::V * C::M) {
#pragma unroll
            for (int m = 0; m < C::M; ++m) {
                const u32 base = start + m * C::T * C::V;
                if (base < cx.size) f(m, base);
            }
        }
    }
}

// A row of a tensor, in registers as it was loaded.
template <class C, typename E> struct Held {
    Input<E> from;
    Loaded<E, C::V> packs[C::P];
    DEVICE const Loaded<E, C::V>& pack(const C&, int p, u32) const { return packs[p]; }
    DEVICE auto at(u32 i) const { return from.at(i); }
};

template <class C, typename E> DEVICE auto hold(const C& cx, const Input<E>& from) {
    if constexpr (C::P > 0) {
        Held<C, E> held;
        held.from = from;
        each(cx, [&](int p, u32 base) { held.packs[p] = from.pack(cx, p, base); });
        return held;
    } else {
        return from;
    }
}

template <typename N, int V> struct Computed {
    N v[V];
    DEVICE N get(int j) const { return v[j]; }
};

// A row that was computed, in registers.
template <class C, class R, typename N> struct Kept {
    R from;
    Computed<N, C::V> packs[C::P];
    DEVICE Kept(const R& from) : from(from) {}
    DEVICE const Computed<N, C::V>& pack(const C&, int p, u32) const { return packs[p]; }
    DEVICE N at(u32 i) const { return from.at(i); }
};

template <class C, class R> DEVICE auto keep(const C& cx, const R& from) {
    if constexpr (C::P > 0) {
        Kept<C, R, decltype(from.at(0u))> kept(from);
        each(cx, [&](int p, u32 base) {
            const auto pack = from.pack(cx, p, base);
#pragma unroll
            for (int j = 0; j < C::V; ++j) {
                if (base + j < cx.size) kept.packs[p].v[j] = pack.get(j);
            }
        });
        return kept;
    } else {
        return from;
    }
}

template <class A, class F> struct MapPack {
    A row;
    const F& f;
    DEVICE auto get(int j) const { return f(row.get(j)); }
};

template <class R, class F> struct Map {
    R row;
    F f;
    template <class C> DEVICE auto pack(const C& cx, int p, u32 base) const {
        const auto inner = row.pack(cx, p, base);
        return MapPack<decltype(row.pack(cx, p, base)), F>{inner, f};
    }
    DEVICE auto at(u32 i) const { return f(row.at(i)); }
};

template <class R, class F> DEVICE Map<R, F> map(const R& row, const F& f) { return Map<R, F>{row, f}; }

template <class A, class B> DEVICE Tuple2<A, B> pair(const A& a, const B& b) { return Tuple2<A, B>{a, b}; }

template <class A, class B> struct ZipPack {
    A a;
    B b;
    DEVICE auto get(int j) const { return pair(a.get(j), b.get(j)); }
};

template <class A, class B> DEVICE ZipPack<A, B> zip_packs(const A& a, const B& b) { return ZipPack<A, B>{a, b}; }

template <class A, class B> struct Zip {
    A a;
    B b;
    template <class C> DEVICE auto pack(const C& cx, int p, u32 base) const {
        return zip_packs(a.pack(cx, p, base), b.pack(cx, p, base));
    }
    DEVICE auto at(u32 i) const { return pair(a.at(i), b.at(i)); }
};

template <class A, class B> DEVICE Zip<A, B> zip(const A& a, const B& b) { return Zip<A, B>{a, b}; }

template <class A> struct EnumeratePack {
    A row;
    u32 base;
    DEVICE auto get(int j) const { return pair(base + (u32)j, row.get(j)); }
};

template <class A> DEVICE EnumeratePack<A> enumerate_pack(const A& row, u32 base) { return EnumeratePack<A>{row, base}; }

template <class R> struct Enumerate {
    R row;
    template <class C> DEVICE auto pack(const C& cx, int p, u32 base) const {
        return enumerate_pack(row.pack(cx, p, base), base);
    }
    DEVICE auto at(u32 i) const { return pair(i, row.at(i)); }
};

template <class R> DEVICE Enumerate<R> enumerate(const R& row) { return Enumerate<R>{row}; }

// ---- single values

template <class C, class R> DEVICE u32 len(const C& cx, const R&) { return cx.size; }

template <typename N> struct Nothing { static DEVICE N of() { return (N)0; } };
template <typename A, typename B> struct Nothing<Tuple2<A, B>> {
    static DEVICE Tuple2<A, B> of() { return {Nothing<A>::of(), Nothing<B>::of()}; }
};
template <typename A, typename B, typename D> struct Nothing<Tuple3<A, B, D>> {
    static DEVICE Tuple3<A, B, D> of() { return {Nothing<A>::of(), Nothing<B>::of(), Nothing<D>::of()}; }
};
template <typename A, typename B, typename D, typename E> struct Nothing<Tuple4<A, B, D, E>> {
    static DEVICE Tuple4<A, B, D, E> of() {
        return {Nothing<A>::of(), Nothing<B>::of(), Nothing<D>::of(), Nothing<E>::of()};
    }
};

template <class C, class R> DEVICE auto at(const C& cx, const R& row, u32 i) {
    if (i < cx.size) return row.at(i);
    if (cx.is_real) report(cx.sink, cx.op, i, cx.size);
    return Nothing<decltype(row.at(0u))>::of();
}

// ---- reductions

// The value of the thread that is `by` further in the warp.
DEVICE f32 shift(f32 x, u32 by) { return __shfl_down_sync(FULL, x, by); }
DEVICE i32 shift(i32 x, u32 by) { return __shfl_down_sync(FULL, x, by); }
DEVICE u32 shift(u32 x, u32 by) { return __shfl_down_sync(FULL, x, by); }
DEVICE u8 shift(u8 x, u32 by) { return (u8)__shfl_down_sync(FULL, (u32)x, by); }
DEVICE bool shift(bool x, u32 by) { return __shfl_down_sync(FULL, (u32)x, by) != 0u; }
template <typename A, typename B> DEVICE Tuple2<A, B> shift(const Tuple2<A, B>& x, u32 by) {
    return {shift(x.v0, by), shift(x.v1, by)};
}
template <typename A, typename B, typename D> DEVICE Tuple3<A, B, D> shift(const Tuple3<A, B, D>& x, u32 by) {
    return {shift(x.v0, by), shift(x.v1, by), shift(x.v2, by)};
}
template <typename A, typename B, typename D, typename E>
DEVICE Tuple4<A, B, D, E> shift(const Tuple4<A, B, D, E>& x, u32 by) {
    return {shift(x.v0, by), shift(x.v1, by), shift(x.v2, by), shift(x.v3, by)};
}

// The value of the first thread of the warp.
DEVICE f32 first(f32 x) { return __shfl_sync(FULL, x, 0); }
DEVICE i32 first(i32 x) { return __shfl_sync(FULL, x, 0); }
DEVICE u32 first(u32 x) { return __shfl_sync(FULL, x, 0); }
DEVICE u8 first(u8 x) { return (u8)__shfl_sync(FULL, (u32)x, 0); }
DEVICE bool first(bool x) { return __shfl_sync(FULL, (u32)x, 0) != 0u; }
template <typename A, typename B> DEVICE Tuple2<A, B> first(const Tuple2<A, B>& x) {
    return {first(x.v0), first(x.v1)};
}
template <typename A, typename B, typename D> DEVICE Tuple3<A, B, D> first(const Tuple3<A, B, D>& x) {
    return {first(x.v0), first(x.v1), first(x.v2)};
}
template <typename A, typename B, typename D, typename E>
DEVICE Tuple4<A, B, D, E> first(const Tuple4<A, B, D, E>& x) {
    return {first(x.v0), first(x.v1), first(x.v2), first(x.v3)};
}

// The lanes of a thread, combined with those of all others; lanes at or after `size` have no value.
template <class C, typename A, class K> DEVICE A combined(const C& cx, A (&lanes)[C::M][C::V], const K& combine) {
#pragma unroll
    for (int m = 0; m < C::M; ++m) {
        const u32 lane = (m * C::T + cx.thread) * C::V;
#pragma unroll
        for (int d = 1; d < C::V; d *= 2) {
#pragma unroll
            for (int j = 0; j + d < C::V; j += 2 * d) {
                if (lane + j + d < cx.size) lanes[m][j] = combine(lanes[m][j], lanes[m][j + d]);
            }
        }
        // Of no use, and no harm, in threads whose number is no multiple of `2 * d`.
#pragma unroll
        for (int d = 1; d < 32; d *= 2) {
            const A other = shift(lanes[m][0], d);
            if (lane + d * C::V < cx.size) lanes[m][0] = combine(lanes[m][0], other);
        }
    }
    if constexpr (C::T > 32) {
        // The buffer of the reduction before the last: since then all threads have met.
        const int W = C::T / 32;
        __shared__ A buffers[2][C::M][W];
        A (&warps)[C::M][W] = buffers[cx.turn];
        cx.turn ^= 1u;
        if (cx.thread % 32 == 0) {
#pragma unroll
            for (int m = 0; m < C::M; ++m) warps[m][cx.thread / 32] = lanes[m][0];
        }
        __syncthreads();
#pragma unroll
        for (int m = 0; m < C::M; ++m) {
            A all[W];
#pragma unroll
            for (int w = 0; w < W; ++w) all[w] = warps[m][w];
#pragma unroll
            for (int d = 1; d < W; d *= 2) {
#pragma unroll
                for (int w = 0; w + d < W; w += 2 * d) {
                    if ((m * C::T + (w + d) * 32) * C::V < cx.size) all[w] = combine(all[w], all[w + d]);
                }
            }
            lanes[m][0] = all[0];
        }
    } else {
#pragma unroll
        for (int m = 0; m < C::M; ++m) lanes[m][0] = first(lanes[m][0]);
    }
#pragma unroll
    for (int d = 1; d < C::M; d *= 2) {
#pragma unroll
        for (int m = 0; m + d < C::M; m += 2 * d) {
            if ((m + d) * C::T * C::V < cx.size) lanes[m][0] = combine(lanes[m][0], lanes[m + d][0]);
        }
    }
    return lanes[0][0];
}

template <class C, class R, typename A, class S, class K>
DEVICE A fold(const C& cx, const R& row, A init, const S& step, const K& combine) {
    A lanes[C::M][C::V];
#pragma unroll
    for (int m = 0; m < C::M; ++m) {
#pragma unroll
        for (int j = 0; j < C::V; ++j) lanes[m][j] = init;
    }
    each(cx, [&](int p, u32 base) {
        const auto pack = row.pack(cx, p, base);
#pragma unroll
        for (int j = 0; j < C::V; ++j) {
            if (base + j < cx.size) lanes[p % C::M][j] = step(lanes[p % C::M][j], pack.get(j));
        }
    });
    return combined(cx, lanes, combine);
}

template <typename N> struct Ends;
template <> struct Ends<f32> {
    static DEVICE f32 lowest() { return __uint_as_float(0xff800000u); }
    static DEVICE f32 highest() { return __uint_as_float(0x7f800000u); }
};
template <> struct Ends<i32> {
    static DEVICE i32 lowest() { return -2147483647 - 1; }
    static DEVICE i32 highest() { return 2147483647; }
};
template <> struct Ends<u32> {
    static DEVICE u32 lowest() { return 0u; }
    static DEVICE u32 highest() { return 0xffffffffu; }
};
template <> struct Ends<u8> {
    static DEVICE u8 lowest() { return 0; }
    static DEVICE u8 highest() { return 255; }
};

template <class C, class R> DEVICE auto sum(const C& cx, const R& row) {
    using N = decltype(row.at(0u));
    auto add = [](N a, N b) { return lang::add(a, b); };
    return fold(cx, row, (N)0, add, add);
}

template <class C, class R> DEVICE auto max(const C& cx, const R& row) {
    using N = decltype(row.at(0u));
    auto larger = [](N a, N b) { return lang::max(a, b); };
    return fold(cx, row, Ends<N>::lowest(), larger, larger);
}

template <class C, class R> DEVICE auto min(const C& cx, const R& row) {
    using N = decltype(row.at(0u));
    auto smaller = [](N a, N b) { return lang::min(a, b); };
    return fold(cx, row, Ends<N>::highest(), smaller, smaller);
}

template <class C, class R, class F> DEVICE u32 count(const C& cx, const R& row, const F& condition) {
    using N = decltype(row.at(0u));
    return fold(
        cx, row, 0u, [&](u32 count, const N& value) { return count + (condition(value) ? 1u : 0u); },
        [](u32 a, u32 b) { return a + b; });
}

const u32 NONE = 0xffffffffu;

template <class C, class R, typename N, class B> DEVICE u32 best(const C& cx, const R& row, N worst, const B& better) {
    using Best = Tuple2<N, u32>;
    auto choose = [&](const Best& a, const Best& b) {
        const bool takes = b.v1 != NONE && (better(b.v0, a.v0) || (a.v0 == b.v0 && b.v1 < a.v1));
        return takes ? b : a;
    };
    const Best found = fold(
        cx, enumerate(row), Best{worst, NONE},
        [&](const Best& best, const Tuple2<u32, N>& value) { return choose(best, Best{value.v1, value.v0}); }, choose);
    return found.v1 == NONE ? 0u : found.v1;
}

template <class C, class R> DEVICE u32 argmax(const C& cx, const R& row) {
    using N = decltype(row.at(0u));
    return best(cx, row, Ends<N>::lowest(), [](N a, N b) { return a > b; });
}

template <class C, class R> DEVICE u32 argmin(const C& cx, const R& row) {
    using N = decltype(row.at(0u));
    return best(cx, row, Ends<N>::highest(), [](N a, N b) { return a < b; });
}

// ---- results

template <typename E> struct Output { E* to; };
template <typename E> struct Value { E* to; };

template <class C, typename E, class R> DEVICE void put(const C& cx, const Output<E>& y, const R& row) {
    each(cx, [&](int p, u32 base) {
        const auto pack = row.pack(cx, p, base);
        Pack<E, C::V> to;
#pragma unroll
        for (int j = 0; j < C::V; ++j) {
            if (base + j < cx.size) to.v[j] = lang::Write<E>::of(pack.get(j));
        }
        if (cx.size - base < C::V) {
#pragma unroll
            for (int j = 0; j < C::V; ++j) {
                if (base + j < cx.size) y.to[base + j] = to.v[j];
            }
        } else {
            *(Raw<sizeof(E) * C::V>*)(y.to + base) = to.raw;
        }
    });
}

template <class C, typename E, typename N> DEVICE void put(const C& cx, const Value<E>& y, const N& value) {
    if (cx.thread == 0) *y.to = lang::Write<E>::of(value);
}

}  // namespace rows

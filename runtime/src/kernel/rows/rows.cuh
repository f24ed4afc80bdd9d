// Rows of kernels written in Rust: `lang.rs` beside this file says the same for the CPU. What a row is made of is computed
// where it is used; `keep` and `hold` put it into registers if it fits.
//
// A reduction has one order on all devices: a row is divided into pieces of `PIECE` values, value `i` of a piece goes to lane
// `i % LANES`, each lane takes its values one after the other, and the lanes of a piece, and then the pieces, are combined
// pairwise, neighbours first (`reductions.cuh`). A thread has the lanes of the elements that it loads.

namespace rows {

const u32 LANES = 1024;
const u32 PIECE = 8192;

// A row belongs to `T` threads of each of the `B` blocks of a cluster. `TEAM` of them have a piece, in `P` packs of `V`
// elements each. If the row is `HELD`, there is a team for each piece, and it can be in registers; otherwise it is read again
// for each use, in rounds of as many pieces as there are teams. With `WHOLE`, there is a value for every element of every pack.
// If it is `PACKED`, a row consists of whole packs, each of which can be loaded at once; otherwise `V` is 1.
template <int T_, int P_, int V_, int B_, bool HELD_, bool WHOLE_, bool PACKED_> struct Cx {
    static constexpr int T = T_, P = P_, V = V_, B = B_;
    static constexpr bool HELD = HELD_, WHOLE = WHOLE_, PACKED = PACKED_, COLUMNS = false;
    static constexpr int TEAM = T < (int)LANES / V ? T : (int)LANES / V;
    static constexpr int TEAMS = T / TEAM;
    // Packs of a thread that belong to different lanes, as far as there are any.
    static constexpr int M = P < (int)LANES / (TEAM * V) ? P : (int)LANES / (TEAM * V);
    u32 length;
    // The thread's number in its team, and the team's.
    u32 thread, team;
    FaultSink sink;
    u32 op;
    // The one of two buffers in which the next reduction exchanges its lanes.
    mutable u32 turn;
    // True while other blocks of the cluster may not have begun.
    mutable bool begins;
    // False for a row of the padding.
    bool is_real;
    // False for a row that another thread has, too.
    bool is_there;
    DEVICE Cx(u32 length, const FaultSink& sink, u32 op)
        : length(length), thread(threadIdx.x % TEAM), team(0), sink(sink), op(op), turn(0), begins(B > 1), is_real(true),
          is_there(true) {
        if constexpr (TEAMS > 1) team = threadIdx.x / TEAM;
        if constexpr (B > 1) {
            u32 block;
            asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(block));
            team += block * TEAMS;
            Cluster::begin();
        }
    }
    DEVICE u32 size() const {
        if constexpr (WHOLE) return T * P * V * B;
        else return length;
    }
    DEVICE u32 rounds() const {
        if constexpr (HELD) return 1;
        else return (size() + PIECE * TEAMS * B - 1) / (PIECE * TEAMS * B);
    }
    // The first value of the team's piece.
    DEVICE u32 first(u32 round) const {
        if constexpr (HELD && TEAMS * B == 1) return 0;
        else return (round * (TEAMS * B) + team) * PIECE;
    }
    // The first value of a pack.
    DEVICE u32 base(u32 first, int p) const { return first + (p * TEAM + thread) * V; }
    DEVICE bool has(u32 base) const { return WHOLE || base < size(); }
    // Before the block ends.
    DEVICE void end() const {
        if constexpr (B > 1) {
            if (begins) Cluster::wait();
        }
    }
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

// The number of a row among those that are not of the padding. Of an outer dimension, only what is outside it changes.
template <int N> DEVICE u64 unpadded(const Padded (&dims)[N], u64 row) {
    for (int i = 0; i < N; ++i) {
        const u64 real = *(const u32*)dims[i].real, whole = dims[i].behind * dims[i].size;
        row = row / whole * (dims[i].behind * (real < dims[i].size ? real : dims[i].size)) + row % whole;
    }
    return row;
}

// ---- rows: `load` returns what memory has of a pack, which may lie behind the row, `get` a value of it, and `at` one value

template <typename E, int V> struct Loaded { Pack<E, V> raw; };

template <typename E> struct Input {
    const E* from;
    u64 stride;
    template <class C> DEVICE Loaded<E, C::V> load(const C& cx, int, u32 base) const {
        Loaded<E, C::V> to;
        // Behind the row, its last pack: a load that depends on nothing is not waited for.
        const u32 there = cx.has(base) ? base : cx.size() - C::V;
        if constexpr (C::PACKED) to.raw.raw = *(const Raw<sizeof(E) * C::V>*)(from + there);
        else to.raw.v[0] = from[there * stride];
        return to;
    }
    template <class L> DEVICE auto get(const L& pack, u32, int j) const { return lang::read(pack.raw.v[j]); }
    DEVICE auto at(u32 i) const { return lang::read(from[i * stride]); }
};

template <typename E> DEVICE Input<E> input(u64 addr, u64 at, u64 stride) {
    return Input<E>{(const E*)addr + at, stride};
}

// A row of a tensor, in registers as it was loaded.
template <class C, typename E> struct Held {
    Input<E> from;
    Loaded<E, C::V> packs[C::P];
    DEVICE const Loaded<E, C::V>& load(const C&, int p, u32) const { return packs[p]; }
    template <class L> DEVICE auto get(const L& pack, u32, int j) const { return lang::read(pack.raw.v[j]); }
    DEVICE auto at(u32 i) const { return from.at(i); }
};

template <class C, typename E> DEVICE auto hold(const C& cx, const Input<E>& from) {
    if constexpr (C::HELD) {
        Held<C, E> held;
        held.from = from;
#pragma unroll
        for (int p = 0; p < C::P; ++p) held.packs[p] = from.load(cx, p, cx.base(cx.first(0), p));
        return held;
    } else {
        return from;
    }
}

template <class C, typename E> DEVICE const Held<C, E>& hold(const C&, const Held<C, E>& row) { return row; }

template <typename N, int V> struct Computed { N v[V]; };

// A row that was computed, in registers.
template <class C, class R, typename N> struct Kept {
    R from;
    Computed<N, C::V> packs[C::P];
    DEVICE Kept(const R& from) : from(from) {}
    DEVICE const Computed<N, C::V>& load(const C&, int p, u32) const { return packs[p]; }
    template <class L> DEVICE N get(const L& pack, u32, int j) const { return pack.v[j]; }
    DEVICE N at(u32 i) const { return from.at(i); }
};

template <class C, class R> DEVICE auto keep(const C& cx, const R& from) {
    if constexpr (C::HELD) {
        Kept<C, R, decltype(from.at(0u))> kept(from);
#pragma unroll
        for (int p = 0; p < C::P; ++p) {
            const u32 base = cx.base(cx.first(0), p);
            const auto pack = from.load(cx, p, base);
            if (cx.has(base)) {
#pragma unroll
                for (int j = 0; j < C::V; ++j) kept.packs[p].v[j] = from.get(pack, base, j);
            }
        }
        return kept;
    } else {
        return from;
    }
}

template <class R, class F> struct Map {
    R row;
    F f;
    template <class C> DEVICE auto load(const C& cx, int p, u32 base) const { return row.load(cx, p, base); }
    template <class L> DEVICE auto get(const L& pack, u32 base, int j) const { return f(row.get(pack, base, j)); }
    DEVICE auto at(u32 i) const { return f(row.at(i)); }
};

template <class R, class F> DEVICE Map<R, F> map(const R& row, const F& f) { return Map<R, F>{row, f}; }

template <class A, class B> DEVICE Tuple2<A, B> pair(const A& a, const B& b) { return Tuple2<A, B>{a, b}; }

template <class A, class B> struct Zip {
    A a;
    B b;
    template <class C> DEVICE auto load(const C& cx, int p, u32 base) const {
        return pair(a.load(cx, p, base), b.load(cx, p, base));
    }
    template <class L> DEVICE auto get(const L& pack, u32 base, int j) const {
        return pair(a.get(pack.v0, base, j), b.get(pack.v1, base, j));
    }
    DEVICE auto at(u32 i) const { return pair(a.at(i), b.at(i)); }
};

template <class A, class B> DEVICE Zip<A, B> zip(const A& a, const B& b) { return Zip<A, B>{a, b}; }

template <class R> struct Enumerate {
    R row;
    template <class C> DEVICE auto load(const C& cx, int p, u32 base) const { return row.load(cx, p, base); }
    template <class L> DEVICE auto get(const L& pack, u32 base, int j) const {
        return pair(base + (u32)j, row.get(pack, base, j));
    }
    DEVICE auto at(u32 i) const { return pair(i, row.at(i)); }
};

template <class R> DEVICE Enumerate<R> enumerate(const R& row) { return Enumerate<R>{row}; }

// Calls `f(pack, base, m)` for each pack of the thread's that there is, after loading as many as `AT_ONCE`; `m` is the number of
// its lanes among those of the thread.
template <int AT_ONCE, class C, class R, class F> DEVICE void each(const C& cx, u32 round, const R& row, const F& f) {
    const u32 first = cx.first(round);
    auto some = [&](int start) {
        decltype(pair(row.load(cx, 0, 0u), 0)) packs[AT_ONCE];
#pragma unroll
        for (int p = start; p < start + AT_ONCE && p < C::P; ++p) {
            packs[p - start].v0 = row.load(cx, p, cx.base(first, p));
        }
#pragma unroll
        for (int p = start; p < start + AT_ONCE && p < C::P; ++p) {
            const u32 base = cx.base(first, p);
            if (cx.has(base)) f(packs[p - start].v0, base, (C::HELD ? p : p - start) % C::M);
        }
    };
    if constexpr (C::HELD) {
#pragma unroll
        for (int start = 0; start < C::P; start += AT_ONCE) some(start);
    } else {
        static_assert(AT_ONCE % C::M == 0, "lanes in registers");
#pragma unroll 1
        for (int start = 0; start < C::P && cx.has(first + start * C::TEAM * C::V); start += AT_ONCE) some(start);
    }
}

// ---- single values

template <class C, class R> DEVICE u32 len(const C& cx, const R&) { return cx.size(); }

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
    if (i < cx.size()) return row.at(i);
    if (cx.is_real) report(cx.sink, cx.op, i, cx.size());
    return Nothing<decltype(row.at(0u))>::of();
}

}  // namespace rows

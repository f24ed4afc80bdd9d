// Reductions of rows, and their results.

namespace rows {

// ---- reductions

// The value of the thread whose number in its group of `W` differs in the bit `by`.
template <int W> DEVICE f32 across(f32 x, u32 by) { return __shfl_xor_sync(FULL, x, by, W); }
template <int W> DEVICE i32 across(i32 x, u32 by) { return __shfl_xor_sync(FULL, x, by, W); }
template <int W> DEVICE u32 across(u32 x, u32 by) { return __shfl_xor_sync(FULL, x, by, W); }
template <int W> DEVICE u8 across(u8 x, u32 by) { return (u8)__shfl_xor_sync(FULL, (u32)x, by, W); }
template <int W> DEVICE bool across(bool x, u32 by) { return __shfl_xor_sync(FULL, (u32)x, by, W) != 0u; }
// Declared first: a part of a tuple may be a tuple.
template <int W, typename A, typename B> DEVICE Tuple2<A, B> across(const Tuple2<A, B>& x, u32 by);
template <int W, typename A, typename B, typename D> DEVICE Tuple3<A, B, D> across(const Tuple3<A, B, D>& x, u32 by);
template <int W, typename A, typename B, typename D, typename E>
DEVICE Tuple4<A, B, D, E> across(const Tuple4<A, B, D, E>& x, u32 by);
template <int W, typename A, typename B> DEVICE Tuple2<A, B> across(const Tuple2<A, B>& x, u32 by) {
    return {across<W>(x.v0, by), across<W>(x.v1, by)};
}
template <int W, typename A, typename B, typename D> DEVICE Tuple3<A, B, D> across(const Tuple3<A, B, D>& x, u32 by) {
    return {across<W>(x.v0, by), across<W>(x.v1, by), across<W>(x.v2, by)};
}
template <int W, typename A, typename B, typename D, typename E>
DEVICE Tuple4<A, B, D, E> across(const Tuple4<A, B, D, E>& x, u32 by) {
    return {across<W>(x.v0, by), across<W>(x.v1, by), across<W>(x.v2, by), across<W>(x.v3, by)};
}

// Combines neighbours among `N` results, of which the first `count` exist.
template <int N, typename A, class K> DEVICE A tree(A (&all)[N], u32 count, const K& combine) {
#pragma unroll
    for (int d = 1; d < N; d *= 2) {
#pragma unroll
        for (int i = 0; i + d < N; i += 2 * d) {
            if (i + d < count) all[i] = combine(all[i], all[i + d]);
        }
    }
    return all[0];
}

// A thread's lanes, combined with those of its warp, or of the part of it that has the row: `n` lanes have a value. If `SAME`,
// `combine(a, b)` is `combine(b, a)`. No values are combined but neighbours: `combine` may read the row.
template <bool SAME, class C, typename A, class K>
DEVICE void within_warps(const C& cx, u32 n, A (&lanes)[C::M][C::V], const K& combine) {
    constexpr int W = C::TEAM < 32 ? C::TEAM : 32;
#pragma unroll
    for (int m = 0; m < C::M; ++m) {
        if (C::WHOLE || (m * C::TEAM + cx.thread) * C::V < n) {
#pragma unroll
            for (int d = 1; d < C::V; d *= 2) {
#pragma unroll
                for (int j = 0; j < C::V; j += 2 * d) lanes[m][j] = combine(lanes[m][j], lanes[m][j + d]);
            }
        }
#pragma unroll
        for (int d = 1; d < W; d *= 2) {
            const A mine = lanes[m][0], other = across<W>(mine, d);
            const u32 second = (cx.thread & ~(u32)(d - 1)) | d;
            if (C::WHOLE || (m * C::TEAM + second) * C::V < n) {
                const bool swap = !SAME && (cx.thread & d) != 0;
                lanes[m][0] = combine(swap ? other : mine, swap ? mine : other);
            } else if (cx.thread & d) {
                // Every thread has the result of all.
                lanes[m][0] = other;
            }
        }
    }
}

// Shared memory for what threads exchange, the same for all reductions of values of a size.
template <int BYTES> struct Room {
    static DEVICE void* of() {
        __shared__ __align__(16) u8 all[BYTES];
        return all;
    }
};

// Bytes of a value, as a power of two.
template <typename A> constexpr int rounded_up() {
    int bytes = 4;
    while (bytes < (int)sizeof(A)) bytes *= 2;
    return bytes;
}

// The lanes of all threads, combined, for all of them.
template <bool SAME, class C, typename A, class K>
DEVICE A combined(const C& cx, u32 round, A (&lanes)[C::M][C::V], const K& combine) {
    // Values of a piece and behind it.
    auto behind = [&](u32 first) { return C::WHOLE ? PIECE : cx.size() > first ? cx.size() - first : 0u; };
    const u32 n = behind(cx.first(round));
    within_warps<SAME>(cx, n, lanes, combine);
    if constexpr (C::T <= 32) {
        A all[C::M];
#pragma unroll
        for (int m = 0; m < C::M; ++m) all[m] = lanes[m][0];
        return tree(all, C::WHOLE ? C::M : (n + C::TEAM * C::V - 1) / (C::TEAM * C::V), combine);
    } else {
        // One of two halves, that of the reduction before the last: since then all threads have met.
        constexpr int W = C::TEAM / 32, OF_BLOCK = C::TEAMS * C::M * W, OF_CLUSTER = C::B > 1 ? C::B * C::TEAMS : 0;
        constexpr int HALF = (OF_BLOCK + OF_CLUSTER) * rounded_up<A>();
        u8* const half = (u8*)Room<2 * HALF>::of() + cx.turn * HALF;
        cx.turn ^= 1u;
        A (*const warps)[C::M * W] = (A (*)[C::M * W])half;
        const u32 mine = C::TEAMS > 1 ? threadIdx.x / C::TEAM : 0;
        if (threadIdx.x % 32 == 0) {
#pragma unroll
            for (int m = 0; m < C::M; ++m) warps[mine][m * W + cx.thread / 32] = lanes[m][0];
        }
        __syncthreads();
        auto piece = [&](u32 team, u32 n) {
            A all[C::M * W];
#pragma unroll
            for (int i = 0; i < C::M * W; ++i) all[i] = warps[team][i];
            return tree(all, C::WHOLE ? C::M * W : (n + 32 * C::V - 1) / (32 * C::V), combine);
        };
        const u32 pieces = C::WHOLE ? C::B * C::TEAMS : (behind(cx.first(round) - cx.team * PIECE) + PIECE - 1) / PIECE;
        if constexpr (C::B == 1) {
            A teams[C::TEAMS];
#pragma unroll
            for (int t = 0; t < C::TEAMS; ++t) teams[t] = piece(t, behind(cx.first(round) + (t - (int)mine) * (int)PIECE));
            return tree(teams, pieces, combine);
        } else {
            A* const teams = (A*)half + OF_BLOCK;
            const A result = piece(mine, n);
            if (cx.begins) Cluster::wait();
            cx.begins = false;
            // To every block of the cluster: none reads another's memory, which ends with it.
            if (cx.thread < C::B) {
                u64 there;
                asm volatile("mapa.u64 %0, %1, %2;" : "=l"(there) : "l"((u64)&teams[cx.team]), "r"(cx.thread));
                *(A*)there = result;
            }
            Cluster::arrive();
            Cluster::wait();
            A all[C::B * C::TEAMS];
#pragma unroll
            for (int i = 0; i < C::B * C::TEAMS; ++i) all[i] = teams[i];
            return tree(all, pieces, combine);
        }
    }
}

// One round.
template <bool SAME, class C, class R, typename A, class S, class K>
DEVICE A part(const C& cx, u32 round, const R& row, const A& init, const S& step, const K& combine) {
    A lanes[C::M][C::V];
#pragma unroll
    for (int m = 0; m < C::M; ++m) {
#pragma unroll
        for (int j = 0; j < C::V; ++j) lanes[m][j] = init;
    }
    each<(C::HELD && C::P < 8 ? C::P : C::HELD || C::M < 8 ? 8 : C::M)>(cx, round, row, [&](const auto& pack, u32 base, int m) {
#pragma unroll
        for (int j = 0; j < C::V; ++j) lanes[m][j] = step(lanes[m][j], row.get(pack, base, j));
    });
    return combined<SAME>(cx, round, lanes, combine);
}

// Results of which neighbours are combined as soon as both are there: `results[k]` is that of `1 << k` of them, if the number
// of them has that digit.
template <typename A> struct Pairs {
    // A row has fewer than 2^30 lanes.
    A results[30];
    u32 count;
    DEVICE Pairs() : count(0) {}
    template <class K> DEVICE void push(A result, const K& combine) {
        u32 level = 0;
        for (; count >> level & 1u; ++level) result = combine(results[level], result);
        results[level] = result;
        ++count;
    }
    template <class K> DEVICE A last(const A& init, const K& combine) const {
        A all = init;
        bool waits = false;
        for (u32 level = 0; count >> level; ++level) {
            if (!(count >> level & 1u)) continue;
            all = waits ? combine(results[level], all) : results[level];
            waits = true;
        }
        return all;
    }
};

// ---- rows that are neighbours in memory: columns

// A block has `CT` neighbouring rows, and `RT` threads for each, as have the other blocks of a cluster of `B`. A thread has
// neighbouring lanes of the pieces, of which it computes `U` at once, with at most `S` values each.
template <int CT_, int RT_, int B_, int U_, int S_> struct Columns {
    static constexpr int CT = CT_, RT = RT_, B = B_, U = U_, S = S_, V = 1;
    static constexpr bool HELD = false, WHOLE = false, PACKED = false, COLUMNS = true;
    u32 length, run;
    // The thread's number in the row, and the block's in the cluster.
    u32 thread, team;
    FaultSink sink;
    u32 op;
    bool is_real;
    // True if there is such a row.
    bool is_there;
    // `run` lanes for each thread.
    DEVICE Columns(u32 length, u32 run, const FaultSink& sink, u32 op)
        : length(length), run(run), thread(threadIdx.x / CT_), team(0), sink(sink), op(op), is_real(true), is_there(true) {
        if constexpr (B > 1) {
            asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(team));
            // All blocks of the cluster have begun.
            Cluster::arrive();
            Cluster::wait();
        }
    }
    DEVICE u32 size() const { return length; }
    DEVICE bool has(u32 i) const { return i < length; }
    DEVICE void end() const {}
    // The first value of lane `unit`; lanes are counted through all pieces.
    static DEVICE u32 first(u32 unit) { return unit / LANES * PIECE + unit % LANES; }
};

template <class C, class R, typename A, class S, class K>
DEVICE A run_of_lanes(const C& cx, const R& row, const A& init, const S& step, const K& combine) {
    Pairs<A> blocks;
    const u32 start = (cx.team * C::RT + cx.thread) * cx.run;
#pragma unroll 1
    for (u32 unit = start; unit < start + cx.run; unit += C::U) {
        const u32 first = C::first(unit);
        if (first >= cx.size()) break;
        const u32 rest = cx.size() - first, piece = PIECE - unit % LANES, n = rest < piece ? rest : piece;
        A lanes[C::U];
        decltype(pair(row.load(cx, 0, 0u), 0)) packs[C::S][C::U];
#pragma unroll
        for (int s = 0; s < C::S; ++s) {
#pragma unroll
            for (int u = 0; u < C::U; ++u) packs[s][u].v0 = row.load(cx, 0, first + s * LANES + u);
        }
#pragma unroll
        for (int u = 0; u < C::U; ++u) lanes[u] = init;
#pragma unroll
        for (int s = 0; s < C::S; ++s) {
#pragma unroll
            for (int u = 0; u < C::U; ++u) {
                const u32 at = s * LANES + u;
                if (at < n) lanes[u] = step(lanes[u], row.get(packs[s][u].v0, first + at, 0));
            }
        }
        blocks.push(tree(lanes, n, combine), combine);
    }
    return blocks.last(init, combine);
}

template <class C, class R, typename A, class S, class K>
DEVICE A by_columns(const C& cx, const R& row, const A& init, const S& step, const K& combine) {
    A result = run_of_lanes(cx, row, init, step, combine);
    auto is_there = [&](u32 thread) { return C::first(thread * cx.run) < cx.size(); };
    const u32 block = cx.team * C::RT, column = threadIdx.x % C::CT;
    // Of large results, fewer columns at once.
    constexpr u32 PARTS = (rounded_up<A>() + 15) / 16, TURNS = PARTS < (u32)C::CT ? PARTS : C::CT, STEP = C::CT / TURNS;
    constexpr u32 BYTES = STEP * rounded_up<A>() > C::CT * 16 ? STEP * rounded_up<A>() : C::CT * 16;
    A* const all = (A*)Room<(C::RT + C::B) * BYTES>::of() + column / TURNS;
    for (u32 turn = 0; turn < TURNS; ++turn) {
        const bool mine = column % TURNS == turn;
        // Of the turn before, all have read the result.
        __syncthreads();
        if (mine) all[cx.thread * STEP] = result;
        for (int d = 1; d < C::RT; d *= 2) {
            __syncthreads();
            if (mine && cx.thread % (2 * d) == 0 && is_there(block + cx.thread + d)) {
                result = combine(result, all[(cx.thread + d) * STEP]);
                all[cx.thread * STEP] = result;
            }
        }
        __syncthreads();
        if constexpr (C::B == 1) {
            if (mine) result = all[0];
        } else {
            A* const blocks = all + C::RT * STEP;
            if (mine && cx.thread < C::B) {
                u64 there;
                asm volatile("mapa.u64 %0, %1, %2;" : "=l"(there) : "l"((u64)(blocks + cx.team * STEP)), "r"(cx.thread));
                *(A*)there = all[0];
            }
            Cluster::arrive();
            Cluster::wait();
            A results[C::B];
#pragma unroll
            for (int b = 0; b < C::B; ++b) {
                if (mine) results[b] = blocks[b * STEP];
            }
            // None is overwritten before all have read them.
            Cluster::arrive();
            Cluster::wait();
#pragma unroll
            for (int d = 1; d < C::B; d *= 2) {
#pragma unroll
                for (int b = 0; b < C::B; b += 2 * d) {
                    if (mine && is_there((b + d) * C::RT)) results[b] = combine(results[b], results[b + d]);
                }
            }
            if (mine) result = results[0];
        }
    }
    return result;
}

// ---- all values of a row

template <bool SAME, class C, class R, typename A, class S, class K>
DEVICE A folded(const C& cx, const R& row, const A& init, const S& step, const K& combine) {
    if constexpr (C::COLUMNS) {
        return by_columns(cx, row, init, step, combine);
    } else if constexpr (C::HELD) {
        return part<SAME>(cx, 0, row, init, step, combine);
    } else {
        Pairs<A> rounds;
        for (u32 round = 0; round < cx.rounds(); ++round) {
            rounds.push(part<SAME>(cx, round, row, init, step, combine), combine);
        }
        return rounds.last(init, combine);
    }
}

template <class C, class R, typename A, class S, class K>
DEVICE A fold(const C& cx, const R& row, A init, const S& step, const K& combine) {
    return folded<false>(cx, row, init, step, combine);
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
    return folded<true>(cx, row, (N)0, add, add);
}

template <class C, class R> DEVICE auto max(const C& cx, const R& row) {
    using N = decltype(row.at(0u));
    auto larger = [](N a, N b) { return lang::max(a, b); };
    return folded<true>(cx, row, Ends<N>::lowest(), larger, larger);
}

template <class C, class R> DEVICE auto min(const C& cx, const R& row) {
    using N = decltype(row.at(0u));
    auto smaller = [](N a, N b) { return lang::min(a, b); };
    return folded<true>(cx, row, Ends<N>::highest(), smaller, smaller);
}

template <class C, class R, class F> DEVICE u32 count(const C& cx, const R& row, const F& condition) {
    using N = decltype(row.at(0u));
    return folded<true>(
        cx, row, 0u, [&](u32 count, const N& value) { return count + (condition(value) ? 1u : 0u); },
        [](u32 a, u32 b) { return a + b; });
}

const u32 NONE = 0xffffffffu;

template <typename N> constexpr bool HAS_NAN = false;
template <> constexpr bool HAS_NAN<f32> = true;
template <> constexpr bool HAS_NAN<f64> = true;

template <class C, class R, typename N, class B> DEVICE u32 best(const C& cx, const R& row, N worst, const B& better) {
    using Best = Tuple2<N, u32>;
    // Where nothing was found, the value is the worst one, which is not better than any.
    auto choose = [&](const Best& a, const Best& b) {
        return better(b.v0, a.v0) || (a.v0 == b.v0 && b.v1 < a.v1) ? b : a;
    };
    // A lane has its values in their order: later ones must be better. If all are as bad as the worst one, none is found, and the first one
    // is meant; but with NaN, the first one may be NaN, which is not found.
    const Best found = folded<true>(
        cx, enumerate(row), Best{worst, NONE},
        [&](const Best& best, const Tuple2<u32, N>& value) {
            const bool is_first = HAS_NAN<N> && best.v1 == NONE && value.v1 == best.v0;
            return better(value.v1, best.v0) || is_first ? Best{value.v1, value.v0} : best;
        },
        choose);
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
    for (u32 round = 0; round < cx.rounds(); ++round) {
        each<(C::HELD && C::P < 4 ? C::P : C::HELD ? 4 : C::M < 8 ? 8 : C::M)>(cx, round, row, [&](const auto& pack, u32 base, int) {
            Pack<E, C::V> to;
#pragma unroll
            for (int j = 0; j < C::V; ++j) to.v[j] = lang::Write<E>::of(row.get(pack, base, j));
            if constexpr (C::PACKED) *(Raw<sizeof(E) * C::V>*)(y.to + base) = to.raw;
            else y.to[base] = to.v[0];
        });
    }
}

template <class C, typename E, typename N> DEVICE void put(const C& cx, const Value<E>& y, const N& value) {
    if (cx.thread == 0 && cx.team == 0 && cx.is_there) *y.to = lang::Write<E>::of(value);
}

}  // namespace rows

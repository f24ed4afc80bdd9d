// Attention on tensor cores, for many queries, with products of warpgroups (`wgmma`), which only GPUs of compute capability 9.0 have. A
// block stays on its multiprocessor and computes 128 queries of one head at a time: two warpgroups have 64 each, and the warps of a third
// one load keys and values in tiles, ahead of them, also those of the next queries. While a warpgroup makes weights of scores, the tensor
// cores add the values of the tile before, or work for the other one (Shah et al., "FlashAttention-3", 2024). Softmax, masks and what is
// infinite or NaN are as in prefill.cu. f16 and bf16; head sizes up to 128, in multiples of 16.
// Types: halves
// Also: VARIANT
#include "common.cuh"
#include "prefill.cuh"

#define GROUP 128u
#define CONSUMERS 2u
#define THREADS ((CONSUMERS + 1) * GROUP)
// Queries of a block, and buffers for tiles of keys, and as many for values.
#define ROWS (CONSUMERS * 64)
#define STAGES 2u
// Threads that load keys; as many load values.
#define LOADERS (GROUP / 2)
// Registers of the threads that load, and of the others: 504 of a multiprocessor's 512 for each of 128 threads.
#define FEW "56"
#define MANY "224"

#if __CUDA_ARCH__ == 900

// A barrier in shared memory, whose phases end when enough threads have arrived.
struct Barrier {
    u32 at;
    DEVICE void init(u32 count) const {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(at), "r"(count) : "memory");
    }
    DEVICE void arrive() const { asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(at) : "memory"); }
    DEVICE void wait(u32 parity) const {
        u32 done;
        do {
            asm volatile(
                "{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}"
                : "=r"(done) : "r"(at), "r"(parity) : "memory");
        } while (!done);
    }
};

// Where tiles are as products read them: groups of 8 rows of 64 elements, swizzled; behind them, the second half of longer rows.
template <int BN> struct Halves {
    static constexpr u32 BYTES = BN * 128;
    static DEVICE u32 at(u32 row, u32 eight) { return eight / 8 * BYTES + row * 128 + (eight % 8 ^ row % 8) * 16; }
};

// Describes what is at `at` in a tile to a product. The halves of rows are `apart`.
DEVICE u64 described(u32 at, u32 apart) {
    const u64 swizzled = 1;  // 128 bytes
    return (u64)(at >> 4 & 0x3fffu) | (u64)(apart >> 4) << 16 | (u64)(1024 >> 4) << 32 | swizzled << 62;
}

DEVICE void begin_products() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
DEVICE void end_products() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
// Waits until at most N groups of products are under way.
template <int N> DEVICE void wait_products() { asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory"); }
// What this thread has written to shared memory is there for products.
DEVICE void show_products() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

#define FOUR(D, I) "+f"(D[I][0]), "+f"(D[I][1]), "+f"(D[I][2]), "+f"(D[I][3])

#define REGISTERS_32 \
    "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31}"
#define REGISTERS_64                                                                                                        \
    "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31," \
    "%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61," \
    "%62,%63}"
#define PRODUCT(N) "wgmma.mma_async.sync.aligned.m64n" N "k16.f32." HALF "." HALF " "
#define EIGHT(D, I) \
    FOUR(D, I), FOUR(D, I + 1), FOUR(D, I + 2), FOUR(D, I + 3), FOUR(D, I + 4), FOUR(D, I + 5), FOUR(D, I + 6), FOUR(D, I + 7)

// Multiplies two tiles' parts of 16 columns, adds the product to `d`, or sets it.
DEVICE void product(f32 (&d)[8][4], u64 a, u64 b, bool adds) {
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %34, 0;\n" PRODUCT("64") REGISTERS_32 ", %32, %33, p, 1, 1, 0, 0;\n}"
                 : EIGHT(d, 0) : "l"(a), "l"(b), "r"((u32)adds));
}
DEVICE void product(f32 (&d)[16][4], u64 a, u64 b, bool adds) {
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %66, 0;\n" PRODUCT("128") REGISTERS_64 ", %64, %65, p, 1, 1, 0, 0;\n}"
                 : EIGHT(d, 0), EIGHT(d, 8) : "l"(a), "l"(b), "r"((u32)adds));
}
// Multiplies 16 columns that are in registers by 16 rows of a tile, and adds the product to `d`.
DEVICE void product(f32 (&d)[8][4], const u32 (&a)[4], u64 b) {
    asm volatile(PRODUCT("64") REGISTERS_32 ", {%32,%33,%34,%35}, %36, 1, 1, 1, 1;"
                 : EIGHT(d, 0) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}
DEVICE void product(f32 (&d)[16][4], const u32 (&a)[4], u64 b) {
    asm volatile(PRODUCT("128") REGISTERS_64 ", {%64,%65,%66,%67}, %68, 1, 1, 1, 1;"
                 : EIGHT(d, 0), EIGHT(d, 8) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}

DEVICE u8* generic(u32 at) { return (u8*)__cvta_shared_to_generic(at); }

// Buffers and barriers. DT: the padded head size. BN: keys per tile. Mirrored by `Tile::shared_bytes` in cuda/prefill.rs.
template <int DT, int BN> struct Room {
    static constexpr u32 BYTES = BN * DT * 2, QUERIES = 64 * DT * 2, RESULTS = 64 * (DT > BN ? DT : BN) * 2;
    u32 base;
    DEVICE u32 keys(u32 stage) const { return base + stage * BYTES; }
    DEVICE u32 values(u32 stage) const { return base + (STAGES + stage) * BYTES; }
    DEVICE Barrier keys_there(u32 stage) const { return barrier(0, stage); }
    DEVICE Barrier values_there(u32 stage) const { return barrier(1, stage); }
    DEVICE Barrier keys_used(u32 stage) const { return barrier(2, stage); }
    DEVICE Barrier values_used(u32 stage) const { return barrier(3, stage); }
    DEVICE Barrier barrier(u32 kind, u32 stage) const { return {base + 2 * STAGES * BYTES + (kind * STAGES + stage) * 8}; }
    // The queries of a warpgroup, now and then; and where their results pass, or weights, for which there is room, too.
    DEVICE u32 queries(u32 turn, u32 group) const { return base + 2 * STAGES * BYTES + 1024 + (turn * CONSUMERS + group) * QUERIES; }
    DEVICE u32 results(u32 group) const { return queries(2, 0) + group * RESULTS; }
    // The number, from 1 on, of the last tile of these buffers with values that are infinite or NaN, which not all queries see.
    DEVICE u32* unsound_in(u32 stage) const { return (u32*)generic(base + 2 * STAGES * BYTES + 4 * STAGES * 8) + stage; }

    DEVICE void init() const {
        for (u32 s = 0; s < STAGES; ++s) {
            keys_there(s).init(LOADERS);
            values_there(s).init(LOADERS);
            keys_used(s).init(CONSUMERS);
            values_used(s).init(CONSUMERS);
            *unsound_in(s) = 0;
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
};

// Up to ROWS queries of a head, and the tiles of keys that they see. There are `Params::splits` of these, since here it counts parts of the
// work, not of the keys, and `Params::chunks` for each head of a batch.
struct Work {
    u32 b, head, first;
    u32 begin, end;      // tiles
    u32 low, top;        // the smallest and the largest number of keys that a query sees
    u32 highest;         // the largest first key that one sees

    // Returns whether not all queries see all keys of a tile that one sees.
    template <int BN> DEVICE bool is_cut(u32 tile) const {
        return (low < top && (tile + 1) * BN > low) || tile * BN < highest;
    }

    // The first row of such a tile that not all queries see.
    template <int BN> DEVICE u32 first_cut(u32 tile) const {
        return low > tile * BN && tile * BN >= highest ? low - tile * BN : 0;
    }

    // Makes one of them, which all threads of a warp ask for.
    template <int BN> static DEVICE Work of(const Params& p, u32 index) {
        const u32 heads = p.key_heads * p.group;
        Work work;
        const u32 each = p.splits / p.chunks;
        // With a causal mask, the last queries see the most keys, so they are first.
        work.first = (p.chunks - 1 - index / each) * ROWS;
        index %= each;
        work.b = index / heads;
        work.head = index % heads;
        u32 low = 0xffffffffu, top = 0, bottom = 0, highest = 0;
#if defined(VARIANT)
        bottom = low;
#endif
        for (u32 t = work.first + threadIdx.x % WARP; t < work.first + ROWS && t < p.times; t += WARP) {
            u32 limit = visible(p, work.b, t);
#if defined(VARIANT)
            const u32 from = first_visible(p, position_of(p, work.b, t), limit);
            bottom = min(bottom, from);
            highest = max(highest, from);
#endif
            low = min(low, limit);
            top = max(top, limit);
        }
        work.low = __reduce_min_sync(FULL, low);
        work.top = __reduce_max_sync(FULL, top);
        work.highest = __reduce_max_sync(FULL, highest);
        work.begin = __reduce_min_sync(FULL, bottom) / BN;
        work.end = (work.top + BN - 1) / BN;
        work.end = max(work.begin, work.end);
        return work;
    }
};

// The work of a block: one of as many parts as there are blocks, then one of the next as many, and so on. Of these, it is in turn the one
// with its number from the first and from the last, since parts get smaller.
struct Turns {
    u32 round = 0, index = blockIdx.x;
    DEVICE void next() {
        ++round;
        index = round % 2 ? (round + 1) * gridDim.x - 1 - blockIdx.x : round * gridDim.x + blockIdx.x;
    }
};

// The keys or the values of a head, of which a thread copies 16 bytes of every so many rows.
template <int DT, int BN> struct Source {
    static constexpr u32 APART = LOADERS / (DT / 8), PASSES = BN / APART, PLACES = 8 / APART;
    const u8* head;
    const u8* from;
    u64 stride;  // in bytes
    u32 row;
    u32 to[PLACES];  // rows that are eight apart are swizzled alike
    bool is_whole, is_there;

    DEVICE Source(const T* of, u64 elements, u32 first, u32 size) {
        const u32 thread = threadIdx.x % LOADERS, eight = thread % (DT / 8);
        row = thread / (DT / 8);
#pragma unroll
        for (u32 i = 0; i < PLACES; ++i) to[i] = Halves<BN>::at(row + i * APART, eight);
        row += first;
        stride = elements * sizeof(T);
        head = (const u8*)of;
        from = head + row * stride + eight * 16;
        is_whole = size == DT;
        is_there = eight * 8 < size;
    }

    // Copies the next tile. Rows from `end` on, and elements from the size of a head on, become zeros.
    DEVICE void copy(u32 tile, u32 end) {
        const u8* next = from;
        const bool is_full = is_whole && row + (PASSES - 1) * APART < end;
        if (is_full) {
#pragma unroll 8
            for (u32 i = 0; i < PASSES; ++i, next += APART * stride) {
                copy_async(tile + to[i % PLACES] + i / PLACES * 1024, next, true);
            }
        } else {
#pragma unroll 1
            for (u32 eights = 0; eights < BN / 8; ++eights) {
#pragma unroll
                for (u32 i = 0; i < PLACES; ++i, next += APART * stride) {
                    const bool real = is_there && row + eights * 8 + i * APART < end;
                    copy_async(tile + to[i] + eights * 1024, real ? next : head, real);
                }
            }
        }
        asm volatile("cp.async.wait_all;" ::: "memory");
        show_products();
        row += BN;
        from += BN * stride;
    }

    // Returns whether this thread has copied infinities or NaN to rows of a tile, from `first` on.
    DEVICE bool any_unsound(u32 tile, u32 first) const {
        bool bad = false;
#pragma unroll 4
        for (u32 i = 0; i < PASSES; ++i) {
            const uint4 eight = *(const uint4*)generic(tile + to[i % PLACES] + i / PLACES * 1024);
            const bool any = unsound(eight.x) || unsound(eight.y) || unsound(eight.z) || unsound(eight.w);
            bad |= any && threadIdx.x % LOADERS / (DT / 8) + i * APART >= first;
        }
        return bad;
    }
};

// What the threads do that load keys, or values: the tiles of all work of the block, one after the other.
template <int DT, int BN, bool KEYS> DEVICE void load_tiles(const Params& p, const Room<DT, BN>& room) {
    u32 n = 0;
    for (Turns turns; turns.index < p.splits; turns.next()) {
        const Work work = Work::of<BN>(p, turns.index);
        const u64* strides = KEYS ? p.k_strides : p.v_strides;
        const T* all = (const T*)(KEYS ? p.k : p.v) + work.b * strides[0] + work.head / p.group * strides[2];
        Source<DT, BN> source(all, strides[1], work.begin * BN, KEYS ? p.size : p.size_v);
        for (u32 tile = work.begin; tile < work.end; ++tile, ++n) {
            const u32 stage = n % STAGES, phase = n / STAGES % 2;
            (KEYS ? room.keys_used(stage) : room.values_used(stage)).wait(phase ^ 1);
            source.copy(KEYS ? room.keys(stage) : room.values(stage), work.top);
            if (!KEYS && work.is_cut<BN>(tile)) {
                const u32 first = work.first_cut<BN>(tile);
                if (source.any_unsound(room.values(stage), first)) *room.unsound_in(stage) = n + 1;
            }
            (KEYS ? room.keys_there(stage) : room.values_there(stage)).arrive();
        }
    }
}

// What a thread of a warpgroup has of its 64 queries.
template <int DT, int BN> struct Queries {
    Rows<DT, BN, Halves<BN>> rows;
    u32 weights[BN / 16][4];
    // Tiles so far, of all work.
    u32 n = 0;

    static DEVICE u32 group() { return threadIdx.x / GROUP; }
    static DEVICE u32 thread() { return threadIdx.x % GROUP; }
    static DEVICE bool leads() { return thread() == 0; }
    static DEVICE u32 row() { return thread() / WARP * 16 + thread() % WARP / 4; }
    static DEVICE void together() { asm volatile("barrier.cta.sync %0, %1;" ::"r"(group() + 1), "n"(GROUP) : "memory"); }

    // Begins to load the queries of some work.
    static DEVICE void load(const Params& p, const Work& work, u32 to) {
        const T* q = (const T*)p.q + work.b * p.q_strides[0] + work.head * p.q_strides[2];
        const u32 first = work.first + group() * 64;
#pragma unroll
        for (u32 i = 0; i < 64 * (DT / 8) / GROUP; ++i) {
            const u32 at = i * GROUP + thread(), row = at / (DT / 8), eight = at % (DT / 8);
            const bool real = first + row < p.times && eight * 8 < p.size;
            copy_async(to + Halves<64>::at(row, eight), real ? q + (first + row) * p.q_strides[1] + eight * 8 : q, real);
        }
    }

    // Waits until all threads of the warpgroup have loaded theirs.
    static DEVICE void loaded() {
        asm volatile("cp.async.wait_all;" ::: "memory");
        show_products();
        together();
    }

    // Sets all but scores, which may be there already.
    DEVICE void begin(const Params& p, const Work& work) {
#pragma unroll
        for (int r = 0; r < 2; ++r) {
            const u32 t = work.first + group() * 64 + row() + r * 8;
            rows.limit[r] = t < p.times ? visible(p, work.b, t) : 0;
            rows.max[r] = -INF;
            rows.total[r] = 0.f;
#if defined(VARIANT)
            const u32 real = t < p.times ? t : 0;
            rows.position[r] = position_of(p, work.b, real);
            rows.low[r] = first_visible(p, rows.position[r], rows.limit[r]);
            rows.bias[r] = bias_of(p, work.b, work.head, real);
#endif
        }
#pragma unroll
        for (int i = 0; i < DT / 8; ++i) rows.out[i][0] = rows.out[i][1] = rows.out[i][2] = rows.out[i][3] = 0.f;
    }

    // Begins to multiply queries by a tile of keys.
    DEVICE void score(u32 queries, u32 keys) {
#pragma unroll
        for (u32 d = 0; d < DT / 16; ++d) {
            const u32 within = d % 4 * 32;
            product(
                rows.s, described(queries + d / 4 * Halves<64>::BYTES + within, 16),
                described(keys + d / 4 * Halves<BN>::BYTES + within, 16), d != 0);
        }
        end_products();
    }

    // Begins to add a tile of values, with their weights.
    DEVICE void add(u32 values) {
#pragma unroll
        for (u32 j = 0; j < BN / 16; ++j) product(rows.out, weights[j], described(values + j * 2048, Halves<BN>::BYTES));
        end_products();
    }

    // Makes weights of the scores of a tile. The values of the tile before may be under way.
    DEVICE void weigh(const Params& p, const Work& work, u32 tile, const Room<DT, BN>& room, f32 slope) {
        const u32 stage = n % STAGES, phase = n / STAGES % 2, first = tile * BN;
        if (leads()) room.keys_used(stage).arrive();
        f32 fade[2];
        rows.weigh(p, first, work.is_cut<BN>(tile) || first + BN > work.top, slope, fade);
        wait_products<0>();
        if (tile > work.begin && leads()) room.values_used((n - 1) % STAGES).arrive();
        rows.shrink(fade);
#pragma unroll
        for (int j = 0; j < BN / 16; ++j) rows.weights(weights[j], j);
        room.values_there(stage).wait(phase);
        ++n;
        if (*room.unsound_in(stage) == n) set_apart(room, stage, first);
    }

    // A weight of 0 does not erase a NaN, and keys that a row does not see may contain one: infinities and NaN are added separately, and
    // the products see zeros in their place, so that rows which do not see them have the same bits as without them. Both warpgroups
    // have the same tiles, so both are here.
    DEVICE void set_apart(const Room<DT, BN>& room, u32 stage, u32 first) {
        u8* values = generic(room.values(stage));
        // Another warp may still read the results of the queries before.
        together();
        rows.add_unsound(values, first, (T*)generic(room.results(group())) + thread() / WARP * 16 * BN);
        everyone();
        for (u32 i = threadIdx.x; i < Room<DT, BN>::BYTES / 4; i += CONSUMERS * GROUP) {
            ((u32*)values)[i] = sound(((const u32*)values)[i]);
        }
        show_products();
        everyone();
    }
    static DEVICE void everyone() {
        asm volatile("barrier.cta.sync %0, %1;" ::"n"(CONSUMERS + 1), "n"(CONSUMERS * GROUP) : "memory");
    }

    // Writes the results, by way of shared memory, so that threads write 16 bytes at a time. All threads have read those before
    // (`loaded`).
    DEVICE void write(const Params& p, u32 b, u32 head, u32 first, const Room<DT, BN>& room) {
#if defined(VARIANT)
        const f32 sink = sink_of(p, head);
#else
        const f32 sink = -INF;
#endif
        f32 factor[2];
        rows.factors(p, sink, factor);
        u8* mine = generic(room.results(group()));
#pragma unroll
        for (u32 i = 0; i < DT / 8; ++i) {
#pragma unroll
            for (u32 r = 0; r < 2; ++r) {
                const f32* two = &rows.out[i][r * 2];
                *(u32*)(mine + Halves<64>::at(row() + r * 8, i) + thread() % 4 * 4) = pack(two[0] * factor[r], two[1] * factor[r]);
            }
        }
        together();
        const u32 heads = p.key_heads * p.group;
        first += group() * 64;
        T* y = (T*)p.y + (((u64)b * p.times + first) * heads + head) * p.size_v;
#pragma unroll 4
        for (u32 i = 0; i < 64 * (DT / 8) / GROUP; ++i) {
            const u32 at = i * GROUP + thread(), row = at / (DT / 8), eight = at % (DT / 8);
            if (first + row < p.times && eight * 8 < p.size_v) {
                *(uint4*)(y + (u64)row * heads * p.size_v + eight * 8) = *(const uint4*)(mine + Halves<64>::at(row, eight));
            }
        }
    }
};

// Finds the next work in which a query sees a key; that of which none does is done at once.
template <int DT, int BN> DEVICE bool find(const Params& p, Turns& turns, Work& work) {
    for (; turns.index < p.splits; turns.next()) {
        work = Work::of<BN>(p, turns.index);
        if (work.begin < work.end) return true;
        const u32 heads = p.key_heads * p.group, eights = p.size_v / 8;
        for (u32 i = threadIdx.x; i < ROWS * eights; i += CONSUMERS * GROUP) {
            const u32 t = work.first + i / eights;
            T* y = (T*)p.y + (((u64)work.b * p.times + t) * heads + work.head) * p.size_v;
            if (t < p.times) *(uint4*)(y + i % eights * 8) = make_uint4(0, 0, 0, 0);
        }
    }
    return false;
}

// What the others do. While the queries before end, the next ones are loaded, and multiplied by their first tile of keys.
template <int DT, int BN> DEVICE void attend(const Params& p, const Room<DT, BN>& room) {
    Turns turns;
    Work work;
    if (!find<DT, BN>(p, turns, work)) return;
    Queries<DT, BN> queries;
    u32 now = room.queries(0, queries.group()), then = room.queries(1, queries.group());
    queries.load(p, work, now);
    queries.loaded();
    room.keys_there(0).wait(0);
    begin_products();
    queries.score(now, room.keys(0));
    wait_products<0>();
    for (bool is_last = false; !is_last;) {
        queries.begin(p, work);
        {
            Work next;
            turns.next();
            is_last = !find<DT, BN>(p, turns, next);
            if (!is_last) queries.load(p, next, then);
        }
#if defined(VARIANT)
        const f32 slope = slope_of(p, work.head);
#else
        const f32 slope = 0.f;
#endif
        u32 stage = 0;
        for (u32 tile = work.begin;; ++tile) {
            stage = queries.n % STAGES;
            queries.weigh(p, work, tile, room, slope);
            const u32 after = queries.n % STAGES, phase = queries.n / STAGES % 2;
            if (tile + 1 == work.end) {
                queries.loaded();
                if (!is_last) room.keys_there(after).wait(phase);
                begin_products();
                queries.add(room.values(stage));
                if (!is_last) queries.score(then, room.keys(after));
                break;
            }
            // While the weights of the next tile are made, the tensor cores add the values of this one.
            room.keys_there(after).wait(phase);
            begin_products();
            queries.score(now, room.keys(after));
            queries.add(room.values(stage));
            wait_products<1>();
        }
        const u32 b = work.b, head = work.head, first = work.first;
        if (!is_last) work = Work::of<BN>(p, turns.index);
        wait_products<0>();
        if (queries.leads()) room.values_used(stage).arrive();
        queries.write(p, b, head, first, room);
        const u32 other = now;
        now = then;
        then = other;
    }
}

template <int DT, int BN> DEVICE void run(const Params& p) {
    extern __shared__ __align__(1024) u8 memory[];
    const Room<DT, BN> room = {shared_address(memory)};
    if (threadIdx.x == 0) room.init();
    __syncthreads();
    if (threadIdx.x < CONSUMERS * GROUP) {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 " MANY ";");
        return attend(p, room);
    }
    asm volatile("setmaxnreg.dec.sync.aligned.u32 " FEW ";");
    if (threadIdx.x < CONSUMERS * GROUP + LOADERS) {
        load_tiles<DT, BN, true>(p, room);
    } else {
        load_tiles<DT, BN, false>(p, room);
    }
}

#define PREFILL(NAME, DT, BN)                                                \
    KERNEL(NAME, THREADS, 1)(const __grid_constant__ Params p) { in_order(); \
        run<DT, BN>(p);                                                      \
    }
#else
// For other GPUs, there is prefill.cu: these are never launched.
#define PREFILL(NAME, DT, BN)                                                \
    KERNEL(NAME, THREADS, 1)(const __grid_constant__ Params p) { in_order(); }
#endif

PREFILL(prefill_groups_64, 64, 128)
PREFILL(prefill_groups_128, 128, 128)

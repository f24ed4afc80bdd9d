// The parameter of both kinds of kernels, and the mask. With VARIANT, what changes the scores besides the mask: those who
// need none of it have kernels without it.

struct Params {
    u64 q, k, v, y;
    u64 limits;    // lengths or positions
    u64 real;  // u32*: the number of real keys, which padding follows; 0: all are real
    u64 partials;  // for each row and split: maximum, sum, values
    u64 q_strides[4], k_strides[4], v_strides[4];
    u64 limit_strides[2];
    u32 times, keys;
    u32 key_heads, group;
    u32 size, size_v;
    u32 mask;    // none, causal, lengths, positions
    u32 splits;  // parts of the keys
    u32 chunks;  // blocks that share the rows of a key head; of many queries, tiles
    u32 lanes;   // lanes per key, a power of two
    u32 vector;  // heads are contiguous and aligned to 16 bytes, and their size is a multiple of 8
    f32 scale;
#if defined(VARIANT)
    u64 bias;    // of type T, as scores: batch, query head, query, key; 0: none
    u64 slopes;  // f32, for each query head; 0: none, or those of `alibi`
    u64 sinks;   // of type T, for each query head; 0: none
    u64 bias_strides[4];
    u64 slope_stride, sink_stride;
    u32 window;       // if set, keys from `left` before to `right` after the position of a query are visible
    u32 left, right;
    u32 alibi;        // the largest power of two that is at most the number of query heads; 0: no slopes
    f32 soft_cap;     // 0: none
    u32 pad;
#endif
};
#if defined(VARIANT)
static_assert(sizeof(Params) == 312, "mirrored by cuda.rs");
#else
static_assert(sizeof(Params) == 216, "mirrored by cuda.rs");
#endif

// The number of keys that query (b, t) sees, counted from the first.
DEVICE u32 visible(const Params& p, u32 b, u32 t) {
    u64 n = p.keys;
    if (p.mask == 1) {
        const u64 end = (u64)t + 1 + p.keys;
        n = end > p.times ? end - p.times : 0;
    } else if (p.mask == 2) {
        n = ((const u32*)p.limits)[b * p.limit_strides[0]];
    } else if (p.mask == 3) {
        n = (u64)((const u32*)p.limits)[b * p.limit_strides[0] + t * p.limit_strides[1]] + 1;
    }
    u64 most = p.keys;
    if (p.real) {
        const u64 real = *(const u32*)p.real;
        most = real < most ? real : most;
    }
    return (u32)(n < most ? n : most);
}

#if defined(VARIANT)

// The position of query (b, t), from which a window and the distance of a key count.
DEVICE i64 position_of(const Params& p, u32 b, u32 t) {
    if (p.mask == 3) return ((const u32*)p.limits)[b * p.limit_strides[0] + t * p.limit_strides[1]];
    return p.mask == 2 ? (i64)t : (i64)t + p.keys - p.times;
}

// The first visible key of a query, of which those before `limit` are visible; the window may lower `limit`.
DEVICE u32 first_visible(const Params& p, i64 position, u32& limit) {
    if (!p.window) return 0;
    const i64 end = limit;
    i64 start = position - p.left, after = position + p.right + 1;
    start = start < 0 ? 0 : start < end ? start : end;
    after = after < start ? start : after < end ? after : end;
    limit = (u32)after;
    return (u32)start;
}

DEVICE f32 slope_of(const Params& p, u32 head) {
    if (!p.alibi) return 0.f;
    if (p.slopes) return ((const f32*)p.slopes)[head * p.slope_stride];
    if (head < p.alibi) return exp2f(-8.f * (f32)(head + 1) / (f32)p.alibi);
    return exp2f(-4.f * (f32)(2 * (head - p.alibi) + 1) / (f32)p.alibi);  // every second one of twice as many heads
}

// The bias of query (b, t) of a head, for key 0; keys are `bias_strides[3]` apart.
DEVICE const T* bias_of(const Params& p, u32 b, u32 head, u32 t) {
    return (const T*)p.bias + b * p.bias_strides[0] + head * p.bias_strides[1] + t * p.bias_strides[2];
}

// What is added to the score of key `j`.
DEVICE f32 added(const Params& p, const T* bias, f32 slope, i64 position, u32 j) {
    f32 sum = p.bias ? to_f32(bias[j * p.bias_strides[3]]) : 0.f;
    if (p.alibi) {
        const i64 away = (i64)j - position;
        sum -= slope * (f32)(away < 0 ? -away : away);
    }
    return sum;
}

DEVICE f32 capped(const Params& p, f32 score) {
    return p.soft_cap != 0.f ? p.soft_cap * tanhf(score / p.soft_cap) : score;
}

// The score of a head without a key.
DEVICE f32 sink_of(const Params& p, u32 head) {
    return p.sinks ? to_f32(((const T*)p.sinks)[head * p.sink_stride]) : -__int_as_float(0x7f800000);
}

#endif

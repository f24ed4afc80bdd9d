// The parameter of both kinds of kernels, and the mask.

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
};
static_assert(sizeof(Params) == 216, "mirrored by cuda.rs");

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

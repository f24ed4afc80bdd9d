// A copy between views whose elements lie next to each other along different dimensions. A block takes a square of both through
// shared memory, so that whole lines are read and written.
// Types: none
#include "common.cuh"

#define THREADS 256
// Lines of words that a block reads or writes at a time.
#define LINES (THREADS / WARP)

// Rows lie next to each other where they are written, columns where they are read; all is counted in elements.
struct TransposeParams {
    u64 from;
    u64 to;
    u64 rows;
    u64 columns;
    u64 from_stride;  // from a row to the next
    u64 to_stride;    // from a column to the next
    u32 down;         // squares along the rows
    u32 across;       // squares along the columns
    u64 squares;      // of all planes, less than 2^32
    Dims dims;        // of the planes
    u64 strides[2][MAX_RANK];
};
static_assert(sizeof(TransposeParams) == 216, "mirrored by transpose.rs");

// `P` elements, of which rows and columns have a multiple, are a word.
template <typename E, u32 P> DEVICE void transpose(const TransposeParams& p) {
    constexpr u32 SIDE = WARP * P, READS = WARP / LINES;
    using Word = Pack<E, P>;
    __shared__ Word square[SIDE * WARP];
    const u32 lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    for (u64 n = blockIdx.x; n < p.squares; n += gridDim.x) {
        const u32 line_of_squares = (u32)n / p.across, plane = line_of_squares / p.down;
        const u64 column = (u64)((u32)n - line_of_squares * p.across) * SIDE;
        const u64 row = (u64)(line_of_squares - plane * p.down) * SIDE;
        u64 at[2];
        locate<2>(p.dims, p.strides, plane, at);
        const E* from = (const E*)p.from + at[0] + column + lane * P;
        E* to = (E*)p.to + at[1] + row + lane * P;
        Word words[READS][P];
#pragma unroll
        for (u32 g = 0; g < READS; ++g) {
#pragma unroll
            for (u32 k = 0; k < P; ++k) {
                const u64 r = row + (warp + g * LINES) * P + k;
                words[g][k].raw = {};
                if (column + lane * P < p.columns && r < p.rows) {
                    words[g][k].raw = *(const decltype(Word::raw)*)(from + r * p.from_stride);
                }
            }
        }
        // A thread has `P` rows of `P` columns. Word `w` of a column is at `w ^ column / P`, so that neither a warp's column of words
        // nor its line has two in one bank.
#pragma unroll
        for (u32 g = 0; g < READS; ++g) {
#pragma unroll
            for (u32 j = 0; j < P; ++j) {
                Word turned;
#pragma unroll
                for (u32 k = 0; k < P; ++k) turned.v[k] = words[g][k].v[j];
                square[(lane * P + j) * WARP + ((warp + g * LINES) ^ lane)].raw = turned.raw;
            }
        }
        __syncthreads();
#pragma unroll
        for (u32 g = 0; g < READS * P; ++g) {
            const u32 line = warp + g * LINES;
            if (column + line < p.columns && row + lane * P < p.rows) {
                *(decltype(Word::raw)*)(to + (column + line) * p.to_stride) = square[line * WARP + (lane ^ (line / P))].raw;
            }
        }
        __syncthreads();
    }
}

#define TRANSPOSE(NAME, E, P) \
    KERNEL(NAME, THREADS)(const __grid_constant__ TransposeParams p) { in_order(); transpose<E, P>(p); }
TRANSPOSE(transpose_1, u8, 1)
TRANSPOSE(transpose_2, u16, 1)
TRANSPOSE(transpose_4, u32, 1)
TRANSPOSE(transpose_8, u64, 1)
TRANSPOSE(transpose_1_in_fours, u8, 4)
TRANSPOSE(transpose_2_in_pairs, u16, 2)

// Views moved to their parts of one output.
// Types: none
#include "common.cuh"

// Up to eight of them, one per row of the grid.
#define PARTS 8
struct JoinParams { Move part[PARTS]; };
static_assert(sizeof(JoinParams) == 1408, "mirrored by cuda.rs");

#define JOIN(W) \
    KERNEL(join_##W, 256)(const __grid_constant__ JoinParams p) { in_order(); move_words<W>(p.part[blockIdx.y]); }
JOIN(1) JOIN(2) JOIN(4) JOIN(8) JOIN(16)

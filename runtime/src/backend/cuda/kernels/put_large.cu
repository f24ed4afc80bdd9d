// As `put.cu`, with as much as a parameter may hold since CUDA 12.1.
// Types: none
#include "common.cuh"

PUT(put_32k, 32736)

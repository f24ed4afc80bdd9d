// As `put.cu`, with as much as a parameter may hold since CUDA 12.1.
#include "common.cuh"

PUT(put_32k, 32736)

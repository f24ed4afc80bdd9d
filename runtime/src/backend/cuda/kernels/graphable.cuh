// What kernels of users may include: `#include "graphable.cuh"`.
#pragma once

// A tensor with any strides: element (i, j, ..) is data[i * strides[0] + j * strides[1] + ..].
struct graphable_view {
    void *data;
    unsigned long long rank;
    unsigned long long shape[6];
    unsigned long long strides[6];
};

extern "C" __global__ void soft_cap(const float *x, float cap, unsigned long long n, float *y) {
    unsigned long long i = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x;
    if (i < n) y[i] = cap * tanhf(x[i] / cap);
}

// Row `f` of the output is the part of the signal from `f * hop` on, `length` samples long, under a Hann window.
extern "C" __global__ void windows(const float *signal, unsigned long long rows, unsigned long long samples,
                                   unsigned long long windows, unsigned long long length, unsigned long long hop,
                                   float *out) {
    unsigned long long i = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x;
    if (i >= rows * windows * length) return;
    unsigned long long at = i % length, window = i / length % windows, row = i / length / windows;
    float weight = 0.5f - 0.5f * cospif(2.0f * (float)at / (float)length);
    out[i] = weight * signal[row * samples + window * hop + at];
}

// What the driver takes to launch a kernel, a graph of one, and a graph of one whose parameter is replaced:
// microseconds of the host and until the last is done, for each launch, 3000 back to back, medians of 15 rounds; and
// the device memory of 1000 such graphs.
//
//   nvcc -O2 -arch=sm_90a -std=c++17 runtime/benches/gpu/launches.cu -o /tmp/launches -lcuda && /tmp/launches
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cuda.h>
#include <vector>

struct Params {
    unsigned long long words[32];
};

extern "C" __global__ void add_one(Params p) {
    asm volatile("griddepcontrol.wait;");
    const unsigned at = threadIdx.x + blockIdx.x * 256;
    ((float *)p.words[1])[at] = ((float *)p.words[0])[at] + 1;
}

static double now() {
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

template <class F> static void measure(const char *name, int launches, F f) {
    std::vector<double> host, total;
    for (int round = 0; round < 15; round++) {
        cudaDeviceSynchronize();
        const double start = now();
        for (int i = 0; i < 3000; i++) f();
        host.push_back((now() - start) / 3000 / launches);
        cudaDeviceSynchronize();
        total.push_back((now() - start) / 3000 / launches);
    }
    std::sort(host.begin(), host.end());
    std::sort(total.begin(), total.end());
    std::printf("%-48s %.2f us, done after %.2f us\n", name, host[7], total[7]);
}

int main() {
    float *memory;
    cudaMalloc(&memory, 1 << 20);
    cudaStream_t stream;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    cudaFunction_t function;
    cudaGetFuncBySymbol(&function, (void *)add_one);
    Params params = {{(unsigned long long)memory, (unsigned long long)(memory + 65536)}};
    void *list[] = {&params};
    CUlaunchAttribute overlap = {};
    overlap.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
    overlap.value.programmaticStreamSerializationAllowed = 1;
    CUlaunchConfig plain = {4, 1, 1, 256, 1, 1, 0, stream, nullptr, 0}, early = plain;
    early.attrs = &overlap;
    early.numAttrs = 1;
    CUDA_KERNEL_NODE_PARAMS node = {};
    node.func = function;
    node.gridDimX = 4;
    node.blockDimX = 256;
    node.gridDimY = node.gridDimZ = node.blockDimY = node.blockDimZ = 1;
    node.kernelParams = list;
    CUgraph graph;
    CUgraphNode kernel;
    CUgraphExec exec, changing;
    cuGraphCreate(&graph, 0);
    cuGraphAddKernelNode(&kernel, graph, nullptr, 0, &node);
    cuGraphInstantiate(&exec, graph, 0);
    cuGraphInstantiate(&changing, graph, 0);
    const auto replaced = [&] {
        params.words[5]++;
        cuGraphExecKernelNodeSetParams(changing, kernel, &node);
        cuGraphLaunch(changing, stream);
    };
    measure("a kernel", 1, [&] { cuLaunchKernelEx(&plain, function, list, nullptr); });
    measure("a kernel, brought up early", 1, [&] { cuLaunchKernelEx(&early, function, list, nullptr); });
    measure("a graph of one kernel", 1, [&] { cuGraphLaunch(exec, stream); });
    measure("a graph of one kernel, parameter replaced", 1, replaced);
    measure("a graph and a kernel in turn, each", 2, [&] {
        cuGraphLaunch(exec, stream);
        cuLaunchKernelEx(&plain, function, list, nullptr);
    });
    measure("a graph and one with replaced parameter, each", 2, [&] {
        cuGraphLaunch(exec, stream);
        replaced();
    });
    measure("a kernel and one with replaced parameter, each", 2, [&] {
        cuLaunchKernelEx(&early, function, list, nullptr);
        replaced();
    });
    size_t before, after, all;
    std::vector<CUgraphExec> many(1000);
    cudaMemGetInfo(&before, &all);
    for (auto &one : many) cuGraphInstantiate(&one, graph, 0);
    cudaMemGetInfo(&after, &all);
    std::printf("device memory of 1000 graphs of one kernel: %zu KiB\n", (before - after) >> 10);
    size_t at = 0;
    measure("graphs of one kernel, 1000 of them, replaced", 1, [&] {
        at = (at + 1) % many.size();
        params.words[5]++;
        cuGraphExecKernelNodeSetParams(many[at], kernel, &node);
        cuGraphLaunch(many[at], stream);
    });
    const auto outcome = cudaDeviceSynchronize();
    if (outcome != cudaSuccess) std::printf("failed: %s\n", cudaGetErrorString(outcome));
    return outcome != cudaSuccess;
}

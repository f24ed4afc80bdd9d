// Random graphs with conditional nodes and parallel branches, made and replayed by calls of the driver alone, and compared with
// the host. Nothing of graphable is in it. It shows what compute-sanitizer does with such graphs: see docs/TESTING.md.
//
//   conditional GRAPHS REPLAYS SEED      prints `equal`, or what failed
//
// NO_IF=1, NO_SWITCH=1, NO_WHILE=1 and NO_FORK=1 leave out a kind of node; TOP_FORK=1 leaves out branches inside of bodies.

#include <cuda.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

extern "C" __global__ void add(uint32_t* values, uint32_t n, uint32_t number) {
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) values[i] = values[i] * 3u + number;
}

extern "C" __global__ void tell(unsigned long long handle, const uint32_t* selector) {
    cudaGraphSetConditional(handle, *selector & 1u);
}

extern "C" __global__ void begin_rounds(uint32_t* rounds, const uint32_t* values) { *rounds = *values & 7u; }

extern "C" __global__ void next_round(uint32_t* rounds) { *rounds >>= 1; }

static void check(CUresult code, int line) {
    if (code == CUDA_SUCCESS) return;
    const char* name = "unknown";
    cuGetErrorName(code, &name);
    std::printf("failed in line %d: %s\n", line, name);
    std::exit(3);
}
#define CHECK(call) check(call, __LINE__)

static bool is_set(const char* name) {
    const char* value = std::getenv(name);
    return value && std::string(value) == "1";
}

enum Kind { ADD, IF, SWITCH, WHILE, FORK };

struct Op {
    Kind kind = ADD;
    uint32_t number = 0;
    // The buffer that it adds to, or whose first value decides.
    size_t buffer = 0;
    // Of a loop.
    size_t rounds = 0;
    std::vector<std::vector<Op>> bodies;
};
using Ops = std::vector<Op>;

static constexpr size_t BUFFERS = 8, LOOPS = 4096, DEPTH = 2;
static constexpr uint32_t VALUES = 1000;

// Operations on the buffers in `from..to`.
struct Generator {
    std::mt19937 random;
    size_t loops = 0;

    size_t below(size_t n) { return random() % n; }

    Kind kind(size_t depth, size_t from, size_t to) {
        const Kind drawn = depth < DEPTH && below(10) < 4 ? Kind(1 + below(4)) : ADD;
        const bool is_left_out = (drawn == IF && is_set("NO_IF")) || (drawn == SWITCH && is_set("NO_SWITCH")) ||
                                 (drawn == WHILE && (is_set("NO_WHILE") || loops == LOOPS)) ||
                                 (drawn == FORK && (is_set("NO_FORK") || to - from < 2 || (is_set("TOP_FORK") && depth > 0)));
        return is_left_out ? ADD : drawn;
    }

    Ops ops(size_t depth, size_t count, size_t from, size_t to) {
        Ops all;
        for (size_t i = 0; i < count; ++i) {
            Op op;
            op.kind = kind(depth, from, to);
            op.number = uint32_t(below(100));
            op.buffer = from + below(to - from);
            const size_t middle = (from + to) / 2;
            switch (op.kind) {
                case ADD: break;
                case WHILE: op.rounds = loops++; [[fallthrough]];
                case IF: op.bodies = {ops(depth + 1, 1 + below(3), from, to)}; break;
                case SWITCH:
                    op.bodies = {ops(depth + 1, 1 + below(3), from, to), ops(depth + 1, 1 + below(3), from, to)};
                    break;
                case FORK: op.bodies = {ops(depth, 2 + below(3), from, middle), ops(depth, 2 + below(3), middle, to)}; break;
            }
            all.push_back(op);
        }
        return all;
    }
};

using Values = std::vector<std::vector<uint32_t>>;

static void run_on_host(const Ops& ops, Values& values) {
    for (const Op& op : ops) {
        const uint32_t first = values[op.buffer][0];
        switch (op.kind) {
            case ADD:
                for (uint32_t& value : values[op.buffer]) value = value * 3u + op.number;
                break;
            case IF:
                if (first & 1u) run_on_host(op.bodies[0], values);
                break;
            case SWITCH: run_on_host(op.bodies[first & 1u], values); break;
            case WHILE:
                for (uint32_t rounds = first & 7u; rounds & 1u; rounds >>= 1) run_on_host(op.bodies[0], values);
                break;
            case FORK:
                for (const Ops& branch : op.bodies) run_on_host(branch, values);
                break;
        }
    }
}

struct Recorder {
    CUcontext context;
    CUstream stream;
    CUfunction add, tell, begin_rounds, next_round;
    CUdeviceptr buffers[BUFFERS], rounds;

    void launch(CUfunction function, unsigned blocks, unsigned threads, std::vector<void*> arguments) {
        CHECK(cuLaunchKernel(function, blocks, 1, 1, threads, 1, 1, 0, stream, arguments.data(), nullptr));
    }

    // The graph that is captured, and the nodes for which the next one waits.
    CUgraph captured(std::vector<CUgraphNode>& waits) {
        CUstreamCaptureStatus status;
        cuuint64_t id;
        CUgraph graph;
        const CUgraphNode* nodes;
        const CUgraphEdgeData* edges;
        size_t count;
        CHECK(cuStreamGetCaptureInfo(stream, &status, &id, &graph, &nodes, &edges, &count));
        waits.assign(nodes, nodes + count);
        return graph;
    }

    void wait_for(std::vector<CUgraphNode> nodes) {
        std::vector<CUgraphEdgeData> edges(nodes.size() + 1, CUgraphEdgeData{});
        const unsigned set = CU_STREAM_SET_CAPTURE_DEPENDENCIES;
        CHECK(cuStreamUpdateCaptureDependencies(stream, nodes.data(), edges.data(), nodes.size(), set));
    }

    void begin_in(CUgraph graph, std::vector<CUgraphNode> waits) {
        std::vector<CUgraphEdgeData> edges(waits.size() + 1, CUgraphEdgeData{});
        const auto mode = CU_STREAM_CAPTURE_MODE_RELAXED;
        CHECK(cuStreamBeginCaptureToGraph(stream, graph, waits.data(), edges.data(), waits.size(), mode));
    }

    CUgraph end() {
        CUgraph graph;
        CHECK(cuStreamEndCapture(stream, &graph));
        return graph;
    }

    void fork(const Op& op) {
        std::vector<CUgraphNode> before, first, all;
        captured(before);
        record(op.bodies[0]);
        captured(first);
        wait_for(before);
        record(op.bodies[1]);
        captured(all);
        for (CUgraphNode node : first)
            if (std::find(all.begin(), all.end(), node) == all.end()) all.push_back(node);
        wait_for(all);
    }

    void conditional(const Op& op) {
        const unsigned assigned_at_launch = CU_GRAPH_COND_ASSIGN_DEFAULT;
        std::vector<CUgraphNode> waits;
        CUgraph around = captured(waits);
        CUgraphConditionalHandle handle;
        CHECK(cuGraphConditionalHandleCreate(&handle, around, context, 0, assigned_at_launch));
        const bool repeats = op.kind == WHILE;
        CUdeviceptr values = buffers[op.buffer], own = rounds + sizeof(uint32_t) * op.rounds;
        CUdeviceptr selector = repeats ? own : values;
        if (repeats) launch(begin_rounds, 1, 1, {&own, &values});
        launch(tell, 1, 1, {&handle, &selector});
        captured(waits);
        end();
        CUgraphNodeParams params{};
        params.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
        params.conditional.handle = handle;
        params.conditional.type = op.kind == IF       ? CU_GRAPH_COND_TYPE_IF
                                  : op.kind == SWITCH ? CU_GRAPH_COND_TYPE_SWITCH
                                                      : CU_GRAPH_COND_TYPE_WHILE;
        params.conditional.size = unsigned(op.bodies.size());
        params.conditional.ctx = context;
        std::vector<CUgraphEdgeData> edges(waits.size() + 1, CUgraphEdgeData{});
        CUgraphNode node;
        CHECK(cuGraphAddNode(&node, around, waits.data(), edges.data(), waits.size(), &params));
        for (size_t body = 0; body < op.bodies.size(); ++body) {
            begin_in(params.conditional.phGraph_out[body], {});
            record(op.bodies[body]);
            if (repeats) {
                launch(next_round, 1, 1, {&own});
                launch(tell, 1, 1, {&handle, &own});
            }
            end();
        }
        begin_in(around, {node});
    }

    void record(const Ops& ops) {
        for (const Op& op : ops) {
            if (op.kind == FORK) {
                fork(op);
            } else if (op.kind != ADD) {
                conditional(op);
            } else {
                CUdeviceptr values = buffers[op.buffer];
                uint32_t n = VALUES, number = op.number;
                launch(add, (VALUES + 127) / 128, 128, {&values, &n, &number});
            }
        }
    }
};

static Recorder open(const char* module_path) {
    Recorder made{};
    CUdevice device;
    CUmodule module;
    CHECK(cuInit(0));
    CHECK(cuDeviceGet(&device, 0));
    CHECK(cuDevicePrimaryCtxRetain(&made.context, device));
    CHECK(cuCtxSetCurrent(made.context));
    CHECK(cuModuleLoad(&module, module_path));
    CHECK(cuModuleGetFunction(&made.add, module, "add"));
    CHECK(cuModuleGetFunction(&made.tell, module, "tell"));
    CHECK(cuModuleGetFunction(&made.begin_rounds, module, "begin_rounds"));
    CHECK(cuModuleGetFunction(&made.next_round, module, "next_round"));
    for (CUdeviceptr& buffer : made.buffers) CHECK(cuMemAlloc(&buffer, VALUES * sizeof(uint32_t)));
    CHECK(cuMemAlloc(&made.rounds, LOOPS * sizeof(uint32_t)));
    CHECK(cuStreamCreate(&made.stream, CU_STREAM_NON_BLOCKING));
    return made;
}

static bool is_equal(const Recorder& recorder, const Values& expected) {
    CHECK(cuStreamSynchronize(recorder.stream));
    for (size_t buffer = 0; buffer < BUFFERS; ++buffer) {
        std::vector<uint32_t> found(VALUES);
        CHECK(cuMemcpyDtoH(found.data(), recorder.buffers[buffer], VALUES * sizeof(uint32_t)));
        if (found != expected[buffer]) return false;
    }
    return true;
}

int main(int count, char** arguments) {
    if (count != 4) {
        std::printf("usage: conditional GRAPHS REPLAYS SEED\n");
        return 2;
    }
    const size_t graphs = std::strtoul(arguments[1], nullptr, 10), replays = std::strtoul(arguments[2], nullptr, 10);
    Generator generator{std::mt19937(uint32_t(std::strtoul(arguments[3], nullptr, 10)))};
    Recorder recorder = open("conditional.cubin");
    std::vector<Ops> programs;
    std::vector<CUgraphExec> executables;
    for (size_t i = 0; i < graphs; ++i) {
        programs.push_back(generator.ops(0, 4 + generator.below(5), 0, BUFFERS));
        CHECK(cuStreamBeginCapture(recorder.stream, CU_STREAM_CAPTURE_MODE_RELAXED));
        std::vector<CUgraphNode> waits;
        CUgraph graph = recorder.captured(waits);
        recorder.record(programs.back());
        recorder.end();
        executables.emplace_back();
        CHECK(cuGraphInstantiateWithFlags(&executables.back(), graph, 0));
    }
    Values values;
    for (size_t buffer = 0; buffer < BUFFERS; ++buffer) {
        values.emplace_back(VALUES, uint32_t(generator.random()));
        CHECK(cuMemcpyHtoD(recorder.buffers[buffer], values[buffer].data(), VALUES * sizeof(uint32_t)));
    }
    for (size_t replay = 1; replay <= replays; ++replay) {
        const size_t i = generator.below(graphs);
        CHECK(cuGraphLaunch(executables[i], recorder.stream));
        run_on_host(programs[i], values);
        if ((replay % 5 == 0 || replay == replays) && !is_equal(recorder, values)) {
            std::printf("wrong values after replay %zu\n", replay);
            return 4;
        }
    }
    std::printf("equal\n");
    return 0;
}

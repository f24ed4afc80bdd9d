"""The same figures by PyTorch, one JSON object a line. `peer.py [calls] [partition] [small] [batches] [chains] [kernels] [rows] [conv] [transposes] [attention] [numerics] [decode] [prefill]`."""

import gc
import json
import os
import statistics
import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

import peer_decode

DEVICE = "cuda"


def per_call(rounds, n, call, wait):
    """Microseconds of host time and of total time per call, medians over rounds; nothing waits inside."""
    host, total = [], []
    for _ in range(rounds):
        wait()
        start = time.perf_counter()
        for i in range(n):
            call(i)
        host.append((time.perf_counter() - start) * 1e6 / n)
        wait()
        total.append((time.perf_counter() - start) * 1e6 / n)
    return statistics.median(host), statistics.median(total)


def say(**fields):
    print(json.dumps(fields), flush=True)


def calls():
    def product(a, b, shift):
        return torch.relu(a @ b) + shift

    inputs = [torch.full((64, 64), 0.5, device=DEVICE) for _ in range(4)]
    shifts = [torch.tensor(float(i), device="cpu") for i in range(8)]
    compiled = torch.compile(product, mode="reduce-overhead")
    with torch.no_grad():
        def call(i):
            compiled(inputs[i % 2], inputs[i % 2 + 2], shifts[i % 8])

        for i in range(50):
            call(i)
        host, total = per_call(10, 200, call, torch.cuda.synchronize)
        say(figure="calls", what="torch.compile reduce-overhead", host_us=host, total_us=total)
        static = [t.clone() for t in inputs[:2]] + [torch.zeros((), device=DEVICE)]
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            product(*static)
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            kept = product(*static)
        host, total = per_call(20, 500, lambda i: graph.replay(), torch.cuda.synchronize)
        say(figure="calls", what="CUDAGraph.replay, inputs not refreshed", host_us=host, total_us=total)
        del kept


def partition():
    @torch.library.custom_op("graphable_bench::tiny", mutates_args=(), tags=(torch._C.Tag.cudagraph_unsafe,))
    def tiny(x: torch.Tensor) -> torch.Tensor:
        return -x

    @tiny.register_fake
    def _(x):
        return torch.empty_like(x)

    one = torch.ones(1024, device=DEVICE)

    def body(x):
        y = x + one
        for _ in range(32):
            y = torch.ops.graphable_bench.tiny(y) + one
        return y

    def plain(x):
        y = x + one
        for _ in range(32):
            y = -y + one
        return y

    x = torch.zeros(1024, device=DEVICE)
    torch._inductor.config.graph_partition = True
    compiled = torch.compile(body, mode="reduce-overhead")
    with torch.no_grad():
        for _ in range(30):
            compiled(x)
        host, total = per_call(10, 50, lambda i: compiled(x), torch.cuda.synchronize)
        say(figure="partition", what="torch.compile with graph partition", host_us=host, total_us=total)
        host, total = per_call(10, 50, lambda i: body(x), torch.cuda.synchronize)
        say(figure="partition", what="PyTorch eager, the custom op", host_us=host, total_us=total)
        host, total = per_call(10, 50, lambda i: plain(x), torch.cuda.synchronize)
        say(figure="partition", what="PyTorch eager, plain", host_us=host, total_us=total)


def small():
    x = torch.zeros(1024, device=DEVICE)
    one = torch.ones(1024, device=DEVICE)
    graph = torch.cuda.CUDAGraph()
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        y = x + one
    torch.cuda.current_stream().wait_stream(side)
    with torch.cuda.graph(graph):
        y = x + one
        for _ in range(999):
            y = y + one
    host, total = per_call(20, 50, lambda i: graph.replay(), torch.cuda.synchronize)
    say(figure="small", what="CUDAGraph.replay of 1000 additions", host_us=host, total_us=total)


DIM, LAYERS, HEADS, KV, HEAD, FFN, VOCABULARY, CONTEXT, MOST = 2048, 16, 32, 8, 64, 8192, 128256, 256, 512


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.ffn_norm = nn.RMSNorm(DIM), nn.RMSNorm(DIM)
        self.qkv = nn.Linear(DIM, (HEADS + 2 * KV) * HEAD, bias=False)
        self.out = nn.Linear(HEADS * HEAD, DIM, bias=False)
        self.gate_up = nn.Linear(DIM, 2 * FFN, bias=False)
        self.down = nn.Linear(FFN, DIM, bias=False)
        self.register_buffer("keys", torch.zeros(MOST, KV, CONTEXT, HEAD))
        self.register_buffer("values", torch.zeros(MOST, KV, CONTEXT, HEAD))

    def forward(self, x, cos, sin, at, mask):
        b = x.shape[0]
        q, k, v = self.qkv(self.norm(x)).split([HEADS * HEAD, KV * HEAD, KV * HEAD], -1)
        q, k, v = (t.view(b, -1, 1, HEAD) for t in (q, k, v))

        def rotate(t):
            first, second = t.chunk(2, -1)
            return t * cos + torch.cat((-second, first), -1) * sin

        keys, values = self.keys[:b], self.values[:b]
        keys.index_copy_(2, at, rotate(k))
        values.index_copy_(2, at, v)
        a = F.scaled_dot_product_attention(rotate(q), keys, values, attn_mask=mask, enable_gqa=True)
        x = x + self.out(a.reshape(b, 1, -1))
        gate, up = self.gate_up(self.ffn_norm(x)).split(FFN, -1)
        return x + self.down(F.silu(gate) * up)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.norm = nn.Embedding(VOCABULARY, DIM), nn.RMSNorm(DIM)
        self.layers = nn.ModuleList([Layer() for _ in range(LAYERS)])
        angles = torch.outer(torch.arange(CONTEXT).float(), 5e5 ** -(torch.arange(0, HEAD, 2).float() / HEAD))
        angles = torch.cat((angles, angles), -1)
        self.register_buffer("cos", angles.cos())
        self.register_buffer("sin", angles.sin())
        self.register_buffer("all", torch.arange(CONTEXT))

    def forward(self, tokens, at):
        x, cos, sin = self.embed(tokens), self.cos[at], self.sin[at]
        mask = self.all[None, None, None, :] <= at
        for layer in self.layers:
            x = layer(x, cos, sin, at, mask)
        return F.linear(self.norm(x), self.embed.weight).argmax(-1)


def batches():
    sizes = [1, 2, 4] + list(range(8, 257, 8)) + list(range(272, 513, 16))
    with torch.no_grad(), torch.device(DEVICE):
        model = Model().to(torch.bfloat16).eval()
        at, tokens = torch.tensor([100]), torch.randint(0, 1000, (MOST, 1))
        for order, shared in (("descending", True), ("ascending", True), ("descending, unshared", False)):
            side = torch.cuda.Stream()
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                model(tokens, at)
            torch.cuda.current_stream().wait_stream(side)
            torch.cuda.synchronize()
            gc.collect()
            torch.cuda.empty_cache()
            free = torch.cuda.mem_get_info()[0]
            pool = torch.cuda.graph_pool_handle() if shared else None
            graphs, outputs = {}, []
            gc.disable()
            start = time.perf_counter()
            for b in sorted(sizes, reverse=order.startswith("desc")):
                with torch.cuda.stream(side):
                    model(tokens[:b], at)
                torch.cuda.synchronize()
                graphs[b] = torch.cuda.CUDAGraph()
                with torch.cuda.graph(graphs[b], pool=pool):
                    outputs.append(model(tokens[:b], at))
            torch.cuda.synchronize()
            seconds = time.perf_counter() - start
            gc.enable()
            taken = (free - torch.cuda.mem_get_info()[0]) / 2**20
            host, total = per_call(5, 20, lambda i: graphs[1].replay(), torch.cuda.synchronize)
            say(figure="batches", what=order, device_mib=taken, seconds=seconds, token_host_us=host,
                token_total_us=total)
            del graphs, outputs
            gc.collect()
            torch.cuda.empty_cache()


def kernels():
    """Compiled element-wise functions, many launches in one graph; named as those of `kernels.rs`."""
    f32, f16, bf16 = torch.float32, torch.float16, torch.bfloat16
    functions = {
        "Add": (lambda x, y: x + y, "Flat", (f32, bf16)),
        "AddRow": (lambda x, y: x + y, "Row", (bf16,)),
        "AddTransposed": (lambda x, y: x + y, "Transposed", (f32,)),
        "SiluMul": (lambda x, y: F.silu(x) * y, "Flat", (f32, bf16)),
        "Gelu": (lambda x, y: F.gelu(x), "Flat", (bf16,)),
        "GeluTanh": (lambda x, y: F.gelu(x, approximate="tanh"), "Flat", (bf16,)),
        "Exp": (lambda x, y: torch.exp(x), "Flat", (bf16,)),
        "Lt": (lambda x, y: x < y, "Flat", (f16,)),
        "ToF32": (lambda x, y: x.float(), "Flat", (bf16,)),
    }
    names = {f32: "f32", f16: "f16", bf16: "bf16"}
    for name, (function, lies, dtypes) in functions.items():
        for dtype in dtypes:
            rows, columns = 4096, 4096 * 4 // dtype.itemsize
            x = torch.full((rows, columns), 0.5, device=DEVICE, dtype=dtype)
            y = torch.full((columns,) if lies == "Row" else (rows, columns), 0.5, device=DEVICE, dtype=dtype)
            if lies == "Transposed":
                x = torch.full((columns, rows), 0.5, device=DEVICE, dtype=dtype).t()
            torch._dynamo.reset()
            compiled = torch.compile(function, dynamic=False)
            with torch.no_grad():
                side = torch.cuda.Stream()
                side.wait_stream(torch.cuda.current_stream())
                with torch.cuda.stream(side):
                    for _ in range(3):
                        compiled(x, y)
                torch.cuda.current_stream().wait_stream(side)
                graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(graph):
                    for _ in range(20):
                        out = compiled(x, y)
                _, total = per_call(30, 4, lambda i: graph.replay(), torch.cuda.synchronize)
                case = f"{name.removesuffix(lies)} {names[dtype]} {lies} {rows}x{columns}"
                read = x.nbytes + (y.nbytes if name.startswith(("Add", "SiluMul", "Lt")) else 0)
                say(figure="kernels", what="torch.compile", case=case, launch_us=total / 20,
                    gb_s=(read + out.nbytes) / (total / 20) / 1e3)
                del graph, out


def chains():
    """The chain of `chains.rs`, compiled."""
    def eight(x, w):
        y = F.silu(x * w + x) * 0.5
        return -(F.relu(y - w) + 1.0)

    compiled = torch.compile(eight)
    for dtype, short in ((torch.float32, "f32"), (torch.bfloat16, "bf16")):
        count = (64 << 20) // dtype.itemsize
        x = torch.full((count,), 0.75, device=DEVICE, dtype=dtype)
        w = torch.full((count,), 1.5, device=DEVICE, dtype=dtype)
        for _ in range(3):
            compiled(x, w)
        _, total = per_call(7, 40, lambda i: compiled(x, w), torch.cuda.synchronize)
        say(figure="chains", what="torch.compile", case=f"eight {short}", total_us=total,
            tb_s=3 * (64 << 20) / total / 1e6)


def rows():
    """Compiled norms, softmax, losses and sums; named as those of `rows.rs`."""
    functions = {
        "rms_norm": lambda x, w, at: F.rms_norm(x, w.shape, w, 1e-5),
        "layer_norm": lambda x, w, at: F.layer_norm(x, w.shape, w, w, 1e-5),
        "softmax": lambda x, w, at: F.softmax(x, 1),
        "log_softmax": lambda x, w, at: F.log_softmax(x, 1),
        "cross_entropy": lambda x, w, at: F.cross_entropy(x, at, reduction="none"),
        "sum_rows": lambda x, w, at: x.sum(1),
        "sum_columns": lambda x, w, at: x.sum(0),
        "argmax": lambda x, w, at: x.argmax(1),
    }
    for dtype, short in ((torch.float32, "f32"), (torch.bfloat16, "bf16")):
        for count, size in ((4096, 4096), (512, 32768)):
            count = count * 4 // dtype.itemsize
            x = torch.randn(count, size, device=DEVICE).to(dtype)
            w, at = torch.ones(size, device=DEVICE, dtype=dtype), torch.arange(count, device=DEVICE) % size
            for name, function in functions.items():
                torch._dynamo.reset()
                compiled = torch.compile(function, dynamic=False)
                with torch.no_grad():
                    side = torch.cuda.Stream()
                    side.wait_stream(torch.cuda.current_stream())
                    with torch.cuda.stream(side):
                        for _ in range(3):
                            compiled(x, w, at)
                    torch.cuda.current_stream().wait_stream(side)
                    graph = torch.cuda.CUDAGraph()
                    with torch.cuda.graph(graph):
                        for _ in range(20):
                            out = compiled(x, w, at)
                    _, total = per_call(15, 4, lambda i: graph.replay(), torch.cuda.synchronize)
                    say(figure="rows", what="torch.compile", case=f"{name} {short} {count}x{size}",
                        launch_us=total / 20)
                    del graph, out


def conv():
    """Convolutions by cuDNN in one graph, inputs and weights in the layout that PyTorch recommends; named as those of `conv.rs`."""
    torch.backends.cudnn.allow_tf32 = False
    shapes = ((32, 3, 224, 64, 7, 2), (32, 64, 56, 64, 1, 1), (32, 64, 56, 64, 3, 1), (32, 64, 56, 256, 1, 1),
              (32, 128, 56, 128, 3, 2), (32, 128, 28, 128, 3, 1), (32, 256, 14, 256, 3, 1), (32, 512, 7, 512, 3, 1),
              (32, 1024, 14, 2048, 1, 2), (8, 32, 128, 32, 3, 1), (8, 64, 64, 128, 3, 1), (8, 128, 64, 64, 3, 1),
              (8, 256, 32, 256, 3, 1))
    launches = 10
    for n, c, size, out, window, stride in shapes:
        for dtype, short in ((torch.float32, "f32"), (torch.bfloat16, "bf16")):
            for layout, benchmark in ((torch.channels_last, False), (torch.contiguous_format, False), (torch.channels_last, True)):
                torch.backends.cudnn.benchmark = benchmark
                x = torch.full((n, c, size, size), 0.5, device=DEVICE, dtype=dtype).to(memory_format=layout)
                w = torch.full((out, c, window, window), 0.01, device=DEVICE, dtype=dtype).to(memory_format=layout)
                with torch.no_grad():
                    side = torch.cuda.Stream()
                    side.wait_stream(torch.cuda.current_stream())
                    with torch.cuda.stream(side):
                        for _ in range(3):
                            F.conv2d(x, w, stride=stride, padding=window // 2)
                    torch.cuda.current_stream().wait_stream(side)
                    graph = torch.cuda.CUDAGraph()
                    with torch.cuda.graph(graph):
                        for _ in range(launches):
                            y = F.conv2d(x, w, stride=stride, padding=window // 2)
                    _, total = per_call(15, 2, lambda i: graph.replay(), torch.cuda.synchronize)
                    what = "PyTorch, " + ("channels last" if layout == torch.channels_last else "channels first")
                    say(figure="conv", what=what + (", cudnn.benchmark" if benchmark else ""),
                        case=f"{short} {n} {c}x{size}x{size} {out} {window}x{window}/{stride}", launch_us=total / launches)
                    del graph, y


def transposes():
    """Copies of tensors whose dimensions lie in another order; cases named as those of `transposes.rs`."""
    launches = 20
    for shape in ([1, 8192, 8192], [32, 64, 3136], [32, 128, 3136], [32, 512, 49], [32, 3, 50176], [512, 512, 9]):
        for dtype, short in ((torch.float32, "f32"), (torch.bfloat16, "bf16"), (torch.uint8, "u8")):
            x = torch.full(shape, 1, device=DEVICE, dtype=dtype).permute(0, 2, 1)
            x.contiguous()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                for _ in range(launches):
                    y = x.contiguous()
            _, total = per_call(15, 2, lambda i: graph.replay(), torch.cuda.synchronize)
            say(figure="transposes", what="PyTorch", case=f"{short} {shape}", launch_us=total / launches)
            del graph, y


def attention():
    """SDPA with its fastest backend and compiled FlexAttention; cases named as those of `attention.rs`."""
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    backends = [SDPBackend.FLASH_ATTENTION, SDPBackend.CUDNN_ATTENTION, SDPBackend.EFFICIENT_ATTENTION,
                SDPBackend.MATH]
    cases = [("decode 8x4096", 8, 1, 4096, 32, 8, 128, 40), ("decode 1x32768", 1, 1, 32768, 32, 8, 128, 40),
             ("decode 64x1024", 64, 1, 1024, 32, 8, 64, 40), ("prefill 2048", 1, 2048, 2048, 32, 8, 128, 4),
             ("prefill 2048 of 256", 1, 2048, 2048, 16, 8, 256, 4)]

    def device_time(call, launches):
        with torch.no_grad():
            side = torch.cuda.Stream()
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                for _ in range(3):
                    call()
            torch.cuda.current_stream().wait_stream(side)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                for _ in range(launches):
                    out = call()
            _, total = per_call(15, 4, lambda i: graph.replay(), torch.cuda.synchronize)
            del graph, out
        return total / launches

    for name, b, t, s, heads, kv, size, launches in cases:
        q = torch.randn(b, heads, t, size, device=DEVICE, dtype=torch.bfloat16)
        k, v = (torch.randn(b, kv, s, size, device=DEVICE, dtype=torch.bfloat16) for _ in range(2))
        bias = torch.full((heads, t, s), 0.5, device=DEVICE, dtype=torch.bfloat16)
        slopes = torch.tensor([2 ** (-8 * (h + 1) / heads) for h in range(heads)], device=DEVICE)
        offset = s - t
        causal = t > 1

        # SDPA has no other change than a bias; of a decoded token's window, a user narrows the cache.
        narrowed = [x[:, :, -512:] for x in (k, v)]
        masked = bias.masked_fill(torch.ones(t, s, device=DEVICE).tril(offset) == 0, float("-inf"))
        sdpa = {"plain": lambda: F.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=True, scale=0.1),
                "bias": lambda: F.scaled_dot_product_attention(q, k, v, attn_mask=masked[None].expand(b, -1, -1, -1),
                                                              enable_gqa=True, scale=0.1)}
        if not causal:
            sdpa["window"] = lambda: F.scaled_dot_product_attention(q, *narrowed, enable_gqa=True, scale=0.1)
        for change, call in sdpa.items():
            best = None
            for backend in backends:
                try:
                    with sdpa_kernel(backend):
                        us = device_time(call, launches)
                except RuntimeError:
                    continue
                if best is None or us < best[0]:
                    best = (us, backend.name)
            if best:
                say(figure="attention", what=f"SDPA {best[1]}", case=f"{change} {name}", launch_us=best[0])

        def visible(b, h, i, j):
            return j <= i + offset

        def windowed(b, h, i, j):
            return (j <= i + offset) & (j >= i + offset - 511)

        scores = {"plain": None, "bias": lambda x, b, h, i, j: x + bias[h, i, j],
                  "alibi": lambda x, b, h, i, j: x + slopes[h] * (j - i - offset), "window": None,
                  "soft_cap": lambda x, b, h, i, j: 50.0 * torch.tanh(x / 50.0)}
        for change, score_mod in scores.items():
            torch._dynamo.reset()
            try:
                block = create_block_mask(windowed if change == "window" else visible, None, None, t, s, device=DEVICE)
                flex = torch.compile(flex_attention, dynamic=False)
                us = device_time(lambda: flex(q, k, v, score_mod=score_mod, block_mask=block, scale=0.1,
                                              enable_gqa=True), launches)
            except Exception as error:  # a shape that FlexAttention does not take
                print(f"FlexAttention {change} {name}: {str(error).splitlines()[0]}", flush=True)
                continue
            say(figure="attention", what="FlexAttention", case=f"{change} {name}", launch_us=us)


def numerics():
    def values(count, seed):
        h = torch.arange(count, dtype=torch.int64, device=DEVICE) ^ (seed * 0x9E3779B9 & 0xFFFFFFFF)
        h = (h ^ (h >> 16)) * 0x85EBCA6B & 0xFFFFFFFF
        h = (h ^ (h >> 13)) * 0xC2B2AE35 & 0xFFFFFFFF
        return ((h ^ (h >> 16)) >> 8).double() / 2**24 - 0.5

    def measure(dtype, name, switches):
        for m, k, n in [(4096, 4096, 4096), (128, 16384, 256)]:
            x, w = values(m * k, 1).reshape(m, k).to(dtype), values(k * n, 2).reshape(k, n).to(dtype)
            rows = slice(None, None, m // 32)
            want = x[rows].double() @ w.double()
            for case, set_switch in switches:
                set_switch()
                launches = 10
                side = torch.cuda.Stream()
                side.wait_stream(torch.cuda.current_stream())
                with torch.cuda.stream(side):
                    for _ in range(3):
                        y = x @ w
                torch.cuda.current_stream().wait_stream(side)
                graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(graph):
                    for _ in range(launches):
                        y = x @ w
                _, total = per_call(15, 2, lambda i: graph.replay(), torch.cuda.synchronize)
                error = ((y[rows].double() - want).square().sum() / want.square().sum()).sqrt().item()
                us = total / launches
                say(figure="numerics", what="torch.matmul", case=f"{name} {m}x{k}x{n} {case}", launch_us=us,
                    tflop_s=2 * m * k * n / us / 1e6, error=error)
                del graph

    def tf32(on, deterministic=False):
        def set_switch():
            torch.backends.cuda.matmul.allow_tf32 = on
            torch.use_deterministic_algorithms(deterministic)
        return set_switch

    def reduced(on):
        def set_switch():
            torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = on
            torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = on
        return set_switch

    measure(torch.float32, "f32", [("full precision", tf32(False)), ("TF32", tf32(True)),
                                   ("full precision, deterministic", tf32(False, True)),
                                   ("TF32, deterministic", tf32(True, True))])
    tf32(False)()
    halves = [("f32 reductions", reduced(False)), ("reduced-precision reductions", reduced(True))]
    measure(torch.bfloat16, "bf16", halves)
    measure(torch.float16, "f16", halves)


if __name__ == "__main__":
    # `use_deterministic_algorithms` asks for it, before cuBLAS is used first.
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    known = {"calls": calls, "partition": partition, "small": small, "batches": batches, "kernels": kernels,
             "chains": chains, "rows": rows, "conv": conv, "transposes": transposes, "attention": attention, "numerics": numerics,
             "decode": lambda: peer_decode.decode(say, per_call),
             "prefill": lambda: peer_decode.prefill(say, per_call)}
    chosen = sys.argv[1:] or list(known)
    if not torch.cuda.is_available():
        sys.exit("skipped: PyTorch sees no GPU")
    for name in chosen:
        known[name]()

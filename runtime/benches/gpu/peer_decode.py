"""The models of `decode` by PyTorch: layers compiled by Inductor, the whole token in one CUDA graph.

Attention over the whole cache of 2048 rows with a mask, as one graph for all positions needs it, and beside it attention over the
rows up to the position, which needs a graph for each.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F

CONTEXT, HEAD = 2048, 64
POSITIONS = 100, 1900


def weights(*shape, dtype):
    """Matrices are random, as ours are; vectors are ones."""
    values = torch.ones(shape) if len(shape) == 1 else torch.empty(shape, device="cuda").uniform_(-0.03, 0.03)
    return nn.Parameter(values.to("cuda", dtype), requires_grad=False)


class Cache(nn.Module):
    """Attention of one new token over a cache."""

    def __init__(self, batch, heads, dtype):
        super().__init__()
        for name in ("keys", "values"):
            self.register_buffer(name, torch.zeros(batch, heads, CONTEXT, HEAD, dtype=dtype, device="cuda"))

    def forward(self, q, k, v, at, mask, end):
        self.keys.index_copy_(2, at, k)
        self.values.index_copy_(2, at, v)
        if end is not None:
            keys, values = self.keys[:, :, :end], self.values[:, :, :end]
            return F.scaled_dot_product_attention(q, keys, values, enable_gqa=True)
        return F.scaled_dot_product_attention(q, self.keys, self.values, attn_mask=mask, enable_gqa=True)


class LlamaLayer(nn.Module):
    def __init__(self, batch, dim, heads, kv, ffn, dtype):
        super().__init__()
        w = lambda *shape: weights(*shape, dtype=dtype)
        self.norm, self.ffn_norm = w(dim), w(dim)
        self.q, self.k, self.v = w(heads * HEAD, dim), w(kv * HEAD, dim), w(kv * HEAD, dim)
        self.out, self.gate, self.up, self.down = w(dim, heads * HEAD), w(ffn, dim), w(ffn, dim), w(dim, ffn)
        self.cache = Cache(batch, kv, dtype)

    def forward(self, x, at, mask, cos, sin, end):
        b, d = x.shape
        y = F.rms_norm(x, (d,), self.norm, 1e-5)

        def rotate(t):
            first, second = t.chunk(2, -1)
            return t * cos + torch.cat((-second, first), -1) * sin

        q, k, v = (F.linear(y, w).view(b, -1, 1, HEAD) for w in (self.q, self.k, self.v))
        a = self.cache(rotate(q), rotate(k), v, at, mask, end)
        x = x + F.linear(a.reshape(b, -1), self.out)
        y = F.rms_norm(x, (d,), self.ffn_norm, 1e-5)
        return x + F.linear(F.silu(F.linear(y, self.gate)) * F.linear(y, self.up), self.down)


class GptLayer(nn.Module):
    def __init__(self, batch, dim, heads, kv, ffn, dtype):
        super().__init__()
        w = lambda *shape: weights(*shape, dtype=dtype)
        self.norm, self.ffn_norm, self.norm_bias, self.ffn_norm_bias = w(dim), w(dim), w(dim), w(dim)
        self.q, self.k, self.v, self.out = w(dim, dim), w(dim, dim), w(dim, dim), w(dim, dim)
        self.q_bias, self.k_bias, self.v_bias, self.out_bias = w(dim), w(dim), w(dim), w(dim)
        self.up, self.up_bias, self.down, self.down_bias = w(ffn, dim), w(ffn), w(dim, ffn), w(dim)
        self.cache = Cache(batch, kv, dtype)

    def forward(self, x, at, mask, cos, sin, end):
        b, d = x.shape
        y = F.layer_norm(x, (d,), self.norm, self.norm_bias, 1e-5)
        pairs = (self.q, self.q_bias), (self.k, self.k_bias), (self.v, self.v_bias)
        q, k, v = (F.linear(y, w, bias).view(b, -1, 1, HEAD) for w, bias in pairs)
        a = self.cache(q, k, v, at, mask, end)
        x = x + F.linear(a.reshape(b, -1), self.out, self.out_bias)
        y = F.layer_norm(x, (d,), self.ffn_norm, self.ffn_norm_bias, 1e-5)
        return x + F.linear(F.gelu(F.linear(y, self.up, self.up_bias), approximate="tanh"), self.down, self.down_bias)


MODELS = {
    "llama-1b": (LlamaLayer, 16, 2048, 32, 8, 8192, 128_256, torch.bfloat16),
    "gpt2-xl": (GptLayer, 48, 1600, 25, 25, 6400, 50_257, torch.bfloat16),
    "smollm2-135m": (LlamaLayer, 30, 576, 9, 3, 1536, 49_152, torch.float32),
}


def replayed(call, count, per_call):
    """Microseconds of a call in a CUDA graph of its own, of so many calls."""
    with torch.no_grad():
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            for _ in range(3):
                call()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            # Kept as long as the graph.
            kept = call()
        _, total = per_call(7, count, lambda i: graph.replay(), torch.cuda.synchronize)
    del graph, kept
    return total


def decode(say, per_call):
    torch.backends.cuda.matmul.allow_tf32 = False
    for name, (kind, layers, dim, heads, kv, ffn, vocabulary, dtype) in MODELS.items():
        for batch in (1, 8):
            embed, norm = weights(vocabulary, dim, dtype=dtype), weights(dim, dtype=dtype)
            stack = [kind(batch, dim, heads, kv, ffn, dtype) for _ in range(layers)]
            angles = torch.outer(torch.arange(CONTEXT).float(), 5e5 ** -(torch.arange(0, HEAD, 2).float() / HEAD))
            angles = torch.cat((angles, angles), -1)
            cos, sin = angles.cos().to("cuda", dtype), angles.sin().to("cuda", dtype)
            places = torch.arange(CONTEXT, device="cuda")
            torch._dynamo.reset()
            step = torch.compile(lambda layer, *rest: layer(*rest), dynamic=False)

            @torch.compile(dynamic=False)
            def head(x):
                return F.linear(F.rms_norm(x, (dim,), norm, 1e-5), embed).argmax(-1)

            for position in POSITIONS:
                tokens = torch.ones(batch, dtype=torch.long, device="cuda")
                at = torch.tensor([position], device="cuda")
                for what, end in (("torch.compile, whole cache", None), ("torch.compile, to the position", position + 1)):
                    def token():
                        mask = (places <= at)[None, None, None, :]
                        x = F.embedding(tokens, embed)
                        for layer in stack:
                            x = step(layer, x, at, mask, cos[at], sin[at], end)
                        return head(x)

                    total = replayed(token, 30, per_call)
                    say(figure="decode", case=f"{name} batch {batch} position {position}", what=what, total_us=total)
            del embed, norm, stack
            torch.cuda.empty_cache()


def prompt_layer(layer, x, cos, sin):
    """A layer of Llama over a whole prompt, which begins a sequence: its keys and values go to the cache."""
    t, d = x.shape
    y = F.rms_norm(x, (d,), layer.norm, 1e-5)

    def rotate(heads):
        first, second = heads.chunk(2, -1)
        return heads * cos + torch.cat((-second, first), -1) * sin

    q, k, v = (F.linear(y, w).view(1, t, -1, HEAD).transpose(1, 2) for w in (layer.q, layer.k, layer.v))
    q, k = rotate(q), rotate(k)
    layer.cache.keys[:, :, :t] = k
    layer.cache.values[:, :, :t] = v
    a = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
    x = x + F.linear(a.transpose(1, 2).reshape(t, -1), layer.out)
    y = F.rms_norm(x, (d,), layer.ffn_norm, 1e-5)
    return x + F.linear(F.silu(F.linear(y, layer.gate)) * F.linear(y, layer.up), layer.down)


def prefill(say, per_call):
    name = "llama-1b"
    _, layers, dim, heads, kv, ffn, vocabulary, dtype = MODELS[name]
    embed, norm = weights(vocabulary, dim, dtype=dtype), weights(dim, dtype=dtype)
    stack = [LlamaLayer(1, dim, heads, kv, ffn, dtype) for _ in range(layers)]
    angles = torch.outer(torch.arange(CONTEXT).float(), 5e5 ** -(torch.arange(0, HEAD, 2).float() / HEAD))
    angles = torch.cat((angles, angles), -1)
    cos, sin = angles.cos().to("cuda", dtype), angles.sin().to("cuda", dtype)
    for count in (512, 2048):
        torch._dynamo.reset()
        step = torch.compile(prompt_layer, dynamic=False)
        head = torch.compile(lambda x: F.linear(F.rms_norm(x, (dim,), norm, 1e-5), embed).argmax(-1), dynamic=False)
        tokens = torch.ones(count, dtype=torch.long, device="cuda")

        def prompt():
            x = F.embedding(tokens, embed)
            for layer in stack:
                x = step(layer, x, cos[:count], sin[:count])
            return head(x[-1:])

        total = replayed(prompt, 10, per_call)
        say(figure="prefill", case=f"{name}, {count} tokens", what="torch.compile", total_us=total)

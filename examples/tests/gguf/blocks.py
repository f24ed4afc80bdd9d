"""Writes blocks.safetensors: blocks of every format that the reader of GGUF files dequantises, and their elements as the package
`gguf` (numpy) computes them, which shares no code with the reader.

    pip install gguf safetensors
    python blocks.py blocks.safetensors

Blocks are random bytes with scales in a usual range; the first is all zeros and the second all ones but for its scales.
"""

import sys

import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType as Type
from gguf.quants import dequantize
from safetensors.numpy import save_file

# Where the halves of a block (d, m) are, in bytes.
HALVES = {
    Type.Q4_0: [0],
    Type.Q4_1: [0, 2],
    Type.Q5_0: [0],
    Type.Q5_1: [0, 2],
    Type.Q8_0: [0],
    Type.Q2_K: [80, 82],
    Type.Q3_K: [108],
    Type.Q4_K: [0, 2],
    Type.Q5_K: [0, 2],
    Type.Q6_K: [208],
    Type.IQ4_NL: [0],
}
BLOCKS = 6

random = np.random.default_rng(18)
tensors = {}
for type, halves in HALVES.items():
    _, size = GGML_QUANT_SIZES[type]
    blocks = random.integers(0, 256, (BLOCKS, size), dtype=np.uint8)
    blocks[0], blocks[1] = 0, 255
    for at in halves:
        scales = random.uniform(-0.1, 0.1, BLOCKS).astype(np.float16)
        blocks[:, at : at + 2] = scales[:, None].view(np.uint8)
    tensors[f"{type.name}.blocks"] = blocks
    tensors[f"{type.name}.elements"] = dequantize(blocks, type).astype(np.float32)
save_file(tensors, sys.argv[1])

"""The perplexity of a text by converted files, here and in llama.cpp.

    pip install llama-cpp-python numpy
    cargo build --release -p graphable-examples --bin convert --bin perplexity
    python3 perplexity.py target/release TEXT [TYPE ...]

For each type, SmolLM2 (or the model of $MODEL) is converted and measured on the CPU, with its matrices as floats and in the blocks of
the file; llama.cpp measures the same file. It computes with 8 bits of activations, as products with blocks do here. fp8 and int4 are no
types of GGUF, so there is no file for llama.cpp: matrices become these blocks as the model is loaded.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

import llama_cpp
import numpy

CONTEXT = 512
PACKED = "f8_e4m3", "int4"
TYPES = "f32 bf16 f16 q8_0 q6_k q5_1 q5_0 q5_k q4_1 q4_0 q4_k iq4_nl q3_k q2_k".split() + list(PACKED)


def ours(programs, file, text, dtype):
    command = [f"{programs}/perplexity", text, "--dtype", dtype, "--device", "cpu", "--json", "--quiet"]
    command += ["--model", file] if file else []
    return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)


def theirs(file, text):
    """As llama.cpp's own program does it: the second half of each chunk is predicted."""
    model = llama_cpp.Llama(file, n_ctx=CONTEXT, n_batch=CONTEXT, logits_all=True, verbose=False)
    tokens = model.tokenize(pathlib.Path(text).read_bytes(), add_bos=True, special=True)
    starts = tokens[0] == model.token_bos() and model.metadata.get("tokenizer.ggml.add_bos_token") == "true"
    total, count = 0.0, 0
    for start in range(0, len(tokens) - CONTEXT + 1, CONTEXT):
        chunk = tokens[start : start + CONTEXT]
        read = [model.token_bos(), *chunk[1:]] if starts else chunk
        model.reset()
        model.eval(read)
        half = CONTEXT // 2
        logits = numpy.asarray(model.scores[half : CONTEXT - 1], dtype=numpy.float64)
        most = logits.max(-1, keepdims=True)
        sums = most[:, 0] + numpy.log(numpy.exp(logits - most).sum(-1))
        total += (sums - logits[numpy.arange(len(logits)), chunk[half + 1 :]]).sum()
        count += len(logits)
    return float(numpy.exp(total / count)), len(tokens), count


def main():
    programs, text, *types = sys.argv[1:]
    print("| Type | Bytes | RMS error | Floats | Blocks | llama.cpp | Blocks against it |")
    print("|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for dtype in types or TYPES:
            if dtype in PACKED:
                blocks = ours(programs, os.environ.get("MODEL"), text, dtype)
                print(f"| {dtype} | | | | {blocks['perplexity']:.4f} | | |", flush=True)
                continue
            file = f"{folder}/{dtype}.gguf"
            command = [f"{programs}/convert", file, "--dtype", dtype, "--json", "--quiet"]
            command += ["--model", os.environ["MODEL"]] if "MODEL" in os.environ else []
            report = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
            floats, blocks = (ours(programs, file, text, kind) for kind in ["f32", "stored"])
            reference, tokens, predicted = theirs(file, text)
            assert (tokens, predicted) == (blocks["tokens"], blocks["predicted"]), (tokens, predicted, blocks)
            ratio = blocks["perplexity"] / reference - 1
            error, size = 100 * report["relative_rms_error"], report["file_bytes"] / 1e6
            print(
                f"| {dtype} | {size:.1f} MB | {error:.3f} % | {floats['perplexity']:.4f} | {blocks['perplexity']:.4f} "
                f"| {reference:.4f} | {100 * ratio:+.3f} % |",
                flush=True,
            )
            os.unlink(file)


main()

"""Weights in blocks beside bf16 on one GPU, in one command: tables of a token and of a prompt, and what `generate` says.

`weights.py BENCH_BINARY [GENERATE CONVERT MODEL.gguf]`: BENCH_BINARY is what `cargo bench -p graphable --bench gpu --no-run` names;
GENERATE and CONVERT are the examples' binaries of these names, and MODEL.gguf is SmolLM2 in Q4_1.
"""

import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

# What an H200 reads in a microsecond by its datasheet, in megabytes.
BANDWIDTH = 4.8
FLOATS = "llama-1b"
# Candle's quantised CUDA kernels, batch 1, the same file (issue 18).
CANDLE = 158


def output(command, **environment):
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False, env=os.environ | environment)
    if done.returncode:
        sys.exit(f"{command[0]} ended with {done.returncode}\n{done.stdout}")
    return done.stdout


def figures(bench):
    """Of each kind of weights: megabytes, and microseconds of a token at each position and of a prompt."""
    kinds = {}
    for line in output([bench, "weights"], GRAPHABLE_BENCH_PASSES="all").splitlines():
        if not line.startswith("{"):
            # The bench says why it skipped.
            sys.exit(line)
        one = json.loads(line)
        name = one["case"].split(",")[0].split(" batch ")[0]
        of_kind = kinds.setdefault(name, {"tokens": []})
        if one["figure"] == "decode":
            of_kind["tokens"].append(one["total_us"])
            of_kind["megabytes"] = one["weights_mb"]
        else:
            of_kind["prompt"] = one["total_us"]
    return kinds


def table(kinds):
    floats = kinds[FLOATS]
    print("| Weights; the head is in the same format if nothing else is said | MB | µs a token, position 100, 1900 | share of 4.8 TB/s "
          "| bf16 / blocks; bytes | share of the ratio | µs of a prompt of 512 | of bf16's speed |")
    print("|---|---|---|---|---|---|---|---|")
    for name, kind in kinds.items():
        first, last = kind["tokens"]
        bandwidth = kind["megabytes"] / first / BANDWIDTH
        cells = [name, f"{kind['megabytes']:.0f}", f"{first:.0f}, {last:.0f}", f"{bandwidth:.2f}"]
        if name == FLOATS:
            cells += ["", "", f"{kind['prompt']:.0f}", ""]
        else:
            faster, smaller = floats["tokens"][0] / first, floats["megabytes"] / kind["megabytes"]
            cells += [f"{faster:.2f}; {smaller:.2f}", f"{faster / smaller:.3f}"]
            cells += [f"{kind['prompt']:.0f}", f"{floats['prompt'] / kind['prompt']:.2f}"]
        print(f"| {' | '.join(cells)} |", flush=True)


def generate(binary, convert, model):
    """Tokens a second at batch 1 of the file as it is, and of what `convert` makes of it."""
    with tempfile.TemporaryDirectory() as folder:
        converted = str(pathlib.Path(folder, "q8_0.gguf"))
        output([convert, converted, "--model", model, "--dtype", "q8_0", "--quiet"])
        for name, file in (("the file's own", model), ("q8_0 by convert", converted)):
            for prompt, most in (("What is the capital of France?", 16), ("Write a long story about a fox.", 256)):
                command = [binary, "--model", file, "--device", "cuda:0", "--dtype", "stored", "--prompt", prompt]
                command += ["--max-new-tokens", str(most), "--json", "--quiet"]
                answers = [json.loads(output(command)) for _ in range(3)]
                speed = statistics.median(answer["tokens_per_second"] for answer in answers)
                tokens = answers[0]["tokens"]
                print(f"generate, {name}, {len(tokens)} tokens ({tokens[:8]} …): {speed:.0f} a second, "
                      f"{speed / CANDLE:.1f} times candle's {CANDLE}", flush=True)


def main():
    if len(sys.argv) not in (2, 5):
        sys.exit(__doc__)
    if len(sys.argv) == 5:
        generate(*sys.argv[2:])
    table(figures(sys.argv[1]))


if __name__ == "__main__":
    main()

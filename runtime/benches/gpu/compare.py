"""Runs our figures and PyTorch's on one GPU, in one command, and prints the ratios.

`compare.py BENCH_BINARY [calls] [partition] [small] [batches] [chains] [kernels] [rows] [conv] [transposes] [attention] [numerics] [decode] [prefill]`; the binary is what
`cargo bench -p graphable --bench gpu --no-run` names.
"""

import json
import pathlib
import subprocess
import sys


def run(command):
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    other = [line for line in done.stdout.splitlines() if not line.startswith("{")]
    print("\n".join(other + lines), flush=True)
    if done.returncode:
        sys.exit(f"{command[0]} ended with {done.returncode}")
    return [json.loads(line) for line in lines]


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    figures = sys.argv[2:] or ["calls", "partition", "small", "batches"]
    peer = str(pathlib.Path(__file__).with_name("peer.py"))
    for figure in figures:
        ours, theirs = run([sys.argv[1], figure]), run([sys.executable, peer, figure])
        for mine in ours:
            for other in theirs:
                # Of several cases, a twin compares with the case that it is the twin of.
                if mine.get("case", "").replace("Twin", "") != other.get("case", ""):
                    continue
                ratios = [
                    f"{key} {mine[key] / other[key]:.3f} (theirs / ours {other[key] / mine[key]:.2f})"
                    for key in mine
                    if key in other and isinstance(mine[key], (int, float)) and mine[key] and other[key]
                ]
                name = f"{figure} {mine.get('order', mine.get('case', ''))}".strip()
                name = ", ".join([name] + [mine[key] for key in ("numerics", "layout") if key in mine])
                print(f"RATIO {name} / {other['what']}: {'; '.join(ratios)}", flush=True)
        if figure == "numerics":
            table(ours, theirs)


def table(ours, theirs):
    """The rows of docs/BENCHMARKS.md."""
    peers = {other["case"]: other for other in theirs}
    print("| Product | Ours: µs | TFLOP/s | error | PyTorch: µs | TFLOP/s | error |")
    print("|---|---|---|---|---|---|---|")
    for mine in ours:
        cells = [[f"{one['launch_us']:.1f}", f"{one['tflop_s']:.0f}", f"{one['error']:.1e}"] if one else ["–"] * 3
                 for one in (mine, peers.get(mine["case"]))]
        print(f"| {mine['case']} | {' | '.join(cells[0] + cells[1])} |", flush=True)


if __name__ == "__main__":
    main()

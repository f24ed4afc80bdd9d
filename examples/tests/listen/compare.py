"""The program `listen` beside the ONNX model of silero-vad's wheel in onnxruntime.

    python3 -m venv venv && venv/bin/pip install onnx onnxruntime numpy
    venv/bin/pip install --no-deps silero-vad==6.2.3
    venv/bin/python examples/tests/listen/compare.py [--device cuda:0] target/release/listen [FILE.wav …]
    venv/bin/python examples/tests/listen/compare.py --speak FILE.wav
    venv/bin/python examples/tests/listen/compare.py --fixture > examples/tests/listen/probabilities.txt

The wheel's file `silero_vad_16k.safetensors`, which `listen` uses, has other weights than its ONNX models (all but those of
the spectrum differ). So there are two comparisons: `listen` with the weights of the ONNX model, which are written to a file for
`--model`, beside that model; and `listen` as it is beside the same graph with the weights of `silero_vad_16k.safetensors`. The
fixture is of the latter.

Without files, espeak-ng speaks some sentences, between stretches of noise and of silence; `--speak` writes these to a file, for
a machine without espeak-ng. `listen` runs on the CPU unless a device is named. Prints the largest difference of the
probabilities, whether the segments are equal (if torch is installed, which the wheel's own function needs), and the time of a
chunk in both: onnxruntime with one thread, its inputs made by numpy, and `listen` as it prints it.
"""

import array
import importlib.util
import json
import pathlib
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import wave

import numpy as np
import onnx
import onnx.numpy_helper
import onnxruntime

from signals import samples

SENTENCES = [
    ("en", "The quick brown fox jumps over the lazy dog."),
    ("en+f3", "Yes."),
    ("de", "Wie ist das Wetter heute, und wird es morgen regnen?"),
    ("es+f2", "Buenos días, me gustaría reservar una mesa para dos personas."),
]


# What the tensors of `silero_vad_16k.safetensors` are called in the ONNX model.
NAMES = {"stft_conv.weight": "stft.forward_basis_buffer"}
for part in ["weight", "bias"]:
    NAMES |= {f"conv{i + 1}.{part}": f"encoder.{i}.reparam_conv.{part}" for i in range(4)}
    NAMES |= {f"lstm_cell.{part}_{of}": f"decoder.rnn.{part}_{of}" for of in ["ih", "hh"]}
    NAMES[f"final_conv.{part}"] = f"decoder.decoder.2.{part}"


def wheel(name):
    """A file of the wheel."""
    return pathlib.Path(importlib.util.find_spec("silero_vad").submodule_search_locations[0], "data", name)


def read(path):
    """The tensors of a safetensors file."""
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header, data = json.loads(data[8 : 8 + length]), data[8 + length :]
    tensors = {name: (t["shape"], t["data_offsets"]) for name, t in header.items() if name != "__metadata__"}
    return {name: np.frombuffer(data[a:b], np.float32).reshape(shape) for name, (shape, (a, b)) in tensors.items()}


def save(path, tensors):
    """Writes a safetensors file."""
    header, at = {}, 0
    for name, tensor in tensors.items():
        header[name] = {"dtype": "F32", "shape": tensor.shape, "data_offsets": [at, at + tensor.nbytes]}
        at += tensor.nbytes
    header = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header + b"".join(t.tobytes() for t in tensors.values()))
    return path


def graph():
    """The ONNX model, and its weights by the names of the safetensors file."""
    model = onnx.load(wheel("silero_vad_16k_op15.onnx"))
    tensors = {tensor.name: tensor for tensor in model.graph.initializer}
    return model, {name: tensors[f"model.{other}"] for name, other in NAMES.items()}


def with_weights(weights):
    """The ONNX model with other weights."""
    model, tensors = graph()
    for name, tensor in tensors.items():
        assert list(tensor.dims) == list(weights[name].shape), name
        tensor.CopyFrom(onnx.numpy_helper.from_array(weights[name], tensor.name))
    return model.SerializeToString()


def run_onnx(model, audio):
    """The probability of each chunk, and the seconds that a chunk took."""
    options = onnxruntime.SessionOptions()
    options.inter_op_num_threads = options.intra_op_num_threads = 1
    model = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"], sess_options=options)
    audio = np.asarray(audio, np.float32)
    audio = np.concatenate([np.zeros(64, np.float32), audio, np.zeros(-len(audio) % 512, np.float32)])
    state, rate, probabilities, seconds = np.zeros((2, 1, 128), np.float32), np.array(16000), [], 0.0
    for at in range(64, len(audio), 512):
        begin = time.perf_counter()
        out, state = model.run(None, {"input": audio[None, at - 64 : at + 512], "state": state, "sr": rate})
        probabilities.append(float(out[0, 0]))
        seconds += time.perf_counter() - begin
    return probabilities, seconds / len(probabilities)


def spoken(to):
    """Sentences between silence and noise."""
    rng, audio = random.Random(20261122), []
    for i, (voice, sentence) in enumerate(SENTENCES):
        audio += [0] * 12000 if i % 2 == 0 else [int(rng.gauss(0, 400)) for _ in range(16000)]
        path = to.with_name("sentence.wav")
        subprocess.run(["espeak-ng", "-v", voice, "-w", path, sentence], check=True)
        with wave.open(str(path)) as file:
            said = np.frombuffer(file.readframes(file.getnframes()), np.int16).astype(np.float64)
            places = np.arange(0, len(said) - 1, file.getframerate() / 16000)
        audio += [int(v) for v in np.interp(places, np.arange(len(said)), said)]
    audio += [int(rng.gauss(0, 400)) for _ in range(16000)]
    return write(to, audio)


def write(path, audio):
    with wave.open(str(path), "wb") as file:
        file.setparams((1, 2, 16000, 0, "NONE", ""))
        file.writeframes(array.array("h", audio).tobytes())
    return path


def segments(probabilities, length):
    """Those of the wheel, if torch is there."""
    if importlib.util.find_spec("torch") is None:
        return None
    from silero_vad.utils_vad import get_speech_timestamps_from_probs

    found = get_speech_timestamps_from_probs(probabilities, audio_length_samples=length)
    return [(segment["start"], segment["end"]) for segment in found]


def compare(program, device, path, what, model, arguments):
    with wave.open(str(path)) as file:
        audio = np.frombuffer(file.readframes(file.getnframes()), np.int16).astype(np.float32) / 32768
    theirs, their_time = run_onnx(model, audio)
    command = [program, path, "--json", "--device", device, *arguments]
    run = subprocess.run(command, check=True, capture_output=True, text=True)
    ours = json.loads(run.stdout)
    difference = max(abs(a - b) for a, b in zip(ours["probabilities"], theirs, strict=True))
    print(f"{path.name}, {what}: {len(theirs)} chunks, probabilities differ by at most {difference:.1e}")
    found = [(round(s["start"] * 16000), round(s["end"] * 16000)) for s in ours["segments"]]
    wanted = segments(theirs, len(audio))
    if wanted is None:
        print("  the wheel's segments need torch, which is not installed")
    else:
        print(f"  {len(found)} segments, {'equal to' if found == wanted else f'not {wanted} as'} the wheel's: {found}")
    each = re.search(r"([\d.]+) µs each, of which the host works ([\d.]+) µs", run.stderr)
    print(f"  on {device}, a chunk takes {each[1]} µs, {each[2]} µs of which the host works; in onnxruntime, on one core, {their_time * 1e6:.1f} µs")
    return difference < 1e-4 and wanted in (None, found)


def main(arguments):
    if arguments[:1] == ["--speak"]:
        with tempfile.TemporaryDirectory() as folder:
            shutil.move(spoken(pathlib.Path(folder, "spoken.wav")), arguments[1])
        return True
    file = with_weights(read(wheel("silero_vad_16k.safetensors")))
    if arguments == ["--fixture"]:
        for probability in run_onnx(file, np.array(samples()) / 32768)[0]:
            print(f"{probability:.7f}")
        return True
    device = "cpu"
    if arguments[:1] == ["--device"]:
        device, arguments = arguments[1], arguments[2:]
    program, *paths = arguments
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        paths = [pathlib.Path(path) for path in paths] or [spoken(folder / "spoken.wav"), write(folder / "signal.wav", samples())]
        own = wheel("silero_vad_16k_op15.onnx").read_bytes()
        tensors = {name: onnx.numpy_helper.to_array(tensor) for name, tensor in graph()[1].items()}
        weights = save(folder / "onnx.safetensors", tensors)
        kinds = [("the weights of the ONNX model", own, ["--model", weights]), ("the weights of the safetensors file", file, [])]
        return all([compare(program, device, path, *kind) for path in paths for kind in kinds])


if __name__ == "__main__":
    sys.exit(0 if main(sys.argv[1:]) else 1)

"""Writes what transformers computes of prompts that are read in pieces here, where the angles follow from the length of a prompt.

    pip install torch transformers
    python long.py .

`long.json` has, for each model, what differs from the configuration of the folder `llama`, whose weights they all have; the
logits of the token after each prompt, `[(7 * i * i + 3 * i + 1) % 40 for i in range(length)]`, in f32; the mean of the losses
of the longest prompt's tokens; and the tokens that follow the longest prompt, each the likeliest, from the cache.
"""

import json
import pathlib
import sys

import torch
from safetensors.torch import load_file
from transformers import LlamaConfig, LlamaForCausalLM

OUT = pathlib.Path(sys.argv[1])
# Around the largest pieces, of 128 and of 512 tokens, and the lengths below.
LENGTHS = [100, 129, 250, 400, 700]


def longrope(original):
    factors = dict(short_factor=[1.0, 1.0], long_factor=[4.0, 16.0])
    rope = dict(rope_type="longrope", rope_theta=10000.0, original_max_position_embeddings=original, **factors)
    return dict(max_position_embeddings=1024, rope_parameters=rope)


MODELS = {
    "longrope-300": longrope(300),
    "longrope-600": longrope(600),
    "dynamic": dict(
        max_position_embeddings=128, rope_parameters=dict(rope_type="dynamic", rope_theta=10000.0, factor=16.0)
    ),
}

weights = load_file(OUT / "llama.safetensors")
written = {}
for name, changes in MODELS.items():
    config = json.loads((OUT / "llama/config.json").read_text())
    model = LlamaForCausalLM(LlamaConfig(**{**config, **changes})).eval()
    model.load_state_dict(weights)
    logits = []
    with torch.no_grad():
        for length in LENGTHS:
            prompt = torch.tensor([[(7 * i * i + 3 * i + 1) % 40 for i in range(length)]])
            every = model(prompt).logits[0]
            logits.append(every[-1].tolist())
        loss = torch.nn.functional.cross_entropy(every[:-1], prompt[0, 1:]).item()
        answer = model.generate(prompt, attention_mask=torch.ones_like(prompt), do_sample=False, max_new_tokens=16)
    written[name] = dict(changes=changes, logits=logits, loss=loss, answer=answer[0, prompt.shape[1] :].tolist())
json.dump(dict(lengths=LENGTHS, models=written), open(OUT / "long.json", "w"), indent=0)

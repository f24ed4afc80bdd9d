"""Writes small random models of every family as Hugging Face folders, with what transformers computes of them.

    pip install torch transformers
    python models.py .

Each folder is what `save_pretrained` writes, without the weights: those of `<family>.safetensors`, which folders share whose
configurations differ in what does not change weights. `expected.json` has, for each folder, the logits of the token after each
prompt, in f32, and the sum of the distances `|logits - f32's| / |f32's|` of those that it computes in 16 bits. Folders whose `config.json`
`save_pretrained` would not write have changes in that of another folder, and are read by `from_pretrained`.
"""

import copy
import json
import pathlib
import shutil
import sys
import tempfile

import torch
from transformers import (
    AutoModelForCausalLM,
    Gemma2Config,
    Gemma2ForCausalLM,
    Gemma3ForCausalLM,
    Gemma3TextConfig,
    GemmaConfig,
    GemmaForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)

OUT = pathlib.Path(sys.argv[1])
# As small as it can be with two layers, shared keys and heads that are not `hidden_size / heads` wide where a family allows it.
SMALL = dict(
    vocab_size=40,
    hidden_size=16,
    intermediate_size=24,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    max_position_embeddings=64,
    bos_token_id=0,
    eos_token_id=1,
    initializer_range=0.5,
)
PROMPTS = [[3], [5, 9, 13, 2, 30], [(7 * i * i + 3) % 40 for i in range(50)]]


def rope(kind, theta=10000.0, **more):
    return dict(rope_parameters=dict(rope_type=kind, rope_theta=theta, **more))


LLAMA3 = dict(factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=16)
# As Phi-3 has it: other divisors, and attention scaled, beyond the positions of the first training.
LONGROPE = dict(factor=4.0, original_max_position_embeddings=16, short_factor=[1.0, 1.3], long_factor=[1.5, 3.0])
# As Gemma has it: heads as wide as they like, and a factor of queries that does not follow from that.
GEMMA = dict(head_dim=6, tie_word_embeddings=True)
GEMMA2 = GEMMA | dict(
    query_pre_attn_scalar=10, sliding_window=6, attn_logit_softcapping=5.0, final_logit_softcapping=3.0, num_hidden_layers=3
)
GEMMA3 = GEMMA | dict(
    query_pre_attn_scalar=10,
    sliding_window=6,
    sliding_window_pattern=2,
    num_hidden_layers=3,
    rope_parameters=dict(
        full_attention=dict(rope_type="linear", factor=4.0, rope_theta=100000.0),
        sliding_attention=dict(rope_type="default", rope_theta=100.0),
    ),
)
# Folder: family, its classes, and what differs from SMALL.
MODELS = {
    "llama": ("llama", LlamaConfig, LlamaForCausalLM, rope("default", 10000.0)),
    "llama-linear": ("llama", LlamaConfig, LlamaForCausalLM, rope("linear", factor=4.0)),
    "llama-dynamic": ("llama", LlamaConfig, LlamaForCausalLM, rope("dynamic", factor=2.0) | dict(max_position_embeddings=32)),
    "llama-llama3": ("llama", LlamaConfig, LlamaForCausalLM, rope("llama3", 500000.0, **LLAMA3)),
    "llama-yarn": (
        "llama",
        LlamaConfig,
        LlamaForCausalLM,
        rope("yarn", factor=4.0, original_max_position_embeddings=16),
    ),
    "llama-longrope": ("llama", LlamaConfig, LlamaForCausalLM, rope("longrope", **LONGROPE)),
    "llama-tied": ("llama", LlamaConfig, LlamaForCausalLM, rope("default") | dict(tie_word_embeddings=True)),
    "mistral": ("llama", MistralConfig, MistralForCausalLM, rope("default") | dict(sliding_window=None)),
    "mistral-window": ("llama", MistralConfig, MistralForCausalLM, rope("default") | dict(sliding_window=6)),
    "qwen2": ("qwen2", Qwen2Config, Qwen2ForCausalLM, rope("default", 1000000.0)),
    "qwen3": ("qwen3", Qwen3Config, Qwen3ForCausalLM, rope("default", 1000000.0) | dict(head_dim=6)),
    "gemma": ("gemma", GemmaConfig, GemmaForCausalLM, rope("default") | GEMMA),
    "gemma2": ("gemma2", Gemma2Config, Gemma2ForCausalLM, rope("default") | GEMMA2),
    "gemma3": ("gemma3", Gemma3TextConfig, Gemma3ForCausalLM, GEMMA3),
}
YARN = dict(rope_type="yarn", factor=4.0)
LONG = {key: value for key, value in LONGROPE.items() if key != "original_max_position_embeddings"}
# Folder: the one whose `config.json` it has, and what it has otherwise.
EDITED = {
    # The scale that llama.cpp takes for these sizes.
    "gemma2-scale": ("gemma2", dict(query_pre_attn_scalar=6)),
    # `rope_scaling` is there beside `rope_parameters`, and wins.
    "qwen3-scaling": (
        "qwen3",
        dict(rope_scaling=dict(YARN, rope_theta=1000000.0, original_max_position_embeddings=16)),
    ),
    # Beside `rope_parameters`, and not as in it.
    "qwen3-original": (
        "qwen3",
        dict(original_max_position_embeddings=16)
        | rope("yarn", 1000000.0, factor=4.0, original_max_position_embeddings=32, mscale=0.7, mscale_all_dim=0),
    ),
    # Another factor than that of the lengths.
    "llama-longrope-factor": ("llama", rope("longrope", **LONG | dict(factor=2.0)) | dict(original_max_position_embeddings=16)),
    # Windows in every other layer.
    "mistral-layers": ("mistral-window", dict(layer_types=["sliding_attention", "full_attention"])),
    # The context is longer than the window.
    "mistral-dynamic": (
        "mistral-window",
        rope("dynamic", factor=2.0) | dict(sliding_window=32, max_position_embeddings=32),
    ),
}


def evaluate(made):
    """The logits after each prompt in f32, and how far transformers itself is from them in 16 bits."""
    with torch.no_grad():
        logits = [made(torch.tensor([prompt])).logits[0, -1].tolist() for prompt in PROMPTS]
    far = {}
    for dtype in ["bfloat16", "float16"]:
        rounded = copy.deepcopy(made).to(getattr(torch, dtype))
        with torch.no_grad():
            narrow = [rounded(torch.tensor([prompt])).logits[0, -1].float() for prompt in PROMPTS]
        pairs = zip(narrow, map(torch.tensor, logits))
        far[dtype] = sum(((a - b).norm() / b.norm()).item() for a, b in pairs)
    return dict(logits=logits, far=far)


expected, weights = {}, {}
for name, (family, config, model, different) in MODELS.items():
    torch.manual_seed(len(weights) + 1)
    made = model(config(**{**SMALL, **different})).eval()
    # The default leaves out the soft cap of attention.
    if name.startswith("gemma"):
        made.set_attn_implementation("eager")
    with torch.no_grad():
        for key, parameter in made.named_parameters():
            # Not the ones and zeros with which norms and biases begin.
            if parameter.dim() == 1:
                parameter.add_(torch.empty_like(parameter).uniform_(-0.5, 0.5))
        if family in weights:
            # With tied embeddings, the matrix for logits is the embedding, whatever else the file has.
            tied = made.config.tie_word_embeddings
            given = {key: value for key, value in weights[family].items() if not (tied and key == "lm_head.weight")}
            made.load_state_dict(given, strict=False)
            made.tie_weights()
        else:
            weights[family] = {key: value.clone() for key, value in made.state_dict().items()}
    folder = OUT / name
    folder.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as saved:
        made.save_pretrained(saved)
        shutil.copy(f"{saved}/config.json", folder / "config.json")
        if name == family:
            shutil.copy(f"{saved}/model.safetensors", OUT / f"{family}.safetensors")
    expected[name] = dict(weights=family) | evaluate(made)
for name, (base, changes) in EDITED.items():
    family = expected[base]["weights"]
    folder = OUT / name
    folder.mkdir(exist_ok=True)
    config = json.loads((OUT / base / "config.json").read_text()) | changes
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    with tempfile.TemporaryDirectory() as whole:
        shutil.copy(folder / "config.json", whole)
        shutil.copy(OUT / f"{family}.safetensors", f"{whole}/model.safetensors")
        made = AutoModelForCausalLM.from_pretrained(whole, dtype=torch.float32, attn_implementation="eager").eval()
    expected[name] = dict(weights=family) | evaluate(made)
json.dump(dict(prompts=PROMPTS, models=expected), open(OUT / "expected.json", "w"), indent=0)

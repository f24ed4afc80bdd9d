"""The logits that follow a prompt, with floats and with the inputs of every product rounded to 8 bits in runs of 32, in
PyTorch: an independent computation of what products with weights in blocks do (docs/ACCURACY.md).

    pip install torch transformers accelerate gguf
    python3 eight_bits.py FOLDER FILE.gguf
"""

import sys

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

PROMPT = (
    "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
    "<|im_start|>user\nWhat is the capital of France?<|im_end|>\n<|im_start|>assistant\n"
)


def rounded(x):
    """Each run of 32 as whole multiples of its largest size over 127."""
    runs = x.reshape(*x.shape[:-1], -1, 32)
    scale = runs.abs().amax(-1, keepdim=True) / 127
    whole = torch.where(scale > 0, torch.round(runs / scale), torch.zeros_like(runs))
    return (whole * scale).reshape(x.shape)


def main():
    folder, file = sys.argv[1:]
    tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=file)
    model = AutoModelForCausalLM.from_pretrained(folder, gguf_file=file, dtype=torch.float32).eval()
    ids = torch.tensor([tokenizer.encode(PROMPT)])

    def show(name):
        with torch.no_grad():
            logits = model(ids).logits[0, -1]
        top = logits.topk(4)
        print(name, [(i, round(v, 2)) for i, v in zip(top.indices.tolist(), top.values.tolist())])
        return logits

    floats = show("floats")
    for module in model.modules():
        if isinstance(module, torch.nn.Linear):
            module.register_forward_pre_hook(lambda _, inputs: (rounded(inputs[0]),))
    eight = show("8 bits")
    print("distance", round(((floats - eight).norm() / floats.norm()).item(), 3))


main()

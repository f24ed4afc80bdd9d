"""Writes two small tokenizers as Hugging Face folders, with what transformers makes of difficult strings.

    pip install transformers tokenizers
    python save.py .

`bytes` is byte-level BPE with the pre-tokenizer and the normalizer of Qwen2, its template in `chat_template.jinja`; `pieces` is BPE
with spaces as U+2581 and a fallback to bytes, as SentencePiece models are converted, its template in `tokenizer_config.json`.
"""

import json
import pathlib
import sys

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

OUT = pathlib.Path(sys.argv[1]).resolve()
TEXT = [
    "The capital of France is Paris. What is the capital of Germany?",
    "hello hello world, the quick brown fox jumps over the lazy dog",
    "Grüße aus Köln; naïve café; 123 456 7890",
    "user assistant system\n\nYou are a helpful assistant.",
] * 4
STRINGS = [
    "",
    " ",
    "   three   spaces  ",
    "hello world",
    " leading",
    "trailing \n",
    "line\r\n\tbreaks\n\n\n",
    "Grüße, Köln",
    "e\u0301 and \u00e9",
    "\u4e16\u754c \U0001f469\u200d\U0001f469\u200d\U0001f467 \U0001f1eb\U0001f1f7",
    "3.14159 and 1234567",
    "don't WE'LL I'd",
    "<|im_start|>user<|im_end|>",
    "a<|im_end|> b",
    "</s><s>",
    "\u0000\u007f\u00a0\u2028",
    "\u2581 is U+2581",
    "{{ braces }} {% if %}",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
]
CHATML = (
    "{%- if messages[0]['role'] == 'system' %}\n"
    "    {{- '<|im_start|>system\\n' + messages[0]['content'] + '<|im_end|>\\n' }}\n"
    "{%- else %}\n"
    "    {{- '<|im_start|>system\\nYou are a helpful assistant.<|im_end|>\\n' }}\n"
    "{%- endif %}\n"
    "{%- for message in messages %}\n"
    "    {%- if (message.role == \"user\") or (message.role == \"assistant\" and not message.tool_calls) %}\n"
    "        {{- '<|im_start|>' + message.role + '\\n' + message.content.strip() + '<|im_end|>' + '\\n' }}\n"
    "    {%- endif %}\n"
    "{%- endfor %}\n"
    "{%- if add_generation_prompt %}\n"
    "    {{- '<|im_start|>assistant\\n' }}\n"
    "{%- endif %}\n"
)
INST = (
    "{{ bos_token }}{% for message in messages %}{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('Conversation roles must alternate') }}{% endif %}{% if message['role'] == 'user' %}"
    "{{ '[INST] ' + message['content'] + ' [/INST]' }}{% else %}{{ message['content'] + eos_token }}{% endif %}{% endfor %}"
)
CONVERSATION = [
    dict(role="user", content=" What is the capital of France?\n"),
    dict(role="assistant", content="Paris."),
    dict(role="user", content="And of Germany?"),
]


def byte_level():
    split = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    made = Tokenizer(models.BPE())
    made.normalizer = normalizers.NFC()
    made.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(split), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    made.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    made.train_from_iterator(TEXT, trainers.BpeTrainer(vocab_size=300, initial_alphabet=alphabet, show_progress=False))
    made.add_special_tokens(["<|endoftext|>", "<|im_start|>", "<|im_end|>"])
    made.add_tokens([AddedToken("</think>", special=False, normalized=False)])
    return PreTrainedTokenizerFast(tokenizer_object=made, eos_token="<|im_end|>", chat_template=CHATML)


def pieces():
    made = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    made.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    first = ["<unk>", "<s>", "</s>"] + [f"<0x{byte:02X}>" for byte in range(256)]
    trained = Tokenizer(models.BPE())
    trained.normalizer = made.normalizer
    trained.train_from_iterator(TEXT, trainers.BpeTrainer(vocab_size=90, show_progress=False))
    model = json.loads(trained.to_str())["model"]
    vocab = {token: id for id, token in enumerate(first)}
    for token in sorted(model["vocab"], key=model["vocab"].get):
        vocab.setdefault(token, len(vocab))
    merges = [tuple(merge) for merge in model["merges"]]
    made.model = models.BPE(vocab=vocab, merges=merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True)
    made.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    made.add_special_tokens(["<unk>", "<s>", "</s>"])
    return PreTrainedTokenizerFast(
        tokenizer_object=made, bos_token="<s>", eos_token="</s>", unk_token="<unk>", chat_template=INST
    )


expected = {}
for name, tokenizer in [("bytes", byte_level()), ("pieces", pieces())]:
    folder = OUT / name
    tokenizer.save_pretrained(folder)
    if name == "pieces":
        # As folders of before `chat_template.jinja` have it.
        config = json.load(open(folder / "tokenizer_config.json"))
        config["chat_template"] = (folder / "chat_template.jinja").read_text()
        (folder / "chat_template.jinja").unlink()
        json.dump(config, open(folder / "tokenizer_config.json", "w"), indent=2)
    strings = []
    for text in STRINGS:
        ids = tokenizer.encode(text, add_special_tokens=False)
        strings.append(dict(text=text, ids=ids, decoded=tokenizer.decode(ids, skip_special_tokens=True)))
    rendered = tokenizer.apply_chat_template(CONVERSATION, tokenize=False, add_generation_prompt=True)
    expected[name] = dict(strings=strings, rendered=rendered, size=len(tokenizer))
json.dump(dict(conversation=CONVERSATION, tokenizers=expected), open(OUT / "expected.json", "w"), indent=1)

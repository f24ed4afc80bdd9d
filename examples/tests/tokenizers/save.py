"""Writes three small tokenizers as Hugging Face folders, with what transformers makes of difficult strings.

    pip install transformers tokenizers sentencepiece protobuf
    python save.py .

`bytes` is byte-level BPE with the pre-tokenizer and the normalizer of Qwen2, its template in `chat_template.jinja`; `pieces` is BPE
with spaces as U+2581 and a fallback to bytes, its template in `tokenizer_config.json`; `gemma` is a model that SentencePiece trained,
with the tokens and the normalizer of Gemma, converted as transformers does it; its ids are those of SentencePiece, too.
"""

import json
import pathlib
import sys
import tempfile

import sentencepiece

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast
from transformers.convert_slow_tokenizer import SentencePieceExtractor, generate_merges

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
    "<start_of_turn>user\nhello<end_of_turn>\n<table> <unk>",
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
TURNS = (
    "{{ bos_token }}{% if messages[0].role == 'system' %}{{ raise_exception('there is no system role') }}{% endif %}"
    "{% for message in messages %}{% set who = 'model' if message.role == 'assistant' else message.role %}"
    "{{ '<start_of_turn>' + who + '\\n' + message.content | trim + '<end_of_turn>\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<start_of_turn>model\\n' }}{% endif %}"
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


def gemma():
    special = ["<pad>", "<eos>", "<bos>", "<start_of_turn>", "<end_of_turn>"]
    with tempfile.TemporaryDirectory() as folder:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(TEXT),
            model_prefix=f"{folder}/model",
            model_type="bpe",
            vocab_size=400,
            byte_fallback=True,
            normalization_rule_name="identity",
            add_dummy_prefix=False,
            remove_extra_whitespaces=False,
            split_digits=True,
            allow_whitespace_only_pieces=True,
            pad_id=0,
            eos_id=1,
            bos_id=2,
            unk_id=3,
            pad_piece="<pad>",
            eos_piece="<eos>",
            bos_piece="<bos>",
            control_symbols=special[3:],
            user_defined_symbols=["<table>"],
            minloglevel=2,
        )
        proto = SentencePieceExtractor(f"{folder}/model.model").proto
        original = sentencepiece.SentencePieceProcessor(model_file=f"{folder}/model.model")
    vocab = {piece.piece: id for id, piece in enumerate(proto.pieces)}
    scores = {piece.piece: piece.score for piece in proto.pieces}
    merges = generate_merges(vocab, scores)
    made = Tokenizer(models.BPE(vocab=vocab, merges=merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    made.normalizer = normalizers.Replace(" ", "▁")
    made.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    made.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    made.add_special_tokens([*special, "<unk>"])
    made.add_tokens([AddedToken("<table>", special=False, normalized=False)])
    for text in STRINGS:
        # SentencePiece takes no names of control tokens from texts.
        if not any(name in text for name in special):
            assert made.encode(text, add_special_tokens=False).ids == original.encode(text), text
    return PreTrainedTokenizerFast(
        tokenizer_object=made,
        bos_token="<bos>",
        eos_token="<eos>",
        unk_token="<unk>",
        pad_token="<pad>",
        add_bos_token=True,
        chat_template=TURNS,
    )


expected = {}
for name, tokenizer in [("bytes", byte_level()), ("pieces", pieces()), ("gemma", gemma())]:
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

//! The tokenizer, built from a small file that describes one.

use graphable_examples::{Error, gguf::Gguf, tokenizer::ChatTokenizer};

use crate::gguf_builder::{Builder, Meta};

/// Tokens of the tiny tokenizer: two control tokens, all 256 bytes, then merged ones.
pub(crate) fn tokens() -> Vec<String> {
    let printable = |b: u32| matches!(b, 0x21..=0x7E | 0xA1..=0xAC | 0xAE..=0xFF);
    let mut next = 0x100;
    let bytes = (0..256).map(|b| {
        let c = if printable(b) {
            b
        } else {
            next += 1;
            next - 1
        };
        char::from_u32(c).unwrap().to_string()
    });
    let control = ["<|start|>", "<|end|>"].map(String::from);
    let merged = ["he", "ll", "hell", "hello", "Ġhello"].map(String::from);
    control.into_iter().chain(bytes).chain(merged).collect()
}

pub(crate) fn describe(builder: Builder) -> Builder {
    let tokens = tokens();
    let types = (0..tokens.len()).map(|i| if i < 2 { 3 } else { 1 }).collect();
    let merges = ["h e", "l l", "he ll", "hell o", "Ġ hello"].map(String::from).to_vec();
    builder
        .meta("tokenizer.ggml.model", "gpt2")
        .meta("tokenizer.ggml.pre", "smollm")
        .meta("tokenizer.ggml.tokens", Meta::Strs(tokens))
        .meta("tokenizer.ggml.token_type", Meta::I32s(types))
        .meta("tokenizer.ggml.merges", Meta::Strs(merges))
        .meta("tokenizer.ggml.bos_token_id", Meta::U32(0))
        .meta("tokenizer.ggml.eos_token_id", Meta::U32(1))
}

fn tiny() -> ChatTokenizer {
    ChatTokenizer::from_gguf(&Gguf::from_bytes(describe(Builder::default()).build()).unwrap()).unwrap()
}

#[test]
fn merges_words_and_keeps_digits_apart() {
    let t = tiny();
    assert_eq!(t.encode("hello hello").unwrap(), [261, 262]);
    let digit = |d: char| d as u32 + 2;
    assert_eq!(t.encode("12").unwrap(), [digit('1'), digit('2')]);
    assert_eq!(t.encode("<|start|>hell<|end|>").unwrap(), [0, 260, 1]);
    assert!(t.encode("").unwrap().is_empty());
    assert!(t.is_stop(1) && !t.is_stop(0));
    assert_eq!((t.bos_name(), t.eos_name(), t.len()), (Some("<|start|>"), "<|end|>", 263));
}

#[test]
fn any_text_survives_the_round_trip() {
    let t = tiny();
    for text in ["hello hello", " a\n\tb  ", "Grüße, 世界 👩‍👩‍👧 e\u{301}", "\u{0}\u{7f}\u{a0}"]
    {
        assert_eq!(t.decode(&t.encode(text).unwrap()), text);
    }
}

#[test]
fn a_streamed_character_appears_when_it_is_complete() {
    let t = tiny();
    let ids = t.encode("é👩x").unwrap();
    let mut stream = t.stream();
    let parts: Vec<_> = ids.iter().map(|&id| stream.push(id)).collect();
    assert_eq!(parts, ["", "é", "", "", "", "👩", "x"]);
    assert_eq!(stream.finish(), "");

    // A stray byte becomes U+FFFD at once, a cut character at the end; neither loses what follows.
    let mut stream = t.stream();
    assert_eq!(stream.push(ids[2]), "");
    assert_eq!(stream.push(t.encode("x").unwrap()[0]), "\u{FFFD}x");
    assert_eq!(stream.push(ids[2]), "");
    assert_eq!(stream.push(100_000), "", "ids out of range stand for nothing");
    assert_eq!(stream.finish(), "\u{FFFD}");
    assert_eq!(stream.finish(), "");
}

#[test]
fn contradictions_are_typed_errors() {
    let refused = |b: Builder, wanted: &str| {
        let file = Gguf::from_bytes(b.build()).unwrap();
        match ChatTokenizer::from_gguf(&file).map(|_| ()) {
            Err(e @ Error::Tokenizer { .. }) => {
                let e = e.to_string();
                assert!(e.contains(wanted) && e.contains("help:"), "{e}");
            }
            other => panic!("{wanted}: {other:?}"),
        }
    };
    let base = |merges: &[&str], pre: &str, types: Vec<i32>| {
        Builder::default()
            .meta("tokenizer.ggml.model", "gpt2")
            .meta("tokenizer.ggml.pre", pre)
            .meta("tokenizer.ggml.tokens", Meta::Strs(["a", "b", "ab"].map(String::from).to_vec()))
            .meta("tokenizer.ggml.token_type", Meta::I32s(types))
            .meta("tokenizer.ggml.merges", Meta::Strs(merges.iter().map(|m| m.to_string()).collect()))
    };
    refused(Builder::default(), "`tokenizer.ggml.model` is missing");
    refused(Builder::default().meta("tokenizer.ggml.model", "llama"), "kind `llama`");
    refused(base(&["a b"], "smollm", vec![1, 1]), "3 tokens and 2 token types");
    refused(base(&["ab"], "smollm", vec![1; 3]), "does not have two parts");
    refused(base(&["a c"], "smollm", vec![1; 3]), "needs the token `c`");
    refused(base(&["a b"], "dialect-9", vec![1; 3]), "pre-tokenizer `dialect-9`");
    refused(base(&["a b"], "smollm", vec![1; 3]), "no token that ends an answer");
    let out = base(&["a b"], "smollm", vec![1; 3]).meta("tokenizer.ggml.eos_token_id", Meta::U32(3));
    refused(out, "is 3, and there are 3 tokens");
}

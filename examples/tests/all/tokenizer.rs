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

/// Byte-level BPE whose merges show where text is cut, with `more` tokens and their types.
fn cutting(pre: Option<&str>, more: &[(&str, i32)]) -> ChatTokenizer {
    let merged = ["11", "111", "Ġ(", "'s", "Ġ1", "!!", "ab", "Ġab"];
    let base = tokens().into_iter().take(258);
    let names: Vec<String> =
        base.chain(merged.into_iter().chain(more.iter().map(|(name, _)| *name)).map(String::from)).collect();
    let types = (0..266).map(|i| if i < 2 { 3 } else { 1 }).chain(more.iter().map(|(_, ty)| *ty)).collect();
    let merges = ["1 1", "11 1", "Ġ (", "' s", "Ġ 1", "! !", "a b", "Ġ ab"].map(String::from).to_vec();
    let builder = Builder::default()
        .meta("tokenizer.ggml.model", "gpt2")
        .meta("tokenizer.ggml.tokens", Meta::Strs(names))
        .meta("tokenizer.ggml.token_type", Meta::I32s(types))
        .meta("tokenizer.ggml.merges", Meta::Strs(merges))
        .meta("tokenizer.ggml.bos_token_id", Meta::U32(0))
        .meta("tokenizer.ggml.eos_token_id", Meta::U32(1));
    let builder = pre.into_iter().fold(builder, |builder, pre| builder.meta("tokenizer.ggml.pre", pre));
    ChatTokenizer::from_gguf(&Gguf::from_bytes(builder.build()).unwrap()).unwrap()
}

/// What llama.cpp makes of these texts, with the token that starts a text where it adds one.
#[test]
fn text_is_cut_as_by_llama_cpp() {
    let texts = ["1111111 111", "ab (ab) 's it's", "!!! ab\n ab  !!", "ab11ab1111 1¹½ «ab»"];
    let default: [&[u32]; 4] = [
        &[259, 259, 51, 34, 259],
        &[264, 34, 42, 264, 43, 34, 41, 117, 34, 107, 118, 41, 117],
        &[263, 35, 265, 12, 265, 34, 34, 263],
        &[264, 258, 264, 259, 51, 34, 51, 196, 187, 196, 191, 34, 196, 173, 264, 196, 189],
    ];
    let gpt2: [&[u32]; 4] = [
        &[258, 258, 259, 34, 259],
        &[264, 260, 264, 43, 34, 41, 117, 34, 107, 118, 261],
        &[263, 35, 265, 12, 265, 34, 34, 263],
        &[264, 258, 264, 258, 258, 262, 196, 187, 196, 191, 34, 196, 173, 264, 196, 189],
    ];
    let llama3: [&[u32]; 4] = [
        &[0, 259, 259, 51, 34, 259],
        &[0, 264, 260, 264, 43, 34, 41, 117, 34, 107, 118, 261],
        &[0, 263, 35, 265, 12, 265, 34, 34, 263],
        &[0, 264, 258, 264, 259, 51, 34, 51, 196, 187, 196, 191, 34, 196, 173, 264, 196, 189],
    ];
    let one: [&[u32]; 4] = [
        &[51, 51, 51, 51, 51, 51, 51, 34, 51, 51, 51],
        gpt2[1],
        gpt2[2],
        &[264, 51, 51, 264, 51, 51, 51, 51, 34, 51, 196, 187, 196, 191, 34, 196, 173, 264, 196, 189],
    ];
    let all = [
        (None, default),
        (Some("default"), default),
        (Some("gpt-2"), gpt2),
        (Some("qwen2"), one),
        (Some("deepseek-r1-qwen"), one),
        (Some("smollm"), one),
        (Some("llama-bpe"), llama3),
        (Some("llama3"), llama3),
        (Some("llama-v3"), llama3),
        (Some("falcon3"), llama3),
        (Some("pixtral"), llama3),
        (Some("lfm2"), llama3),
    ];
    for (pre, wanted) in all {
        let t = cutting(pre, &[]);
        for (text, wanted) in texts.into_iter().zip(wanted) {
            assert_eq!(t.encode_text(text).unwrap(), wanted, "{pre:?}: {text:?}");
            assert_eq!(t.encode(text).unwrap(), wanted, "{pre:?}: {text:?}");
        }
        assert_eq!(t.start_of_text().is_some(), wanted[0][0] == 0, "{pre:?}");
    }
}

/// What llama.cpp takes as the end of an answer, whatever its type.
#[test]
fn known_tokens_end_an_answer() {
    let more = [
        ("<|eot_id|>", 3),
        ("<|im_end|>", 1),
        ("<end_of_turn>", 4),
        ("<|eom_id|>", 3),
        ("<｜end▁of▁sentence｜>", 3),
        ("<|fim_pad|>", 3),
        ("<x>", 3),
    ];
    let t = cutting(Some("gpt-2"), &more);
    assert_eq!(t.stops(), [1, 266, 267, 268, 269, 270, 271]);
    assert_eq!(t.encode("a<|im_end|>b<end_of_turn>").unwrap(), [99, 267, 100, 268]);
    assert_eq!(t.decode(&[99, 267, 100, 268]), "ab");
    // Messages that end with `<|end|>` are parts of an answer there, but for the end that the file states.
    let harmony = cutting(Some("gpt-2"), &[("<|return|>", 3), ("<|call|>", 3)]);
    assert_eq!(harmony.stops(), [1, 266, 267]);
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
fn the_token_that_starts_a_text_comes_once() {
    let builder = describe(Builder::default()).meta("tokenizer.ggml.add_bos_token", Meta::Bool(true));
    let t = ChatTokenizer::from_gguf(&Gguf::from_bytes(builder.build()).unwrap()).unwrap();
    assert_eq!(t.encode("hello").unwrap(), [0, 261]);
    assert_eq!(t.encode("").unwrap(), [0]);
    // As many templates have it.
    assert_eq!(t.encode("<|start|>hello").unwrap(), [0, 261]);
    assert_eq!(t.encode("<|end|>hello").unwrap(), [0, 1, 261]);
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
    refused(Builder::default().meta("tokenizer.ggml.model", "bert"), "kind `bert`");
    refused(base(&["a b"], "smollm", vec![1, 1]), "3 tokens and 2 token types");
    refused(base(&["ab"], "smollm", vec![1; 3]), "does not have two parts");
    refused(base(&["a c"], "smollm", vec![1; 3]), "needs the token `c`");
    refused(base(&["a b"], "dialect-9", vec![1; 3]), "pre-tokenizer `dialect-9`");
    refused(base(&["a b"], "smollm", vec![1; 3]), "no token that ends an answer");
    let out = base(&["a b"], "smollm", vec![1; 3]).meta("tokenizer.ggml.eos_token_id", Meta::U32(3));
    refused(out, "is 3, and there are 3 tokens");
}

/// A tokenizer of pieces: `unknown`, two control tokens, the bytes, then pieces by their scores.
fn pieces(more: impl FnOnce(Builder) -> Builder) -> Result<ChatTokenizer, Error> {
    let bytes = (0..256).map(|byte| format!("<0x{byte:02X}>"));
    let text = ["\u{2581}", "a", "b", "c", "ab", "bc", "abc", "\u{2581}a", "<x>"].map(String::from);
    let names: Vec<String> =
        ["<unk>", "<s>", "</s>"].map(String::from).into_iter().chain(bytes).chain(text).collect();
    let mut types = vec![2, 3, 3];
    types.extend([6; 256]);
    types.extend([1, 1, 1, 1, 1, 1, 1, 1, 4]);
    // `bc` is worth more than `ab`, and U+2581 with `a` more than both.
    let mut scores = vec![0.0; 259 + 4];
    scores.extend([-3.0, -2.0, -4.0, -1.0, 0.0f32]);
    let floats = scores.iter().flat_map(|v: &f32| v.to_le_bytes());
    let array = 6u32.to_le_bytes().into_iter().chain((names.len() as u64).to_le_bytes()).chain(floats);
    let builder = Builder::default()
        .meta("tokenizer.ggml.model", "llama")
        .meta("tokenizer.ggml.tokens", Meta::Strs(names))
        .meta("tokenizer.ggml.token_type", Meta::I32s(types))
        .meta("tokenizer.ggml.scores", Meta::Raw(9, array.collect()))
        .meta("tokenizer.ggml.bos_token_id", Meta::U32(1))
        .meta("tokenizer.ggml.eos_token_id", Meta::U32(2));
    ChatTokenizer::from_gguf(&Gguf::from_bytes(more(builder).build()).unwrap())
}

#[test]
fn pieces_are_merged_by_their_scores() {
    let plain = pieces(|b| b.meta("tokenizer.ggml.add_bos_token", Meta::Bool(false))).unwrap();
    let (space, a, b, bc, abc, space_a, x) = (259, 260, 261, 264, 265, 266, 267);
    // A space is put before each text, and each text after a token of its own.
    assert_eq!(plain.encode("abc").unwrap(), [space_a, bc]);
    assert_eq!(plain.encode("b abc").unwrap(), [space, b, space_a, bc]);
    assert_eq!(plain.encode("a<x>a</s>").unwrap(), [space_a, x, space_a, 2]);
    assert_eq!(plain.encode("é").unwrap(), [space, 3 + 0xC3, 3 + 0xA9]);
    assert_eq!(plain.decode(&[space_a, bc, x, 2, space, a]), "abc<x> a");
    // As llama.cpp has it, a text starts with `<s>` unless the file says otherwise.
    let with = pieces(|b| b.meta("tokenizer.ggml.add_space_prefix", Meta::Bool(false))).unwrap();
    assert_eq!(with.encode("abc").unwrap(), [1, abc]);
    assert_eq!(with.decode(&[space_a, bc]), " abc");
}

#[test]
fn pieces_that_contradict_each_other_are_refused() {
    let refused = |more: &dyn Fn(Builder) -> Builder, wanted: &str| {
        let e = pieces(more).map(drop).unwrap_err().to_string();
        assert!(e.contains(wanted) && e.contains("help:"), "{wanted} in {e}");
    };
    let scores = |b: Builder, count: u64| {
        let bytes: Vec<u8> = 6u32.to_le_bytes().into_iter().chain(count.to_le_bytes()).collect();
        b.replace("tokenizer.ggml.scores", Meta::Raw(9, [bytes, vec![0; 4 * count as usize]].concat()))
    };
    refused(&|b| scores(b, 267), "268 tokens and 267 scores");
    refused(&|b| b.replace("tokenizer.ggml.scores", Meta::U32(1)), "should be an array of numbers");
    let long = |b: Builder| {
        let names = (0..268).map(|i| if i == 267 { "y".repeat(1025) } else { format!("t{i}") }).collect();
        b.replace("tokenizer.ggml.tokens", Meta::Strs(names))
    };
    refused(&long, "a piece of 1025 bytes");
}

/// Tokenizers and templates of Hugging Face folders, compared with transformers (`tests/tokenizers/save.py`).
pub(crate) mod folders {
    use std::collections::BTreeSet;

    use graphable_examples::{
        chat::{Message, Template},
        tokenizer::ChatTokenizer,
    };
    use serde_json::{Value, json};

    use crate::folders::Folder;

    const NAMES: [&str; 3] = ["bytes", "pieces", "gemma"];

    pub(crate) fn folder(name: &str, test: &str) -> Folder {
        let folder = Folder::new(&format!("tokenizer-{name}-{test}"));
        match name {
            "bytes" => folder
                .write("tokenizer.json", include_bytes!("../tokenizers/bytes/tokenizer.json"))
                .write("tokenizer_config.json", include_bytes!("../tokenizers/bytes/tokenizer_config.json"))
                .write("chat_template.jinja", include_bytes!("../tokenizers/bytes/chat_template.jinja")),
            "gemma" => folder
                .write("tokenizer.json", include_bytes!("../tokenizers/gemma/tokenizer.json"))
                .write("tokenizer_config.json", include_bytes!("../tokenizers/gemma/tokenizer_config.json"))
                .write("chat_template.jinja", include_bytes!("../tokenizers/gemma/chat_template.jinja")),
            _ => folder
                .write("tokenizer.json", include_bytes!("../tokenizers/pieces/tokenizer.json"))
                .write("tokenizer_config.json", include_bytes!("../tokenizers/pieces/tokenizer_config.json")),
        };
        folder
    }

    pub(crate) fn expected() -> Value {
        serde_json::from_str(include_str!("../tokenizers/expected.json")).unwrap()
    }

    #[test]
    fn difficult_strings_are_as_in_transformers() {
        for name in NAMES {
            let tokenizer = ChatTokenizer::from_folder(folder(name, "strings").path()).unwrap();
            let expected = &expected()["tokenizers"][name];
            assert_eq!(expected["size"], tokenizer.len());
            let strings = expected["strings"].as_array().unwrap();
            assert_eq!(strings.len(), 20);
            for string in strings {
                let ids: Vec<u32> = serde_json::from_value(string["ids"].clone()).unwrap();
                let text = string["text"].as_str().unwrap();
                assert_eq!(tokenizer.encode(text).unwrap(), ids, "{name}: {text:?}");
                assert_eq!(tokenizer.decode(&ids), string["decoded"], "{name}: {text:?}");
            }
        }
    }

    /// Gemma's folder with two to four spaces as added tokens that are not special, as hers has them.
    pub(crate) fn with_spaces(test: &str) -> Folder {
        let folder = folder("gemma", test);
        let mut all: Value = serde_json::from_slice(&folder.read("tokenizer.json")).unwrap();
        let space = |n: usize| "\u{2581}".repeat(n);
        for n in 2..=4 {
            all["model"]["vocab"][space(n)] = json!(398 + n);
            let token = json!({ "id": 398 + n, "content": space(n), "single_word": false, "lstrip": false, "rstrip": false,
                "normalized": false, "special": false });
            all["added_tokens"].as_array_mut().unwrap().push(token);
        }
        let pairs =
            [(1, 1), (2, 1), (1, 2), (3, 1), (2, 2), (1, 3)].map(|(a, b)| json!([space(a), space(b)]));
        all["model"]["merges"].as_array_mut().unwrap().splice(0..0, pairs);
        folder.write("tokenizer.json", all.to_string());
        folder
    }

    /// Texts with spaces, and what transformers makes of them.
    pub(crate) const SPACED: [(&str, &[u32]); 4] = [
        ("a  b", &[347, 400, 388]),
        ("a   b    c", &[347, 401, 388, 402, 358]),
        (" hello  world", &[285, 276, 400, 369, 312, 309]),
        ("        y", &[402, 402, 362]),
    ];

    #[test]
    fn spaces_that_are_added_tokens_are_spaces() {
        let tokenizer = ChatTokenizer::from_folder(with_spaces("spaces").path()).unwrap();
        for (text, ids) in SPACED {
            assert_eq!(tokenizer.encode(text).unwrap(), ids, "{text:?}");
            assert_eq!(tokenizer.decode(ids), text);
        }
    }

    /// What a post-processor adds is added, whatever `add_bos_token` says, as in transformers.
    #[test]
    fn the_start_of_a_text_is_what_the_post_processor_adds() {
        for (name, starts) in [("gemma", true), ("pieces", false)] {
            let folder = folder(name, "starts");
            let mut settings: Value = serde_json::from_slice(&folder.read("tokenizer_config.json")).unwrap();
            for given in [json!(true), json!(false), Value::Null] {
                settings["add_bos_token"] = given;
                folder.write("tokenizer_config.json", settings.to_string());
                let tokenizer = ChatTokenizer::from_folder(folder.path()).unwrap();
                let ids = tokenizer.encode_text("hello").unwrap();
                let first = tokenizer.start_of_text();
                assert_eq!(first.is_some(), starts, "{name}");
                assert_eq!(
                    ids.len(),
                    tokenizer.encode("hello").unwrap().len() + usize::from(starts),
                    "{name}"
                );
                assert!(!starts || first == Some(ids[0]), "{name}");
            }
        }
    }

    #[test]
    fn tokens_that_end_an_answer_come_from_every_file() {
        let folder = folder("bytes", "stops");
        let stops = || {
            ChatTokenizer::from_folder(folder.path())
                .unwrap()
                .stops()
                .iter()
                .copied()
                .collect::<BTreeSet<_>>()
        };
        assert_eq!(stops(), [302].into());
        folder.write("config.json", json!({ "eos_token_id": 300 }).to_string());
        folder.write("generation_config.json", json!({ "eos_token_id": [302, 301, 9999] }).to_string());
        assert_eq!(stops(), [300, 301, 302].into());
        folder.write("tokenizer_config.json", "{}");
        assert_eq!(ChatTokenizer::from_folder(folder.path()).unwrap().eos_name(), "<|im_end|>");
    }

    #[test]
    fn templates_are_rendered_as_in_transformers() {
        let messages: Vec<Message> = expected()["conversation"]
            .as_array()
            .unwrap()
            .iter()
            .map(|m| Message {
                role: m["role"].as_str().unwrap().into(),
                content: m["content"].as_str().unwrap().into(),
            })
            .collect();
        for name in NAMES {
            let folder = folder(name, "template");
            let tokenizer = ChatTokenizer::from_folder(folder.path()).unwrap();
            let rendered =
                Template::from_folder(folder.path(), &tokenizer).unwrap().render(&messages).unwrap();
            assert_eq!(rendered, expected()["tokenizers"][name]["rendered"], "{name}");
            let refused = Template::from_folder(folder.path(), &tokenizer).unwrap().render(&messages[1..]);
            assert_eq!(refused.is_err(), name == "pieces", "{refused:?}");
        }
        // Several templates have names.
        let folder = folder("pieces", "named");
        let tokenizer = ChatTokenizer::from_folder(folder.path()).unwrap();
        let named = json!([{ "name": "tools", "template": "no" }, { "name": "default", "template": "yes{{ bos_token }}" }]);
        let mut settings: Value = serde_json::from_slice(&folder.read("tokenizer_config.json")).unwrap();
        settings["chat_template"] = named;
        folder.write("tokenizer_config.json", settings.to_string());
        assert_eq!(
            Template::from_folder(folder.path(), &tokenizer).unwrap().render(&messages).unwrap(),
            "yes<s>"
        );
        settings["chat_template"] = Value::Null;
        folder.write("tokenizer_config.json", settings.to_string());
        let e = Template::from_folder(folder.path(), &tokenizer).unwrap_err().to_string();
        assert!(e.contains("chat_template.jinja") && e.contains("help:"), "{e}");
    }

    #[test]
    fn folders_without_a_usable_tokenizer_are_refused() {
        let folder = folder("bytes", "refused");
        let says = |wanted: &str| {
            let e = ChatTokenizer::from_folder(folder.path()).map(drop).unwrap_err().to_string();
            assert!(e.contains(wanted) && e.contains("help:"), "{wanted} in {e}");
        };
        let good: Value = serde_json::from_slice(&folder.read("tokenizer.json")).unwrap();
        let with = |key: &str, value: Value| {
            let mut changed = good.clone();
            changed[key] = value;
            folder.write("tokenizer.json", changed.to_string());
        };
        with("decoder", json!({ "type": "WordPiece", "prefix": "##", "cleanup": true }));
        says("neither byte-level nor made of pieces");
        with("decoder", Value::Null);
        says("neither byte-level nor made of pieces");
        with("model", json!({ "type": "Guess" }));
        says("cannot be understood");
        folder.write("tokenizer.json", "{");
        says("cannot be understood");
        folder.write("tokenizer.json", good.to_string()).write("tokenizer_config.json", "{}");
        says("no token ends an answer");
        folder.write("tokenizer_config.json", json!({ "eos_token": { "content": "<end>" } }).to_string());
        says("does not have `<end>`, the `eos_token`");
        folder.write("tokenizer_config.json", "[");
        says("not JSON");
        folder.remove("tokenizer.json");
        says("the folder has no tokenizer");
    }
}

//! Files of models that are cut off, extended, or changed at random: a typed error or a file that can be used, and never more memory
//! than a small multiple of the file.
//!
//! With `GRAPHABLE_FUZZ_SECONDS=600`, each test runs for that long and prints its counts; `GRAPHABLE_FUZZ_SEED=2` selects other inputs.

mod checks;

use std::{
    env,
    io::{self, Write as _},
    time::{Duration, Instant},
};

use graphable::Mode;
use graphable_examples::{checkpoint::Files, gguf::Gguf, llama::AdapterFile};
use rand::{Rng, SeedableRng, rngs::StdRng};
use serde_json::{Value, json};

use self::checks::Scratch;
use crate::{
    adapters::{adapter, session},
    allocations::peak,
    folders::{serialise, tensors},
    gguf_builder::{Builder, Meta},
    tiny,
};

/// The number in a variable, if it is set.
fn number(name: &str) -> Option<u64> {
    env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name} is no number: {text}")))
}

/// The rounds of a test, and what it has found.
struct Rounds {
    name: &'static str,
    random: StdRng,
    seconds: Option<u64>,
    accepted: usize,
    refused: usize,
}

impl Rounds {
    fn new(name: &'static str, seed: u64) -> Self {
        let random = StdRng::seed_from_u64(seed ^ number("GRAPHABLE_FUZZ_SEED").unwrap_or(0) << 32);
        Self { name, random, seconds: number("GRAPHABLE_FUZZ_SECONDS"), accepted: 0, refused: 0 }
    }

    /// Runs so many rounds of one of `files` files, or as many as the time allows. Each says whether what it damaged was accepted.
    fn run(&mut self, files: usize, count: usize, mut round: impl FnMut(&mut StdRng, usize) -> bool) {
        let end = self.seconds.map(|all| Instant::now() + Duration::from_secs(all) / files as u32);
        for i in 0.. {
            if end.map_or(i == count, |end| i % 16 == 0 && Instant::now() >= end) {
                break;
            }
            *(if round(&mut self.random, i) { &mut self.accepted } else { &mut self.refused }) += 1;
        }
    }

    /// Both must have been met, at least so often.
    fn end(self, accepted: usize, refused: usize) {
        let Self { name, seconds, .. } = self;
        let found = format!("{name}: {} accepted, {} refused", self.accepted, self.refused);
        if seconds.is_some() {
            let _ = writeln!(io::stderr(), "{found}");
        }
        assert!(self.accepted > accepted && self.refused > refused, "{found}");
    }
}

/// Runs `check`, which must not take more than a small multiple of its input.
fn bounded(bytes: &[u8], times: usize, check: impl FnOnce(&[u8]) -> bool) -> bool {
    let (accepted, allocated) = peak(|| check(bytes));
    assert!(allocated <= times * bytes.len() + (1 << 20), "{allocated} bytes for {}", bytes.len());
    accepted
}

/// Changes bytes: some places get other bits, or the numbers that break sums and products; the end is cut off or extended.
fn damage(random: &mut StdRng, bytes: &mut Vec<u8>) {
    for _ in 0..random.random_range(1..4) {
        let at = random.random_range(0..bytes.len());
        match random.random_range(0..8) {
            0..3 => bytes[at] ^= 1 << random.random_range(0..8),
            3 => bytes[at] = random.random(),
            4 | 5 => {
                let numbers =
                    [0, 1, u64::MAX, 1 << 63, (1 << 62) + 1, 1 << 40, u32::MAX.into(), bytes.len() as u64];
                let number = numbers[random.random_range(0..numbers.len())].to_le_bytes();
                let end = (at + 8).min(bytes.len());
                bytes[at..end].copy_from_slice(&number[..end - at]);
            }
            6 => bytes.truncate(at.max(1)),
            _ => bytes.extend((0..random.random_range(1..100)).map(|i| i as u8)),
        }
    }
}

/// Changes the header of a safetensors file, which says what lies where.
fn damage_header(random: &mut StdRng, bytes: &mut Vec<u8>) {
    let header = 8 + u64::from_le_bytes(*bytes.first_chunk().unwrap()) as usize;
    let mut first = bytes[..header].to_vec();
    damage(random, &mut first);
    bytes.splice(..header, first);
}

/// Changes a value anywhere in a text: it becomes another one, is taken out, or occurs twice.
fn change(random: &mut StdRng, value: &mut Value) {
    let inside = match value {
        Value::Array(all) if !all.is_empty() => {
            let at = random.random_range(0..all.len());
            match random.random_range(0..12) {
                0 => return drop(all.remove(at)),
                1 => return all.push(all[at].clone()),
                _ => all.get_mut(at),
            }
        }
        Value::Object(all) if !all.is_empty() => {
            let key = all.keys().nth(random.random_range(0..all.len())).cloned().unwrap();
            match random.random_range(0..12) {
                0 => return drop(all.remove(&key)),
                1 => {
                    let twice = all[&key].clone();
                    return drop(all.insert("another".into(), twice));
                }
                _ => all.get_mut(&key),
            }
        }
        _ => None,
    };
    match inside.filter(|_| random.random_range(0..10) > 0) {
        Some(inside) => change(random, inside),
        None => *value = other(random),
    }
}

/// A text with changed values, of every eighth round also with changed bytes.
fn changed(random: &mut StdRng, round: usize, value: &Value) -> Vec<u8> {
    let mut changed = value.clone();
    (0..=round % 3).for_each(|_| change(random, &mut changed));
    let mut bytes = changed.to_string().into_bytes();
    if round.is_multiple_of(8) {
        damage(random, &mut bytes);
    }
    bytes
}

fn other(random: &mut StdRng) -> Value {
    let all = [
        Value::Null,
        json!(true),
        json!(0),
        json!(-1),
        json!(1),
        json!(3),
        json!(0.5),
        json!(1e308),
        json!(-1e-40),
        json!(u32::MAX),
        json!(u64::MAX),
        json!(""),
        json!("\u{2581}"),
        json!("llama"),
        json!([]),
        json!([[], [0]]),
        json!({}),
        json!({ "type": "Sequence", "decoders": [] }),
    ];
    all[random.random_range(0..all.len())].clone()
}

#[test]
fn gguf_files() {
    let blocks = [(2, 18), (3, 20), (6, 22), (7, 24), (8, 34), (20, 18)];
    let formats = blocks.iter().fold(Builder::default(), |b, &(code, size)| {
        b.tensor(&format!("t{code}"), &[2, 32], code, vec![7; 2 * size])
    });
    let formats = formats.meta("flag", Meta::Bool(true)).tensor("k", &[1, 256], 12, vec![9; 144]);
    let files = [tiny::llama(0).build(), formats.build()];
    let mut rounds = Rounds::new("GGUF", 18);
    for file in &files {
        assert!(bounded(file, 64, checks::gguf));
        rounds.run(files.len(), 2_000, |random, round| {
            // Half of the changes are before the weights.
            let header = if round % 2 == 0 { 600.min(file.len()) } else { file.len() };
            let mut bytes = file[..header].to_vec();
            damage(random, &mut bytes);
            if bytes.len() == header {
                bytes.extend(&file[header..]);
            }
            bounded(&bytes, 64, checks::gguf)
        });
    }
    rounds.end(500, 500);
}

/// Headers that take as much memory as they can: what reading one takes is bounded by its bytes, not by the largest array.
#[test]
fn headers_take_at_most_sixteen_times_their_bytes() {
    let array = |code: u32, n: usize, bytes: Vec<u8>| {
        Meta::Raw(9, [&code.to_le_bytes()[..], &(n as u64).to_le_bytes(), &bytes].concat())
    };
    let arrays = |count: usize, code: u32, n: usize, each: &[u8]| {
        (0..count)
            .fold(Builder::default(), |b, i| b.meta(&i.to_string(), array(code, n, each.repeat(n))))
            .build()
    };
    let key =
        |i: usize| String::from_utf8(vec![b'a' + (i % 26) as u8; 1 + i / 26 % 2]).unwrap() + &i.to_string();
    let entries = |n: usize| (0..n).fold(Builder::default(), |b, i| b.meta(&key(i), Meta::Raw(0, vec![1])));
    let tensors = |n: usize| (0..n).fold(Builder::default(), |b, i| b.tensor(&key(i), &[0], 0, vec![]));
    let empty_array = [&0u32.to_le_bytes()[..], &0u64.to_le_bytes()].concat();
    let one_array = [&8u32.to_le_bytes()[..], &1u64.to_le_bytes(), &0u64.to_le_bytes()].concat();
    for (what, bytes) in [
        ("the longest array of bytes", arrays(1, 0, 1 << 22, &[7])),
        ("many arrays of bytes", arrays(16, 0, 1 << 19, &[7])),
        ("many short arrays of bytes", arrays(1 << 16, 0, 1, &[7])),
        ("arrays of numbers", arrays(16, 12, 1 << 16, &1.5f64.to_le_bytes())),
        ("arrays of empty strings", arrays(4, 8, (1 << 17) + 1, &0u64.to_le_bytes())),
        ("arrays of empty arrays", arrays(4, 9, (1 << 17) + 1, &empty_array)),
        ("arrays of arrays of one string", arrays(4, 9, (1 << 16) + 1, &one_array)),
        ("entries", entries(7 * (1 << 13) + 1).build()),
        ("tensors", tensors(7 * (1 << 13) + 1).build()),
    ] {
        let length = bytes.len();
        let (file, taken) = peak(|| Gguf::from_bytes(bytes));
        // Names in errors and the like.
        assert!(taken <= 16 * length + (1 << 12), "{what}: {taken} bytes for {length}");
        drop(file.unwrap_or_else(|e| panic!("{what}: {e}")));
    }
}

/// A file as `Eager::save` writes it: a weight in blocks, whose format is in the metadata, and one in floats.
fn with_blocks() -> Vec<u8> {
    let blocks = vec![1; 2 * 34];
    let floats = vec![1; 16];
    let view = |dtype, shape, data| safetensors::tensor::TensorView::new(dtype, shape, data).unwrap();
    let views = [
        ("w", view(safetensors::Dtype::U8, vec![2, 34], &blocks)),
        ("z", view(safetensors::Dtype::F32, vec![2, 2], &floats)),
    ];
    let formats = [("graphable.blocks".to_owned(), r#"{"w":"Q8_0"}"#.to_owned())];
    safetensors::serialize(views, Some(formats.into())).unwrap()
}

#[test]
fn folders_in_shards() {
    let folder = Scratch::new("shards");
    let named = |name: &str| (name.to_owned(), safetensors::Dtype::F32, vec![2, 2], vec![1u8; 16]);
    let (a, b) = (serialise(&[named("x"), named("y")]), with_blocks());
    assert_eq!(tensors(&a).len(), 2);
    let index = json!({ "metadata": { "total_size": 116 }, "weight_map": {
        "x": "a.safetensors", "y": "a.safetensors", "w": "b.safetensors", "z": "b.safetensors",
    } });
    let pack = |index: &str, a: &[u8], b: &[u8]| {
        let lengths = [index.len() as u16, a.len() as u16].map(u16::to_le_bytes);
        [&lengths.concat(), index.as_bytes(), a, b].concat()
    };
    assert!(checks::shards(&folder, &pack(&index.to_string(), &a, &b)));
    let mut rounds = Rounds::new("shards", 19);
    rounds.run(1, 1_500, |random, round| {
        let (mut index, mut a, mut b) = (index.clone(), a.clone(), b.clone());
        match round % 3 {
            0 => change(random, &mut index),
            1 => damage(random, &mut a),
            _ => damage(random, &mut b),
        }
        let bytes = pack(&index.to_string(), &a, &b);
        bounded(&bytes, 64, |bytes| checks::shards(&folder, bytes))
    });
    rounds.end(50, 500);
}

/// Layers that are quantised, with the configuration that says how.
#[test]
fn quantised_weights() {
    let mut rounds = Rounds::new("quantised weights", 22);
    for (config, weights) in [
        (include_str!("../../quantized/awq.json"), &include_bytes!("../../quantized/awq.safetensors")[..]),
        (include_str!("../../quantized/gptq.json"), include_bytes!("../../quantized/gptq.safetensors")),
        (include_str!("../../quantized/packed.json"), include_bytes!("../../quantized/packed.safetensors")),
        (include_str!("../../quantized/blocks.json"), include_bytes!("../../quantized/blocks.safetensors")),
    ] {
        let parsed: Value = serde_json::from_str(config).unwrap();
        rounds.run(4, 400, |random, round| {
            let (mut config, mut bytes) = (parsed.clone(), weights.to_vec());
            if round % 4 == 0 {
                change(random, &mut config);
            } else {
                damage_header(random, &mut bytes);
            }
            let config = config.to_string();
            bounded(&bytes, 64, |bytes| checks::quantised(config.as_bytes(), bytes))
        });
        assert!(checks::quantised(config.as_bytes(), weights));
    }
    rounds.end(50, 500);
}

#[test]
fn tokenizers() {
    let folder = Scratch::new("tokenizer");
    let mut rounds = Rounds::new("tokenizers", 20);
    for text in [
        include_str!("../../tokenizers/bytes/tokenizer.json"),
        include_str!("../../tokenizers/pieces/tokenizer.json"),
    ] {
        let parsed: Value = serde_json::from_str(text).unwrap();
        assert!(checks::tokenizer(&folder, text.as_bytes()));
        // Longer than most tokens, off which it would be cut.
        let mut prefixed = parsed.clone();
        prefixed["model"]["continuing_subword_prefix"] = json!("another");
        assert!(!checks::tokenizer(&folder, prefixed.to_string().as_bytes()));
        rounds.run(2, 150, |random, round| checks::tokenizer(&folder, &changed(random, round, &parsed)));
    }
    rounds.end(10, 100);
}

/// Beside a tokenizer that is whole.
#[test]
fn settings_of_tokenizers() {
    let folder = Scratch::new("settings");
    let tokenizer = include_bytes!("../../tokenizers/bytes/tokenizer.json");
    let settings = json!({
        "eos_token": "<|im_end|>", "bos_token": { "content": "<|im_start|>", "special": true }, "model_max_length": 1e30,
        "chat_template": [
            { "name": "default", "template": "{% for m in messages %}{{ m.role }}: {{ m.content }}{{ eos_token }}{% endfor %}" },
            { "name": "tool_use", "template": "{{ tools }}" },
        ],
    });
    let generation = json!({ "eos_token_id": [0, 1, 2], "do_sample": true, "temperature": 0.7 });
    let pair = |one: &Value, other: &Value| [one, other].map(|value| value.to_string().into_bytes());
    let [one, other] = pair(&settings, &generation);
    assert!(checks::settings(&folder, tokenizer, &one, &other));
    let mut rounds = Rounds::new("settings of tokenizers", 23);
    rounds.run(1, 200, |random, round| {
        let [mut one, mut other] = pair(&settings, &generation);
        let (changed, value) = if round % 3 == 0 { (&mut other, &generation) } else { (&mut one, &settings) };
        *changed = self::changed(random, round, value);
        checks::settings(&folder, tokenizer, &one, &other)
    });
    rounds.end(10, 10);
}

#[test]
fn adapters() {
    let (good, _) = adapter("damaged", "llama", &["q_proj", "down_proj"], 2, false);
    let read = |name: &str| std::fs::read(good.path().join(name)).unwrap();
    let (config, weights) = (read("adapter_config.json"), read("adapter_model.safetensors"));
    let parsed: Value = serde_json::from_slice(&config).unwrap();
    let model = crate::families::folder("damaged-adapters", "llama", "llama");
    let mut session = session(&Files::open(model.path()).unwrap(), Mode::None);
    session.use_adapters(&[AdapterFile::open(good.path()).unwrap()], 1).unwrap();
    let folder = Scratch::new("adapter");
    assert!(checks::adapter(&folder, &mut session, &config, &weights));
    let mut rounds = Rounds::new("adapters", 24);
    rounds.run(1, 400, |random, round| {
        let (mut config, mut bytes) = (config.clone(), weights.clone());
        if round % 3 == 0 {
            config = changed(random, round, &parsed);
        } else {
            damage_header(random, &mut bytes);
        }
        bounded(&bytes, 64, |bytes| checks::adapter(&folder, &mut session, &config, bytes))
    });
    rounds.end(10, 100);
    // The model is usable, whatever was refused.
    assert!(checks::adapter(&folder, &mut session, &config, &weights));
    assert!(session.logits(&[3, 14, 15]).unwrap().iter().all(|logit| logit.is_finite()));
}

#[test]
fn configs() {
    let mut rounds = Rounds::new("config.json", 21);
    for text in [
        include_str!("../../families/llama/config.json"),
        include_str!("../../families/llama-dynamic/config.json"),
        include_str!("../../families/llama-llama3/config.json"),
        include_str!("../../families/llama-yarn/config.json"),
        include_str!("../../families/mistral-window/config.json"),
        include_str!("../../families/qwen2/config.json"),
        include_str!("../../families/qwen3/config.json"),
    ] {
        let parsed: Value = serde_json::from_str(text).unwrap();
        rounds.run(7, 800, |random, round| bounded(&changed(random, round, &parsed), 64, checks::config));
    }
    rounds.end(500, 500);
}

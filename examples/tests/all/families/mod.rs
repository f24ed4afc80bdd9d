//! Small random models of every family, compared with the logits that transformers computes (`tests/families/models.py`).

mod configured;
mod refused;

use graphable::{Device, Float, Mode};
use graphable_examples::{
    checkpoint::{Checkpoint, Files},
    gguf::Gguf,
    llama::{Language, Session},
    sampling::SamplingOptions,
};
use half::{bf16, f16};
use safetensors::Dtype;
use serde_json::{Value, json};

use crate::{
    folders::{self, Folder},
    gguf_builder::{Builder, Meta},
    reference::likeliest,
    tiny,
    types::distance,
};

/// Largest `|logits - transformers'| / |transformers'|` in f32.
pub(crate) const F32: f32 = 1e-5;

macro_rules! fixture {
    ($($name:literal)*) => {
        fn config(name: &str) -> &'static [u8] {
            match name {
                $($name => include_bytes!(concat!("../../families/", $name, "/config.json")),)*
                _ => panic!("{name}"),
            }
        }
    };
}

fixture! {
    "llama" "llama-linear" "llama-dynamic" "llama-llama3" "llama-yarn" "llama-longrope" "llama-tied" "mistral" "mistral-window" "qwen2" "qwen3" "gemma" "gemma2" "gemma3"
    "gemma2-scale" "llama-longrope-factor" "mistral-dynamic" "mistral-layers" "qwen3-original" "qwen3-scaling"
}

pub(crate) fn weights(family: &str) -> &'static [u8] {
    match family {
        "llama" => include_bytes!("../../families/llama.safetensors"),
        "qwen2" => include_bytes!("../../families/qwen2.safetensors"),
        "qwen3" => include_bytes!("../../families/qwen3.safetensors"),
        "gemma" => include_bytes!("../../families/gemma.safetensors"),
        "gemma2" => include_bytes!("../../families/gemma2.safetensors"),
        "gemma3" => include_bytes!("../../families/gemma3.safetensors"),
        _ => panic!("{family}"),
    }
}

/// A folder, its weights, and the logits after each prompt.
pub(crate) type Model = (String, String, Vec<Vec<f32>>);

/// What transformers computed: prompts, and for each folder its weights and the logits after each prompt.
pub(crate) fn expected() -> (Vec<Vec<u32>>, Vec<Model>) {
    let all: Value = serde_json::from_str(include_str!("../../families/expected.json")).unwrap();
    let models = all["models"].as_object().unwrap().iter().map(|(name, model)| {
        let logits = serde_json::from_value(model["logits"].clone()).unwrap();
        (name.clone(), model["weights"].as_str().unwrap().to_owned(), logits)
    });
    (serde_json::from_value(all["prompts"].clone()).unwrap(), models.collect())
}

/// The folder `name` of the fixtures, for one test.
pub(crate) fn folder(test: &str, name: &str, family: &str) -> Folder {
    let folder = Folder::new(&format!("{test}-{name}"));
    folder.write("config.json", config(name)).write("model.safetensors", weights(family));
    if name == "llama-tied" {
        // The embedding leads to logits where the file has no other matrix for that.
        let mut tied = folders::tensors(weights(family));
        tied.retain(|tensor| tensor.0 != "lm_head.weight");
        folder.write("model.safetensors", folders::serialise(&tied));
    }
    folder
}

/// These models have no tokenizer of their own; ids are passed as they are.
pub(crate) fn session<T: Float>(files: &impl Checkpoint, mode: Mode) -> Session<T> {
    session_on(Device::cpu(), files, mode)
}

pub(crate) fn session_on<T: Float>(device: Device, files: &impl Checkpoint, mode: Mode) -> Session<T> {
    let language = Language::of(&Gguf::from_bytes(tiny::llama(0).build()).unwrap()).unwrap();
    Session::load(files, language, device, mode, 64, SamplingOptions::default()).unwrap()
}

#[test]
fn logits_are_those_of_transformers() {
    let (prompts, models) = expected();
    assert_eq!(models.len(), 20);
    for (name, family, logits) in &models {
        let folder = folder("logits", name, family);
        let files = Files::open(folder.path()).unwrap();
        let mut session = session::<f32>(&files, Mode::None);
        for (prompt, wanted) in prompts.iter().zip(logits) {
            let far = distance(&session.logits(prompt).unwrap(), wanted);
            assert!(far < F32, "{name}, {} tokens: {far}", prompt.len());
        }
    }
}

/// Configurations that differ must not give equal logits, or the comparison above would show less than it seems to.
#[test]
fn what_differs_shows() {
    let (_, models) = expected();
    let last = |name: &str| models.iter().find(|m| m.0 == name).unwrap().2.last().unwrap().clone();
    for name in [
        "llama-linear",
        "llama-dynamic",
        "llama-llama3",
        "llama-yarn",
        "llama-longrope",
        "llama-tied",
        "mistral-window",
    ] {
        assert!(distance(&last(name), &last("llama")) > 100.0 * F32, "{name}");
    }
    for (name, other) in [
        ("gemma2-scale", "gemma2"),
        ("llama-longrope-factor", "llama-longrope"),
        ("mistral-dynamic", "mistral"),
        ("mistral-dynamic", "llama-dynamic"),
        ("mistral-layers", "mistral"),
        ("mistral-layers", "mistral-window"),
        ("qwen3-original", "qwen3"),
        ("qwen3-scaling", "qwen3"),
    ] {
        assert!(distance(&last(name), &last(other)) > 100.0 * F32, "{name}, {other}");
    }
}

/// These weights are larger than those of trained models, and so are the errors of 16 bits: transformers has them as well.
#[test]
fn narrow_types_are_as_near_as_those_of_transformers() {
    fn check<T: Float>(dtype: &str) {
        let (prompts, models) = expected();
        let all: Value = serde_json::from_str(include_str!("../../families/expected.json")).unwrap();
        let (mut ours, mut theirs) = (0.0, 0.0);
        for (name, family, logits) in models {
            let folder = folder(dtype, &name, &family);
            let mut session = session::<T>(&Files::open(folder.path()).unwrap(), Mode::None);
            for (prompt, wanted) in prompts.iter().zip(&logits) {
                ours += distance(&session.logits(prompt).unwrap(), wanted);
            }
            theirs += all["models"][&name]["far"][dtype].as_f64().unwrap() as f32;
        }
        assert!(ours > 0.0 && ours < 1.5 * theirs, "{dtype}: {ours}, transformers {theirs}");
    }
    check::<bf16>("bfloat16");
    check::<f16>("float16");
}

/// Token by token, from the cache, as if the prompt had been longer, in every mode.
#[test]
fn decoding_goes_on_as_reading_would() {
    let (prompts, models) = expected();
    // Keys in the cache keep the angles of the length at which they were computed.
    let by_length = ["llama-dynamic", "llama-longrope", "llama-longrope-factor", "mistral-dynamic"];
    for (name, family, _) in models.iter().filter(|(name, ..)| !by_length.contains(&name.as_str())) {
        let folder = folder("decode", name, family);
        let files = Files::open(folder.path()).unwrap();
        let mut reading = session::<f32>(&files, Mode::None);
        let mut text = prompts[1].clone();
        let wanted: Vec<u32> = (0..12)
            .map(|_| {
                text.push(likeliest(&reading.logits(&text).unwrap()));
                text[text.len() - 1]
            })
            .collect();
        for mode in [Mode::None, Mode::Piecewise, Mode::Full] {
            let mut session = session::<f32>(&files, mode);
            session.capture(|_, _| ()).unwrap();
            let tokens = session.answer(&prompts[1], 12, |_| Ok(())).unwrap().tokens;
            let end = wanted.iter().position(|id| *id == 1).map_or(12, |end| end + 1);
            assert_eq!(tokens, wanted[..end], "{name}, {mode}");
            let logits = session.logits(&prompts[2]).unwrap();
            // A prompt that is padded to a bucket may be added up in another order.
            let far = distance(&logits, &reading.logits(&prompts[2]).unwrap());
            assert!(far < F32, "{name}, {mode}: {far}");
            assert_eq!(session.runtime().stats().fallback_reasons, []);
        }
    }
}

#[test]
fn shards_are_one_model() {
    let whole = folder("whole", "qwen2", "qwen2");
    let wanted = session::<f32>(&Files::open(whole.path()).unwrap(), Mode::None).logits(&[3, 4]).unwrap();
    let split = Folder::new("family-split");
    let all = folders::tensors(weights("qwen2"));
    let mut map = serde_json::Map::new();
    for (i, some) in all.chunks(7).enumerate() {
        let name = format!("model-{i}.safetensors");
        split.write(&name, folders::serialise(some));
        map.extend(some.iter().map(|tensor| (tensor.0.clone(), Value::from(name.clone()))));
    }
    split.write("model.safetensors.index.json", json!({ "weight_map": map }).to_string());
    split.write("config.json", config("qwen2"));
    for path in [split.path().to_owned(), split.path().join("model.safetensors.index.json")] {
        let logits = session::<f32>(&Files::open(&path).unwrap(), Mode::None).logits(&[3, 4]).unwrap();
        assert!(logits == wanted, "{}", path.display());
    }
}

/// The model of a folder as `convert_hf_to_gguf.py` of llama.cpp writes it.
pub(crate) fn converted(name: &str, family: &str, scaling: Option<(&str, f32)>) -> Gguf {
    let config: Value = serde_json::from_slice(config(name)).unwrap();
    let number = |key: &str| config[key].as_u64().unwrap() as u32;
    let key = |name: &str| format!("{family}.{name}");
    let theta = config["rope_parameters"]["rope_theta"].as_f64().unwrap() as f32;
    let head_dim = config["head_dim"].as_u64().unwrap_or(4) as usize;
    let mut builder = Builder::default()
        .meta("general.architecture", family)
        .meta("tokenizer.ggml.tokens", Meta::Strs((0..number("vocab_size")).map(|i| i.to_string()).collect()))
        .meta(&key("block_count"), Meta::U32(number("num_hidden_layers")))
        .meta(&key("context_length"), Meta::U32(64))
        .meta(&key("embedding_length"), Meta::U32(number("hidden_size")))
        .meta(&key("feed_forward_length"), Meta::U32(number("intermediate_size")))
        .meta(&key("attention.head_count"), Meta::U32(number("num_attention_heads")))
        .meta(&key("attention.head_count_kv"), Meta::U32(number("num_key_value_heads")))
        .meta(&key("attention.key_length"), Meta::U32(head_dim as u32))
        .meta(&key("attention.value_length"), Meta::U32(head_dim as u32))
        .meta(&key("attention.layer_norm_rms_epsilon"), Meta::F32(1e-6))
        .meta(&key("rope.freq_base"), Meta::F32(theta));
    if let Some((kind, factor)) = scaling {
        builder = builder
            .meta(&key("rope.scaling.type"), kind)
            .meta(&key("rope.scaling.factor"), Meta::F32(factor))
            .meta(&key("rope.scaling.original_context_length"), Meta::U32(16));
    }
    if name == "llama-llama3" {
        // As `transformers` has it: 8 where a wave is longer than 16, 1 where it is shorter than 4, mixed in between.
        let divisor = |i: usize| {
            let wave = std::f32::consts::TAU * theta.powf(2.0 * i as f32 / head_dim as f32);
            let mixed = (16.0 / wave - 1.0) / 3.0;
            if wave < 4.0 {
                1.0
            } else if wave > 16.0 {
                8.0
            } else {
                1.0 / ((1.0 - mixed) / 8.0 + mixed)
            }
        };
        let divisors: Vec<f32> = (0..head_dim / 2).map(divisor).collect();
        builder = builder.f32("rope_freqs.weight", &[head_dim / 2], &divisors);
    }
    for (name, dtype, shape, data) in folders::tensors(weights(family)) {
        assert_eq!(dtype, Dtype::F32);
        let mut values: Vec<f32> =
            data.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
        if family == "llama" && (name.contains("q_proj") || name.contains("k_proj")) {
            // Halves of a head become neighbours.
            let (row, half) = (shape[1], head_dim / 2);
            let from = |i: usize| i / head_dim * head_dim + i % 2 * half + i % head_dim / 2;
            values = (0..shape[0]).flat_map(|i| values[from(i) * row..][..row].to_vec()).collect();
        }
        builder = builder.f32(&gguf_name(&name), &shape, &values);
    }
    Gguf::from_bytes(builder.build()).unwrap()
}

fn gguf_name(name: &str) -> String {
    let parts = [
        ("model.layers.", "blk."),
        ("self_attn.q_proj", "attn_q"),
        ("self_attn.k_proj", "attn_k"),
        ("self_attn.v_proj", "attn_v"),
        ("self_attn.o_proj", "attn_output"),
        ("self_attn.q_norm", "attn_q_norm"),
        ("self_attn.k_norm", "attn_k_norm"),
        ("post_attention_layernorm", "ffn_norm"),
        ("input_layernorm", "attn_norm"),
        ("mlp.gate_proj", "ffn_gate"),
        ("mlp.up_proj", "ffn_up"),
        ("mlp.down_proj", "ffn_down"),
        ("model.embed_tokens", "token_embd"),
        ("model.norm", "output_norm"),
        ("lm_head", "output"),
    ];
    parts.iter().fold(name.to_owned(), |name, (from, to)| name.replace(from, to))
}

#[test]
fn gguf_files_of_every_family_have_the_same_logits() {
    let (prompts, models) = expected();
    for (name, family, scaling) in [
        ("llama", "llama", None),
        ("llama-linear", "llama", Some(("linear", 4.0))),
        ("llama-yarn", "llama", Some(("yarn", 4.0))),
        ("llama-llama3", "llama", None),
        ("qwen2", "qwen2", None),
        ("qwen3", "qwen3", None),
    ] {
        let mut session = session::<f32>(&converted(name, family, scaling), Mode::None);
        let logits = &models.iter().find(|model| model.0 == name).unwrap().2;
        for (prompt, wanted) in prompts.iter().zip(logits) {
            let far = distance(&session.logits(prompt).unwrap(), wanted);
            assert!(far < F32, "{name}, {} tokens: {far}", prompt.len());
        }
    }
}

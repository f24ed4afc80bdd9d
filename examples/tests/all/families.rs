//! Small random models of every family, compared with the logits that transformers computes (`tests/families/models.py`).

use graphable::{DType, Device, Float, Mode};
use graphable_examples::{
    checkpoint::{Checkpoint, Files},
    gguf::Gguf,
    llama::{Config, Language, Session},
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
                $($name => include_bytes!(concat!("../families/", $name, "/config.json")),)*
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
        "llama" => include_bytes!("../families/llama.safetensors"),
        "qwen2" => include_bytes!("../families/qwen2.safetensors"),
        "qwen3" => include_bytes!("../families/qwen3.safetensors"),
        "gemma" => include_bytes!("../families/gemma.safetensors"),
        "gemma2" => include_bytes!("../families/gemma2.safetensors"),
        "gemma3" => include_bytes!("../families/gemma3.safetensors"),
        _ => panic!("{family}"),
    }
}

/// A folder, its weights, and the logits after each prompt.
pub(crate) type Model = (String, String, Vec<Vec<f32>>);

/// What transformers computed: prompts, and for each folder its weights and the logits after each prompt.
pub(crate) fn expected() -> (Vec<Vec<u32>>, Vec<Model>) {
    let all: Value = serde_json::from_str(include_str!("../families/expected.json")).unwrap();
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
    let language = Language::of(&Gguf::from_bytes(tiny::llama(0).build()).unwrap()).unwrap();
    Session::load(files, language, Device::cpu(), mode, 64, SamplingOptions::default()).unwrap()
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
        let all: Value = serde_json::from_str(include_str!("../families/expected.json")).unwrap();
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

/// The message of files that must be refused before weights are read.
fn refused(folder: &Folder) -> String {
    let e = Files::open(folder.path()).unwrap_err().to_string();
    assert!(e.contains("help:") || e.contains("fetch"), "{e}");
    e
}

#[test]
fn what_is_not_computed_is_named() {
    let says = |changes: Value, wanted: &str| {
        let folder = folder("refused", "llama", "llama");
        folder.configure(changes);
        let e = refused(&folder);
        assert!(e.contains(wanted) && e.contains("config.json"), "{wanted} in {e}");
    };
    says(json!({ "model_type": "gemma3" }), "family `gemma3`");
    says(json!({ "model_type": "gemma" }), "activation is `silu`, and only `gelu_pytorch_tanh`");
    says(json!({ "use_bidirectional_attention": true }), "tokens see those that follow");
    says(json!({ "is_causal": false }), "`is_causal` is not true, so tokens see those that follow");
    says(json!({ "model_type": "mixtral" }), "family `mixtral`");
    says(json!({ "model_type": null }), "missing field `model_type`");
    says(json!({ "hidden_size": null }), "missing field `hidden_size`");
    says(json!({ "hidden_size": -1 }), "invalid value");
    says(json!({ "hidden_size": 1e30 }), "invalid");
    says(json!({ "vocab_size": u64::MAX }), "invalid value");
    says(json!({ "hidden_size": "16" }), "invalid type");
    says(json!({ "num_attention_heads": 0 }), "a size is 0");
    says(json!({ "num_hidden_layers": u32::MAX }), "4294967295 layers cannot be made of 21 tensors");
    says(json!({ "num_hidden_layers": 1 }), "have `model.layers.1.");
    says(json!({ "num_hidden_layers": 3 }), "needs `model.layers.2.");
    says(json!({ "num_key_value_heads": 3 }), "4 query heads cannot share 3 key heads");
    says(json!({ "head_dim": 5 }), "5 of 5 elements of a head cannot rotate in pairs");
    says(json!({ "hidden_act": "gelu" }), "activation is `gelu`");
    says(json!({ "attention_bias": true }), "`attention_bias`");
    says(json!({ "mlp_bias": true }), "`mlp_bias`");
    says(json!({ "quantization_config": { "quant_method": "awq" } }), "`bits` null");
    says(json!({ "quantization_config": { "quant_method": "hqq" } }), "`quant_method` hqq");
    says(json!({ "rms_norm_eps": -1.0 }), "epsilon -1 is impossible");
    says(json!({ "model_type": "qwen2" }), "needs `model.layers.");
    says(json!({ "model_type": "qwen3" }), "needs `model.layers.");
    let rope = |rope: Value| json!({ "rope_parameters": rope });
    says(rope(json!({ "rope_type": "spiral" })), "scaled by `spiral`");
    says(rope(json!({ "rope_type": "linear" })), "is `linear` and has no `factor`");
    says(rope(json!({ "rope_type": "linear", "factor": 0 })), "`factor` of the rotary embedding is 0");
    says(rope(json!({ "rope_type": "llama3", "factor": 8.0 })), "has no `low_freq_factor`");
    says(rope(json!({ "rope_type": "longrope" })), "has no `short_factor`");
    says(
        rope(json!({ "rope_type": "longrope", "short_factor": [1.0], "long_factor": [1.0] })),
        "for each of 2 pairs",
    );
    says(rope(json!({ "rope_theta": 0.0 })), "base 0");
    says(rope(json!({ "partial_rotary_factor": 0.1 })), "`partial_rotary_factor` is 0.1");
    says(json!({ "partial_rotary_factor": 0.5 }), "`partial_rotary_factor` is 0.5");
    says(rope(json!({ "full_attention": { "rope_type": "linear", "factor": 2.0 } })), "`full_attention`");
    says(rope(json!({ "rope_type": 3 })), "`rope_parameters`: invalid type");
}

/// The configuration of the folder `name` with other texts in its `config.json`.
fn configured(name: &str, change: impl Fn(&mut Value)) -> Result<Config, String> {
    let mut config: Value = serde_json::from_slice(config(name)).unwrap();
    change(&mut config);
    let family = config["model_type"].as_str().unwrap();
    let family = match family {
        "mistral" => "llama",
        "gemma3_text" => "gemma3",
        other => other,
    };
    let names: Vec<String> = folders::tensors(weights(family)).into_iter().map(|tensor| tensor.0).collect();
    let config = config.to_string();
    Config::from_json("config.json".as_ref(), config.as_bytes(), &names).map_err(|e| e.to_string())
}

/// Keys that are `null`, and those that the family does not read, change nothing.
#[test]
fn what_changes_nothing_is_not_refused() {
    let with = |name: &str, changes: &Value| {
        configured(name, |config| {
            config.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
        })
    };
    let same = |name: &str, changes: Value| {
        assert_eq!(with(name, &changes), configured(name, |_| ()), "{name}, {changes}");
    };
    for name in ["llama", "mistral-window", "qwen2", "qwen3", "gemma", "gemma2", "gemma3"] {
        for null in [
            "attention_bias",
            "mlp_bias",
            "use_sliding_window",
            "partial_rotary_factor",
            "rope_scaling",
            "original_max_position_embeddings",
        ] {
            same(name, json!({ null: null }));
        }
        same(name, json!({ "is_causal": true, "partial_rotary_factor": 1.0 }));
    }
    for name in ["llama", "mistral-window", "gemma", "gemma2", "gemma3"] {
        same(name, json!({ "use_sliding_window": true, "max_window_layers": 0 }));
    }
    for name in ["llama", "mistral-window", "qwen2", "qwen3", "gemma"] {
        same(name, json!({ "final_logit_softcapping": 3.0, "attn_logit_softcapping": 3.0 }));
    }
    for name in ["qwen2", "qwen3"] {
        let used = |changes: Value| {
            let mut all = json!({ "use_sliding_window": true, "sliding_window": 8, "layer_types": null });
            all.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
            all
        };
        same(name, used(json!({ "max_window_layers": 2 })));
        same(name, used(json!({})));
        same(name, used(json!({ "sliding_window": null, "max_window_layers": 0 })));
        same(
            name,
            used(json!({ "layer_types": ["full_attention", "full_attention"], "max_window_layers": 0 })),
        );
        for slides in [
            used(json!({ "max_window_layers": 1 })),
            used(json!({ "layer_types": ["full_attention", "sliding_attention"] })),
        ] {
            let e = with(name, &slides).unwrap_err();
            assert!(e.contains("`use_sliding_window`") && e.contains("help:"), "{name}, {slides}: {e}");
        }
    }
    // The pattern of Gemma 2 is its own.
    same("gemma2", json!({ "sliding_window_pattern": 3 }));
}

/// Which of the places that say how queries and keys turn is the one that counts.
#[test]
fn what_says_how_keys_turn_counts_as_in_transformers() {
    let rope = |name: &str, changes: Value| {
        configured(name, |config| {
            config.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
        })
        .map(|config| config.rope)
    };
    let yarn = |more: Value| {
        let mut yarn = json!({ "rope_type": "yarn", "factor": 4.0, "rope_theta": 500.0, "original_max_position_embeddings": 16 });
        yarn.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        yarn
    };
    let wanted = rope("llama", json!({ "rope_parameters": yarn(json!({})) })).unwrap();
    let both = |theta: f32| json!({ "rope_scaling": yarn(json!({})), "rope_parameters": { "rope_theta": theta, "rope_type": "default" } });
    assert_eq!(rope("llama", both(500.0)).unwrap(), wanted);
    let e = rope("llama", both(700.0)).unwrap_err();
    assert!(e.contains("the base is 500 by `rope_scaling` and 700 by `rope_parameters`"), "{e}");
    // An empty one says nothing.
    assert_eq!(rope("llama", json!({ "rope_scaling": {} })), rope("llama", json!({})));
    // Without a base of its own, it has the usual one, whatever `rope_parameters` has.
    let scaling = json!({ "rope_type": "linear", "factor": 4.0 });
    let e = rope("qwen3", json!({ "rope_scaling": scaling })).unwrap_err();
    assert!(e.contains("the base is 10000 by `rope_scaling` and 1000000 by `rope_parameters`"), "{e}");
    let with_base = rope("qwen3", json!({ "rope_scaling": scaling, "rope_theta": 1e6 })).unwrap();
    assert_eq!(
        with_base,
        rope(
            "qwen3",
            json!({ "rope_parameters": { "rope_type": "linear", "factor": 4.0, "rope_theta": 1e6 } })
        )
        .unwrap()
    );

    // 0 is no factor.
    for none in ["mscale", "mscale_all_dim", "beta_fast", "beta_slow"] {
        let mut zero = yarn(json!({ "mscale": 0.7, "mscale_all_dim": 1.3 }));
        let mut absent = zero.clone();
        zero[none] = 0.into();
        absent.as_object_mut().unwrap().remove(none);
        let [zero, absent] =
            [zero, absent].map(|yarn| rope("llama", json!({ "rope_parameters": yarn })).unwrap());
        assert_eq!(zero, absent, "{none}");
    }

    // Gemma 3 adds `rope_scaling` to what `full_attention` has, and ignores what stands beside it.
    let linear = |factor: f32| json!({ "rope_type": "linear", "factor": factor });
    let given = json!({ "full_attention": { "rope_type": "linear", "factor": 8.0, "rope_theta": 1e5 } });
    let merged = rope("gemma3", json!({ "rope_scaling": linear(8.0) })).unwrap();
    assert_eq!(merged, rope("gemma3", json!({ "rope_parameters": given })).unwrap());
    for (changes, wanted) in [
        (json!({ "rope_parameters": linear(8.0) }), "`full_attention`"),
        (json!({ "rope_scaling": { "type": "dynamic", "factor": 8.0 } }), "`rope_type`"),
    ] {
        let e = rope("gemma3", changes).unwrap_err();
        assert!(e.contains(wanted) && e.contains("help:"), "{wanted} in {e}");
    }
}

/// A matrix for logits counts, if it is another one than the embedding, whatever `tie_word_embeddings` says.
#[test]
fn a_matrix_for_logits_is_used_where_it_differs_from_the_embedding() {
    let (prompts, models) = expected();
    let logits = |name: &str| &models.iter().find(|model| model.0 == name).unwrap().2;
    let folder = folder("tied", "llama", "llama");
    folder.configure(json!({ "tie_word_embeddings": true }));
    let check = |tied: bool, wanted: &str| {
        let files = Files::open(folder.path()).unwrap();
        assert_eq!(files.config().unwrap().tied, tied);
        let mut session = session::<f32>(&files, Mode::None);
        for (prompt, wanted) in prompts.iter().zip(logits(wanted)) {
            let far = distance(&session.logits(prompt).unwrap(), wanted);
            assert!(far < F32, "{tied}, {} tokens: {far}", prompt.len());
        }
    };
    check(false, "llama");
    // Twice the same.
    let mut all = folders::tensors(weights("llama"));
    let embed = all.iter().find(|tensor| tensor.0 == "model.embed_tokens.weight").unwrap().3.clone();
    all.iter_mut().find(|tensor| tensor.0 == "lm_head.weight").unwrap().3 = embed;
    folder.write("model.safetensors", folders::serialise(&all));
    check(true, "llama-tied");
}

#[test]
fn the_old_name_of_a_rope_type_may_stand_beside_the_new_one() {
    let with = |types: &[(&str, &str)]| {
        configured("llama", |config| {
            config.as_object_mut().unwrap().remove("rope_parameters");
            config["rope_scaling"] = json!({ "factor": 4.0 });
            for (key, kind) in types {
                config["rope_scaling"][*key] = (*kind).into();
            }
        })
    };
    let linear = with(&[("rope_type", "linear")]).unwrap();
    assert_ne!(linear, with(&[]).unwrap());
    assert_eq!(with(&[("type", "linear")]).unwrap(), linear);
    assert_eq!(with(&[("rope_type", "linear"), ("type", "linear")]).unwrap(), linear);
    let e = with(&[("rope_type", "linear"), ("type", "dynamic")]).unwrap_err();
    assert!(
        e.contains("`linear` by its `rope_type` and `dynamic` by its `type`") && e.contains("help:"),
        "{e}"
    );
}

/// Defaults of transformers, for which `null` is a value.
#[test]
fn a_missing_key_is_not_null() {
    let window = |value: Option<Value>| {
        let change = |config: &mut Value| {
            config["max_position_embeddings"] = 8192.into();
            config.as_object_mut().unwrap().remove("sliding_window");
            if let Some(value) = &value {
                config["sliding_window"] = value.clone();
            }
        };
        configured("mistral", change).unwrap().window
    };
    assert_eq!(
        [window(None), window(Some(Value::Null)), window(Some(7.into()))],
        [Some(4096), None, Some(7)]
    );

    for (name, default) in [("llama", 4), ("mistral", 8), ("qwen2", 32), ("qwen3", 32)] {
        let heads = |null: bool| {
            configured(name, |config| {
                let config = config.as_object_mut().unwrap();
                config.remove("num_key_value_heads");
                // So that each default divides them.
                config.insert("num_attention_heads".into(), if name == "llama" { 4 } else { 64 }.into());
                config.insert("head_dim".into(), 4.into());
                if null {
                    config.insert("num_key_value_heads".into(), Value::Null);
                }
            })
            .unwrap()
        };
        let null = heads(true);
        assert_eq!((heads(false).kv_heads, null.kv_heads), (default, null.heads), "{name}");
    }
}

/// What the three generations of Gemma have beside Llama.
#[test]
fn what_gemma_leaves_out_and_what_it_cannot_have_is_known() {
    let gemma = |name: &str, key: &'static str, value: Option<Value>| {
        configured(name, |config| {
            match &value {
                None => drop(config.as_object_mut().unwrap().remove(key)),
                Some(value) => config[key] = value.clone(),
            };
        })
    };
    let with = |name: &str, key, value| gemma(name, key, value).unwrap();
    assert_eq!(with("gemma", "hidden_act", Some("gelu".into())), with("gemma", "hidden_act", None));
    assert!(gemma("gemma2", "hidden_activation", Some("gelu".into())).unwrap_err().contains("`gelu`"));
    assert_eq!(with("gemma2", "attn_logit_softcapping", None).attention_cap, Some(50.0));
    assert_eq!(with("gemma2", "attn_logit_softcapping", Some(Value::Null)).attention_cap, None);
    assert_eq!(with("gemma2", "final_logit_softcapping", None).logit_cap, Some(30.0));
    assert_eq!(with("gemma2", "query_pre_attn_scalar", None).attention_scale, 1.0 / 16.0);
    assert!(with("gemma", "tie_word_embeddings", None).tied);
    let e = |name, key, value: Value| gemma(name, key, Some(value)).unwrap_err();
    assert!(e("gemma3", "attn_logit_softcapping", 5.0.into()).contains("only Gemma 2"));
    assert!(e("gemma2", "final_logit_softcapping", (-1.0).into()).contains("soft cap"));
    assert!(e("gemma2", "query_pre_attn_scalar", 0.into()).contains("cannot be scaled by inf"));

    // Which layers see all tokens.
    let windows = |config: Config| (0..config.layers).map(|i| config.window_of(i)).collect::<Vec<_>>();
    let every_other = [Some(6), None, Some(6)];
    assert_eq!(windows(with("gemma2", "layer_types", None)), every_other);
    // By the pattern that the older name gives, and by the usual one.
    assert_eq!(windows(with("gemma3", "layer_types", None)), every_other);
    let config = configured("gemma3", |config| {
        let config = config.as_object_mut().unwrap();
        drop((config.remove("layer_types"), config.remove("sliding_window_pattern")));
    });
    assert_eq!((windows(config.clone().unwrap()), config.unwrap().period), (vec![Some(6); 3], 6));
    let types = |types: &[&str]| gemma("gemma3", "layer_types", Some(json!(types)));
    let (all, some) = ("full_attention", "sliding_attention");
    assert_eq!(windows(types(&[all, all, all]).unwrap()), [None; 3]);
    assert_eq!(windows(types(&[some, some, all]).unwrap()), [Some(6), Some(6), None]);
    for irregular in [&[all, some, some][..], &[some, "other", some], &[some]] {
        assert!(types(irregular).unwrap_err().contains("not regular"), "{irregular:?}");
    }

    // Those of Mistral all have the window unless the file says otherwise.
    let types = |types: Value| {
        configured("mistral-window", |config| config["layer_types"] = types.clone()).map(windows)
    };
    assert_eq!(types(Value::Null).unwrap(), [Some(6); 2]);
    assert_eq!(types(json!([some, some])).unwrap(), [Some(6); 2]);
    assert_eq!(types(json!([some, all])).unwrap(), [Some(6), None]);
    assert_eq!(types(json!([all, all])).unwrap(), [None; 2]);
    for irregular in [json!([all, some]), json!([some]), json!([some, "chunked_attention"])] {
        assert!(types(irregular.clone()).unwrap_err().contains("not regular"), "{irregular}");
    }
    // Llama does not read them.
    let llama = configured("llama", |config| config["layer_types"] = json!([some, "other"]));
    assert_eq!(llama, configured("llama", |_| ()));

    // Older files have the bases of both kinds of layers beside each other.
    let old = configured("gemma3", |config| {
        config.as_object_mut().unwrap().remove("rope_parameters");
        config["rope_theta"] = 100000.0.into();
        config["rope_local_base_freq"] = 100.0.into();
        config["rope_scaling"] = json!({ "rope_type": "linear", "factor": 4.0 });
    });
    assert_eq!(old.unwrap(), configured("gemma3", |_| ()).unwrap());
    let e = configured("gemma3", |config| {
        config["rope_parameters"]["sliding_attention"] = json!({ "rope_type": "linear", "factor": 4.0 });
    });
    assert!(e.unwrap_err().contains("scale angles by `linear`"));
}

#[test]
fn folders_that_are_incomplete_or_damaged_are_refused() {
    let folder = folder("damaged", "llama", "llama");
    folder.remove("model.safetensors");
    assert!(refused(&folder).contains("has neither model.safetensors nor"));
    folder.write("model.safetensors", weights("llama")).write("config.json", "{");
    assert!(refused(&folder).contains("config.json"));
    folder.remove("config.json");
    assert!(refused(&folder).contains("help: check the path"));
    folder.write("config.json", config("llama"));
    let whole = weights("llama");
    let ends = (0..400).chain((400..whole.len()).step_by(997)).chain([whole.len() - 1]);
    for end in ends {
        folder.write("model.safetensors", &whole[..end]);
        let e = refused(&folder);
        assert!(e.contains("model.safetensors: ") && e.contains("truncated"), "{end}: {e}");
    }
    folder.write("model.safetensors", [whole, &[0]].concat());
    assert!(refused(&folder).contains("not what its header says"));

    let with = |change: &dyn Fn(&mut Vec<folders::Named>)| {
        let mut all = folders::tensors(whole);
        change(&mut all);
        folder.write("model.safetensors", folders::serialise(&all));
    };
    with(&|all| all.retain(|tensor| !tensor.0.contains("1.mlp.up_proj")));
    assert!(refused(&folder).contains("needs `model.layers.1.mlp.up_proj.weight`"));
    with(&|all| all.push(("model.layers.0.mlp.gate_proj.bias".into(), Dtype::F32, vec![1], vec![0; 4])));
    assert!(refused(&folder).contains("have `model.layers.0.mlp.gate_proj.bias`"));
    // Frequencies, which older files have, follow from the configuration.
    let frequencies = "model.layers.0.self_attn.rotary_emb.inv_freq";
    with(&|all| all.push((frequencies.into(), Dtype::F32, vec![1], vec![0; 4])));
    assert_eq!(Files::open(folder.path()).unwrap().stored().unwrap(), Some(DType::F32));
    // How they are stored does not matter.
    with(&|all| all.push((frequencies.into(), Dtype::I64, vec![40, 40], vec![0; 40 * 40 * 8])));
    assert_eq!(Files::open(folder.path()).unwrap().stored().unwrap(), Some(DType::F32));

    let loading = |wanted: &[&str]| {
        let files = Files::open(folder.path()).unwrap();
        let language = Language::of(&Gguf::from_bytes(tiny::llama(0).build()).unwrap()).unwrap();
        let e =
            Session::<f32>::load(&files, language, Device::cpu(), Mode::None, 8, SamplingOptions::default());
        let e = e.map(drop).unwrap_err().to_string();
        wanted.iter().for_each(|wanted| assert!(e.contains(wanted), "{wanted} in {e}"));
        assert!(e.contains("help: use the complete files"), "{e}");
    };
    with(&|_| ());
    folder.configure(json!({ "vocab_size": 41, "intermediate_size": 23 }));
    loading(&[
        "`model.embed_tokens.weight` has shape [40, 16], the model needs [41, 16]",
        "mlp.down_proj",
        "lm_head",
    ]);
    folder.write("config.json", config("llama"));
    with(&|all| {
        let norm = all.iter_mut().find(|tensor| tensor.0 == "model.norm.weight").unwrap();
        (norm.1, norm.3) = (Dtype::I16, vec![0; 16 * 2]);
        let embed = all.iter_mut().find(|tensor| tensor.0 == "model.embed_tokens.weight").unwrap();
        (embed.1, embed.3) = (Dtype::I32, vec![0; 40 * 16 * 4]);
    });
    loading(&[
        "`model.norm.weight`: elements of type I16: not supported",
        "`model.embed_tokens.weight` holds i32",
    ]);
    with(&|all| all.iter_mut().for_each(|tensor| tensor.1 = Dtype::I32));
    let e = Files::open(folder.path()).unwrap().stored().unwrap_err().to_string();
    assert!(e.contains("most of its weights are integers") && e.contains("help:"), "{e}");
}

/// Whatever the bytes are, opening and loading end, in an error or in a model.
#[test]
fn damaged_headers_and_configurations_never_panic() {
    use rand::{Rng, SeedableRng, rngs::StdRng};

    let folder = folder("fuzzed", "llama", "llama");
    let (good_weights, good_config) = (weights("llama"), config("llama"));
    let header = 8 + u64::from_le_bytes(*good_weights.first_chunk().unwrap()) as usize;
    let mut random = StdRng::seed_from_u64(7);
    let mut opened = [0; 2];
    for round in 0..3000 {
        let (name, good, end) = match round % 2 {
            0 => ("model.safetensors", good_weights, header),
            _ => ("config.json", good_config, good_config.len()),
        };
        let mut bytes = good.to_vec();
        for _ in 0..=round % 3 {
            let at = random.random_range(0..end);
            match random.random_range(0..4) {
                0 => bytes[at] ^= 1 << random.random_range(0..8),
                1 => bytes[at] = *b"0123456789-.eE\"{}[],:".get(random.random_range(0..21)).unwrap(),
                2 => bytes[at] = b'9',
                _ => drop(bytes.splice(at..at, *b"99999999")),
            }
        }
        folder.write(name, &bytes);
        let files = Files::open(folder.path()).and_then(|files| files.stored().map(|_| files));
        if let Ok(files) = files {
            opened[round % 2] += 1;
            let language = Language::of(&Gguf::from_bytes(tiny::llama(0).build()).unwrap()).unwrap();
            let options = SamplingOptions::default();
            // Whether it can be computed is for the operations to say.
            if let Ok(mut session) =
                Session::<f32>::load(&files, language, Device::cpu(), Mode::None, 4, options)
            {
                session.logits(&[1, 2]).ok();
            }
        }
        folder.write(name, good);
    }
    assert!(opened[0] < 1400 && opened[1] > 10 && opened[1] < 1400, "{opened:?} of 1500 were opened");
}

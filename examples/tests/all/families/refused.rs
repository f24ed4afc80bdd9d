//! What is named before weights are read: models that are not computed, and folders that are damaged.

use graphable::{DType, Device, Mode};
use graphable_examples::{
    checkpoint::{Checkpoint, Files},
    gguf::Gguf,
    llama::{Language, Session},
    sampling::SamplingOptions,
};
use safetensors::Dtype;
use serde_json::{Value, json};

use super::{config, folder, weights};
use crate::{
    folders::{self, Folder},
    tiny,
};

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

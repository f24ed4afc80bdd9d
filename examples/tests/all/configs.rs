//! Sizes of models: read, and refused when they make no sense.

use graphable::ops::{RopeConfig, RopeScaling, RopeStyle};
use graphable_examples::{bert, gguf::Gguf, llama};

use crate::{
    gguf_builder::{Builder, Meta},
    minilm, smollm2, tiny,
};

#[test]
fn the_real_models_have_their_known_sizes() {
    let c = llama::Config::from_gguf(smollm2::file()).unwrap();
    assert_eq!((c.layers, c.dim, c.heads, c.kv_heads, c.head_dim), (30, 576, 9, 3, 64));
    assert_eq!((c.ffn, c.eps, c.context, c.vocab), (1536, 1e-5, 8192, 49152));
    let rope = RopeConfig::new(1e5, RopeStyle::Interleaved).partial(64);
    assert_eq!((c.rope, c.tied, c.qkv_bias, c.qk_norm, c.window), (rope.into(), true, false, false, None));
    let c = bert::Config::open(&minilm::folder().join("config.json")).unwrap();
    assert_eq!((c.layers, c.dim, c.heads, c.ffn, c.positions, c.vocab), (6, 384, 12, 1536, 512, 30522));
    assert_eq!((c.kinds, c.eps), (2, 1e-12));
}

#[test]
fn llama_files_that_make_no_sense_are_refused() {
    let refused = |b: Builder, wanted: &str| {
        let e = llama::Config::from_gguf(&Gguf::from_bytes(b.build()).unwrap()).unwrap_err().to_string();
        assert!(e.contains(wanted) && e.contains("help:"), "{e}");
    };
    let with = |key: &str, value: Meta| tiny::llama(0).replace(key, value);
    refused(Builder::default(), "`general.architecture` is missing");
    refused(with("general.architecture", Meta::Str("mamba".into())), "architecture is `mamba`");
    refused(with("llama.block_count", Meta::U32(0)), "`llama.block_count` is 0");
    refused(with("llama.block_count", Meta::U32(u32::MAX)), "4294967295 layers cannot be made of 20 tensors");
    refused(with("llama.attention.head_count", Meta::U32(64)), "elements of a head cannot rotate");
    refused(with("llama.attention.head_count_kv", Meta::U32(3)), "4 query heads cannot share 3 key heads");
    refused(with("llama.rope.dimension_count", Meta::U32(7)), "7 of 8 elements");
    refused(with("llama.rope.freq_base", Meta::F32(f32::NAN)), "base NaN");
    refused(with("llama.vocab_size", Meta::U32(5)), "263 tokens and 5 embeddings");
    refused(with("llama.rope.scaling.type", Meta::Str("spiral".into())), "scaled by `spiral`");
    refused(
        with("llama.rope.scaling.type", Meta::Str("yarn".into())),
        "`llama.rope.scaling.original_context_length` is missing",
    );
    refused(
        with("llama.rope.scaling.attn_factor", Meta::F32(1.2)),
        "has `llama.rope.scaling.attn_factor`, which this example does not compute",
    );
    for (key, value) in
        [("scaling.factor", f32::NAN), ("scaling.factor", -2.0), ("scale_linear", f32::INFINITY)]
    {
        let key = format!("llama.rope.{key}");
        refused(with(&key, Meta::F32(value)), &format!("`{key}` is {value}"));
    }
    refused(
        with("llama.rope.scaling.factor", Meta::F32(2.0)).f32("rope_freqs.weight", &[4], &[1.0; 4]),
        "scaled by `linear` and by `rope_freqs.weight`",
    );
    refused(with("llama.expert_count", Meta::U32(8)), "has `llama.expert_count`");
    refused(tiny::llama(0).f32("blk.0.attn_q.bias", &[32], &[0.0; 32]), "has the tensor `blk.0.attn_q.bias`");
    refused(tiny::llama(0).f32("rope_freqs.weight", &[3], &[1.0; 3]), "positive number for each of 4 pairs");
    refused(tiny::llama(0).f32("rope_freqs.weight", &[4], &[1.0, 0.0, 1.0, 1.0]), "positive number for each");
    refused(with("llama.attention.value_length", Meta::U32(4)), "keys are 8 wide and values 4");
    refused(with("llama.feed_forward_length", Meta::Bool(true)), "should be a whole number");
}

/// What llama.cpp takes where a file has a factor and does not say of what.
#[test]
fn a_factor_without_a_type_is_linear() {
    let rope = |keys: &[(&str, Meta)]| {
        let add = |b: Builder, (key, value): &(&str, Meta)| match value {
            Meta::Str(value) => b.meta(key, value.as_str()),
            Meta::F32(value) => b.meta(key, Meta::F32(*value)),
            _ => panic!("{key}"),
        };
        let file = keys.iter().fold(tiny::llama(0), add);
        llama::Config::from_gguf(&Gguf::from_bytes(file.build()).unwrap()).unwrap().rope
    };
    let plain = rope(&[]);
    let linear = RopeConfig::new(1e4, RopeStyle::Interleaved).partial(8);
    let linear = linear.scaling(RopeScaling::Linear { factor: 4.0 });
    let (factor, old, kind) =
        ("llama.rope.scaling.factor", "llama.rope.scale_linear", "llama.rope.scaling.type");
    let f32 = Meta::F32;
    assert_eq!(rope(&[(factor, f32(4.0))]), linear);
    assert_eq!(rope(&[(old, f32(4.0))]), linear);
    assert_eq!(rope(&[(kind, "linear".into()), (old, f32(4.0))]), linear);
    assert_eq!(rope(&[(factor, f32(4.0)), (old, f32(2.0))]), linear);
    assert_eq!(rope(&[(factor, f32(0.0))]), plain);
    assert_eq!(rope(&[(old, f32(1.0))]), plain);
    assert_eq!(rope(&[(kind, "none".into()), (factor, f32(4.0))]), plain);
}

/// Keys that name a value which llama.cpp takes without them, too, and other values of theirs.
#[test]
fn usual_values_of_scaling_change_nothing() {
    let yarn = || {
        let file = tiny::llama(0).meta("llama.rope.scaling.type", "yarn");
        let file = file.meta("llama.rope.scaling.original_context_length", Meta::U32(16));
        file.meta("llama.rope.scaling.factor", Meta::F32(4.0))
    };
    let rope = |b: Builder| llama::Config::from_gguf(&Gguf::from_bytes(b.build()).unwrap()).map(|c| c.rope);
    let plain = rope(yarn()).unwrap();
    for (key, usual, other) in [
        ("attn_factor", 1.0, 1.2),
        ("yarn_attn_factor", 1.0, 0.5),
        ("yarn_beta_fast", 32.0, 16.0),
        ("yarn_beta_slow", 1.0, 2.0),
        ("yarn_log_multiplier", 0.0, 0.1),
    ] {
        let key = format!("llama.rope.scaling.{key}");
        assert_eq!(rope(yarn().meta(&key, Meta::F32(usual))).unwrap(), plain, "{key}");
        let e = rope(yarn().meta(&key, Meta::F32(other))).unwrap_err().to_string();
        assert!(e.contains(&format!("has `{key}`, which this example does not compute")), "{e}");
    }
}

/// What llama.cpp takes where a file says nothing, and what it does not read.
#[test]
fn soft_caps_scales_and_windows_are_those_of_llama_cpp() {
    let gemma2 = || {
        let mut file = tiny::of_family("gemma2").replace("gemma2.context_length", Meta::U32(8192));
        for i in 0..tiny::LAYERS {
            for part in ["post_attention_norm", "post_ffw_norm"] {
                file = file.f32(&format!("blk.{i}.{part}.weight"), &[tiny::DIM], &[1.0; tiny::DIM]);
            }
        }
        file
    };
    let config = |b: Builder| {
        llama::Config::from_gguf(&Gguf::from_bytes(b.build()).unwrap()).map_err(|e| e.to_string())
    };
    let f32 = Meta::F32;
    let c = config(gemma2()).unwrap();
    assert_eq!((c.attention_cap, c.logit_cap, c.window), (Some(50.0), Some(30.0), Some(4096)));
    let given = gemma2()
        .meta("gemma2.attn_logit_softcapping", f32(5.0))
        .meta("gemma2.final_logit_softcapping", f32(3.0))
        .meta("gemma2.attention.sliding_window", Meta::U32(7));
    let c = config(given).unwrap();
    assert_eq!((c.attention_cap, c.logit_cap, c.window), (Some(5.0), Some(3.0), Some(7)));
    let e = config(gemma2().meta("gemma2.final_logit_softcapping", f32(0.0))).unwrap_err();
    assert!(e.contains("0 is an impossible soft cap"), "{e}");

    // 2 layers, heads of 8 elements.
    let usual = 8f32.sqrt().recip();
    assert_eq!(config(gemma2().meta("gemma2.attention.scale", f32(usual))).unwrap().attention_scale, usual);
    for (file, key) in [(gemma2(), "gemma2.attention.scale"), (tiny::llama(0), "llama.attention.scale")] {
        let e = config(file.meta(key, f32(1.0))).unwrap_err();
        assert!(
            e.contains(&format!("`{key}` is 1, which llama.cpp does not read")) && e.contains("help:"),
            "{e}"
        );
    }
    let e = config(gemma2().meta("gemma2.rope.freq_base_swa", f32(5.0))).unwrap_err();
    assert!(e.contains("layers with windows have the base 5, and the others 10000"), "{e}");
    assert!(config(gemma2().meta("gemma2.rope.freq_base_swa", f32(1e4))).is_ok());
    let pattern = "gemma2.attention.sliding_window_pattern";
    assert_eq!(config(gemma2().meta(pattern, Meta::U32(2))).unwrap(), config(gemma2()).unwrap());
    let e = config(gemma2().meta(pattern, Meta::U32(3))).unwrap_err();
    assert!(e.contains(&format!("has `{pattern}`, which this example does not compute")), "{e}");

    let llama = tiny::llama(0)
        .meta("llama.final_logit_softcapping", f32(3.0))
        .meta("llama.attn_logit_softcapping", f32(3.0))
        .meta("llama.attention.causal", Meta::Bool(true));
    assert_eq!(config(llama).unwrap(), config(tiny::llama(0)).unwrap());
    let e = config(tiny::llama(0).meta("llama.attention.causal", Meta::Bool(false))).unwrap_err();
    assert!(e.contains("`llama.attention.causal` is not true") && e.contains("help:"), "{e}");
}

/// Biases and norms of heads are optional in the struct of the model, not in the model.
#[test]
fn gguf_files_without_a_tensor_of_their_family_are_refused() {
    let bias = |b: Builder, name: &str, size: usize| b.f32(name, &[size], &vec![0.5; size]);
    let mut qwen2 = tiny::of_family("qwen2");
    for i in 0..tiny::LAYERS {
        for (part, size) in [("q", 32), ("k", 16), ("v", 16)] {
            qwen2 = bias(qwen2, &format!("blk.{i}.attn_{part}.bias"), size);
        }
    }
    let config = |b: &Builder| llama::Config::from_gguf(&Gguf::from_bytes(b.build()).unwrap());
    assert!(config(&qwen2).unwrap().qkv_bias);
    qwen2.drop_tensor("blk.1.attn_k.bias");
    let e = config(&qwen2).unwrap_err().to_string();
    assert!(e.contains("the model needs `blk.1.attn_k.bias`, which the file") && e.contains("help:"), "{e}");
    let e = config(&tiny::of_family("qwen3")).unwrap_err().to_string();
    assert!(e.contains("`blk.0.attn_q_norm.weight`, `blk.0.attn_k_norm.weight`, `blk.1."), "{e}");
    assert!(e.contains(" and 1 more"), "{e}");
}

#[test]
fn bert_files_that_make_no_sense_are_refused() {
    let good = std::fs::read_to_string(minilm::folder().join("config.json")).unwrap();
    let path = std::env::temp_dir().join(format!("graphable-config-{}.json", std::process::id()));
    let refused = |from: &str, to: &str, wanted: &str| {
        assert!(good.contains(from), "{from}");
        std::fs::write(&path, good.replace(from, to)).unwrap();
        let e = bert::Config::open(&path).unwrap_err().to_string();
        assert!(e.contains(wanted) && e.contains("help:"), "{e}");
    };
    refused("\"hidden_size\": 384", "\"hidden_size\": 0", "a size is 0");
    refused("\"hidden_size\": 384", "\"hidden_size\": 385", "cannot be split into 12 heads");
    refused("\"gelu\"", "\"relu\"", "activation is `relu`");
    refused("hidden_size", "hidden", "missing field `hidden_size`");
    refused("{", "[", "");
    std::fs::remove_file(&path).unwrap();
}

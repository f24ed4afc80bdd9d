//! What keys of `config.json` mean where they disagree, are missing, or have no meaning for a family.

use graphable::Mode;
use graphable_examples::{
    checkpoint::{Checkpoint, Files},
    llama::Config,
};
use serde_json::{Value, json};

use super::{F32, config, expected, folder, session, weights};
use crate::{folders, types::distance};

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

//! Adapters that PEFT would save, against models into whose weights they are merged.

use graphable::{BlockFormat, Device, Mode};
use graphable_examples::{
    checkpoint::{Blocks, Checkpoint, Files},
    gguf::Gguf,
    llama::{AdapterFile, Language, Session},
    sampling::SamplingOptions,
};
use rand::{Rng, SeedableRng, rngs::StdRng};
use safetensors::Dtype;
use serde_json::json;

use crate::{
    families::{converted, folder, weights},
    folders::{self, Folder, Named},
    tiny,
    types::{distance, load_on},
};

/// Largest `|logits - merged| / |merged|` in f32: sums are in another order.
const F32: f32 = 1e-4;
const PROMPT: [u32; 6] = [3, 14, 15, 9, 26, 5];
const ALL: [&str; 7] = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"];

fn values(data: &[u8]) -> Vec<f32> {
    data.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect()
}

fn bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

/// An adapter of these modules of a family's weights: its folder, and the weights with it.
pub(crate) fn adapter(
    name: &str,
    family: &str,
    modules: &[&str],
    rank: usize,
    rooted: bool,
) -> (Folder, Vec<u8>) {
    adapter_of(name, folders::tensors(weights(family)), modules, rank, rooted)
}

/// An adapter of these modules of a model whose weights are in f32.
fn adapter_of(
    name: &str,
    model: Vec<Named>,
    modules: &[&str],
    rank: usize,
    rooted: bool,
) -> (Folder, Vec<u8>) {
    const ALPHA: f64 = 6.0;
    let mut rng = StdRng::seed_from_u64(name.len() as u64 + rank as u64);
    let (mut matrices, mut merged): (Vec<Named>, Vec<Named>) = (Vec::new(), Vec::new());
    for (tensor, dtype, shape, data) in model {
        let module = tensor.trim_end_matches(".weight").to_owned();
        let mut all = values(&data);
        if shape.len() == 2 && modules.iter().any(|part| module.ends_with(part)) {
            let (out, width) = (shape[0], shape[1]);
            let mut random = |n: usize| (0..n).map(|_| rng.random_range(-0.4..0.4f32)).collect::<Vec<_>>();
            let (a, b) = (random(rank * width), random(out * rank));
            let scale = ALPHA / if rooted { (rank as f64).sqrt() } else { rank as f64 };
            for (i, w) in all.iter_mut().enumerate() {
                let (row, column) = (i / width, i % width);
                let sum: f64 =
                    (0..rank).map(|r| f64::from(b[row * rank + r]) * f64::from(a[r * width + column])).sum();
                *w = (f64::from(*w) + scale * sum) as f32;
            }
            for (which, shape, values) in [("A", [rank, width], a), ("B", [out, rank], b)] {
                let name = format!("base_model.model.{module}.lora_{which}.weight");
                matrices.push((name, Dtype::F32, shape.to_vec(), bytes(&values)));
            }
        }
        merged.push((tensor, dtype, shape, bytes(&all)));
    }
    let folder = Folder::new(&format!("adapter-{name}"));
    let config = json!({
        "peft_type": "LORA", "r": rank, "lora_alpha": ALPHA, "target_modules": modules, "bias": "none",
        "use_rslora": rooted, "use_dora": false, "fan_in_fan_out": false, "modules_to_save": null,
        "rank_pattern": {}, "alpha_pattern": {}, "task_type": "CAUSAL_LM", "lora_dropout": 0.05,
    });
    folder.write("adapter_config.json", config.to_string());
    folder.write("adapter_model.safetensors", folders::serialise(&matrices));
    (folder, folders::serialise(&merged))
}

pub(crate) fn session(files: &impl Checkpoint, mode: Mode) -> Session<f32> {
    let language = Language::of(&Gguf::from_bytes(tiny::llama(0).build()).unwrap()).unwrap();
    Session::load(files, language, Device::cpu(), mode, 64, SamplingOptions::default()).unwrap()
}

/// The logits of a model into whose weights an adapter is merged.
fn merged(name: &str, model: &str, family: &str, weights: &[u8]) -> Vec<f32> {
    let folder = folder(name, model, family);
    folder.write("model.safetensors", weights);
    session(&Files::open(folder.path()).unwrap(), Mode::None).logits(&PROMPT).unwrap()
}

#[test]
fn adapters_are_as_if_merged() {
    for (family, modules, rank, rooted) in
        [("llama", &ALL[..], 3, false), ("llama", &["q_proj", "v_proj"], 1, true), ("qwen2", &ALL, 2, false)]
    {
        let name = format!("{family}-{rank}");
        let (adapter, with) = adapter(&name, family, modules, rank, rooted);
        let file = AdapterFile::open(adapter.path()).unwrap();
        let wanted = merged(&format!("merged-{name}"), family, family, &with);
        let plain = folder(&format!("plain-{name}"), family, family);
        let files = Files::open(plain.path()).unwrap();
        let without = session(&files, Mode::None).logits(&PROMPT).unwrap();
        assert!(distance(&without, &wanted) > 100.0 * F32, "{name}: the adapter does something");
        for mode in [Mode::None, Mode::Piecewise, Mode::Full] {
            let mut session = session(&files, mode);
            session.use_adapters(std::slice::from_ref(&file), 1).unwrap();
            for _ in 0..3 {
                let far = distance(&session.logits(&PROMPT).unwrap(), &wanted);
                assert!(far < F32, "{name}, {mode}: {far}");
            }
        }
        // Rows of queries and keys are in another order there.
        let mut session = session(&converted(family, family, None), Mode::Full);
        session.use_adapters(&[file], 1).unwrap();
        let far = distance(&session.logits(&PROMPT).unwrap(), &wanted);
        assert!(far < F32, "{name}, GGUF: {far}");
    }
}

/// Values near these that are exactly the values of blocks, whose blocks are the same ones.
fn as_blocks(mut values: Vec<f32>, format: BlockFormat) -> Vec<f32> {
    let mut before = Vec::new();
    // Some formats make other blocks of the values of blocks at first.
    for _ in 0..20 {
        let blocks = format.quantize(&values).unwrap();
        format.dequantize(&blocks, &mut values).unwrap();
        if blocks == before {
            return values;
        }
        before = blocks;
    }
    panic!("{format} never makes the same blocks");
}

/// The chat model of the tests in f32, whose matrices have exactly the values of blocks of a format where these divide them.
fn of_blocks(name: &str, format: BlockFormat) -> Folder {
    let folder = folders::chat(name);
    let mut tensors = Vec::new();
    for (name, _, shape, data) in folders::tensors(&folder.read("model.safetensors")) {
        let halves = data.as_chunks().0.iter();
        let mut values: Vec<f32> = halves.map(|b| half::bf16::from_le_bytes(*b).to_f32()).collect();
        if shape.len() == 2 && shape[1].is_multiple_of(format.elements()) {
            values = as_blocks(values, format);
        }
        tensors.push((name, Dtype::F32, shape, bytes(&values)));
    }
    folder.write("model.safetensors", folders::serialise(&tensors));
    folder
}

/// Over weights in blocks, an adapter adds what it adds to their values, in every mode; nothing is recorded when another answers.
pub(crate) fn adapters_over_blocks(device: &Device, bound: f32) {
    for format in [BlockFormat::Q8_0, BlockFormat::Q4_0, BlockFormat::INT4] {
        let name = format!("blocks-{format}-{}", device.to_string().replace(':', "-"));
        let folder = of_blocks(&name, format);
        let model = folders::tensors(&folder.read("model.safetensors"));
        let (adapter, with) = adapter_of(&name, model, &ALL, 3, false);
        let file = AdapterFile::open(adapter.path()).unwrap();
        let files = Files::open(folder.path()).unwrap();
        let on_cpu =
            |files: &Files| load_on(Device::cpu(), files, Mode::None, Blocks::Never).logits(&PROMPT).unwrap();
        let without = on_cpu(&files);
        let merged = of_blocks(&format!("merged-{name}"), format);
        merged.write("model.safetensors", with);
        let merged = Files::open(merged.path()).unwrap();
        let wanted = on_cpu(&merged);
        assert!(distance(&without, &wanted) > 5.0 * bound, "{format}: the adapter does something");
        for mode in [Mode::None, Mode::Piecewise, Mode::Full] {
            let mut session = load_on(device.clone(), &files, mode, Blocks::Format(format));
            assert!(session.model().stored().contains(&format.to_string()), "{}", session.model().stored());
            session.use_adapters(std::slice::from_ref(&file), 1).unwrap();
            session.capture(|_, _| ()).unwrap();
            let recordings = session.runtime().stats().recordings;
            for (slot, wanted) in [(Some(0), &wanted), (None, &without), (Some(0), &wanted)] {
                session.choose_adapter(slot).unwrap();
                let far = distance(&session.logits(&PROMPT).unwrap(), wanted);
                assert!(far < bound, "{format}, {mode}, {slot:?}: {far}");
            }
            assert_eq!(session.runtime().stats().recordings, recordings, "{format}, {mode}");
        }
    }
}

/// The CPU quantises activations to 8 bits for these products.
#[test]
fn adapters_add_to_weights_in_blocks() {
    adapters_over_blocks(&Device::cpu(), 0.15);
}

/// What answers changes between calls, and what slots hold, and nothing is recorded.
#[test]
fn adapters_change_without_a_recording() {
    for mode in [Mode::Piecewise, Mode::Full] {
        let made = [("one", &ALL[..], 2), ("two", &["q_proj", "down_proj"], 4), ("three", &ALL, 1)]
            .map(|(name, modules, rank)| adapter(&format!("{name}-{mode}"), "llama", modules, rank, false));
        let files = made.each_ref().map(|(folder, _)| AdapterFile::open(folder.path()).unwrap());
        let wanted: Vec<Vec<f32>> = made
            .iter()
            .enumerate()
            .map(|(i, (_, with))| merged(&format!("changed-{mode}-{i}"), "llama", "llama", with))
            .collect();
        let plain = folder(&format!("changing-{mode}"), "llama", "llama");
        let mut session = session(&Files::open(plain.path()).unwrap(), mode);
        let without = session.logits(&PROMPT).unwrap();
        // The widest of them makes room for all: of rank 4 and for every module.
        let [one, two, three] = &files;
        let error = session
            .use_adapters(&[AdapterFile::open(made[1].0.path()).unwrap()], 2)
            .and_then(|()| session.load_adapter(0, one));
        let error = error.unwrap_err().to_string();
        assert!(error.contains("for which the model has no slots"), "{error}");
        let (wide, _) = adapter(&format!("wide-{mode}"), "llama", &ALL, 4, false);
        session.use_adapters(&[AdapterFile::open(wide.path()).unwrap()], 2).unwrap();
        session.load_adapter(0, one).unwrap();
        session.load_adapter(1, two).unwrap();
        session.capture(|_, _| ()).unwrap();
        let recordings = session.runtime().stats().recordings;
        let check = |session: &mut Session<f32>, slot: Option<usize>, wanted: &[f32], what: &str| {
            session.choose_adapter(slot).unwrap();
            let far = distance(&session.logits(&PROMPT).unwrap(), wanted);
            assert!(far < F32, "{mode}, {what}: {far}");
        };
        for _ in 0..2 {
            check(&mut session, Some(0), &wanted[0], "one");
            check(&mut session, Some(1), &wanted[1], "two");
            check(&mut session, None, &without, "none");
            session.load_adapter(0, three).unwrap();
            check(&mut session, Some(0), &wanted[2], "three");
            check(&mut session, Some(1), &wanted[1], "two, again");
            session.load_adapter(0, one).unwrap();
        }
        assert_eq!(session.runtime().stats().recordings, recordings, "{mode}");
        assert!(session.choose_adapter(Some(2)).unwrap_err().to_string().contains("slot 2 of 2"));
    }
}

/// Decoding has the adapter, too, one by one and in a loop of the device.
#[test]
fn answers_have_the_adapter() {
    let (adapter, with) = adapter("answers", "llama", &ALL, 2, false);
    let merged = folder("answers-merged", "llama", "llama");
    merged.write("model.safetensors", with);
    let plain = folder("answers-plain", "llama", "llama");
    let tokens = |session: &mut Session<f32>| session.answer(&PROMPT, 12, |_| Ok(())).unwrap().tokens;
    let wanted = tokens(&mut session(&Files::open(merged.path()).unwrap(), Mode::None));
    let files = Files::open(plain.path()).unwrap();
    assert_ne!(tokens(&mut session(&files, Mode::None)), wanted);
    for (mode, looped) in
        [(Mode::None, false), (Mode::Piecewise, false), (Mode::Full, false), (Mode::Full, true)]
    {
        let mut session = session(&files, mode);
        session.use_adapters(&[AdapterFile::open(adapter.path()).unwrap()], 1).unwrap();
        if looped {
            session.use_device_loop(8).unwrap();
        }
        for _ in 0..3 {
            assert_eq!(tokens(&mut session), wanted, "{mode}, a loop: {looped}");
        }
    }
}

#[test]
fn adapters_that_are_not_computed_are_named() {
    let (good, _) = adapter("refused", "llama", &["q_proj"], 2, false);
    let config = good.read("adapter_config.json");
    let refused = |changes: serde_json::Value, wanted: &str| {
        let mut config: serde_json::Value = serde_json::from_slice(&config).unwrap();
        for (key, value) in changes.as_object().unwrap() {
            config[key] = value.clone();
        }
        good.write("adapter_config.json", config.to_string());
        let text = AdapterFile::open(good.path()).unwrap_err().to_string();
        assert!(text.contains(wanted) && text.contains("adapter_config.json"), "{text}");
    };
    refused(json!({ "peft_type": "IA3" }), "of the type `IA3`");
    refused(json!({ "use_dora": true }), "magnitudes");
    refused(json!({ "fan_in_fan_out": true }), "transposed");
    refused(json!({ "bias": "all" }), "biases");
    refused(json!({ "modules_to_save": ["lm_head"] }), "replaces whole modules");
    refused(json!({ "r": 0 }), "its rank (`r`) is 0");
    refused(json!({ "alpha_pattern": { "layers\\.[01]\\..*": 3.0 } }), "not the end of a module's name");
    refused(json!({ "r": "two" }), "invalid type");
    // Trained beside other weights than the model's.
    for changing in ["pissa", "pissa_niter_4", "olora", "corda", "loftq", "lora_ga", "mica"] {
        refused(json!({ "init_lora_weights": changing }), "path_initial_model_for_weight_conversion");
        refused(json!({ "init_lora_weights": changing }), &format!("`init_lora_weights` is \"{changing}\""));
    }
    refused(json!({ "init_lora_weights": 1 }), "`init_lora_weights` is 1");
    for plain in
        [json!(true), json!(false), json!(null), json!("gaussian"), json!("eva"), json!("orthogonal")]
    {
        let mut config: serde_json::Value = serde_json::from_slice(&config).unwrap();
        config["init_lora_weights"] = plain;
        for unset in ["alora_invocation_tokens", "layer_replication", "target_parameters"] {
            config[unset] = json!(null);
        }
        config["use_qalora"] = json!(false);
        good.write("adapter_config.json", config.to_string());
        AdapterFile::open(good.path()).unwrap();
    }
    // Computed of other rows or layers than those of the model.
    refused(json!({ "init_lora_weights": true, "alora_invocation_tokens": [1, 2] }), "behind its invocation");
    refused(json!({ "layer_replication": [[0, 2], [1, 2]] }), "merge_and_unload");
    refused(json!({ "use_qalora": true }), "its `use_qalora` is set");
    refused(json!({ "arrow_config": { "top_k": 3 } }), "its `arrow_config` is set");
    good.write("adapter_config.json", &config);
    AdapterFile::open(good.path()).unwrap();
    good.remove("adapter_model.safetensors");
    assert!(AdapterFile::open(good.path()).unwrap_err().to_string().contains("adapter_model.safetensors"));
}

/// The room for an adapter is that of its tensors, whatever its configuration says.
#[test]
fn ranks_are_those_of_the_tensors() {
    let (adapter, _) = adapter("ranks", "llama", &["q_proj", "v_proj"], 2, false);
    let with = |r: usize, ranks: serde_json::Value| {
        let mut config: serde_json::Value =
            serde_json::from_slice(&adapter.read("adapter_config.json")).unwrap();
        (config["r"], config["rank_pattern"]) = (r.into(), ranks);
        adapter.write("adapter_config.json", config.to_string());
        AdapterFile::open(adapter.path())
    };
    let e = with(50_000_000, json!({})).unwrap_err().to_string();
    assert!(
        e.contains("is 50000000, and its tensors are of rank 2") && e.contains("save the adapter again"),
        "{e}"
    );
    let e = with(2, json!({ "1.self_attn.v_proj": 3 })).unwrap_err().to_string();
    assert!(e.contains("layers.1.self_attn.v_proj` is 3, and its tensors are of rank 2"), "{e}");
    with(50_000_000, json!({ "q_proj": 2, "v_proj": 2 })).unwrap();
    // A pattern of modules that it does not adapt makes no room.
    with(2, json!({ "up_proj": 50_000_000 })).unwrap();
}

/// Of several patterns that fit a module, PEFT takes the first of the file.
#[test]
fn the_first_pattern_of_the_file_counts() {
    let (adapter, _) = adapter("order", "llama", &["q_proj", "v_proj"], 2, false);
    let plain = folder("ordered", "llama", "llama");
    let files = Files::open(plain.path()).unwrap();
    let config = String::from_utf8(adapter.read("adapter_config.json")).unwrap();
    let logits = |alphas: &str, ranks: &str| {
        let given = config.replace(r#""alpha_pattern":{}"#, &format!(r#""alpha_pattern":{{{alphas}}}"#));
        let given = given.replace(r#""rank_pattern":{}"#, &format!(r#""rank_pattern":{{{ranks}}}"#));
        adapter.write("adapter_config.json", given);
        let mut session = session(&files, Mode::None);
        session.use_adapters(&[AdapterFile::open(adapter.path()).unwrap()], 1).unwrap();
        session.logits(&PROMPT).unwrap()
    };
    let one = logits(r#""v_proj": 40.0"#, "");
    assert_ne!(one, logits("", ""));
    // By their names, the others come first.
    assert_eq!(logits(r#""v_proj": 40.0, "self_attn.v_proj": 3.0, "0.self_attn.v_proj": 5.0"#, ""), one);
    assert_ne!(logits(r#""self_attn.v_proj": 3.0, "v_proj": 40.0"#, ""), one);
    assert_eq!(logits(r#""v_proj": 40.0"#, r#""v_proj": 2, "self_attn.v_proj": 7"#), one);
}

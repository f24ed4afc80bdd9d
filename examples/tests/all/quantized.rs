//! Weights of safetensors files as other libraries quantise them: `tests/quantized/layers.py` saved layers, and what these libraries
//! read of them. And models with such weights.

use graphable::{
    BlockFormat, Mode,
    load::{Packing, Quantization, QuantizedTensors, SafeTensors, TensorSource},
};
use graphable_examples::{
    checkpoint::{Blocks, Checkpoint, Files},
    convert::{PackedType, convert_folder},
    gguf::Gguf,
    llama::Language,
};
use safetensors::Dtype;
use serde_json::{Value, json};

use crate::{
    folders::{self, Folder, Named, serialise, tensors},
    smollm2, tiny,
    types::{distance, load_blocks},
};

macro_rules! fixture {
    ($name:literal) => {
        (
            &include_bytes!(concat!("../quantized/", $name, ".safetensors"))[..],
            &include_bytes!(concat!("../quantized/", $name, ".json"))[..],
        )
    };
}

fn source((weights, config): (&[u8], &[u8])) -> QuantizedTensors {
    let quantization = Quantization::from_config("config.json", config).unwrap();
    QuantizedTensors::new(SafeTensors::from_bytes("layers", weights.to_vec()).unwrap(), quantization).unwrap()
}

fn floats(source: &impl TensorSource, name: &str) -> Vec<f32> {
    let tensor = source.tensor(name).unwrap().unwrap();
    tensor.bytes.as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect()
}

/// The layers of a fixture whose values are those that the library read, as floats and as blocks.
fn same(fixture: (&[u8], &[u8])) -> usize {
    let source = source(fixture);
    let names = source.names();
    let layers = names.iter().filter_map(|name| name.strip_suffix(".values"));
    layers
        .inspect(|layer| {
            let name = format!("{layer}.weight");
            let wanted = floats(&source, &format!("{layer}.values"));
            assert_eq!(floats(&source, &name), wanted, "{name}");
            let Some(blocks) = source.blocks(&name).unwrap() else {
                assert_eq!(source.sorted_weight(), Some(name.as_str()));
                return;
            };
            let mut values = vec![f32::NAN; wanted.len()];
            blocks.format.dequantize(&blocks.bytes, &mut values).unwrap();
            assert_eq!(values, wanted, "{name} in blocks");
        })
        .count()
}

#[test]
fn layers_have_the_values_that_their_libraries_read() {
    assert_eq!(same(fixture!("awq")), 2);
    assert_eq!(same(fixture!("gptq")), 1);
    assert_eq!(same(fixture!("gptq_v2")), 1);
    assert_eq!(same(fixture!("sorted")), 1);
    assert_eq!(same(fixture!("packed")), 2);
    assert_eq!(same(fixture!("floats")), 2);
    assert_eq!(same(fixture!("blocks")), 1);
    assert_eq!(source(fixture!("sorted")).sorted_weight(), Some("layer.weight"));
    assert_eq!(source(fixture!("gptq")).names(), ["layer.values", "layer.weight"], "a bias of zeros is none");
}

/// Every byte has the value that torch has, and floats become the bytes that torch makes of them.
#[test]
fn floats_of_eight_bits_are_those_of_torch() {
    let source = source(fixture!("floats"));
    let all = floats(&source, "all");
    let blocks: Vec<u8> = (0..=u8::MAX)
        .collect::<Vec<_>>()
        .chunks(64)
        .flat_map(|bits| [&1f32.to_le_bytes()[..], bits].concat())
        .collect();
    let mut values = [0.0; 256];
    BlockFormat::F8_E4M3.dequantize(&blocks, &mut values).unwrap();
    for (i, (value, wanted)) in values.iter().zip(&all).enumerate() {
        assert!(
            value.to_bits() == wanted.to_bits() || value.is_nan() && wanted.is_nan(),
            "{i}: {value} {wanted}"
        );
    }
    // A row whose largest value is the largest float has 1 as its scale.
    let exact = [&[448.0], &floats(&source, "exact")[..]].concat();
    let rounded = &source.tensor("rounded").unwrap().unwrap().bytes;
    let packed = Packing::Float8.pack(&exact, &[1, exact.len()]).unwrap();
    assert_eq!(packed[0].bytes[1..], rounded[..]);
    // And whole weights, with their scales.
    let packed = Packing::Float8.pack(&floats(&source, "row.floats"), &[32, 64]).unwrap();
    let stored = tensors(fixture!("floats").0);
    for (tensor, name) in packed.iter().zip(["row.weight", "row.weight_scale"]) {
        let found = stored.iter().find(|stored| stored.0 == name).unwrap();
        assert!(tensor.bytes == found.3, "{name}");
    }
}

/// The chat model of the tests with other weights of products: `change` makes tensors of each.
fn changed(name: &str, config: Value, change: impl Fn(&str, &[usize], &[f32]) -> Vec<Named>) -> Folder {
    let folder = folders::chat(name);
    let mut all = Vec::new();
    for (name, dtype, shape, bytes) in tensors(&folder.read("model.safetensors")) {
        let values: Vec<f32> =
            bytes.as_chunks().0.iter().map(|b| half::bf16::from_le_bytes(*b).to_f32()).collect();
        match name.strip_suffix("_proj.weight") {
            Some(_) => all.extend(change(name.strip_suffix(".weight").unwrap(), &shape, &values)),
            None => all.push((name, dtype, shape, bytes)),
        }
    }
    folder.write("model.safetensors", serialise(&all));
    folder.configure(json!({ "quantization_config": config }));
    folder
}

/// The tensors of a packed weight, or the weight in f32 if it does not fit.
fn packed(packing: Packing, layer: &str, shape: &[usize], values: &[f32]) -> Vec<Named> {
    if !packing.fits(shape) {
        let bytes = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        return vec![(format!("{layer}.weight"), Dtype::F32, shape.to_vec(), bytes)];
    }
    let dtype = |name: &str| match name {
        "F8_E4M3" => Dtype::F8_E4M3,
        "F32" => Dtype::F32,
        "F16" => Dtype::F16,
        _ => Dtype::I32,
    };
    let tensors = packing.pack(values, shape).unwrap().into_iter();
    tensors
        .map(|tensor| (format!("{layer}.{}", tensor.name), dtype(tensor.dtype), tensor.shape, tensor.bytes))
        .collect()
}

fn fp8() -> Value {
    json!({ "quant_method": "fp8", "activation_scheme": "dynamic" })
}

fn awq() -> Value {
    json!({ "quant_method": "awq", "bits": 4, "group_size": 32, "zero_point": true, "version": "gemm" })
}

/// A folder of quantised weights is the model whose weights have their values; its blocks are near it.
#[test]
fn folders_are_models_of_their_values() {
    let prompt: Vec<u32> = (0..21).map(|i| i * 37 % 263).collect();
    for (name, packing, config) in
        [("fp8", Packing::Float8, fp8()), ("awq", Packing::Awq { group: 32 }, awq())]
    {
        let folder =
            changed(name, config.clone(), |layer, shape, values| packed(packing, layer, shape, values));
        let files = Files::open(folder.path()).unwrap();
        // The embedding is in bf16, and has fewer elements than these layers.
        assert_eq!(files.stored().unwrap(), None, "{name}");
        let values = changed(&format!("{name}-values"), Value::Null, |layer, shape, values| {
            let tensors = packed(packing, layer, shape, values);
            let file = SafeTensors::from_bytes("layer", serialise(&tensors)).unwrap();
            let text = json!({ "quantization_config": config }).to_string();
            let quantization = Quantization::from_config("", text.as_bytes()).unwrap();
            let source = QuantizedTensors::new(file, quantization).unwrap();
            let tensor = source.tensor(&format!("{layer}.weight")).unwrap().unwrap();
            vec![(format!("{layer}.weight"), Dtype::F32, shape.to_vec(), tensor.bytes.into_owned())]
        });
        let values = Files::open(values.path()).unwrap();
        let logits = |files, blocks| load_blocks(files, Mode::None, blocks).logits(&prompt).unwrap();
        let wanted = logits(&values, Blocks::Never);
        assert_eq!(logits(&files, Blocks::Never), wanted, "{name}");
        let far = distance(&logits(&files, Blocks::Stored), &wanted);
        // Rows of 32 elements are no blocks of fp8.
        assert!(if name == "fp8" { far == 0.0 } else { far > 0.0 && far < 0.1 }, "{name}: {far}");
        for mode in Mode::ALL {
            let mut session = load_blocks(&files, mode, Blocks::Stored);
            assert_eq!(session.logits(&prompt).unwrap(), logits(&files, Blocks::Stored), "{name} {mode}");
        }
    }
}

/// What is not read is named before anything else is looked at, and what is damaged when the folder is opened.
#[test]
fn what_is_not_read_is_named() {
    let refused = |folder: &Folder, wanted: &str| {
        let text = Files::open(folder.path()).unwrap_err().to_string();
        assert!(text.contains(wanted), "{text}");
    };
    let awq_of = |name: &str, config: Value| {
        changed(name, config, |layer, shape, values| packed(Packing::Awq { group: 32 }, layer, shape, values))
    };
    let folder = awq_of("unknown", json!({ "quant_method": "bitsandbytes", "load_in_4bit": true }));
    // Not even the weights are opened.
    let weights = folder.read("model.safetensors");
    folder.remove("model.safetensors");
    refused(&folder, "bitsandbytes");
    folder.write("model.safetensors", &weights).configure(json!({ "quantization_config": awq() }));
    Files::open(folder.path()).unwrap();
    folder
        .configure(json!({ "quantization_config": { "quant_method": "awq", "bits": 8, "group_size": 32 } }));
    refused(&folder, "`bits` 8");
    // Another layout, and none: the tensors are not those of the model.
    folder
        .configure(json!({ "quantization_config": { "quant_method": "gptq", "bits": 4, "group_size": 32 } }));
    refused(&folder, "gate_proj.scales");
    folder.configure(json!({ "quantization_config": null }));
    refused(&folder, "qweight");
    let missing: Vec<Named> =
        tensors(&weights).into_iter().filter(|tensor| !tensor.0.ends_with("k_proj.scales")).collect();
    folder.write("model.safetensors", serialise(&missing)).configure(json!({ "quantization_config": awq() }));
    refused(&folder, "k_proj.scales");
    folder.write("model.safetensors", &weights[..weights.len() - 1]);
    refused(&folder, "truncated");
}

/// SmolLM2 in both: its logits are near those of the model in f32, and it answers a question that is no near tie.
#[test]
fn the_real_model_answers() {
    let file = smollm2::file();
    let prompt = Language::of(file).unwrap().prompt("Who was Ada Lovelace?").unwrap();
    let wanted = load_blocks(file, Mode::None, Blocks::Never).logits(&prompt).unwrap();
    for (format, bound) in [(BlockFormat::F8_E4M3, 0.25), (BlockFormat::INT4, 0.5)] {
        let mut session = load_blocks(file, Mode::Full, Blocks::Format(format));
        assert!(session.model().stored().contains(&format.to_string()), "{}", session.model().stored());
        let far = distance(&session.logits(&prompt).unwrap(), &wanted);
        assert!(far > 0.0 && far < bound, "{format}: {far}");
        let answer = session.answer(&prompt, 8, |_| Ok(())).unwrap();
        let text = file.tokenizer().unwrap().decode(&answer.tokens);
        assert!(text.starts_with("Ada Lovelace"), "{format}: {text}");
    }
}

/// A folder that is written in fp8 or int4 is read as the model that it was, but for what quantising loses.
#[test]
fn folders_are_converted() {
    let prompt: Vec<u32> = (0..21).map(|i| i * 37 % 263).collect();
    let folder = folders::chat("converted-packed");
    let files = Files::open(folder.path()).unwrap();
    let logits = |files: &Files| load_blocks(files, Mode::None, Blocks::Stored).logits(&prompt).unwrap();
    let wanted = logits(&files);
    for (ty, bound, group, packed) in [(PackedType::F8E4M3, 0.2, 0, 14), (PackedType::Int4, 0.6, 32, 12)] {
        let path = folder.path().join(format!("{ty:?}"));
        let mut seen = Vec::new();
        let report = convert_folder(&files, ty, &path, &mut |done, total| seen.push((done, total))).unwrap();
        let total = report.bytes_before;
        assert_eq!((seen[0], seen[seen.len() - 1]), ((0, total), (total, total)));
        // Rows of 48 elements have no groups of 32.
        assert_eq!(report.tensors.iter().filter(|tensor| tensor.packed).count(), packed, "{ty:?}");
        assert_eq!(report.group, group);
        // What stays in floats is named for programs that do not look.
        let config = std::fs::read_to_string(path.join("config.json")).unwrap();
        let named = |name: &str| config.contains(&format!("\"{}\"", name.replace(".weight", "")));
        let products = report.tensors.iter().filter(|tensor| tensor.name.contains("_proj.weight"));
        assert!(products.into_iter().all(|tensor| named(&tensor.name) != tensor.packed), "{config}");
        assert!(report.bytes_after < total && report.relative_rms_error < bound / 2.0, "{report:?}");
        assert!(report.table(true).contains("q_proj") && report.to_json().contains("relative_rms_error"));
        let read = Files::open(&path).unwrap();
        let far = distance(&logits(&read), &wanted);
        assert!(far > 0.0 && f64::from(far) < bound, "{ty:?}: {far}");
        let ids = |files: &Files| files.tokenizer().unwrap().encode("hello").unwrap();
        assert_eq!(ids(&read), ids(&files));
        // Nothing is left beside it, and it is not overwritten.
        let names = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name());
        assert!(names.into_iter().all(|name| !name.to_string_lossy().ends_with(".part")));
        let error = convert_folder(&files, ty, &path, &mut |_, _| ()).unwrap_err().to_string();
        assert!(error.contains("there is something already") && error.contains("help:"), "{error}");
    }
    let file = Files::Gguf(Gguf::from_bytes(tiny::llama(0).build()).unwrap());
    let error =
        convert_folder(&file, PackedType::Int4, &folder.path().join("no"), &mut |_, _| ()).unwrap_err();
    assert!(error.to_string().contains("it is a GGUF file") && !folder.path().join("no").exists());
}

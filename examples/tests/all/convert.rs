//! `convert`: models that are written as GGUF files, and read again.

use std::path::Path;

use graphable::{BlockFormat, Mode};
use graphable_examples::{
    chat::{Message, Template},
    checkpoint::{Checkpoint, Files},
    convert::{Report, Rule, convert},
    gguf::{Gguf, TensorType},
    llama::{Config, Language},
    tokenizer::ChatTokenizer,
};
use serde_json::{Value, json};

use crate::{
    commands::{self, json as parsed, refused},
    families,
    folders::{self, Folder},
    gguf_builder::Meta,
    smollm2, tiny, tokenizer,
    types::distance,
};

/// What the types lose of the weights of a random model, at most: `|weights - given| / |given|` (lengths of the vectors). Rows of 32
/// and 48 elements become Q8_0, Q5_0, Q5_1 or IQ4_NL where the type has larger blocks.
const LOST: [(TensorType, f64); 14] = [
    (TensorType::F32, 0.0),
    (TensorType::BF16, 0.0),
    (TensorType::F16, 0.0),
    (TensorType::Q8_0, 0.004),
    (TensorType::Q6_K, 0.004),
    (TensorType::Q5_1, 0.03),
    (TensorType::Q5_0, 0.03),
    (TensorType::Q5_K, 0.03),
    (TensorType::Q4_1, 0.06),
    (TensorType::Q4_0, 0.06),
    (TensorType::Q4_K, 0.03),
    (TensorType::IQ4_NL, 0.06),
    (TensorType::Q3_K, 0.06),
    (TensorType::Q2_K, 0.06),
];
/// How often the logits of that model lose as much as its weights do, at most: 2.5 to 4.5 times were measured. A fault in one tensor
/// makes it 20 times and more.
const LOGITS_LOSE: f64 = 6.0;

fn rule(ty: TensorType) -> Rule {
    Rule { matrices: ty, embedding: ty }
}

/// Converts, and opens what came of it.
fn converted(files: &Files, rule: Rule, path: &Path) -> Result<(Gguf, Report), String> {
    let mut seen = Vec::new();
    let report = convert(files, rule, path, true, &mut |done, total| seen.push((done, total)));
    let report = report.map_err(|e| e.to_string())?;
    // From nothing to all of it, as it is stored.
    let total = report.bytes_before;
    assert_eq!((seen[0], seen[seen.len() - 1]), ((0, total), (total, total)));
    assert!(seen.is_sorted());
    assert_eq!(report.file_bytes, path.metadata().unwrap().len());
    Ok((Gguf::open(path).unwrap(), report))
}

/// A tokenizer of 40 tokens, for the models of the families.
fn with_tokenizer(folder: &Folder) {
    let named = |i: usize| match i {
        0 => "<s>".to_owned(),
        1 => "</s>".into(),
        2 => "<unk>".into(),
        _ => char::from_u32(0x60 + i as u32).unwrap().to_string(),
    };
    let vocab: serde_json::Map<_, _> = (0..40).map(|i| (named(i), i.into())).collect();
    let added = (0..3).map(|i| json!({ "id": i, "content": named(i), "special": true, "normalized": false, "single_word": false, "lstrip": false, "rstrip": false }));
    let replace =
        |from: &str, to: &str| json!({ "type": "Replace", "pattern": { "String": from }, "content": to });
    let tokenizer = json!({
        "version": "1.0",
        "added_tokens": added.collect::<Vec<_>>(),
        "normalizer": replace(" ", "\u{2581}"),
        "pre_tokenizer": null,
        "post_processor": null,
        "decoder": { "type": "Sequence", "decoders": [replace("\u{2581}", " "), { "type": "ByteFallback" }, { "type": "Fuse" }] },
        "model": { "type": "BPE", "vocab": vocab, "merges": [], "unk_token": "<unk>", "fuse_unk": true, "byte_fallback": true },
    });
    folder
        .write("tokenizer.json", tokenizer.to_string())
        .write("tokenizer_config.json", json!({ "bos_token": "<s>", "eos_token": "</s>" }).to_string());
}

#[test]
fn every_family_has_the_same_logits_as_a_file() {
    let (prompts, models) = families::expected();
    let mut refusals = Vec::new();
    for (name, family, logits) in &models {
        let folder = families::folder("converted", name, family);
        with_tokenizer(&folder);
        let files = Files::open(folder.path()).unwrap();
        let (file, report) = match converted(&files, rule(TensorType::F32), &folder.path().join("model.gguf"))
        {
            Ok(done) => done,
            Err(e) => {
                assert!(e.contains("GGUF file") && e.contains("help:"), "{e}");
                refusals.push(name.as_str());
                continue;
            }
        };
        assert!(report.tensors.iter().all(|tensor| tensor.max_error == 0.0), "{name}");
        let mut session = families::session::<f32>(&file, Mode::None);
        for (prompt, wanted) in prompts.iter().zip(logits) {
            let far = distance(&session.logits(prompt).unwrap(), wanted);
            assert!(far < families::F32, "{name}, {} tokens: {far}", prompt.len());
        }
    }
    // Those for which the architectures have no metadata: the width of its heads gives the scale of Gemma 2, and Gemma 3 sees all
    // tokens in every sixth layer.
    let wanted = [
        "gemma2",
        "gemma3",
        "llama-dynamic",
        "llama-longrope",
        "llama-longrope-factor",
        "mistral-dynamic",
        "mistral-layers",
        "mistral-window",
    ];
    assert_eq!(refusals, wanted);
}

/// With the usual pattern, of which the model has too few layers to see all tokens anywhere.
#[test]
fn gemma_3_has_the_same_logits_as_a_file() {
    let (prompts, _) = families::expected();
    let folder = families::folder("gemma3-file", "gemma3", "gemma3");
    with_tokenizer(&folder);
    folder.configure(
        json!({ "layer_types": null, "sliding_window_pattern": null, "query_pre_attn_scalar": 6 }),
    );
    let files = Files::open(folder.path()).unwrap();
    let (file, _) = converted(&files, rule(TensorType::F32), &folder.path().join("model.gguf")).unwrap();
    let configs = [files.config().unwrap(), file.config().unwrap()];
    assert_eq!(configs[0], configs[1]);
    let [mut ours, mut theirs] = [&files as &dyn Load, &file].map(Load::session);
    for prompt in &prompts {
        let far = distance(&theirs.logits(prompt).unwrap(), &ours.logits(prompt).unwrap());
        assert!(far < families::F32, "{far}");
    }
}

/// Of Gemma 2 and 3, readers of GGUF files take the scale from the sizes, and soft caps of Gemma 2 from nowhere.
#[test]
fn what_readers_would_compute_otherwise_is_not_written() {
    let refusal = |name: &str, key: &str, value: Value| {
        let folder = families::folder("otherwise", name, &name[..6]);
        with_tokenizer(&folder);
        folder.configure(
            json!({ "layer_types": null, "sliding_window_pattern": null, "query_pre_attn_scalar": 6 }),
        );
        let mut config: Value = serde_json::from_slice(&folder.read("config.json")).unwrap();
        config[key] = value;
        folder.write("config.json", config.to_string());
        let files = Files::open(folder.path()).unwrap();
        converted(&files, rule(TensorType::F32), &folder.path().join("model.gguf")).map(drop)
    };
    for (name, key, value, wanted) in [
        ("gemma2", "query_pre_attn_scalar", json!(10), "products of queries and keys are scaled by 0.31622"),
        ("gemma3", "query_pre_attn_scalar", json!(10), "products of queries and keys are scaled by 0.31622"),
        ("gemma2", "attn_logit_softcapping", Value::Null, "`attn_logit_softcapping` is null"),
        ("gemma2", "final_logit_softcapping", Value::Null, "`final_logit_softcapping` is null"),
    ] {
        let e = refusal(name, key, value).unwrap_err();
        assert!(e.contains(wanted) && e.contains("help: use the model from its folder"), "{wanted} in {e}");
    }
    refusal("gemma3", "final_logit_softcapping", Value::Null).unwrap();
}

/// A file has the matrix for logits that the folder has.
#[test]
fn a_matrix_for_logits_that_differs_is_written() {
    let (prompts, _) = families::expected();
    let folder = families::folder("output", "llama", "llama");
    with_tokenizer(&folder);
    folder.configure(json!({ "tie_word_embeddings": true }));
    let files = Files::open(folder.path()).unwrap();
    let (file, _) = converted(&files, rule(TensorType::F32), &folder.path().join("model.gguf")).unwrap();
    assert!(file.tensor_info("output.weight").is_some());
    let [mut ours, mut theirs] = [&files as &dyn Load, &file].map(Load::session);
    for prompt in &prompts {
        let far = distance(&theirs.logits(prompt).unwrap(), &ours.logits(prompt).unwrap());
        assert!(far < families::F32, "{far}");
    }
}

/// So that both kinds of files can be in one list.
trait Load {
    fn session(&self) -> graphable_examples::llama::Session<f32>;
}

impl<C: Checkpoint> Load for C {
    fn session(&self) -> graphable_examples::llama::Session<f32> {
        families::session(self, Mode::None)
    }
}

/// A folder in bf16 with the tokenizer `bytes`, written in every type.
#[test]
fn a_chat_model_keeps_its_language_and_nearly_its_logits() {
    let folder = folders::chat("convert-chat");
    let files = Files::open(folder.path()).unwrap();
    let prompt: Vec<u32> = (0..21).map(|i| i * 37 % 263).collect();
    let wanted = files.session().logits(&prompt).unwrap();
    let question = Language::of(&files).unwrap().prompt("What is it? 1234").unwrap();
    for (ty, most) in LOST {
        let (file, report) = converted(&files, rule(ty), &folder.path().join(format!("{ty}.gguf"))).unwrap();
        assert_eq!(Language::of(&file).unwrap().prompt("What is it? 1234").unwrap(), question, "{ty}");
        let far = distance(&file.session().logits(&prompt).unwrap(), &wanted);
        let lost = report.relative_rms_error;
        assert!(lost <= most, "{ty}: {lost}");
        assert!(f64::from(far) <= f64::from(families::F32).max(LOGITS_LOSE * lost), "{ty}: {far}, {lost}");
        // F16 has more digits than BF16, and weights of usual size are within its range.
        let is_exact = [TensorType::F32, TensorType::BF16, TensorType::F16].contains(&ty);
        assert_eq!(far > families::F32, !is_exact, "{ty}: {far}");

        // 32 columns, and 48 in `ffn_down`.
        for tensor in &report.tensors {
            let wanted = match *tensor.shape {
                [_, width] => ty.fitting(width),
                _ => TensorType::F32,
            };
            assert_eq!((tensor.to, tensor.from), (wanted, TensorType::BF16), "{}", tensor.name);
            let info = file.tensor_info(&tensor.name).unwrap();
            assert_eq!((info.ty, &info.shape), (tensor.to, &tensor.shape));
            assert_eq!(info.stored_bytes() as u64, tensor.bytes_after);
        }
        check_errors(&files, &file, &report);
    }
}

/// The errors of a report, from the values of both files.
fn check_errors(files: &Files, file: &Gguf, report: &Report) {
    let Files::Folder(_) = files else { panic!("a folder is compared") };
    let exact = Path::new(&report.output).with_extension("exact");
    let (exact, _) = converted(files, rule(TensorType::F32), &exact).unwrap();
    let (mut all, mut squares) = (0.0, 0.0);
    for tensor in &report.tensors {
        let [values, read] = [&exact, file].map(|file| file.tensor(&tensor.name).unwrap().data);
        let off: Vec<f64> = values.iter().zip(&read).map(|(a, b)| f64::from(a - b)).collect();
        let square: f64 = values.iter().map(|v| f64::from(*v).powi(2)).sum();
        let squared: f64 = off.iter().map(|off| off * off).sum();
        assert_eq!(tensor.max_error, off.iter().fold(0.0, |most: f64, off| most.max(off.abs())));
        assert!((tensor.relative_rms_error - (squared / square).sqrt()).abs() < 1e-9, "{}", tensor.name);
        (all, squares) = (all + squared, squares + square);
    }
    assert!((report.relative_rms_error - (all / squares).sqrt()).abs() < 1e-9);
}

/// Gives a folder a vocabulary of this size, all of which is embedded as zeros, and these stops.
fn widen(folder: &Folder, vocab: usize, stops: Value) {
    folder.configure(json!({ "vocab_size": vocab, "eos_token_id": stops }));
    let mut tensors = folders::tensors(&folder.read("model.safetensors"));
    let embed = tensors.iter_mut().find(|tensor| tensor.0 == "model.embed_tokens.weight").unwrap();
    (embed.2, embed.3) = (vec![vocab, 32], vec![0; vocab * 32 * 2]);
    folder.write("model.safetensors", folders::serialise(&tensors));
}

/// Tokens of difficult strings, through a file.
#[test]
fn tokenizers_are_kept_or_refused() {
    for name in ["bytes", "pieces", "gemma"] {
        let given = tokenizer::folders::folder(name, "convert");
        let folder = folders::chat(&format!("convert-{name}"));
        for file in ["tokenizer.json", "tokenizer_config.json", "chat_template.jinja"] {
            if given.path().join(file).exists() {
                folder.write(file, given.read(file));
            }
        }
        match name {
            "pieces" => widen(&folder, 400, json!(2)),
            "gemma" => widen(&folder, 400, json!([1, 5])),
            _ => {}
        }
        let files = Files::open(folder.path()).unwrap();
        let (file, _) = converted(&files, rule(TensorType::F16), &folder.path().join("model.gguf")).unwrap();
        let [theirs, ours] = [files.tokenizer().unwrap(), ChatTokenizer::from_gguf(&file).unwrap()];
        let expected = tokenizer::folders::expected();
        for string in expected["tokenizers"][name]["strings"].as_array().unwrap() {
            let text = string["text"].as_str().unwrap();
            let ids: Vec<u32> = serde_json::from_value(string["ids"].clone()).unwrap();
            // A GGUF file has no place for the normalizer of Qwen2.
            if name == "bytes" && text.contains('\u{301}') {
                assert_ne!(ours.encode(text).unwrap(), ids);
                continue;
            }
            // A file says that texts start with a token, which folders leave to templates.
            let start = theirs.start_of_text().filter(|start| ids.first() != Some(start));
            let started: Vec<u32> = start.into_iter().chain(ids.iter().copied()).collect();
            assert_eq!(ours.encode(text).unwrap(), started, "{name}: {text:?}");
            assert_eq!(theirs.encode_text(text).unwrap(), ours.encode_text(text).unwrap());
            assert_eq!(ours.decode(&ids), string["decoded"], "{name}: {text:?}");
        }
        // As llama.cpp has it, `<|endoftext|>` ends an answer in every file.
        let also: &[u32] = if name == "bytes" { &[300] } else { &[] };
        assert_eq!(ours.stops(), [theirs.stops(), also].concat(), "{name}");
        assert_eq!(ours.bos_name(), theirs.bos_name(), "{name}");
        let messages = [Message::user("Hello?")];
        let [theirs, ours] = [files.template(&theirs), Template::from_gguf(&file, &ours)];
        assert_eq!(ours.unwrap().render(&messages).unwrap(), theirs.unwrap().render(&messages).unwrap());
    }

    let folder = folders::chat("convert-refused");
    let good: Value = serde_json::from_slice(&folder.read("tokenizer.json")).unwrap();
    let says = |change: &dyn Fn(&mut Value), wanted: &str| refuses_tokenizer(&folder, &good, change, wanted);
    says(&|t| t["normalizer"] = json!({ "type": "Lowercase" }), "`normalizer` Lowercase");
    says(
        &|t| t["pre_tokenizer"]["pretokenizers"][0]["pattern"] = json!({ "Regex": "x" }),
        "cuts text in another way",
    );
    says(&|t| t["model"]["ignore_merges"] = true.into(), "`ignore_merges`");
    says(&|t| t["added_tokens"][3]["lstrip"] = true.into(), "has `lstrip`");
    // A piece that no merge makes any longer, whatever its score.
    let pieces = tokenizer::folders::folder("pieces", "convert");
    let mut pieces: Value = serde_json::from_slice(&pieces.read("tokenizer.json")).unwrap();
    pieces["model"]["merges"].as_array_mut().unwrap().remove(0);
    folder.write("tokenizer_config.json", json!({ "bos_token": "<s>", "eos_token": "</s>" }).to_string());
    widen(&folder, 400, json!(2));
    says(&|t| *t = pieces.clone(), "merges are not those of pieces with scores");
}

/// Asserts that a folder whose tokenizer is a change of a `good` one is refused, and that no file is left.
fn refuses_tokenizer(folder: &Folder, good: &Value, change: &dyn Fn(&mut Value), wanted: &str) {
    let mut changed = good.clone();
    change(&mut changed);
    folder.write("tokenizer.json", changed.to_string());
    let files = Files::open(folder.path()).unwrap();
    let e = converted(&files, rule(TensorType::F16), &folder.path().join("model.gguf")).unwrap_err();
    assert!(e.contains(wanted) && e.contains("tokenizer.json") && e.contains("help:"), "{wanted} in {e}");
    assert!(!folder.path().join("model.gguf").exists());
}

/// A chat model with the tokenizer of another folder.
fn with_tokenizer_of(given: &Folder, name: &str, vocab: usize, stops: Value) -> Folder {
    let folder = folders::chat(name);
    for file in ["tokenizer.json", "tokenizer_config.json"] {
        folder.write(file, given.read(file));
    }
    widen(&folder, vocab, stops);
    folder
}

/// Added tokens of several U+2581 are spaces in a file, as those of llama.cpp's own converter; and the start of texts is the folder's,
/// whatever `add_bos_token` says.
#[test]
fn spaces_and_starts_of_texts_are_kept() {
    let given = tokenizer::folders::with_spaces("convert-spaces");
    let mut settings: Value = serde_json::from_slice(&given.read("tokenizer_config.json")).unwrap();
    settings["add_bos_token"] = false.into();
    given.write("tokenizer_config.json", settings.to_string());
    let folder = with_tokenizer_of(&given, "convert-spaces", 403, json!([1, 5]));
    let files = Files::open(folder.path()).unwrap();
    let (file, _) = converted(&files, rule(TensorType::F16), &folder.path().join("model.gguf")).unwrap();
    let names = file.strings("tokenizer.ggml.tokens").unwrap();
    assert_eq!(names[400..], ["  ", "   ", "    "]);
    let [theirs, ours] = [files.tokenizer().unwrap(), ChatTokenizer::from_gguf(&file).unwrap()];
    assert_eq!((theirs.start_of_text(), ours.start_of_text()), (Some(2), Some(2)));
    for (text, ids) in tokenizer::folders::SPACED {
        assert_eq!(ours.encode_text(text).unwrap(), [&[2], ids].concat(), "{text:?}");
        assert_eq!(theirs.encode_text(text).unwrap(), [&[2], ids].concat(), "{text:?}");
        assert_eq!(ours.decode(ids), text);
    }
}

#[test]
fn tokenizers_that_a_file_cannot_describe_are_refused() {
    let given = tokenizer::folders::folder("gemma", "convert-refused");
    let folder = with_tokenizer_of(&given, "convert-refused-gemma", 400, json!([1, 5]));
    let good: Value = serde_json::from_slice(&folder.read("tokenizer.json")).unwrap();
    let says = |change: &dyn Fn(&mut Value), wanted: &str| refuses_tokenizer(&folder, &good, change, wanted);
    for key in ["lstrip", "rstrip", "single_word"] {
        says(&|t| t["added_tokens"][5][key] = true.into(), &format!("`<end_of_turn>` has `{key}`"));
    }
    says(&|t| t["added_tokens"][6]["content"] = "<0x0A>".into(), "`<0x0A>`");
    let ends = json!([{ "SpecialToken": { "id": "<bos>", "type_id": 0 } }, { "Sequence": { "id": "A", "type_id": 0 } },
        { "SpecialToken": { "id": "<bos>", "type_id": 0 } }]);
    says(&|t| t["post_processor"]["single"] = ends.clone(), "`post_processor` adds other tokens");
    folder.configure(json!({ "eos_token_id": [7, 8, 9] }));
    says(&|_| (), "the token 9 ends an answer as well");
}

/// Metadata of a file, whatever it is, and tensors that are of the type already.
#[test]
fn what_a_file_has_is_copied() {
    let folder = Folder::new("convert-copied");
    let nested = [
        9u32.to_le_bytes().to_vec(),
        1u64.to_le_bytes().to_vec(),
        0u32.to_le_bytes().to_vec(),
        2u64.to_le_bytes().to_vec(),
        vec![7, 9],
    ]
    .concat();
    let source = tiny::llama(0)
        .meta("general.alignment", Meta::U32(64))
        .meta("general.file_type", Meta::U32(0))
        .meta("some.thing", Meta::Raw(9, nested))
        .meta("some.small", Meta::Raw(1, vec![0xFE]))
        .meta("some.real", Meta::Raw(12, 2.5f64.to_le_bytes().to_vec()));
    // Written with an alignment of 32, and read with one of 64.
    let bytes = source.replace("general.alignment", Meta::U32(32)).build();
    folder.write("tiny.gguf", &bytes);
    let files = Files::open(&folder.path().join("tiny.gguf")).unwrap();
    let Files::Gguf(before) = &files else { panic!("a file") };
    let (first, _) = converted(&files, rule(TensorType::Q8_0), &folder.path().join("first.gguf")).unwrap();
    for key in before.keys() {
        match key {
            "general.alignment" => assert_eq!(first.get(key), None),
            "general.file_type" => assert_eq!(first.u32(key).unwrap(), 7),
            _ => assert_eq!(first.get(key), before.get(key), "{key}"),
        }
    }
    assert_eq!(first.keys().count(), before.keys().count());
    assert_eq!(first.u32("general.quantization_version").unwrap(), 2);
    assert!(first.tensor_names().eq(before.tensor_names()));

    let files = Files::open(&folder.path().join("first.gguf")).unwrap();
    let (_, report) = converted(&files, rule(TensorType::Q8_0), &folder.path().join("second.gguf")).unwrap();
    assert_eq!(folder.read("first.gguf"), folder.read("second.gguf"), "nothing is converted twice");
    assert!(report.tensors.iter().all(|tensor| tensor.max_error == 0.0 && tensor.from == tensor.to));
    // Blocks of another format are those of the values.
    let (third, _) = converted(&files, rule(TensorType::Q4_1), &folder.path().join("third.gguf")).unwrap();
    let values = first.tensor("blk.0.attn_q.weight").unwrap().data;
    let blocks = BlockFormat::Q4_1.quantize(&values).unwrap();
    assert_eq!(third.stored_tensor("blk.0.attn_q.weight").unwrap(), blocks);
    assert!(Config::from_gguf(&third).unwrap() == Config::from_gguf(before).unwrap());
}

/// Each type that was asked for is named with the rows that it does not divide.
#[test]
fn types_that_do_not_divide_rows_are_named() {
    let folder = folders::chat("convert-fallbacks");
    let files = Files::open(folder.path()).unwrap();
    let lines = |matrices, embedding| {
        let path = folder.path().join("model.gguf");
        let (_, report) = converted(&files, Rule { matrices, embedding }, &path).unwrap();
        let table = report.table(false);
        let mut lines: Vec<String> =
            table.lines().filter(|line| line.contains("does not divide")).map(str::to_owned).collect();
        lines.sort();
        lines
    };
    let of_layers = [
        "Q4_K does not divide rows of 32 elements, which are Q5_0",
        "Q4_K does not divide rows of 48 elements, which are F16",
    ];
    let embedding = "Q6_K does not divide rows of 32 elements, which are Q8_0";
    assert_eq!(lines(TensorType::Q4_K, TensorType::Q6_K), [&of_layers[..], &[embedding]].concat());
    assert_eq!(lines(TensorType::Q4_K, TensorType::F16), of_layers);
    assert_eq!(lines(TensorType::F16, TensorType::Q6_K), [embedding]);
}

/// What is written is open to whom the user's other new files and folders are.
#[cfg(unix)]
#[test]
fn files_and_folders_have_the_usual_permissions() {
    use std::os::unix::fs::PermissionsExt;

    let folder = folders::chat("convert-permissions");
    let model = folder.path().display().to_string();
    for (umask, usual) in [("002", 0o775), ("077", 0o700)] {
        for (dtype, name) in [("q8_0", "one.gguf"), ("f8_e4m3", "packed")] {
            let path = folder.path().join(format!("{umask}-{name}"));
            let program = env!("CARGO_BIN_EXE_convert");
            let output = std::process::Command::new("sh")
                .args(["-c", &format!("umask {umask} && exec \"$@\""), "sh", program])
                .arg(&path)
                .args(["--model", &model, "--dtype", dtype])
                .output()
                .unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
            match path.is_dir() {
                true => {
                    assert_eq!(mode(&path), usual, "{umask}");
                    assert_eq!(mode(&path.join("model.safetensors")), usual & 0o666, "{umask}");
                }
                false => assert_eq!(mode(&path), usual & 0o666, "{umask}"),
            }
        }
    }
}

fn run(args: &[&str]) -> std::process::Output {
    std::process::Command::new(env!("CARGO_BIN_EXE_convert")).args(args).output().unwrap()
}

#[test]
fn what_cannot_be_written_leaves_nothing_behind() {
    let folder = commands::Folder::new("convert-refused");
    let large = tiny::llama(0);
    let mut builder = large;
    builder.drop_tensor("blk.1.attn_output.weight");
    let mut weights = vec![0.5; 32 * 32];
    weights[77] = 1e6;
    let builder = builder.f32("blk.1.attn_output.weight", &[32, 32], &weights);
    let model = folder.file("large.gguf", &builder.build());
    let there = folder.file("there.gguf", b"kept");
    let names = || {
        let all = std::fs::read_dir(Path::new(&model).parent().unwrap()).unwrap();
        let mut all: Vec<_> = all.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        all.sort();
        all
    };
    let out = |name: &str| Path::new(&model).with_file_name(name).display().to_string();
    let refuse = |output: &str, more: &[&str], wanted: &str| {
        let e = refused(&run(&[&[output, "--model", &model], more].concat()));
        assert!(e.contains(wanted) && e.contains("help:"), "{wanted} in {e}");
        assert_eq!(names(), ["large.gguf", "there.gguf"], "after {e}");
    };
    refuse(
        &out("new.gguf"),
        &["--dtype", "f16"],
        "tensor `blk.1.attn_output.weight`: the value 1000000 is too large for F16",
    );
    refuse(&there, &["--dtype", "q8_0"], "there is such a file already");
    assert_eq!(std::fs::read(&there).unwrap(), b"kept");
    refuse(&out(""), &["--dtype", "q8_0"], "is a folder");
    refuse(&out("none/new.gguf"), &["--dtype", "q8_0"], "help: check the path");
    let e = refused(&run(&[&out("new.gguf"), "--dtype", "q8_0", "--model", &out("gone.gguf")]));
    assert!(e.contains("gone.gguf"), "{e}");
    let e = refused(&run(&[&out("new.gguf"), "--model", &model]));
    assert!(e.contains("--dtype"), "{e}");

    // The same file may be replaced by what is made of it: it stays mapped until it is written.
    let output = run(&[&model, "--model", &model, "--dtype", "bf16", "--overwrite"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(names(), ["large.gguf", "there.gguf"]);
    let file = Gguf::open(Path::new(&model)).unwrap();
    assert_eq!(file.tensor_info("blk.0.attn_q.weight").unwrap().ty, TensorType::BF16);
    let text = String::from_utf8(output.stdout).unwrap();
    for wanted in ["attn_q.weight", "rms error", "   F32   BF16 ", "exact", "wrote "] {
        assert!(text.contains(wanted), "{wanted} in {text}");
    }
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// The real model, through the programs.
#[test]
fn the_real_model_answers_from_what_was_written() {
    let folder = commands::Folder::new("convert-smollm2");
    let model = smollm2::path().display().to_string();
    let answer = |file: &str, dtype: &str| {
        let args = [
            "--prompt",
            smollm2::QUESTION,
            "--model",
            file,
            "--device",
            "cpu",
            "--json",
            "--quiet",
            "--dtype",
            dtype,
        ];
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_generate")).args(args).output().unwrap();
        parsed(&output)
    };
    // 256 does not divide 576, of which most rows are; 1536, of `ffn_down`, it does.
    for (dtype, usual, down) in [("q8_0", "Q8_0", "Q8_0"), ("q4_k", "Q5_0", "Q4_K")] {
        let file = folder.file(&format!("{dtype}.gguf"), b"");
        let output = run(&[&file, "--model", &model, "--dtype", dtype, "--overwrite", "--json"]);
        let report = parsed(&output);
        assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
        for tensor in report["tensors"].as_array().unwrap() {
            let (name, shape) = (tensor["name"].as_str().unwrap(), tensor["shape"].as_array().unwrap());
            let wanted = match shape.len() {
                1 => "F32",
                _ if name.ends_with("ffn_down.weight") => down,
                _ => usual,
            };
            assert_eq!(tensor["to"], wanted, "{name}");
        }
        assert_eq!(report["tensors"].as_array().unwrap().len(), smollm2::file().tensor_names().len());
        assert!(report["file_bytes"].as_u64().unwrap() > report["bytes_after"].as_u64().unwrap());
        let error = report["relative_rms_error"].as_f64().unwrap();
        assert!(error > 0.0 && error < 0.08, "{dtype}: {error}");
        // The first token is a near tie, which what 5 bits lose decides otherwise.
        if dtype == "q8_0" {
            assert_eq!(answer(&file, "f32")["tokens"], json!(smollm2::ANSWER), "{dtype}");
        }
        assert_eq!(answer(&file, "stored")["weights"], usual, "{dtype}");
    }
}

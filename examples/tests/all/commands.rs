//! The binaries, as a user runs them.

use std::{
    path::{Path, PathBuf},
    process::{Command, Output},
};

use crate::{
    folders,
    gguf_builder::Builder,
    minilm::{self, SENTENCES},
    smollm2, tiny,
};

fn run(binary: &str, args: &[&str]) -> Output {
    Command::new(binary).args(args).output().unwrap()
}

fn generate(args: &[&str]) -> Output {
    run(env!("CARGO_BIN_EXE_generate"), args)
}

fn embed(args: &[&str]) -> Output {
    run(env!("CARGO_BIN_EXE_embed"), args)
}

fn tree(args: &[&str]) -> Output {
    run(env!("CARGO_BIN_EXE_tree"), args)
}

pub(crate) fn json(output: &Output) -> serde_json::Value {
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{err}");
    assert_eq!(out.lines().count(), 1, "{out}");
    serde_json::from_str(&out).unwrap_or_else(|e| panic!("{e}: {out}"))
}

/// The message of a run that must fail: on standard error, one screen, without a panic.
pub(crate) fn refused(output: &Output) -> String {
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && output.status.code().is_some_and(|c| c != 101), "{err}");
    assert!(output.stdout.is_empty(), "{:?}", String::from_utf8_lossy(&output.stdout));
    assert!(!err.contains("panicked") && err.lines().count() < 24, "{err}");
    err
}

/// A folder of one test, removed at its end.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("graphable-commands-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn file(&self, name: &str, bytes: &[u8]) -> String {
        let path = self.0.join(name);
        std::fs::write(&path, bytes).unwrap();
        path.display().to_string()
    }

    /// What `read` makes of the path of a pipe through which `bytes` come.
    #[cfg(unix)]
    pub(crate) fn piped<T>(&self, bytes: &[u8], read: impl FnOnce(&Path) -> T) -> T {
        let pipe = self.0.join("model.fifo");
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let result = std::thread::scope(|scope| {
            // Who refuses the file does not read it to its end. If nobody opened it, this would not end.
            scope.spawn(|| std::fs::write(&pipe, bytes).ok());
            read(&pipe)
        });
        std::fs::remove_file(&pipe).unwrap();
        result
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}

fn tiny_model(folder: &Folder) -> String {
    folder.file("tiny.gguf", &tiny::llama(0).build())
}

#[test]
fn generate_answers_in_json() {
    let args = ["--prompt", smollm2::QUESTION, "--device", "cpu", "--json", "--quiet"];
    let output = generate(&args);
    let v = json(&output);
    assert_eq!(v["text"], "The capital of France is Paris.");
    assert_eq!(v["tokens"], serde_json::json!(smollm2::ANSWER));
    assert_eq!([&v["mode"], &v["device"], &v["dtype"], &v["weights"]], ["none", "cpu", "f32", "f32"]);
    assert_eq!(v["fallbacks"], serde_json::json!([]));
    // Nothing is recorded where that gains nothing.
    assert_eq!((v["replays"].as_u64(), v["capture_seconds"].as_f64()), (Some(0), Some(0.0)));
    let seconds = |key: &str| v[key].as_f64().unwrap_or_else(|| panic!("{key} in {v}"));
    assert!(seconds("load_seconds") > 0.0 && seconds("prefill_seconds") > 0.0, "{v}");
    assert!(seconds("decode_seconds") > 0.0 && seconds("tokens_per_second") > 0.0, "{v}");
    assert!(seconds("first_token_seconds") >= seconds("load_seconds") + seconds("prefill_seconds"), "{v}");
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn generate_prints_the_answer_and_keeps_the_rest_apart() {
    let folder = Folder::new("plain");
    let model = tiny_model(&folder);
    let args = ["--prompt", "hello", "--model", &model, "--max-new-tokens", "8", "--mode", "piecewise"];
    let output = generate(&args);
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{err}");
    for wanted in ["decode (", "segment", "eager", "attend", "recordings", "f32, piecewise on"] {
        assert!(err.contains(wanted), "{wanted} in {err}");
    }
    let quiet = generate(&[&args[..], &["--quiet"]].concat());
    assert_eq!(quiet.stdout, output.stdout);
    assert!(quiet.stderr.is_empty());
}

#[test]
fn every_mode_and_seed_does_what_it_says() {
    let folder = Folder::new("modes");
    let model = tiny_model(&folder);
    let tokens = |more: &[&str]| {
        let args = ["--prompt", "hello", "--model", &model, "--max-new-tokens", "12", "--json"];
        let v = json(&generate(&[&args[..], more].concat()));
        assert_eq!(v.as_object().unwrap().len(), 24, "{v}");
        v["tokens"].clone()
    };
    let greedy = tokens(&["--mode", "none"]);
    assert_eq!(tokens(&["--mode", "piecewise"]), greedy);
    assert_eq!(tokens(&["--mode", "full"]), greedy);
    assert_eq!(tokens(&["--mode", "full-decode-only"]), greedy);
    assert_eq!(tokens(&["--mode", "full-and-piecewise"]), greedy);
    assert_eq!(tokens(&["--mode", "auto"]), greedy);
    for dtype in ["bf16", "f16"] {
        let narrow = tokens(&["--mode", "none", "--dtype", dtype]);
        assert_eq!(tokens(&["--mode", "full", "--dtype", dtype]), narrow, "{dtype}");
    }
    let warm = |seed, mode| {
        let filters = ["--temperature", "5", "--top-k", "200", "--top-p", "0.99", "--min-p", "0.001"];
        let penalties = ["--repetition-penalty", "1.1", "--presence-penalty", "-0.1"];
        tokens(&[&filters[..], &penalties, &["--seed", seed, "--mode", mode]].concat())
    };
    let want = warm("1", "none");
    for mode in ["none", "piecewise", "full", "full-decode-only", "full-and-piecewise"] {
        assert_eq!(warm("1", mode), want, "{mode}");
    }
    assert_ne!(warm("2", "none"), want);
}

#[test]
fn generate_takes_hugging_face_folders() {
    let folder = folders::chat("generate");
    let tokens = |path: &Path, more: &[&str]| {
        let path = path.display().to_string();
        let args = [
            "--prompt",
            "hello",
            "--model",
            &path,
            "--max-new-tokens",
            "8",
            "--json",
            "--quiet",
            "--device",
            "cpu",
        ];
        let v = json(&generate(&[&args[..], more].concat()));
        (v["tokens"].clone(), v["dtype"].as_str().unwrap().to_owned())
    };
    let (want, dtype) = tokens(folder.path(), &[]);
    assert_eq!(dtype, "bf16", "what the file stores");
    assert_eq!(tokens(&folder.path().join("model.safetensors"), &["--mode", "full"]).0, want);
    assert_eq!(tokens(folder.path(), &["--dtype", "f32"]).1, "f32");
    assert_eq!(tokens(folder.path(), &["--dtype", "q8_0"]).1, "f32");
    assert_eq!(tokens(folder.path(), &["--dtype", "q8_0", "--activations", "bf16"]).1, "bf16");
    let path = folder.path().display().to_string();
    let args = ["--prompt", "hello", "--model", &path, "--max-new-tokens", "1", "--device", "cpu"];
    let output = generate(&[&args[..], &["--activations", "f16"]].concat());
    let notes = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && notes.contains("--activations has no effect"), "{notes}");

    let says = |wanted: &[&str]| {
        let err = refused(&generate(&["--prompt", "hi", "--model", &folder.path().display().to_string()]));
        wanted.iter().for_each(|w| assert!(err.contains(w), "{w} in {err}"));
    };
    folder.configure(serde_json::json!({ "vocab_size": 200 }));
    says(&["it has a token 303, and the model has 200 tokens", "help: fetch the tokenizer of this model"]);
    folder.configure(serde_json::json!({ "vocab_size": 304 })).remove("chat_template.jinja");
    says(&["chat template: the folder has none", "help: use an instruction-tuned model"]);
    folder.remove("tokenizer.json");
    says(&["tokenizer.json: the folder has no tokenizer", "help: fetch it as well"]);
    folder.configure(serde_json::json!({ "model_type": "mamba" }));
    says(&[
        "family `mamba`",
        "help: use a dense model of the families Llama, Qwen2, Qwen3, Mistral or Gemma",
    ]);
    folder.remove("config.json");
    says(&["config.json", "help: check the path"]);
}

/// As in `--model <(zcat model.gguf.gz)`.
#[test]
#[cfg(unix)]
fn models_come_through_pipes() {
    let folder = Folder::new("pipes");
    let model = tiny_model(&folder);
    let answer = |path: &Path| {
        let path = path.display().to_string();
        let v = json(&generate(&["--prompt", "hello", "--model", &path, "--max-new-tokens", "4", "--json"]));
        v["tokens"].clone()
    };
    let want = answer(model.as_ref());
    assert_eq!(folder.piped(&std::fs::read(&model).unwrap(), answer), want);
    let shown = folder.piped(&std::fs::read(&model).unwrap(), |path| {
        json(&tree(&["decode", "--model", &path.display().to_string(), "--format", "json"]))
    });
    assert_eq!(shown["tree"]["functions"].as_array().unwrap().len(), 2);
}

#[test]
fn generate_explains_bad_input() {
    let folder = Folder::new("bad");
    let model = tiny_model(&folder);
    let says = |args: &[&str], wanted: &[&str]| {
        let output = generate(args);
        let err = refused(&output);
        wanted.iter().for_each(|w| assert!(err.contains(w), "{w} in {err}"));
        output.status.code()
    };
    let whole = std::fs::read(&model).unwrap();
    let cut = folder.file("cut.gguf", &whole[..whole.len() / 2]);
    says(&["--prompt", "hi", "--model", &cut], &["cut.gguf", "truncated", "help: download"]);
    let wheel = folder.file("model.whl", b"PK\x03\x04");
    says(
        &["--prompt", "hi", "--model", &wheel],
        &["not a GGUF file: it starts with \"PK\\x03\\x04\" instead of \"GGUF\"", "help:"],
    );
    says(&["--prompt", "hi", "--model", "none.gguf"], &["none.gguf", "help: check the path"]);
    let empty = folder.file("empty.gguf", &Builder::default().build());
    says(&["--prompt", "hi", "--model", &empty], &["general.architecture", "help:"]);
    says(&["--prompt", &"hello ".repeat(100), "--model", &model], &["context is 64", "help: shorten"]);
    assert_eq!(says(&["--prompt", "hi", "--model", "none.gguf"], &[]), Some(1));
    let bad: [(&[&str], &[&str]); 11] = [
        (&["--dtype", "q4"], &["q4", "auto, f32, bf16, f16"]),
        (&["--mode", "fast"], &["fast", "auto, none, piecewise, full"]),
        (&["--device", "tpu"], &["--device tpu", "`cpu`", "`auto`", "help: pass `--device cpu`"]),
        (&["--temperature", "-1"], &["--temperature", "help:"]),
        (&["--temperature", "nan"], &["--temperature", "help:"]),
        (&["--top-k", "-1"], &["--top-k"]),
        (&["--top-p", "1.1"], &["--top-p 1.1", "from 0 to 1", "help:"]),
        (&["--min-p", "-0.1"], &["--min-p -0.1", "from 0 to 1", "help:"]),
        (&["--repetition-penalty", "0"], &["--repetition-penalty 0", "above 0", "help:"]),
        (&["--presence-penalty", "inf"], &["--presence-penalty inf", "help:"]),
        (&["--max-new-tokens", "0"], &["at least one"]),
    ];
    for (args, wanted) in bad {
        assert_eq!(says(&[&["--prompt", "hi"], args].concat(), wanted), Some(2), "{args:?}");
    }
    assert_eq!(says(&[], &["--prompt"]), Some(2));
}

#[test]
fn a_device_that_is_not_there_is_refused_before_a_model_is_fetched() {
    let folder = Folder::new("device");
    let commands: [(&str, &[&str]); 3] = [
        (env!("CARGO_BIN_EXE_generate"), &["--prompt", "hi"]),
        (env!("CARGO_BIN_EXE_embed"), &["a", "b"]),
        (env!("CARGO_BIN_EXE_tree"), &["decode"]),
    ];
    for (binary, args) in commands {
        let output = Command::new(binary)
            .args(args)
            .args(["--device", "cuda:99"])
            .env("GRAPHABLE_CACHE", folder.0.join("cache"))
            .env("PATH", "")
            .output()
            .unwrap();
        let err = refused(&output);
        assert!(err.contains("`--device cuda:99`") && err.contains("help: pass `--device cpu`"), "{err}");
        assert!(!err.contains("python3") && !err.contains("Device::"), "{err}");
        assert_eq!(output.status.code(), Some(2));
        assert!(!folder.0.join("cache").exists());
    }
}

#[test]
fn an_answer_that_is_cut_off_says_so() {
    let folder = Folder::new("cut");
    let model = tiny_model(&folder);
    let args = |more: &[&'static str]| {
        let fixed =
            ["--prompt", "hello", "--model", &model, "--device", "cpu", "--mode", "full", "--max-new-tokens"];
        generate(&[&fixed[..], more].concat())
    };
    let cut = json(&args(&["2", "--json"]));
    assert_eq!((&cut["finish_reason"], cut["tokens"].as_array().unwrap().len()), (&"length".into(), 2));
    assert!(cut["load_seconds"].as_f64() > Some(0.0) && cut["capture_seconds"].as_f64() > Some(0.0), "{cut}");
    let err = String::from_utf8_lossy(&args(&["2"]).stderr).into_owned();
    assert!(err.contains("[cut off after 2 tokens; `--max-new-tokens 4` allows more]"), "{err}");
    let full = json(&args(&["1000", "--json"]));
    let reason = full["finish_reason"].as_str().unwrap();
    assert!(["stop", "context"].contains(&reason), "{reason}");
}

#[test]
fn an_answer_that_the_model_ends_is_not_called_cut_off() {
    let args = ["--prompt", smollm2::QUESTION, "--device", "cpu"];
    let v = json(&generate(&[&args[..], &["--json", "--quiet"]].concat()));
    assert_eq!(v["finish_reason"], "stop");
    let err = String::from_utf8_lossy(&generate(&args).stderr).into_owned();
    assert!(!err.contains("cut off"), "{err}");
    for wanted in [
        "load  ",
        "capture  ",
        "prefill  ",
        "first token  ",
        "decode  ",
        "pool  ",
        "results  ",
        "eager  ",
        "executables  ",
    ] {
        assert!(err.contains(wanted), "{wanted} in {err}");
    }
}

#[test]
fn without_a_network_the_alternative_is_named() {
    let folder = Folder::new("offline");
    let args = ["--prompt", "hi", "--quiet"];
    let output = Command::new(env!("CARGO_BIN_EXE_generate"))
        .args(args)
        .env("GRAPHABLE_CACHE", &folder.0)
        .env("PATH", "")
        .output()
        .unwrap();
    let err = refused(&output);
    assert!(err.contains("python3") && err.contains("--model FILE.gguf"), "{err}");
}

#[test]
fn embed_prints_the_cosines() {
    let v = json(&embed(&[&SENTENCES[..], &["--json", "--quiet"]].concat()));
    assert_eq!(v.as_object().unwrap().len(), 1);
    for (found, expected) in v["cosines"].as_array().unwrap().iter().zip(minilm::COSINES) {
        assert!((found.as_f64().unwrap() as f32 - expected).abs() < 0.002, "{v}");
    }
    let plain = embed(&SENTENCES);
    let out = String::from_utf8_lossy(&plain.stdout);
    assert!(out.starts_with("0.94") && out.contains("Today is a sunny day"), "{out}");
}

#[test]
fn embed_explains_bad_input() {
    let folder = Folder::new("embed");
    let real = minilm::folder();
    for name in ["config.json", "tokenizer.json"] {
        std::fs::copy(real.join(name), folder.0.join(name)).unwrap();
    }
    let at = |path: &Path| path.display().to_string();
    let says = |wanted: &[&str]| {
        let err = refused(&embed(&["a", "b", "--model", &at(&folder.0)]));
        wanted.iter().for_each(|w| assert!(err.contains(w), "{w} in {err}"));
    };
    says(&["model.safetensors"]);
    // One tensor is there, and of another shape; all others are missing.
    let data = [0u8; 8];
    let view = safetensors::tensor::TensorView::new(safetensors::Dtype::F32, vec![2], &data).unwrap();
    let bytes = safetensors::serialize([("embeddings.LayerNorm.weight", view)], None).unwrap();
    folder.file("model.safetensors", &bytes);
    says(&[
        "embeddings.LayerNorm.weight",
        "[2]",
        "[384]",
        "embeddings.word_embeddings.weight",
        "more",
        "help:",
    ]);
    folder.file("model.safetensors", &bytes[..20]);
    says(&["model.safetensors"]);
    let err = refused(&embed(&["alone"]));
    assert!(err.contains("SENTENCE"), "{err}");
}

/// What a run that must succeed printed.
fn printed(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn tree_shows_the_branchy_program_in_three_formats() {
    let on = |args: &[&str]| tree(&[args, &["--device", "cpu"]].concat());
    for (program, recordings, roots) in [("branchy", 4, 1), ("apart", 5, 1)] {
        let text = printed(&on(&[program]));
        assert!(text.contains(&format!("cpu: {recordings} recordings, {roots} root, ")), "{text}");
        assert!(
            text.contains(&format!("{program} (examples/src/branchy.rs): 5 parts, 4 of them graphs")),
            "{text}"
        );
        let value = json(&on(&[program, "--format", "json"]));
        assert_eq!(value["tree"]["recordings"].as_array().unwrap().len(), recordings);
        assert_eq!((&value["plan"]["graphable"], &value["recording"]), (&4.into(), &serde_json::Value::Null));
        let dot = printed(&on(&[program, "--format", "dot"]));
        assert!(dot.starts_with("digraph tree {") && dot.matches(" [label=").count() == recordings, "{dot}");
    }
    let one = printed(&on(&["branchy", "--recording", "0"]));
    assert!(one.starts_with("1 node, 0 edges") && one.contains("kernel mul"), "{one}");
    let dot = printed(&on(&["branchy", "--recording", "0", "--format", "dot"]));
    assert!(dot.starts_with("digraph recording {"), "{dot}");
    let value = json(&on(&["branchy", "--recording", "0", "--format", "json"]));
    assert_eq!(value["recording"]["nodes"][0]["name"], "mul");
    let whole = printed(&on(&["branchy", "--mode", "none"]));
    assert!(whole.contains("cpu: 0 recordings, 0 roots"), "{whole}");
}

#[test]
fn tree_shows_a_model_and_writes_its_timeline() {
    let folder = Folder::new("tree");
    let model = tiny_model(&folder);
    let file = folder.0.join("timeline.json");
    let path = file.display().to_string();
    let args = ["decode", "--model", &model, "--device", "cpu", "--format", "json", "--timeline", &path];
    let output = tree(&[&args[..], &["--quiet"]].concat());
    let value = json(&output);
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    let functions: Vec<_> =
        value["tree"]["functions"].as_array().unwrap().iter().map(|f| &f["name"]).collect();
    assert_eq!(functions, ["prefill", "decode"]);
    // Of one token: the embedding, two segments a layer, and the logits.
    let nodes = value["tree"]["recordings"].as_array().unwrap();
    let decode = nodes.iter().filter(|n| n["function"] == "decode").count();
    assert_eq!(decode, 2 + 2 * tiny::LAYERS);

    // Which bucket each is for. Of the four pieces, those that fit the model's context.
    let buckets: std::collections::BTreeSet<_> = nodes
        .iter()
        .filter(|n| n["function"] == "prefill")
        .map(|n| {
            assert_eq!(n["sizes"][0][0], "T", "{n}");
            n["sizes"][0][1].as_u64().unwrap()
        })
        .collect();
    assert_eq!(buckets.into_iter().collect::<Vec<_>>(), [16, 32, 64, 128]);
    assert!(nodes.iter().filter(|n| n["function"] == "decode").all(|n| n["sizes"] == serde_json::json!([])));

    let timeline: Vec<serde_json::Value> = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    let row = |tid: u64, kind: &str| {
        timeline.iter().filter(|e| e["ph"] == "X" && e["tid"] == tid && e["cat"] == kind).collect::<Vec<_>>()
    };
    for kind in ["step", "call", "segment", "eager"] {
        assert!(!row(1, kind).is_empty(), "{kind} in {timeline:?}");
    }
    let decided: std::collections::BTreeSet<_> =
        row(1, "segment").iter().filter_map(|e| e["args"]["decision"].as_str()).collect();
    assert_eq!(decided.into_iter().collect::<Vec<_>>(), ["record", "replay", "warm-up"]);
    let calls = row(1, "call").iter().filter(|e| e["name"] == "decode").count();
    assert!(calls >= 3, "{calls}");
    // Named by what they are, with the user's file, on the host as on the device.
    for kind in ["segment", "eager"] {
        let (host, device) = (row(1, kind), row(2, kind));
        assert_eq!(host.len(), device.len(), "{kind}");
        for slice in host.iter().chain(&device) {
            let name = slice["name"].as_str().unwrap();
            let number = name.split_once(" #").map(|(_, number)| number.parse::<usize>().is_ok());
            assert_eq!(number, Some(true), "{name}");
            let place = slice["args"]["file"].as_str().unwrap();
            assert!(place.ends_with(".rs") && !place.contains("runtime"), "{slice}");
            assert!(slice["args"]["line"].as_u64().unwrap() > 1, "{slice}");
            assert!(slice["dur"].as_f64().unwrap() >= 0.0 && slice["ts"].as_f64().unwrap() >= 0.0, "{slice}");
        }
    }
    let worked: f64 = row(2, "segment").iter().map(|e| e["dur"].as_f64().unwrap()).sum();
    assert!(worked > 0.0, "the device did something");
}

#[test]
fn tree_explains_bad_options() {
    let folder = Folder::new("tree-options");
    let says = |args: &[&str], wanted: &[&str]| {
        let err = refused(&tree(args));
        wanted.iter().for_each(|w| assert!(err.contains(w), "{w} in {err}"));
    };
    says(&[], &["PROGRAM"]);
    says(&["branch"], &["branch", "branchy, apart, decode"]);
    says(&["branchy", "--format", "svg"], &["svg", "text, dot, json"]);
    says(&["branchy", "--device", "cpu", "--recording", "9"], &["--recording 9", "0 to 3", "help:"]);
    says(&["branchy", "--mode", "none", "--device", "cpu", "--recording", "0"], &["nothing was recorded"]);
    let nowhere = folder.0.join("missing").join("t.json").display().to_string();
    says(&["branchy", "--device", "cpu", "--timeline", &nowhere], &["missing", "cannot write it", "help:"]);
}

#[test]
fn passes_of_ones_own_do_what_they_say() {
    let output = run(env!("CARGO_BIN_EXE_own_pass"), &[]);
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{err}");
    let has = |what: &str| assert!(out.lines().any(|line| line.starts_with(what)), "{what}: {out}");
    has("at most 0.0000 from the exact results");
    has("2 audits");
    has("counts: 1 x add; 2 x gelu; 2 x ");
    has("fast_gelu (within 0.05): 2 x fast_gelu for 1 operation each");
    let far = out.lines().filter(|line| line.starts_with("at most 0.0") && !line.contains("0.0000"));
    assert_eq!(far.count(), 5, "{out}");
}

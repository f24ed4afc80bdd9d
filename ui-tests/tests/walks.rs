//! The walks of `docs/ARCHITECTURE.md`: numbered steps, each of which begins with a file and a function that exist. And
//! what `CONTRIBUTING.md` names: paths, tests and variables.

use std::{
    collections::HashMap,
    fs,
    path::{Path, PathBuf},
};

use syn::visit::Visit;

/// More steps than this nobody follows.
const MOST_STEPS: usize = 10;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The steps of each walk, as `file.rs::function`. A walk has the name of its heading, or of the line above it that ends
/// in a colon. Where file and function are two code spans, the file is one of the runtime.
fn walks(text: &str) -> HashMap<&str, Vec<String>> {
    let mut walks: HashMap<&str, Vec<String>> = HashMap::new();
    let mut name = "";
    for line in text.lines() {
        let step = line.split_once(". `").filter(|(number, _)| number.parse::<u8>().is_ok());
        if let Some((_, step)) = step {
            let spans: Vec<&str> = step.split('`').collect();
            let step = match spans[..] {
                [file, " ", function, ..] => format!("runtime/src/{file}::{function}"),
                [step, ..] => step.to_owned(),
                [] => continue,
            };
            walks.entry(name).or_default().push(step);
        } else if line.starts_with('#') || line.ends_with(':') {
            name = line.trim_start_matches(['#', ' ']);
        }
    }
    walks
}

/// Why a step is none, if so.
fn missing(step: &str) -> Option<String> {
    struct Functions<'n>(&'n str, bool);
    impl<'a> Visit<'a> for Functions<'_> {
        fn visit_signature(&mut self, sig: &'a syn::Signature) {
            self.1 |= sig.ident == self.0;
        }
    }
    let Some((file, function)) = step.split_once("::") else { return Some(format!("{step}: no function")) };
    let Ok(text) = fs::read_to_string(root().join(file)) else {
        return Some(format!("{step}: no such file"));
    };
    let mut functions = Functions(function, false);
    functions.visit_file(&syn::parse_file(&text).expect("a source file is Rust"));
    (!functions.1).then(|| format!("{step}: no such function"))
}

#[test]
fn every_step_exists() {
    let text = fs::read_to_string(root().join("docs/ARCHITECTURE.md")).unwrap();
    let walks = walks(&text);
    for walk in [
        "`neg` of `let h = ops::neg(x)?;`, in a function with boundaries:",
        "A host tensor, from `call` to launch:",
        "A segment's key:",
        "Adding an operation, with `concat` as the example; `runtime/tests/ops` then compares it with a naive reference:",
    ] {
        assert!(walks.contains_key(walk), "{:?}", walks.keys());
    }
    for (walk, steps) in walks {
        // One that lost its steps would pass in silence.
        assert!((6..=MOST_STEPS).contains(&steps.len()), "{walk}: {} steps", steps.len());
        let missing: Vec<String> = steps.iter().filter_map(|step| missing(step)).collect();
        assert!(missing.is_empty(), "{walk}: {missing:?}");
    }
}

/// What is wrong with a code span of `CONTRIBUTING.md`.
fn wrong_in(span: &str, sources: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut words = span.split([' ', ',']).peekable();
    let mut package = "";
    while let Some(word) = words.next() {
        let next = words.peek().copied().unwrap_or_default();
        match word {
            "-p" if next == "graphable" => package = "runtime",
            "-p" if next == "runtime-tests" => package = "runtime/tests",
            "-p" => package = next,
            "--test" | "--bench" if !is_target(package, word.trim_start_matches('-'), next) => {
                wrong.push(format!("{package} has no {word} {next}"));
            }
            _ => {}
        }
        let (variable, is_set) = word.split_once('=').map_or((word, false), |(name, _)| (name, true));
        let ours = is_set || variable.starts_with("GRAPHABLE_");
        if ours && !sources.contains(&format!("\"{variable}\"")) {
            wrong.push(format!("nothing reads {variable}"));
        }
        let is_path = !is_set && (word.contains('/') || word.ends_with(".rs") || word.ends_with(".toml"));
        if is_path && !root().join(word).exists() {
            wrong.push(format!("{word}: no such file"));
        }
    }
    wrong
}

/// Whether a package has a test or a bench of that name.
fn is_target(package: &str, kind: &str, name: &str) -> bool {
    let folder = root().join(package).join(if kind == "test" { "tests" } else { "benches" });
    let manifest = fs::read_to_string(root().join(package).join("Cargo.toml")).unwrap_or_default();
    let is_found = kind != "test" || !manifest.contains("\nautotests = false\n");
    is_found && (folder.join(format!("{name}.rs")).exists() || folder.join(name).join("main.rs").exists())
        || manifest.contains(&format!("[[{kind}]]\nname = \"{name}\"\n"))
}

/// The text of every source file in the folders of tests, in which variables are read.
fn sources(folder: &Path) -> String {
    let mut text = String::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            text += &sources(&path);
        } else if path.extension().is_some_and(|e| e == "rs") {
            text += &fs::read_to_string(&path).unwrap();
        }
    }
    text
}

#[test]
fn what_contributors_are_told_exists() {
    let text = fs::read_to_string(root().join("CONTRIBUTING.md")).unwrap();
    let folders = ["runtime/tests", "ui-tests/tests", "macro-tests/tests"];
    let sources = folders.map(|folder| sources(&root().join(folder))).concat();
    let links = text.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(link, _)| link);
    let spans: Vec<&str> = text.split('`').skip(1).step_by(2).chain(links).collect();
    assert!(spans.len() > 50, "only {} names", spans.len());
    let wrong: Vec<String> = spans.iter().flat_map(|span| wrong_in(span, &sources)).collect();
    assert!(wrong.is_empty(), "CONTRIBUTING.md: {wrong:#?}");
    // One page.
    assert!(text.lines().count() <= 100, "{} lines", text.lines().count());
    for span in [
        "runtime/src/nowhere.rs",
        "cargo test -p graphable --test nowhere",
        "cargo test -p graphable --test ops",
        "cargo test -p runtime-tests --test nowhere",
        "cargo bench -p graphable --bench nowhere",
        "NO_SUCH_VARIABLE=1 cargo test",
    ] {
        assert_eq!(wrong_in(span, &sources).len(), 1, "{span}");
    }
}

#[test]
fn what_does_not_exist_is_found() {
    assert_eq!(missing("macros/src/lib.rs::graphable"), None);
    for step in ["macros/src/lib.rs::nothing", "macros/src/nowhere.rs::graphable", "macros/src/lib.rs"] {
        assert!(missing(step).is_some(), "{step}");
    }
    let found = walks("## W\n1. `a.rs::b` and\n2. `c.rs::d`\n\nOne more:\n\n1. `e/f.rs` `g` does\n");
    assert_eq!(found["W"], ["a.rs::b", "c.rs::d"]);
    assert_eq!(found["One more:"], ["runtime/src/e/f.rs::g"]);
}

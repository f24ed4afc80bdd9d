//! The walk through the macro in `docs/ARCHITECTURE.md`: numbered steps, each of which begins with `file.rs::function` that
//! exists. Walks through the runtime name file and function apart; another test looks at those.

use std::{collections::HashMap, fs, path::PathBuf};

use syn::visit::Visit;

/// More steps than this nobody follows.
const MOST_STEPS: usize = 10;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The steps under each heading, as `file.rs::function`.
fn walks(text: &str) -> HashMap<&str, Vec<&str>> {
    let mut walks: HashMap<&str, Vec<&str>> = HashMap::new();
    let mut heading = "";
    for line in text.lines() {
        if line.starts_with('#') {
            heading = line.trim_start_matches(['#', ' ']);
        }
        let step = line.split_once(". `").filter(|(number, _)| number.parse::<u8>().is_ok());
        let step = step.and_then(|(_, rest)| rest.split_once('`')).filter(|(step, _)| step.contains("::"));
        if let Some((step, _)) = step {
            walks.entry(heading).or_default().push(step);
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
    assert!(walks.contains_key("A token through the macro"), "{:?}", walks.keys());
    for (walk, steps) in walks {
        assert!(steps.len() <= MOST_STEPS, "{walk}: {} steps", steps.len());
        let missing: Vec<String> = steps.into_iter().filter_map(missing).collect();
        assert!(missing.is_empty(), "{walk}: {missing:?}");
    }
}

#[test]
fn what_does_not_exist_is_found() {
    assert_eq!(missing("macros/src/lib.rs::graphable"), None);
    for step in ["macros/src/lib.rs::nothing", "macros/src/nowhere.rs::graphable", "macros/src/lib.rs"] {
        assert!(missing(step).is_some(), "{step}");
    }
    assert_eq!(walks("## W\n1. `a.rs::b` and\n2. `c.rs::d`\n")["W"], ["a.rs::b", "c.rs::d"]);
}

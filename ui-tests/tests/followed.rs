//! What our messages tell people to write compiles: for every code that a pinned message has with a help, a program of
//! the fail suite after its help was followed to the letter. `build.rs` makes each a module of this test.

#![allow(
    dead_code,
    missing_docs,
    unreachable_pub,
    unused,
    unused_qualifications,
    clippy::all,
    clippy::pedantic,
    reason = "they are read by rustc as users' crates are, without the lints of this workspace"
)]

use std::{collections::BTreeMap, fs, path::Path};

include!(concat!(env!("OUT_DIR"), "/followed.rs"));

/// Codes whose help says in words what to do, and shows nothing to copy.
const IN_WORDS: [&str; 7] = ["G008", "G011", "G015", "G016", "G017", "G064", "G090"];

/// Of each code: the fail programs that show it, and what the help beside it says.
fn helps() -> BTreeMap<String, BTreeMap<String, Vec<String>>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ui/fail");
    let mut found: BTreeMap<String, BTreeMap<String, Vec<String>>> = BTreeMap::new();
    for class in fs::read_dir(root).unwrap() {
        let class = class.unwrap();
        for file in fs::read_dir(class.path()).unwrap() {
            let path = file.unwrap().path();
            if path.extension().is_none_or(|e| e != "stderr") {
                continue;
            }
            let stem = path.file_stem().unwrap().to_str().unwrap().to_owned();
            let name = format!("{}/{stem}", class.file_name().to_str().unwrap());
            let text = format!("\n{}", fs::read_to_string(&path).unwrap());
            for error in text.split("\nerror").skip(1) {
                let first = error.lines().next().unwrap_or_default();
                let Some(code) = first.split_once("[G").and_then(|(_, rest)| rest.split_once(']')) else {
                    continue;
                };
                let own = error.lines().filter_map(|line| {
                    let line = line.trim_start_matches([' ', '=', '|']);
                    line.strip_prefix("help: ").or_else(|| line.strip_prefix("note: ")).map(str::to_owned)
                });
                let own: Vec<String> = own
                    .filter(|h| !h.starts_with("the trait `") && !h.starts_with("this error orig"))
                    .collect();
                found.entry(format!("G{}", code.0)).or_default().entry(name.clone()).or_default().extend(own);
            }
        }
    }
    found
}

fn plain(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

/// Whether a program has something that a help shows: `a … b` stands for anything between.
fn shows(program: &str, help: &str) -> bool {
    help.split('`').skip(1).step_by(2).any(|code| {
        let mut rest = program;
        plain(code).split('…').all(|part| match rest.split_once(part) {
            Some((_, behind)) => {
                rest = behind;
                true
            }
            None => false,
        })
    })
}

#[test]
fn every_help_was_followed() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ui/followed");
    let mut wrong = String::new();
    let helps = helps();
    assert!(helps.len() > 70, "only {} codes", helps.len());
    for (code, programs) in &helps {
        let path = folder.join(format!("{}.rs", code.to_lowercase()));
        let Ok(text) = fs::read_to_string(&path) else {
            wrong +=
                &format!("{code}: write {}, a program of the fail suite as its help says\n", path.display());
            continue;
        };
        let of =
            text.lines().next().and_then(|l| l.strip_prefix("//! `fail/")).and_then(|l| l.split_once(".rs`"));
        let Some(helps) = of.and_then(|(name, _)| programs.get(name)) else {
            wrong += &format!("{code}: its first line names no program that shows it\n");
            continue;
        };
        let program = plain(text.split_once('\n').map_or("", |(_, rest)| rest));
        let followed = helps.iter().any(|h| h.starts_with("remove") || shows(&program, h));
        if followed == IN_WORDS.contains(&code.as_str()) {
            wrong += &format!("{code}: nothing of {helps:?} stands there, or no exception is needed\n");
        }
    }
    for file in fs::read_dir(&folder).unwrap() {
        let name = file.unwrap().file_name().to_str().unwrap().to_uppercase();
        let code = name.trim_end_matches(".RS");
        if !helps.contains_key(code) {
            wrong += &format!("{code}: no message has this code any more\n");
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn helps_are_looked_for_to_the_letter() {
    assert!(shows(&plain("let v = ops::exp(x)?;"), "bind it first: `let v = …;`, then use `v`"));
    assert!(!shows(&plain("let w = ops::exp(x)?;"), "write `let v = …;`"));
    assert!(!shows(&plain("f(x)"), "use an enum"));
}

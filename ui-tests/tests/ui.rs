//! What `#[graphable]` refuses, with its messages. What it accepts is in `accepted.rs`.
//!
//! Only programs that must fail: trybuild then checks all of them by one call of cargo, without generating
//! code. A single one that must run would make it build them one after the other, seven times as slowly.
//!
//! `TRYBUILD=overwrite cargo test -p ui-tests` pins the messages anew; read what it wrote.

use std::{
    fs,
    path::{Path, PathBuf},
};

#[test]
fn programs() {
    let t = trybuild::TestCases::new();
    t.compile_fail("tests/ui/fail/*/*.rs");
}

/// Every pinned message, with its file.
fn messages() -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ui/fail");
    let mut found = Vec::new();
    for class in fs::read_dir(root).unwrap() {
        for file in fs::read_dir(class.unwrap().path()).unwrap() {
            let path = file.unwrap().path();
            if path.extension().is_some_and(|e| e == "stderr") {
                let text = fs::read_to_string(&path).unwrap();
                found.push((path, text));
            }
        }
    }
    found
}

#[test]
fn messages_are_readable() {
    let all = messages();
    assert!(all.len() >= 100, "only {} pinned messages", all.len());
    for (path, text) in all {
        let path = path.display();
        for error in text.split("\nerror").filter(|e| !e.trim().is_empty()) {
            let lines = error.lines().count();
            assert!(lines <= 30, "{path}: an error of {lines} lines");
        }
        for line in text.lines() {
            let internals = [
                "__",
                "Driver",
                "Held",
                "Site",
                "LiveIn",
                "LiveOut",
                "SegmentOutputs::",
                "/root/",
                "$RUST",
                "$CARGO",
                "core::",
            ];
            for internal in internals {
                assert!(!line.contains(internal), "{path}: `{internal}` in `{line}`");
            }
        }
    }
}

#[test]
fn messages_say_what_to_write() {
    for (path, text) in messages() {
        // Those of the macro have a code of ours and none of rustc's.
        for error in format!("\n{text}").split("\nerror").skip(1).filter(|e| e.starts_with(": [G")) {
            assert!(error.contains("help: "), "{}: no help in\nerror{error}", path.display());
        }
    }
}

#[test]
fn tests_have_messages() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ui/fail");
    for class in fs::read_dir(root).unwrap() {
        for file in fs::read_dir(class.unwrap().path()).unwrap() {
            let path = file.unwrap().path();
            let other = path.with_extension(if path.extension().is_some_and(|e| e == "rs") {
                "stderr"
            } else {
                "rs"
            });
            assert!(other.exists(), "{} has no {}", path.display(), other.display());
        }
    }
}

//! What `#[graphable]` refuses, with its messages, and what it accepts.
//!
//! What the messages must be like is in `messages.rs`.
//! `TRYBUILD=overwrite cargo test -p ui-tests` pins the messages anew; read what it wrote.

use std::{fs, path::Path};

#[test]
fn programs() {
    let t = trybuild::TestCases::new();
    t.compile_fail("tests/ui/fail/*/*.rs");
    t.pass("tests/ui/pass/*.rs");
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

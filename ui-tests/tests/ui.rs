//! What `#[graphable]` refuses, with its messages, and what it accepts.
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
    t.pass("tests/ui/pass/*.rs");
}

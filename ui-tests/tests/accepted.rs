//! What `#[graphable]` accepts: every program of `tests/ui/pass` compiles, without a warning where it says so, and
//! runs. `build.rs` makes each a module of this test; as crates of their own they would be linked one by one.

#![allow(
    dead_code,
    missing_docs,
    unreachable_pub,
    unused_qualifications,
    clippy::all,
    reason = "they are read by rustc as users' crates are, without the lints of this workspace"
)]

include!(concat!(env!("OUT_DIR"), "/accepted.rs"));

/// One of the programs writes `crate::env`.
pub mod env {
    pub use crate::look_alikes::env::var;
}

#[test]
fn there_are_programs() {
    let programs = include_str!(concat!(env!("OUT_DIR"), "/accepted.rs")).matches("pub mod ").count();
    assert!(programs >= 25, "only {programs} programs that must compile");
}

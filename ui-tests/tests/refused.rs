//! Programs that the macro refuses, as modules of one crate, for `ui.rs`, which writes their list and reads the errors.
//! By itself this is no test.

#![allow(
    dead_code,
    missing_docs,
    unreachable_pub,
    unused_qualifications,
    reason = "they are read by rustc as users' crates are, without the lints of this workspace"
)]

include!(concat!(env!("CARGO_TARGET_TMPDIR"), "/refused.rs"));

fn main() {}

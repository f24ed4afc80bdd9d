//! Behaviour of the runtime core, driven exactly as generated code drives it.
//!
//! Everything runs on the CPU in test mode: independent nodes run in random order and freed memory is
//! overwritten, so that what depends on luck fails. The tests look at events and counters as well as at
//! values: a runtime that ran everything eagerly would give the right values too.
//!
//! The folders are those of `runtime/src`.

#![allow(clippy::drop_non_drop, reason = "dropping a step says where it ends")]

mod listening;
mod support;

#[allow(dead_code, reason = "not every test binary calls all of them")]
#[path = "../common/custom.rs"]
mod custom_ops;
#[path = "../common/device.rs"]
mod device;
#[path = "../common/folded.rs"]
mod folded;

mod backend;
mod graph;
mod host;
mod memory;
mod observe;
mod program;
mod record;
mod tree;

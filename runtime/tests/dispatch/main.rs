//! The graph of a call, chosen by its batch: whole calls for uniform decodes, segments for the rest. Events and
//! counters are asserted as well as values.

#![allow(clippy::drop_non_drop, reason = "dropping a step says where it ends")]

#[path = "../common/device.rs"]
mod device;
#[allow(dead_code, unused_macros, unused_imports, reason = "shared with the tests of the core")]
#[path = "../core/support.rs"]
mod support;

mod batches;
mod captures;
mod levels;
mod model;
mod packing;
mod refusals;

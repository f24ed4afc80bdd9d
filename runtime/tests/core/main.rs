//! Behaviour of the runtime core, driven exactly as generated code drives it.
//!
//! Everything runs on the CPU in test mode: independent nodes run in random order and freed memory is
//! overwritten, so that what depends on luck fails. The tests look at events and counters as well as at
//! values: a runtime that ran everything eagerly would give the right values too.

#![allow(clippy::drop_non_drop, reason = "dropping a step says where it ends")]

mod support;

mod audit;
mod branches;
mod buckets;
mod capture_all_failures;
#[allow(dead_code, reason = "not every test binary calls all of them")]
#[path = "../common/custom.rs"]
mod custom_ops;
#[path = "../common/device.rs"]
mod device;
mod estimates;
mod eviction;
mod faults;
#[path = "../common/folded.rs"]
mod folded;
mod growth;
mod hooks;
mod inspect;
mod invalidated;
mod kept;
mod last_use;
mod lifecycle;
mod listening;
mod liveness;
mod maintenance;
mod modes;
mod moved_memory;
mod numerics;
mod panics;
mod passes;
mod paths;
mod pinned;
mod random;
mod regions;
mod results;
mod runtime_checks;
mod sharing;
mod sleep;
mod stale;
mod threads;
mod timeline;
mod users_passes;
mod waits;
mod walk;
mod weights;

//! `#[graphable]` functions against the same functions without the attribute: the programs behind the
//! design's rules, and the traps it names.

#![allow(clippy::drop_non_drop, reason = "dropping a step says where it ends")]

mod accepted;
mod branches;
mod carry;
mod conditions;
mod corners;
mod counts;
#[path = "../common/device.rs"]
mod device;
mod device_events;
mod edges;
mod edges_memory;
mod environment;
mod formats;
mod guards;
mod host_values;
mod hygiene_names;
mod identity;
mod jumps;
mod keys;
mod names;
mod nested;
mod objects;
mod realistic;
mod regions;
mod review;
mod support;
mod values;

//! `#[graphable]` functions against the same functions without the attribute: the programs behind the
//! design's rules, and the traps it names.

#![allow(clippy::drop_non_drop, reason = "dropping a step says where it ends")]

mod branches;
mod carry;
mod conditions;
mod counts;
#[path = "../common/device.rs"]
mod device;
mod device_events;
mod edges;
mod edges_memory;
mod environment;
mod evaluation_order;
mod formats;
mod guards;
mod host_values;
mod hygiene_names;
mod identity;
mod idioms;
mod jumps;
mod keys;
mod live_values;
mod names;
mod nested;
mod objects;
mod realistic;
mod regions;
mod support;
mod values;

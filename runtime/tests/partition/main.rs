//! `#[graphable]` functions against the same functions without the attribute: the programs behind the
//! design's rules, and the traps it names.

#![allow(
    clippy::needless_late_init,
    clippy::useless_vec,
    reason = "that such programs work is what is tested"
)]

mod carry;
mod corners;
mod identity;
mod jumps;
mod keys;
mod nested;
mod support;
mod values;

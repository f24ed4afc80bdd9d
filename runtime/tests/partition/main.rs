//! `#[graphable]` functions against the same functions without the attribute: the programs behind the
//! design's rules, and the traps it names.

mod carry;
mod corners;
mod identity;
mod jumps;
mod keys;
mod nested;
mod support;
mod values;

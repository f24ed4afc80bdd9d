//! The small protocols between threads, under [loom](https://docs.rs/loom): the very files of the runtime,
//! compiled with loom's locks and atomics, in every order in which the threads can meet.
//!
//! - `retire`: ids of dropped parameters, from any thread to the runtime's next step;
//! - `cpu::deferred_free`: memory that the CPU stream's worker may free only behind the commands that use it;
//! - `cpu::reply`: an answer from the worker to one caller, or the news that there will be none;
//! - `cuda::deferred_free`: what handles let go of on any thread, which a backend frees, or, once it is gone,
//!   whoever let go of it.

#![cfg(test)]

mod backend;
mod base;
mod cpu;
mod cuda;
#[path = "../../runtime/src/value/retire.rs"]
mod retire;

mod tests;

use backend::Error;

type Result<T, E = Error> = std::result::Result<T, E>;

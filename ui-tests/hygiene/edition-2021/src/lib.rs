//! The macros in edition 2021: every warning and pedantic lint is an error.

#![deny(warnings, clippy::pedantic)]

#[macro_use]
#[path = "../../shared.rs"]
mod shared;

/// With the prelude of the runtime.
pub mod model {
    use graphable::prelude::*;

    include!("../../model.rs");
}

/// Beside items of the same names as ours.
pub mod names {
    include!("../../names.rs");
}

#[test]
fn it_runs() {
    model::run().unwrap();
    names::run().unwrap();
}

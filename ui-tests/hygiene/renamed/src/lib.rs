//! The runtime under another name.
//!
//! Generated code says `::graphable`, so a crate that renames its dependency says once, at its root, what
//! that is.

#![deny(warnings, clippy::pedantic)]

extern crate tensors as graphable;

#[macro_use]
#[path = "../../shared.rs"]
mod shared;

/// With the prelude of the runtime.
pub mod model {
    use tensors::prelude::*;

    include!("../../model.rs");
}

#[test]
fn it_runs() {
    model::run().unwrap();
}

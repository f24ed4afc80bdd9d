//! The macros in edition 2024: every warning and pedantic lint is an error, and some that are off by default.
//!
//! Three that are off by default are not among them: `absolute_paths` and `shadow_unrelated` see generated
//! code as the user's, and `missing_docs_in_private_items` is about the model.

#![deny(
    warnings,
    clippy::pedantic,
    clippy::allow_attributes_without_reason,
    clippy::unwrap_used,
    clippy::expect_used,
    unused_qualifications,
    single_use_lifetimes,
    let_underscore_drop,
    unsafe_code
)]

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
    assert!(model::run().is_ok());
    assert!(names::run().is_ok());
}

//! The macros in edition 2024: every warning, and every lint that generated code could trip over, is an
//! error.

#![deny(
    warnings,
    clippy::pedantic,
    clippy::shadow_unrelated,
    clippy::allow_attributes_without_reason,
    clippy::absolute_paths,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::missing_docs_in_private_items,
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

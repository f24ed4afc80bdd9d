//! The lints of a kernel hold for its body.

#![deny(warnings)]
#![warn(missing_docs, unreachable_pub)]

use graphable::prelude::*;

/// One parameter is not used.
#[kernel]
#[allow(unused_variables, reason = "it is another kernel's, too")]
pub fn allowed(x: f32, other: f32) -> f32 {
    x
}

/// As it is on paper.
#[kernel]
#[expect(non_snake_case, reason = "the paper writes them so")]
pub fn expected(Q: f32, K: f32) -> f32 {
    let S = Q * K;
    S
}

fn main() {
    assert_eq!(allowed::scalar(1.0, 2.0) + expected::scalar(2.0, 3.0), 7.0);
}

//! A method that is spelt almost so.

use graphable::prelude::*;

#[kernel]
fn rooted(x: f32) -> f32 {
    x.sqr_t().roundd()
}

fn main() {}

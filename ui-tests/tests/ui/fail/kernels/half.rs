//! The storage type is no type of a kernel.

use graphable::prelude::*;

#[kernel]
fn halved(x: f16) -> f16 {
    x
}

fn main() {}

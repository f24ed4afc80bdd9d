//! One function for several types.

use graphable::prelude::*;

#[kernel]
fn double<T: std::ops::Add<Output = T> + Copy>(x: T) -> T {
    x + x
}

fn main() {}

//! `fail/kernels/recursion.rs`, by its help.

use graphable::prelude::*;

#[kernel]
fn factorial(n: u32) -> u32 {
    let (mut product, mut left) = (1, n);
    for _ in 0..32 {
        if left == 0 {
            break;
        }
        product *= left;
        left -= 1;
    }
    product
}

fn main() {}

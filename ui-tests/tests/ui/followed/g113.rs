//! `fail/kernels/while_loop.rs`, by its help.

use graphable::prelude::*;

#[kernel]
fn halvings(x: f32) -> u32 {
    let mut x = x;
    let mut n = 0;
    for _ in 0..32 {
        if x <= 1.0 {
            break;
        }
        x *= 0.5;
        n += 1;
    }
    n
}

fn main() {}

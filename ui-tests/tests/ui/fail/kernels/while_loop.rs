//! Nothing says that it ends.

use graphable::prelude::*;

#[kernel]
fn halvings(x: f32) -> u32 {
    let mut x = x;
    let mut n = 0;
    while x > 1.0 {
        x *= 0.5;
        n += 1;
    }
    n
}

fn main() {}

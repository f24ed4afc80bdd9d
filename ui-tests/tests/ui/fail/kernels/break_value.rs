//! A value leaves no loop.

use graphable::prelude::*;

#[kernel]
fn first(x: f32) -> u32 {
    let mut found = 0;
    for i in 0..8 {
        if x < i as f32 {
            break i;
        }
    }
    break;
    found
}

fn main() {}

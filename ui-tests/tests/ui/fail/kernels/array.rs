//! Tables are not in the language.

use graphable::prelude::*;

#[kernel]
fn looked_up(i: u32) -> f32 {
    const TABLE: [f32; 2] = [0.5, 1.5];
    TABLE[i as usize]
}

fn main() {}

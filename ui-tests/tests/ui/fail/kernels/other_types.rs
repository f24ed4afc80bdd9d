//! Integers have 8, 32 and 64 bits.

use graphable::prelude::*;

#[kernel]
fn index(x: usize, by: i16) -> u32 {
    x as u32
}

#[kernel]
fn widened(x: u32) -> u32 {
    (x as u64 * 3 >> 1) as u32
}

fn main() {}

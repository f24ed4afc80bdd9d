//! Integers are `i32`, `u32` and `u8`.

use graphable::prelude::*;

#[kernel]
fn index(x: usize, by: i64) -> u32 {
    x as u32
}

#[kernel]
fn widened(x: u32) -> u32 {
    (x as u64 * 3 >> 1) as u32
}

fn main() {}

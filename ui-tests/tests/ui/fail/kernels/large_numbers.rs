//! Numbers that a type does not hold.

use graphable::prelude::*;

#[kernel]
fn hashed(x: u32, b: u8) -> u32 {
    let y = b + 300;
    x * 0x1_0000_0001 + y as u32
}

#[kernel]
fn bounded(x: f32) -> f32 {
    x.min(1e39)
}

fn main() {}

//! The bound is a value of the device.

use graphable::prelude::*;

#[kernel]
fn summed(x: f32, n: u32) -> f32 {
    let mut sum = 0.0;
    for i in 0..n {
        sum += x * i as f32;
    }
    sum
}

fn main() {}

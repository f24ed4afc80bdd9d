//! Nothing is printed, and nothing stops.

use graphable::prelude::*;

#[kernel]
fn checked(x: f32) -> f32 {
    assert!(x > 0.0);
    println!("{x}");
    x.ln()
}

fn main() {}

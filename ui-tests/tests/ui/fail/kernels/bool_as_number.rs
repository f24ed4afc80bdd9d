//! A bool is no number.

use graphable::prelude::*;

#[kernel]
fn kept(x: f32, keep: bool) -> f32 {
    let n = keep as f32;
    if x { n } else { x * keep }
}

fn main() {}

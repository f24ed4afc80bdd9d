//! A float that nothing makes an `f32`.

use graphable::prelude::*;

#[kernel]
fn chosen(n: u32) -> u32 {
    let limit = 0.5;
    if 0.3 > limit { n } else { 0 }
}

fn main() {}

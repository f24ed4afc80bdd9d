//! No options, no patterns in conditions.

use graphable::prelude::*;

#[kernel]
fn divided(a: i32, b: i32) -> i32 {
    if let Some(q) = a.checked_div(b) { q } else { 0 }
}

fn main() {}

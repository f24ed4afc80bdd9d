//! A guard in a match.

use graphable::prelude::*;

#[kernel]
fn sign(n: i32) -> i32 {
    match n {
        0 => 0,
        n if n < 0 => -1,
        _ => 1,
    }
}

fn main() {}

//! A pattern that binds.

use graphable::prelude::*;

#[kernel]
fn next(n: i32) -> i32 {
    match n {
        7 => 0,
        other => other + 1,
    }
}

fn main() {}

//! `fail/kernels/guard.rs`, by its help.

use graphable::prelude::*;

#[kernel]
fn sign(n: i32) -> i32 {
    match n {
        0 => 0,
        _ => if n < 0 { -1 } else { 1 },
    }
}

fn main() {}

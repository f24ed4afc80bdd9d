//! Signatures that no operation has.

use graphable::prelude::*;

#[kernel]
fn constant() -> f32 {
    1.0
}

#[kernel]
fn nothing(x: f32) {}

#[kernel]
fn part((a, b): (f32, f32)) -> f32 {
    a + b
}

fn main() {}

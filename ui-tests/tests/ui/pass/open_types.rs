//! Methods on what other kernels return, and on constants: rustc knows the types, the macro does not.

#![deny(warnings)]
#![allow(dead_code, reason = "they are compiled")]

use graphable::prelude::*;

const BELOW: i64 = -3_000_000_000;

#[kernel]
fn hypotenuse(a: f64, b: f64) -> f64 {
    a * a + b * b
}

#[kernel]
fn both(a: f32, n: i64) -> (f32, i64) {
    (a, n)
}

#[kernel]
fn next(n: i64) -> i64 {
    n + 1
}

#[kernel]
fn length(a: f64, b: f64) -> f64 {
    let s = hypotenuse(a, b);
    let length: f64 = s.sqrt();
    let angle = s.exp_m1().powi(2).atan2(s.asinh()).to_degrees() + s.powf(0.5f64);
    if length.is_nan() { angle.exp() } else { length.min(1e300).max(-1e300) }
}

#[kernel]
fn is_below(k: i32, x: i64, y: i64) -> bool {
    let chosen = (match k {
        0 => next(x),
        _ => next(y),
    })
    .is_negative();
    chosen || BELOW.is_negative()
}

#[kernel]
fn of_one_type(a: f32, n: i64) -> f32 {
    let (a, n) = both(a, n);
    if n.wrapping_abs().is_positive() && a.to_bits() > 3 { a.sin().sqrt() } else { f32::max(a, 0.5) }
}

#[kernel(index)]
fn at_three(x: View<f32, 1>, [i]: [i32; 1]) -> f32 {
    let n = 3;
    if next(n).is_negative() { x.at([n]) } else { x.at([i]) }
}

fn main() {}

//! Helps of rows, followed; lints of their bodies; names that mean something else.

#![deny(warnings)]
#![warn(missing_docs, unreachable_pub)]

use graphable::prelude::*;

/// Not a row.
pub struct Row;

/// The shares of each row, and its place of the largest.
#[kernel(rows)]
pub fn shares(x: Row<f32>, cx: f32) -> (Row<f32>, u32) {
    let y = x.map(|v| v + cx).sum();
    let __row = 1.0;
    (x.map(|v| (v + cx) / y * __row), x.argmax())
}

/// By its present value.
#[kernel(rows)]
pub fn offset(x: Row<f32>) -> Row<f32> {
    let mut base = x.max();
    if base < 0.0 {
        base = 0.0;
    }
    let now = base;
    x.map(|v| v - now)
}

/// A choice for each value.
#[kernel(rows)]
pub fn chosen(x: Row<f32>, y: Row<f32>, first: bool) -> Row<f32> {
    x.zip(y).map(|(a, b)| if first { a } else { b })
}

/// One path or another.
#[kernel(rows)]
pub fn positive(x: Row<f32>) -> f32 {
    if x.min() < 0.0 { 0.0 } else { x.sum() }
}

/// An early value of a closure.
#[kernel(reduce)]
pub fn capped(x: Row<i32>, axis: i32) -> i32 {
    x.map(|v| {
        if v > axis {
            return axis;
        }
        v
    })
    .sum()
}

/// A parameter that it does not need.
#[kernel(rows)]
#[allow(unused_variables, reason = "it is another kernel's, too")]
pub fn allowed(x: Row<f32>, other: f32) -> f32 {
    x.fold(1.0, |product, v| product * v, |a, b| a * b)
}

fn main() {
    assert_eq!(shares::row(&[1.0, 3.0], 0.0), (vec![0.25, 0.75], 1));
    assert_eq!(offset::row(&[1.0, 3.0]), [-2.0, 0.0]);
    assert_eq!(chosen::row(&[1.0, 3.0], &[2.0], true), [1.0]);
    assert_eq!((positive::row(&[1.0, 3.0]), capped::row(&[1, 9], 4)), (4.0, 5));
    assert_eq!(allowed::row(&[2.0, 3.0], 0.0), 6.0);
}

//! Types of rows that do not agree.

use graphable::prelude::*;

#[kernel(rows)]
fn total(x: Row<f32>) -> Row<f32> {
    x.sum()
}

#[kernel(rows)]
fn rounded(x: Row<f32>) -> Row<f32> {
    x.map(|v| v as i32)
}

#[kernel(rows)]
fn flags(x: Row<bool>) -> u32 {
    x.sum()
}

#[kernel(rows)]
fn counted(x: Row<f32>) -> u32 {
    x.count(|v| v)
}

#[kernel(rows)]
fn paired(x: Row<f32>) -> f32 {
    x.map(|(a, b)| a + b).sum()
}

fn main() {}

//! A struct literal is made again where it is used; one with a `Cell` would lose what changes it.

use std::cell::Cell;

use graphable::prelude::*;

struct Counter {
    count: Cell<usize>,
}

#[graphable]
fn decode(#[key] n: usize, x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let counter = Counter { count: Cell::new(n) };
    let y = #[eager]
    {
        counter.count.set(n + 5);
        ops::neg(x)?
    };
    ops::scale(&y, counter.count.get() as f32)
}

fn main() {}

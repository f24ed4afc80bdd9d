//! A reduction leaves single values.

use graphable::prelude::*;

#[kernel(reduce)]
fn shares(x: Row<f32>) -> Row<f32> {
    let total = x.sum();
    x.map(|v| v / total)
}

fn main() {}

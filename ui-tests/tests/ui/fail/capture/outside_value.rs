//! A host value that is part of no key.

use graphable::prelude::*;

struct Table(Vec<f32>);

fn table() -> Table {
    Table(vec![1.0])
}

fn factor(t: &Table) -> f32 {
    t.0[0]
}

#[graphable]
fn decode(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let a = #[eager]
    ops::exp(x)?;
    #[host]
    let t = table();
    ops::scale(&a, factor(&t))
}

fn main() {}

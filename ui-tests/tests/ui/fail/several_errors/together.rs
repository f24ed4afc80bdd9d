//! All errors of a function at once.

use graphable::prelude::*;

#[graphable]
fn decode(x: &mut Tensor<f32>, n: usize, #[key] m: &usize) -> Result<Tensor<f32>> {
    #[eager]
    let a = ops::exp(x)?;
    println!("{n} {m}");
    ops::neg(&a)
}

// The signature is still there: its callers have no errors of their own.
fn caller(graph: &DecodeGraph) -> DecodeBuffers<'_> {
    graph.buffers()
}

fn main() {}

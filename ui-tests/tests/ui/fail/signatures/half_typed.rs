//! While a body is being typed, callers see the signature and the graph.

use graphable::prelude::*;

#[graphable]
fn decode(#[host] x: &Tensor<f32>, #[key] n: usize) -> Result<Tensor<f32>> {
    let h = ops::neg(x)?;
    let y = ops::;
    ops::scale(&h, n as f32)
}

fn run(rt: &mut Runtime) -> Result<Vec<f32>> {
    let graph = DecodeGraph::builder().build(rt)?;
    let step = rt.step()?;
    let y = graph.call(&step, &[1.0f32], 2)?;
    step.read(&y)
}

fn main() {}

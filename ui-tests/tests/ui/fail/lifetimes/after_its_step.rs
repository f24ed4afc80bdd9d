//! A tensor does not outlive its step.

use graphable::prelude::*;

#[graphable]
fn decode(x: &Tensor<f32>, #[key] n: usize) -> Result<Tensor<f32>> {
    ops::scale(x, n as f32)
}

fn run(rt: &mut Runtime, graph: &DecodeGraph) -> Result<Vec<f32>> {
    let step = rt.step()?;
    let x = step.tensor(&[1], &[1.0])?;
    let y = graph.call(&step, &x, 2)?;
    let next = rt.step()?;
    next.read(&y)
}

fn main() {}

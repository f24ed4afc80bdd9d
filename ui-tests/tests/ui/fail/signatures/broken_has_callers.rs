//! Callers of a function with errors have none of their own.

use graphable::prelude::*;

#[graphable]
fn decode(x: Tensor<f32>, n: usize, #[host] by: f32) -> Result<Tensor<f32>> {
    let a = #[eager]
    ops::neg(&x)?;
    ops::scale(&a, n as f32)
}

fn run(rt: &mut Runtime) -> Result<()> {
    let graph = DecodeGraph::builder().bucket("B", Schedule::default()).build(rt)?;
    println!("{} {:?}", DecodeGraph::PLAN, graph);
    Ok(())
}

fn main() {}

//! `join`: branches of a segment, with an error type of one's own, in methods and next to boundaries.

#![deny(warnings)]

use graphable::prelude::*;

#[derive(Debug)]
enum Failure {
    Graph(Error),
    Negative,
}

impl From<Error> for Failure {
    fn from(e: Error) -> Self {
        Self::Graph(e)
    }
}

#[derive(Params)]
struct Layer {
    up: Param<f32>,
    gate: Param<f32>,
    #[config]
    by: f32,
}

#[graphable]
impl Layer {
    fn forward(&self, x: &Tensor<f32>) -> Result<Tensor<f32>, Failure> {
        let h = #[eager]
        ops::scale(x, 2.0)?;
        let gated = || -> Result<_, Failure> {
            if self.by < 0.0 {
                return Err(Failure::Negative);
            }
            let g = ops::mul(&h, &self.gate)?;
            Ok(ops::scale(&g, self.by)?)
        };
        let (a, b) = join(h.scope(), || Ok(ops::mul(&h, &self.up)?), gated)?;
        Ok(ops::add(&a, &b)?)
    }
}

/// In a loop, from a variable that each round overwrites.
#[graphable]
fn looped(x: &Tensor<f32>, layers: &[Layer]) -> Result<Tensor<f32>, Failure> {
    let mut h = ops::scale(x, 1.0)?;
    for layer in layers {
        let (a, b) = join(h.scope(), || ops::mul(&h, &layer.up), || ops::mul(&h, &layer.gate))?;
        let a = #[eager]
        ops::neg(&a)?;
        h = ops::add(&a, &b)?;
    }
    Ok(h)
}

fn main() -> Result<(), Failure> {
    let mut rt = Runtime::new(Device::cpu())?;
    let one = |rt: &Runtime, v: f32| Param::new(rt, &[1], &[v]);
    let layer = Layer { up: one(&rt, 3.0)?, gate: one(&rt, 5.0)?, by: 7.0 };
    let wrong = Layer { up: one(&rt, 3.0)?, gate: one(&rt, 5.0)?, by: -1.0 };
    let graph = LayerForwardGraph::builder().build(&mut rt)?;
    for _ in 0..4 {
        let step = rt.step()?;
        let x = step.tensor(&[1], &[1.0f32])?;
        let y = graph.call(&step, &layer, &x)?;
        assert_eq!(step.read(&y)?, [76.0]);
        match graph.call(&step, &wrong, &x) {
            Err(Failure::Negative) => {}
            Err(Failure::Graph(error)) => return Err(error.into()),
            Ok(y) => panic!("{y:?}"),
        }
    }
    let layers = [layer, wrong];
    let looped = LoopedGraph::builder().build(&mut rt)?;
    for _ in 0..4 {
        let step = rt.step()?;
        let x = step.tensor(&[1], &[1.0f32])?;
        let y = looped.call(&step, &x, &layers)?;
        assert_eq!(step.read(&y)?, [4.0]);
    }
    Ok(())
}

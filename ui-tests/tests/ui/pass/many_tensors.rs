//! Vectors, options and tuples of tensors through segments; iterators; helpers with other lifetimes.

#![deny(warnings)]

use graphable::prelude::*;

#[graphable(helper)]
fn pair(x: &Tensor<f32>) -> Result<(Tensor<f32>, Option<Tensor<f32>>)> {
    Ok((ops::neg(x)?, Some(ops::exp(x)?)))
}

#[graphable]
fn decode(#[host] x: &Tensor<f32>, #[key] n: usize) -> Result<Vec<Tensor<f32>>> {
    let mut kept: Vec<Tensor<f32>> = Vec::with_capacity(n);
    let (mut h, side) = pair(x)?;
    for i in 0..n {
        let next = #[eager]
        ops::scale(&h, (i + 1) as f32)?;
        kept.push(std::mem::replace(&mut h, next));
    }
    if let Some(side) = side {
        kept.push(side);
    }
    let doubled = kept.iter().map(|t| ops::add(t, t)).collect::<Result<Vec<_>>>()?;
    let last = doubled.last().cloned();
    Ok(doubled.into_iter().zip(0..).filter(|(_, i)| i % 2 == 0).map(|(t, _)| t).chain(last).collect())
}

fn main() -> Result<()> {
    let mut rt = Runtime::new(Device::cpu())?;
    let graph = DecodeGraph::builder().build(&mut rt)?;
    for _ in 0..4 {
        let step = rt.step()?;
        let out = graph.call(&step, &[0.0f32], 2)?;
        let values: Result<Vec<f32>> = out.iter().map(|t| Ok(step.read(t)?[0])).collect();
        assert_eq!(values?.len(), 3);
    }
    Ok(())
}

//! `#[host] let` without a boundary, in a loop, in a branch; `#[key] let` where nothing is eager.

#![deny(warnings)]

use graphable::prelude::*;

#[graphable]
fn decode(x: &Tensor<f32>, #[key] sizes: Vec<usize>) -> Result<Tensor<f32>> {
    let mut h = ops::neg(x)?;
    for &size in &sizes {
        #[host]
        let factor = (size as f32).sqrt();
        h = ops::scale(&h, factor)?;
        if size > 4 {
            #[host]
            let text = format!("{size}");
            h = ops::scale(&h, text.len() as f32)?;
        }
    }
    #[key]
    let count = sizes.len();
    ops::scale(&h, count as f32)
}

#[graphable]
fn whole(x: &Tensor<f32>, #[key] n: usize) -> Result<Tensor<f32>> {
    #[key]
    let twice = 2 * n;
    ops::scale(x, twice as f32)
}

fn main() -> Result<()> {
    let mut rt = Runtime::new(Device::cpu())?;
    let graph = DecodeGraph::builder().build(&mut rt)?;
    let other = WholeGraph::builder().build(&mut rt)?;
    for _ in 0..4 {
        let step = rt.step()?;
        let x = step.tensor(&[1], &[1.0])?;
        assert_eq!(step.read(&graph.call(&step, &x, vec![4, 16])?)?, [-32.0]);
        assert_eq!(step.read(&other.call(&step, &x, 2)?)?, [4.0]);
    }
    Ok(())
}

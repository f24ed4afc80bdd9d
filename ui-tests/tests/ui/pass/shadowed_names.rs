//! Shadowing, `mut` variables over boundaries and loops, two live-outs of one name.

#![deny(warnings)]

use graphable::prelude::*;

#[graphable]
fn decode(x: &Tensor<f32>, #[key] n: usize) -> Result<(Tensor<f32>, usize)> {
    let mut count = 0;
    let mut h = ops::scale(x, 1.0)?;
    let x = ops::neg(&h)?;
    for _ in 0..n {
        let x = ops::add(&h, &x)?;
        count += x.rank();
        h = #[eager]
        ops::neg(&x)?;
        let (a, h_next) = {
            let h = ops::scale(&h, 2.0)?;
            (ops::neg(&h)?, h)
        };
        h = ops::add(&h_next, &ops::scale(&a, 0.5)?)?;
    }
    let h = ops::add(&h, &x)?;
    Ok((h, count))
}

fn main() -> Result<()> {
    let mut results = Vec::new();
    for mode in [Mode::None, Mode::Piecewise, Mode::Full] {
        let mut rt = Runtime::new(Device::cpu())?;
        let graph = DecodeGraph::builder().mode(mode).build(&mut rt)?;
        for _ in 0..4 {
            let step = rt.step()?;
            let x = step.tensor(&[1], &[1.0])?;
            let (y, count) = graph.call(&step, &x, 3)?;
            assert_eq!(count, 3);
            results.push(step.read(&y)?);
        }
    }
    results.dedup();
    assert_eq!(results.len(), 1);
    Ok(())
}

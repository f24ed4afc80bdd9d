//! `#[dims]` that the body agrees with: constants, symbols, broadcasting, sizes of a const parameter.

#![deny(warnings)]

use graphable::prelude::*;

const WIDTH: usize = 4;

#[graphable]
fn decode<const OUT: usize>(
    #[dims(B, 4)] x: &Tensor<f32>,
    #[dims(1, 4)] bias: &Tensor<f32>,
    #[dims(OUT, {WIDTH})] w: &Tensor<f32>,
) -> Result<Tensor<f32>> {
    let b = x.dim(0);
    let sum = ops::add(x, bias)?;
    let part = ops::narrow(x, 1, 2, 2)?;
    let flat = ops::reshape(bias, &[4])?;
    let y = ops::linear(&sum, w)?;
    let by = ops::sum(&ops::mul(&sum, &flat)?, 1)?;
    let part = ops::sum(&part, 1)?;
    // The name of a parameter, for another tensor.
    let x = ops::reshape(&ops::add(&by, &part)?, (b, 1))?;
    let x = ops::softmax(&ops::concat(&[&x, &x, &x], 1)?, 1)?;
    ops::mul(&y, &ops::narrow(&x, 1, 2, 1)?)
}

fn main() -> Result<()> {
    let mut rt = Runtime::new(Device::cpu())?;
    let graph = DecodeGraph::<2>::builder().build(&mut rt)?;
    for _ in 0..4 {
        let step = rt.step()?;
        let x = step.tensor(&[1, 4], &[1.0f32; 4])?;
        let w = step.tensor(&[2, 4], &[1.0f32; 8])?;
        assert_eq!(graph.call(&step, &x, &x, &w)?.shape(), [1, 2]);
    }
    Ok(())
}

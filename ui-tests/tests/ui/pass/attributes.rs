//! Attributes that are not ours: documentation, `cfg`, lints, on functions, parameters and statements.

#![deny(warnings)]

use graphable::prelude::*;

/// Documented.
#[graphable]
#[must_use = "it is a tensor"]
#[inline]
#[allow(clippy::too_many_arguments)]
fn decode(
    #[allow(unused_variables)] unused: &Tensor<f32>,
    x: &Tensor<f32>,
) -> Result<Tensor<f32>> {
    #[cfg(any())]
    let h = missing(x)?;
    #[cfg(not(any()))]
    let h = ops::neg(x)?;
    #[allow(unused_variables)]
    let ignored = h.rank();
    let a = #[eager]
    ops::neg(&h)?;
    ops::scale(&a, 2.0)
}

/// Gone.
#[cfg(any())]
#[graphable]
fn gone(x: &Missing) -> Result<Tensor<f32>> {
    #[eager]
    ops::neg(x)
}

#[graphable(helper)]
fn helper(x: &Tensor<f32>, y: &Tensor<f32>) -> Result<Tensor<f32>> {
    ops::add(x, y)
}

fn main() -> Result<()> {
    let mut rt = Runtime::new(Device::cpu())?;
    let graph = DecodeGraph::builder().build(&mut rt)?;
    for _ in 0..4 {
        let step = rt.step()?;
        let x = step.tensor(&[1], &[1.0])?;
        let y = graph.call(&step, &x, &x)?;
        assert_eq!(step.read(&helper(&y, &x)?)?, [3.0]);
    }
    Ok(())
}

//! `fail/piecewise/unmarked.rs`, by its help.

use graphable::prelude::*;

#[graphable]
fn layer(h: &Tensor<f32>, by: &Scalar<f32>) -> Result<Tensor<f32>> {
    let a = #[eager]
    ops::exp(h)?;
    ops::mul(&a, by)
}
#[graphable]
fn decode(x: &Tensor<f32>, #[host] by: &Scalar<f32>) -> Result<Tensor<f32>> {
    let h = #[piecewise]
    layer(x, by)?;
    ops::neg(&h)
}
fn elsewhere(rt: &mut Runtime) -> Result<LayerGraph> {
    LayerGraph::builder().build(rt)
}

//! `fail/host_reads/display.rs`, by its help.

use graphable::prelude::*;

#[graphable]
fn decode(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    assert!(x.rank() == 1, "the tensor is {x:?}");
    ops::neg(x)
}

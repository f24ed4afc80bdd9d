//! `fail/ragged/as_a_parameter.rs`, by its help.

use graphable::prelude::*;

#[graphable]
fn decode(rows: &Tensor<u32>, #[key] n: usize) -> Result<Tensor<u32>> {
    ops::narrow(rows, 0, 0, n)
}
fn caller<'s>(step: &Step<'s>, x: &Tensor<'s, f32>) -> Result<Tensor<'s, u32>> {
    decode(&step.nonzero(x)?.pad_to(8, 0)?.0, 4)
}

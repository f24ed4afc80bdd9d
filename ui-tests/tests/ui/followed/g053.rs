//! `fail/outputs/result_type.rs`, by its help.

use graphable::prelude::*;

#[derive(GraphOutput)]
struct Counted<'s> {
    x: Tensor<'s, f32>,
    n: usize,
}
#[graphable]
fn decode(x: &Tensor<f32>, #[key] n: usize) -> Result<Counted<'_>> {
    Ok(Counted { x: ops::neg(x)?, n: x.rank() + n })
}

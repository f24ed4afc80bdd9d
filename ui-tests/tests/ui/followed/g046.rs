//! `fail/ragged/data_dependent.rs`, by its help.

use graphable::prelude::*;

#[graphable]
fn decode(x: &Tensor<f32>, #[key] n: usize) -> Result<Tensor<f32>> {
    let fill = 0u32;
    let r = #[eager(cx)]
    cx.nonzero(&x)?;
    let (rows, _) = #[eager]
    r.pad_to(n, fill)?;
    let rows = ops::cast::<_, f32>(&rows)?;
    ops::mul(x, &rows)
}

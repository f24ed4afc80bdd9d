//! What leaves a segment is given back by a replay.

use graphable::prelude::*;

use std::collections::HashMap;

fn names(h: &Tensor<'_, f32>) -> Result<HashMap<String, usize>> {
    Ok(HashMap::from([("rank".to_owned(), h.rank())]))
}

#[graphable]
fn decode(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let names = names(&ops::neg(x)?)?;
    let a = #[eager]
    ops::exp(x)?;
    ops::scale(&a, names["rank"] as f32)
}

fn main() {}

//! `fail/outputs/derive_missing.rs`, by its help.

use graphable::prelude::*;

#[derive(GraphOutput)]
struct Pair<'s> {
    a: Tensor<'s, f32>,
    b: Tensor<'s, f32>,
}
#[graphable]
fn decode(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let pair = Pair { a: ops::neg(x)?, b: ops::exp(x)? };
    let a = #[eager]
    ops::exp(&pair.a)?;
    ops::add(&a, &pair.b)
}
fn names(rank: usize) -> Result<std::collections::HashMap<String, usize>> {
    Ok([("rank".to_owned(), rank)].into())
}
#[graphable]
fn on_every_call(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    #[host]
    let names = names(x.rank())?;
    let a = #[eager]
    ops::exp(x)?;
    ops::scale(&a, names["rank"] as f32)
}

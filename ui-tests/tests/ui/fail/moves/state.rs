//! State is read and written in the order of the source.

use graphable::prelude::*;

#[derive(Params)]
struct Cache {
    keys: State<f32>,
}

fn attention<'s>(x: &Tensor<'s, f32>, cache: &Cache) -> Result<Tensor<'s, f32>> {
    ops::add(x, &ops::load(x.scope(), &cache.keys)?)
}

#[graphable]
fn by_one_name(x: &Tensor<f32>, cache: &Cache) -> Result<Tensor<f32>> {
    ops::store(&cache.keys, x)?;
    let a = #[eager(early)]
    attention(x, cache)?;
    ops::neg(&a)
}

#[graphable]
fn by_two_names(x: &Tensor<f32>, cache: &Cache) -> Result<Tensor<f32>> {
    let keys = &cache.keys;
    #[eager(late)]
    attention(x, cache)?;
    ops::store(keys, x)?;
    ops::neg(x)
}

fn main() {}

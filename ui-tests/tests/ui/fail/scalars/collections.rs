//! Slices, strings and collections of the host are frozen by a recording.

use graphable::prelude::*;

use std::collections::HashMap;

#[graphable]
fn decode(
    x: &Tensor<f32>,
    sizes: &[usize],
    weights: &Vec<f32>,
    name: &str,
    table: &HashMap<String, usize>,
    #[key] n: usize,
) -> Result<Tensor<f32>> {
    ops::scale(x, (sizes.len() + weights.len() + name.len() + table.len() + n) as f32)
}

fn main() {}

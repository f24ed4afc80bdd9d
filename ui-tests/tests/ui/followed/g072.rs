//! `fail/side_effects/files_and_network.rs`, by its help.

use graphable::prelude::*;

use std::fs;
#[graphable]
fn decode(x: &Tensor<f32>, #[key] n: usize) -> Result<Tensor<f32>> {
    #[host]
    let length = fs::read_to_string("scale").unwrap().len();
    #[eager]
    {
        drop(fs::File::create("log").unwrap());
    }
    ops::scale(x, length as f32 * n as f32)
}

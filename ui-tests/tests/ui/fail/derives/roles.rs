//! A field has one role.

use graphable::prelude::*;

#[derive(Params)]
struct Model {
    #[param("w", shape = [1])]
    w: Param<f32>,
    #[config]
    #[param("n")]
    n: usize,
    #[params(config = u32)]
    m: Param<f32>,
}

fn main() {}

//! These say it twice, and differently.

use graphable::prelude::*;

struct Config {
    layers: usize,
}

#[derive(Params)]
#[params(config = Config)]
struct Model {
    #[param("w", len = config.layers, shape = [1])]
    w: Param<f32>,
    #[param("layers", len = config.layers, shape = [1])]
    layers: Vec<Param<f32>>,
    #[param("b", optional, shape = [1])]
    b: Param<f32>,
}

fn main() {}

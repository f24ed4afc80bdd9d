//! Nothing says how these are loaded.

use graphable::prelude::*;

struct Config {
    layers: usize,
}

#[derive(Params)]
#[params(config = Config)]
struct Model {
    #[param("w")]
    w: Param<f32>,
    layers: Vec<Param<f32>>,
    #[config]
    eps: f32,
    kv: State<f32>,
}

fn main() {}

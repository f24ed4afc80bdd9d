//! `fail/derives/contradictory.rs`, by its help.

use graphable::prelude::*;

struct Config {
    layers: usize,
}
#[derive(Params)]
#[params(config = Config)]
struct Model {
    #[param("w.{}", len = config.layers, shape = [1])]
    w: Vec<Param<f32>>,
    #[param("b", optional, shape = [1])]
    b: Option<Param<f32>>,
}

//! `fail/derives/incomplete.rs`, by its help.

use graphable::prelude::*;

struct Config {
    layers: usize,
    rows: usize,
    width: usize,
}
#[derive(Params)]
#[params(config = Config)]
struct Model {
    #[param("name", shape = [config.rows, config.width])]
    w: Param<f32>,
    #[param("layers.{}", len = config.layers, shape = [1])]
    layers: Vec<Param<f32>>,
    #[config(1e-6)]
    eps: f32,
    #[state(shape = [config.rows])]
    kv: State<f32>,
}

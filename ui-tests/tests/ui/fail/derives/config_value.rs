//! A config is compared by value.

use graphable::prelude::*;

#[derive(Params)]
struct Model {
    w: Param<f32>,
    #[config]
    log: std::sync::Mutex<Vec<u32>>,
}

fn main() {}

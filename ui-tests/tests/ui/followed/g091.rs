//! `fail/derives/roles.rs`, by its help.

use graphable::prelude::*;

#[derive(Params)]
#[params(config = u32)]
struct Model {
    #[param("w", shape = [1])]
    w: Param<f32>,
    #[config(1)]
    n: usize,
}

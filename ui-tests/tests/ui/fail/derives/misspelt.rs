//! Arguments of the helper attributes.

use graphable::prelude::*;

struct Config;

#[derive(Params)]
#[params(config = Config)]
struct Model {
    #[param("w", shpae = [1])]
    w: Param<f32>,
    #[param("v", shape = [1], shape = [2])]
    v: Param<f32>,
    #[param = "u"]
    u: Param<f32>,
}

fn main() {}

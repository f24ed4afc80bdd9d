//! `fail/derives/config_value.rs`, by its help.

use graphable::prelude::*;

#[derive(Clone, ConfigValue)]
struct Log {
    lines: Vec<u32>,
}
#[derive(Params)]
struct Model {
    w: Param<f32>,
    #[config]
    log: Log,
    kept: State<u32>,
}

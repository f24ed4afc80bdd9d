//! `fail/params/host_field.rs`, by its help.

use graphable::prelude::*;

#[derive(Params)]
struct Model {
    w: Param<f32>,
    #[config]
    eps: f32,
    inner: Inner,
}
#[derive(Params)]
struct Inner {
    w: Param<f32>,
}

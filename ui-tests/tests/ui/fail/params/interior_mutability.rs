//! Interior mutability would change behind a recording's back.

use graphable::prelude::*;

use std::cell::RefCell;

#[derive(Params)]
struct Model {
    w: Param<f32>,
    #[config]
    cache: RefCell<f32>,
}

fn main() {}

//! What the device cannot hold, or cannot choose.
use graphable::prelude::*;

#[derive(Clone, Carried)]
enum Either<'s> {
    One(Tensor<'s, f32>),
    None,
}

#[derive(Clone, Copy, Carried)]
union Bits {
    a: u32,
    b: f32,
}

#[derive(Clone, Carried)]
struct Counted<'s> {
    x: Tensor<'s, f32>,
    n: usize,
    names: Vec<String>,
}

fn main() {}

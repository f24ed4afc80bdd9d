//! A limit that is none, and one on what runs once.
use graphable::prelude::*;

#[graphable]
fn decode(n: &Scalar<u32>, x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let mut i = ops::zeros(x.scope(), ())?;
    #[device(limit = 0)]
    while ops::lt(&i, n)? {
        i = ops::add(&i, 1)?;
    }
    #[device(limit = "many")]
    while ops::lt(&i, n)? {
        i = ops::add(&i, 1)?;
    }
    #[device(limit = -1)]
    while ops::lt(&i, n)? {
        i = ops::add(&i, 1)?;
    }
    #[device(limit = 2.5)]
    while ops::lt(&i, n)? {
        i = ops::add(&i, 1)?;
    }
    #[device(limit = 8_000_000_000)]
    while ops::lt(&i, n)? {
        i = ops::add(&i, 1)?;
    }
    #[device(limit)]
    while ops::lt(&i, n)? {
        i = ops::add(&i, 1)?;
    }
    #[device(limt = 8)]
    while ops::lt(&i, n)? {
        i = ops::add(&i, 1)?;
    }
    #[device(limit = 8, limit = 9)]
    while ops::lt(&i, n)? {
        i = ops::add(&i, 1)?;
    }
    #[device(100)]
    while ops::lt(&i, n)? {
        i = ops::add(&i, 1)?;
    }
    #[device(limit = 8)]
    if ops::lt(&i, n)? {
        i = ops::add(&i, 1)?;
    }
    ops::mul(x, &ops::cast(&i)?)
}

fn main() {}

//! Associated functions of which nothing but the file shows that they are none of their own.

use graphable::prelude::*;

struct Net;

impl Net {
    #[graphable]
    fn decode(x: &Tensor<f32>) -> Result<Tensor<f32>> {
        let y = #[eager]
        ops::exp(x)?;
        ops::neg(&y)
    }
}

impl Net {
    #[graphable]
    fn embed(#[host] x: &Tensor<f32>) -> Result<Tensor<f32>> {
        #[cfg(test)]
        let x = &ops::exp(x)?;
        ops::neg(x)
    }

    #[graphable]
    fn helper(x: &Tensor<f32>) -> Result<Tensor<f32>> {
        ops::neg(x)
    }
}

trait Norm {
    fn norm<'s>(x: &Tensor<'s, f32>) -> Result<Tensor<'s, f32>>;
}

impl Norm for Net {
    #[graphable]
    fn norm(x: &Tensor<f32>) -> Result<Tensor<f32>> {
        let y = #[eager]
        ops::exp(x)?;
        ops::neg(&y)
    }
}

fn main() {}

//! What docs/diagnostics.md shows instead of the wrong dimensions.

#![deny(warnings)]
#![allow(dead_code, reason = "they are compiled, and read")]

mod g030 {
    use graphable::prelude::*;

    const WIDTH: usize = 64;

    #[graphable]
    fn decode(#[dims(B, 2)] x: &Tensor<f32>, #[dims(B, {WIDTH})] y: &Tensor<f32>) -> Result<Tensor<f32>> {
        ops::add(&ops::sum(x, 1)?, &ops::sum(y, 1)?)
    }
}

mod g031 {
    use graphable::prelude::*;

    #[graphable]
    fn decode(#[dims(B)] x: &Tensor<f32>, #[key] n: usize) -> Result<Tensor<f32>> {
        ops::scale(x, n as f32)
    }
}

mod g032 {
    use graphable::prelude::*;

    #[graphable]
    fn decode(#[dims(B, 64)] x: &Tensor<f32>, #[dims(16, 64)] w: &Tensor<f32>) -> Result<Tensor<f32>> {
        let a = ops::softmax(x, 1)?;
        let b = ops::narrow(x, 1, 32, 32)?;
        let c = ops::linear(&a, w)?;
        ops::concat(&[&b, &c], 1)
    }
}

mod g033 {
    use graphable::prelude::*;

    #[graphable]
    fn decode(#[dims(B, 64)] x: &Tensor<f32>) -> Result<Tensor<f32>> {
        ops::reshape(x, &[x.dim(0) * 64])
    }
}

mod g034 {
    use graphable::prelude::*;

    #[graphable]
    fn decode(#[dims(B, 64)] x: &Tensor<f32>) -> Result<Tensor<f32>> {
        let n: usize = x.dim(1).get()?;
        let rows = ops::cast::<u32, f32>(&ops::size(x, 0)?)?;
        ops::div(&ops::scale(x, 1.0 / n as f32)?, &rows)
    }
}

fn main() {}

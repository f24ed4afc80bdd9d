//! `early` and `late` where no device work stands in the way that they show.

use graphable::prelude::*;

fn look(x: &Tensor<f32>) -> Result<()> {
    ops::neg(x).map(drop)
}

#[graphable]
fn decode(x: &Tensor<f32>, #[key] stop: bool) -> Result<Tensor<f32>> {
    #[eager(early)]
    look(x)?;
    let a = ops::neg(x)?;
    #[eager]
    look(&a)?;
    #[eager(early)]
    look(x)?;
    let b = ops::exp(&a)?;
    if stop {
        return Ok(b);
    }
    #[eager(early)]
    look(x)?;
    let c = ops::exp(&b)?;
    #[eager(late)]
    look(x)?;
    Ok(c)
}

fn main() {}

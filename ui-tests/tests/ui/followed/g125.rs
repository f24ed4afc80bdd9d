//! `fail/device/carried.rs`, by its help.

use graphable::prelude::*;

#[graphable]
fn decode(p: &Scalar<bool>, x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let mut n = ops::full(x.scope(), (), 0i32)?;
    let mut y = x.clone();
    #[device]
    while p {
        n = ops::add(&n, 1)?;
        y = ops::exp(&y)?;
    }
    ops::mul(&y, &ops::cast(&n)?)
}

mod lent {
    //! `fail/device/lent_values.rs`, by its help.
    use graphable::prelude::*;

    #[graphable(helper)]
    fn decode(p: &Scalar<bool>, k: &Scalar<u32>, x: &Tensor<f32>, z: &Tensor<f32>) -> Result<Tensor<f32>> {
        let y = #[device]
        if p { x.clone() } else { z.clone() };
        let w = #[device]
        match k {
            0 => ops::neg(x)?,
            _ => x.clone(),
        };
        ops::add(&y, &w)
    }
}

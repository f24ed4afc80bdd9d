//! The predicate of a `#[device] while` cannot change variables: what it assigned would be lost.

use graphable::prelude::*;


#[graphable]
fn carried(x: &Tensor<f32>, c: &Scalar<bool>) -> Result<Tensor<f32>> {
    let mut y = ops::neg(x)?;
    let mut turn = ops::full(x.scope(), (), 0i32)?;
    #[device]
    while {
        turn = ops::add(&turn, 1)?;
        #[device]
        if c {
            y = ops::add(&y, 1.0)?;
        }
        ops::lt(&turn, 3)?
    } {
        y = ops::scale(&y, 2.0)?;
        turn = ops::add(&turn, 1)?;
    }
    Ok(y)
}

fn main() {}

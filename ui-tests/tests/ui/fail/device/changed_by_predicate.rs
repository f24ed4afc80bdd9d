//! The predicate of a `#[device] while` changes no variables around it: only its value leaves it.

use graphable::prelude::*;

#[graphable]
fn decode(x: &Tensor<f32>, c: &Scalar<bool>) -> Result<Tensor<f32>> {
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

/// Whether the loop carries it or not, and whatever part of it is assigned.
mod parts {
    use graphable::prelude::*;

    #[derive(Clone, Carried)]
    struct Turns<'s> {
        own: Tensor<'s, i32>,
    }

    #[graphable]
    fn decode(x: &Tensor<f32>, p: &Scalar<bool>) -> Result<Tensor<f32>> {
        let (mut y, mut last) = (x.clone(), x.clone());
        let mut turns = Turns { own: ops::full(x.scope(), (), 0i32)? };
        let mut described = 0;
        #[device]
        while {
            let mut own = ops::neg(&y)?;
            own = ops::exp(&own)?;
            last = own;
            turns.own = ops::add(&turns.own, 1)?;
            described += 1;
            p
        } {
            y = ops::scale(&y, 2.0)?;
        }
        ops::add(&last, &y)
    }
}

fn main() {}

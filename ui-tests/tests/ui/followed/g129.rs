//! `fail/device/changed_by_predicate.rs`, by its help.

use graphable::prelude::*;

#[graphable]
fn decode(x: &Tensor<f32>, c: &Scalar<bool>) -> Result<Tensor<f32>> {
    let mut y = ops::neg(x)?;
    let mut turn = ops::full(x.scope(), (), 0i32)?;
    #[device]
    while {
        let next_turn = ops::add(&turn, 1)?;
        let next_y = #[device]
        if c { ops::add(&y, 1.0)? } else { y };
        ops::lt(&next_turn, 3)?
    } {
        y = ops::scale(&y, 2.0)?;
        turn = ops::add(&turn, 1)?;
    }
    Ok(y)
}

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
        #[device]
        while {
            let next_turns = ops::add(&turns.own, 1)?;
            ops::logical_and(p, &ops::lt(&next_turns, 3)?)?
        } {
            let mut own = ops::neg(&y)?;
            own = ops::exp(&own)?;
            last = own;
            turns.own = ops::add(&turns.own, 1)?;
            y = ops::scale(&y, 2.0)?;
        }
        ops::add(&last, &y)
    }
}

//! `fail/device/host_changes.rs`, by its help.

use graphable::prelude::*;

#[graphable]
fn decode(p: &Scalar<bool>, x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let mut rounds = ops::full(x.scope(), (), 0i32)?;
    let mut all = Vec::new();
    let mut y = x.clone();
    #[device]
    while p {
        rounds = ops::add(&rounds, 1)?;
        y = ops::neg(&y)?;
    }
    let y = #[device]
    if p { ops::neg(&y)? } else { ops::exp(&y)? };
    all.push(y);
    ops::mul(&all[0], &ops::cast(&rounds)?)
}

mod places {
    //! `fail/device/places.rs`, by its help.
    use std::cell::RefCell;

    use graphable::prelude::*;

    #[derive(Params)]
    struct Model {
        last: State<f32>,
    }

    #[graphable]
    impl Model {
        fn decode(&self, p: &Scalar<bool>, x: &Tensor<f32>) -> Result<Tensor<f32>> {
            let seen = RefCell::new(x.clone());
            let mut rounds = ops::zeros(x.scope(), ())?;
            let mut y = x.clone();
            #[device]
            if p {
                y = ops::neg(&y)?;
                ops::store(&self.last, &y)?;
            } else {
                (rounds, y) = (ops::full(x.scope(), (), 0i32)?, ops::exp(&y)?);
            }
            #[device]
            while p {
                rounds = ops::add(&rounds, 1)?;
                y = ops::neg(&y)?;
            }
            let y = #[device]
            if p { ops::neg(&y)? } else { y };
            *seen.borrow_mut() = y;
            let y = ops::mul(&*seen.borrow(), &ops::cast(&rounds)?)?;
            Ok(y)
        }
    }
}

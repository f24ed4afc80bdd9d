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

mod updates {
    //! `fail/device/updates.rs`, by its help.
    use graphable::prelude::*;

    #[derive(Clone)]
    struct Pair<'s> {
        l: Tensor<'s, f32>,
    }

    fn bump<'s>(y: &Tensor<'s, f32>) -> Result<Tensor<'s, f32>> {
        ops::neg(y)
    }

    #[graphable(helper)]
    fn decode<'s>(p: &Scalar<bool>, pair: Pair<'s>, x: &Tensor<'s, f32>) -> Result<Tensor<'s, f32>> {
        let (mut k, mut pair) = (ops::full(x.scope(), (), 1.0f32)?, pair);
        let mut gain = ops::full(x.scope(), (), 1.5f32)?;
        let mut left = ops::full(x.scope(), (), 8u32)?;
        let mut y = x.clone();
        let mut z = ops::neg(x)?;
        #[device]
        if p {
            gain = ops::mul(&gain, 2.0)?;
            left = ops::sub(&left, 1)?;
            y = ops::add(&y, x)?;
            y = ops::mul(&y, &z)?;
            pair.l = ops::add(&pair.l, &z)?;
            k = ops::div(&k, 2.0)?;
        }
        #[device]
        while p {
            y = bump(&y)?;
            (y, z) = (z, y);
        }
        let sum = ops::add(&y, &pair.l)?;
        ops::mul(&ops::mul(&ops::mul(&sum, &gain)?, &ops::cast(&left)?)?, &k)
    }
}

mod slices {
    //! `fail/device/slices.rs`, by its help.
    use graphable::prelude::*;

    #[graphable(helper)]
    fn first(all: &mut [Tensor<f32>], p: &Scalar<bool>) -> Result<()> {
        let y = #[device]
        if p { ops::neg(&all[0])? } else { all[0].clone() };
        all[0] = y;
        Ok(())
    }

    #[graphable(helper)]
    fn second(all: &mut Vec<Tensor<f32>>, p: &Scalar<bool>) -> Result<()> {
        #[device]
        if p {
            all[0] = ops::neg(&all[0])?;
        }
        Ok(())
    }
}

mod parts {
    //! The fields of a struct are changed by assignments, as the page of `G126` says.
    use graphable::prelude::*;

    #[derive(Clone)]
    struct Pair<'s> {
        l: Tensor<'s, f32>,
        r: Tensor<'s, f32>,
    }

    fn bumped<'s>(pair: &Pair<'s>) -> Result<Tensor<'s, f32>> {
        ops::add(&pair.r, 100.0)
    }

    #[graphable(helper)]
    fn decode(p: &Scalar<bool>, x: &Tensor<f32>) -> Result<Tensor<f32>> {
        let mut pair = Pair { l: x.clone(), r: x.clone() };
        #[device]
        if p {
            pair.l = ops::neg(&pair.l)?;
            pair.r = bumped(&pair)?;
        }
        ops::add(&pair.l, &pair.r)
    }
}

mod exchanged {
    //! `fail/device/exchanged.rs`, by its help.
    use graphable::prelude::*;

    #[derive(Clone, Carried)]
    struct Pair<'s> {
        l: Tensor<'s, f32>,
        r: Tensor<'s, f32>,
        spare: Option<Tensor<'s, f32>>,
    }

    #[graphable(helper)]
    fn turned<'s>(p: &Scalar<bool>, pair: &mut Pair<'s>, y: &mut Tensor<'s, f32>, x: &Tensor<'s, f32>) -> Result<()> {
        let mut z = ops::neg(x)?;
        #[device]
        if p {
            (pair.l, pair.r) = (pair.r.clone(), pair.l.clone());
            (*y, z) = (z, (*y).clone());
            z = { let before = pair.l.clone(); pair.l = ops::exp(x)?; before };
            let old = { let before = (*y).clone(); *y = z.clone(); before };
            pair.r = ops::add(&pair.r, &old)?;
            if let Some(spare) = { let before = pair.spare.clone(); pair.spare = Default::default(); before } {
                z = spare;
            }
        }
        *y = ops::add(&*y, &z)?;
        Ok(())
    }
}

mod own_fields {
    //! `fail/device/own_fields.rs`, by its help.
    use graphable::prelude::*;

    #[derive(Clone)]
    struct Pair<'s> {
        l: Tensor<'s, f32>,
        r: Tensor<'s, f32>,
    }

    #[graphable]
    impl<'s> Pair<'s> {
        fn update(&mut self, p: &Scalar<'s, bool>) -> Result<()> {
            let mut l = self.l.clone();
            #[device]
            if p {
                l = ops::add(&self.r, 1.0)?;
            }
            self.l = l;
            Ok(())
        }

        fn updated(mut self, p: &Scalar<'s, bool>) -> Result<Tensor<'s, f32>> {
            let mut r = self.r.clone();
            #[device]
            while p {
                r = ops::add(&self.l, 1.0)?;
            }
            self.r = r;
            Ok(self.r)
        }
    }
}

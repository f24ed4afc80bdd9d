//! `fail/device/operators.rs`, by its help.

use graphable::prelude::*;

#[graphable]
fn decode(p: &Scalar<bool>, q: &Scalar<bool>, n: &Scalar<u32>, x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let mut y = x.clone();
    #[device]
    if ops::logical_and(p, q)? {
        y = ops::neg(&y)?;
    }
    #[device]
    if ops::logical_or(p, &ops::gt(n, 3)?)? {
        y = ops::neg(&y)?;
    }
    #[device]
    if ops::logical_not(p)? {
        y = ops::neg(&y)?;
    }
    #[device]
    while ops::lt(n, 3)? {
        y = ops::neg(&y)?;
    }
    if x.rank() == 2 {
        y = ops::neg(&y)?;
    }
    Ok(y)
}

mod nested {
    //! `fail/device/nested_operators.rs`, by its help.
    use graphable::prelude::*;

    struct P<'s> {
        on: Scalar<'s, bool>,
        n: Tensor<'s, f32>,
    }

    #[graphable(helper)]
    fn chains(
        p: &Scalar<bool>,
        q: &Scalar<bool>,
        r: &Scalar<bool>,
        all: &P<'_>,
        x: &Tensor<f32>,
    ) -> Result<Tensor<f32>> {
        let m = ops::max(x, 0)?;
        let mut y = x.clone();
        #[device]
        if ops::logical_and(&ops::logical_and(p, q)?, r)? {
            y = ops::neg(&y)?;
        }
        #[device]
        if ops::logical_or(&ops::logical_not(&ops::logical_and(p, q)?)?, r)? {
            y = ops::neg(&y)?;
        }
        #[device]
        if ops::logical_and(&all.on, &ops::gt(&all.n, 3.0)?)? {
            y = ops::neg(&y)?;
        }
        #[device]
        if ops::gt(&m, 3.0)? {
            y = ops::neg(&y)?;
        }
        #[device]
        if ops::logical_and(&ops::logical_not(p)?, x.rank() == 1)? {
            y = ops::neg(&y)?;
        }
        #[device]
        while ops::logical_and(
            &ops::logical_and(&ops::any(&ops::gt(&y, 3.0)?, 0)?, &ops::lt(&ops::max(&y, 0)?, 100.0)?)?,
            &ops::gt(&ops::min(&y, 0)?, -100.0)?,
        )? {
            y = ops::scale(&y, 2.0)?;
        }
        Ok(y)
    }

    #[graphable(helper)]
    fn others(p: &Scalar<bool>, n: usize, flag: bool, x: &Tensor<f32>) -> Result<Tensor<f32>> {
        let y = #[device]
        if p {
            x.clone()
        } else {
            if n == 0 { ops::neg(x)? } else { ops::sin(x)? }
        };
        let last = x.rank() == 1;
        #[device]
        if p {
            Ok(y)
        } else {
            if flag {
                ops::neg(&y)
            } else {
                if last { ops::cos(&y) } else { ops::sin(&y) }
            }
        }
    }
}

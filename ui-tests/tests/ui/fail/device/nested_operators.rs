//! Predicates of several operators, of fields, of constants on the left, and those of an `else if`.
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
    if p && q && r {
        y = ops::neg(&y)?;
    }
    #[device]
    if !(p && q) || r {
        y = ops::neg(&y)?;
    }
    #[device]
    if all.on && all.n > 3.0 {
        y = ops::neg(&y)?;
    }
    #[device]
    if 3.0 < m {
        y = ops::neg(&y)?;
    }
    #[device]
    if x.rank() == 1 && !p {
        y = ops::neg(&y)?;
    }
    #[device]
    while ops::any(&ops::gt(&y, 3.0)?, 0)? && ops::lt(&ops::max(&y, 0)?, 100.0)? && ops::gt(&ops::min(&y, 0)?, -100.0)? {
        y = ops::scale(&y, 2.0)?;
    }
    Ok(y)
}

#[graphable(helper)]
fn others(p: &Scalar<bool>, n: usize, flag: bool, x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let y = #[device]
    if p {
        x.clone()
    } else if n == 0 {
        ops::neg(x)?
    } else {
        ops::sin(x)?
    };
    let last = x.rank() == 1;
    #[device]
    if p {
        Ok(y)
    } else if flag {
        ops::neg(&y)
    } else if last {
        ops::cos(&y)
    } else {
        ops::sin(&y)
    }
}

fn main() {}

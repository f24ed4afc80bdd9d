//! Something in an arm refers to a variable that the arm assigns, and would have its value from before.
use graphable::prelude::*;

#[derive(Clone)]
struct Pair<'s> {
    l: Tensor<'s, f32>,
    r: Tensor<'s, f32>,
}

#[graphable(helper)]
fn macros(p: &Scalar<bool>, x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let (mut y, mut z) = (ops::neg(x)?, x.clone());
    macro_rules! current {
        () => {
            ops::add(&y, 1.0)?
        };
    }
    #[device]
    if p {
        y = ops::scale(x, 3.0)?;
        z = current!();
    }
    ops::add(&y, &z)
}

#[graphable(helper)]
fn elements(p: &Scalar<bool>, x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let (mut y, mut z) = (ops::neg(x)?, x.clone());
    let both = [&y];
    #[device]
    match ops::cast::<bool, u32>(p)? {
        0 => {
            y = ops::scale(x, 3.0)?;
            z = ops::add(both[0], 1.0)?;
        }
        _ => {}
    }
    ops::add(&y, &z)
}

#[graphable(helper)]
fn rounds(p: &Scalar<bool>, x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let (mut y, mut z) = (ops::neg(x)?, x.clone());
    let old = &y;
    #[device]
    while p {
        z = ops::add(old, 1.0)?;
        y = ops::scale(x, 3.0)?;
    }
    ops::add(&y, &z)
}

#[graphable(helper)]
fn predicates(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let mut i = ops::zeros(x.scope(), ())?;
    macro_rules! is_less {
        () => {
            ops::lt(&i, 3i32)?
        };
    }
    #[device]
    while is_less!() {
        i = ops::add(&i, 1)?;
    }
    ops::cast(&i)
}

#[graphable(helper)]
fn fields(p: &Scalar<bool>, x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let mut pair = Pair { l: x.clone(), r: x.clone() };
    let l = Some(&pair.l);
    let sum = |by: f32| ops::add(&ops::add(&pair.l, &pair.r)?, by);
    let mut z = x.clone();
    #[device]
    if p {
        pair.l = ops::scale(x, 3.0)?;
        z = ops::neg(l.unwrap_or(x))?;
    }
    #[device]
    if p {
        pair.r = ops::scale(x, 3.0)?;
        z = sum(1.0)?;
    }
    ops::add(&pair.l, &z)
}

#[graphable(helper)]
fn referents(y: &mut Tensor<f32>, p: &Scalar<bool>, x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let mut z = x.clone();
    macro_rules! current {
        () => {
            &*y
        };
    }
    #[device]
    if p {
        *y = ops::scale(x, 3.0)?;
        z = ops::neg(current!())?;
    }
    Ok(z)
}

fn main() {}

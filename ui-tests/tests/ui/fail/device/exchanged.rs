//! Values that functions of `std::mem` exchange in arms.
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
        std::mem::swap(&mut pair.l, &mut pair.r);
        std::mem::swap(&mut *y, &mut z);
        z = std::mem::replace(&mut pair.l, ops::exp(x)?);
        let old = std::mem::replace(&mut *y, z.clone());
        pair.r = ops::add(&pair.r, &old)?;
        if let Some(spare) = std::mem::take(&mut pair.spare) {
            z = spare;
        }
    }
    *y = ops::add(&*y, &z)?;
    Ok(())
}

fn main() {}

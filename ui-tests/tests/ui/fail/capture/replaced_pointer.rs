//! A pointer to a function that is replaced: each segment would make the closure anew that it was before.

use graphable::prelude::*;

type Op = for<'s> fn(&Tensor<'s, f32>) -> Result<Tensor<'s, f32>>;

#[graphable]
fn decode(#[key] again: bool, x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let mut f: Op = |t| ops::scale(t, 0.5);
    if again {
        f = |t| ops::scale(t, 2.0);
    }
    let y = #[eager]
    f(x)?;
    f(&y)
}

fn main() {}

//! `fail/capture/replaced_pointer.rs`, by its help.

use graphable::prelude::*;

type Op = for<'s> fn(&Tensor<'s, f32>) -> Result<Tensor<'s, f32>>;

#[graphable]
fn decode(#[key] again: bool, x: &Tensor<f32>) -> Result<Tensor<f32>> {
    #[host]
    let f: Op = if again { |t| ops::scale(t, 2.0) } else { |t| ops::scale(t, 0.5) };
    let y = #[eager]
    f(x)?;
    f(&y)
}

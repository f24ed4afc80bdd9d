//! `fail/guards/by_type.rs`, by its help.

use graphable::prelude::*;

struct Autocast;
impl Drop for Autocast {
    fn drop(&mut self) {}
}
fn autocast() -> Autocast {
    Autocast
}
#[graphable]
fn decode(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let h = {
        let guard = autocast();
        let h = ops::neg(x)?;
        drop(guard);
        h
    };
    let a = #[eager]
    ops::exp(&h)?;
    ops::neg(&a)
}
#[graphable]
fn of_a_region(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let _guard = #[eager]
    autocast();
    let h = ops::neg(x)?;
    let a = #[eager]
    ops::exp(&h)?;
    ops::neg(&a)
}

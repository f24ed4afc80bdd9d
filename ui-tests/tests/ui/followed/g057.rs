//! `fail/outputs/error_type.rs`, by its help.

use graphable::prelude::*;

#[derive(Debug)]
struct Failure;
impl From<graphable::Error> for Failure {
    fn from(_: graphable::Error) -> Self {
        Self
    }
}
#[graphable]
fn decode(x: &Tensor<f32>, #[key] n: usize) -> Result<Tensor<f32>, Failure> {
    ops::scale(x, n as f32).map_err(|_| Failure)
}
#[graphable]
fn encode(x: &Tensor<f32>, #[key] n: usize) -> graphable::Result<Tensor<f32>> {
    ops::scale(x, n as f32)
}

//! `fail/capture/outside_value.rs`, by its help.

use graphable::prelude::*;

#[derive(Clone, ConfigValue)]
struct Settings {
    by: f32,
}
fn settings(x: &Tensor<'_, f32>) -> Settings {
    Settings { by: x.rank() as f32 }
}
struct Plain {
    by: f32,
}
fn plain(x: &Tensor<'_, f32>) -> Plain {
    Plain { by: x.rank() as f32 }
}
#[graphable]
fn decode(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    #[host]
    let settings = settings(x);
    #[host]
    let by = plain(x).by;
    let a = #[eager]
    ops::exp(x)?;
    ops::scale(&a, settings.by + by)
}

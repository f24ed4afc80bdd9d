//! A layer of T5's encoder ("Exploring the Limits of Transfer Learning with a Unified Text-to-Text Transformer", Raffel et al.,
//! 2019): scores get a bias for the distance of two tokens, which a kernel of indices puts into classes.

use graphable::{
    ops::{AttentionConfig, AttentionMask},
    prelude::*,
};

/// All weights: two heads, eight classes of distances.
#[derive(Params)]
#[params(config = ())]
pub struct Encoder {
    #[param(shape = [8])]
    norm1: Param<f32>,
    #[param(shape = [8, 8])]
    q: Param<f32>,
    #[param(shape = [8, 8])]
    k: Param<f32>,
    #[param(shape = [8, 8])]
    v: Param<f32>,
    #[param(shape = [8, 8])]
    o: Param<f32>,
    #[param(shape = [8, 2])]
    bias: Param<f32>,
    #[param(shape = [8])]
    norm2: Param<f32>,
    #[param(shape = [16, 8])]
    up: Param<f32>,
    #[param(shape = [8, 16])]
    down: Param<f32>,
}

/// The class of the distance from query `i` to key `j`: four before the query and four after it, of which the first are for one
/// distance each, and the others wider the further away they are, up to 16.
#[kernel(index)]
fn distance_class([i, j]: [i32; 2]) -> u32 {
    let far = (j - i).abs();
    let wide = 2 + ((far.max(1) as f32 / 2.0).ln() / 8f32.ln() * 2.0) as i32;
    let class = if far < 2 { far } else { wide.min(3) };
    (if j > i { class + 4 } else { class }) as u32
}

/// `[2, T, T]`: what is added to the scores of each head. `table` is `[8, 2]`.
#[graphable]
fn bias_of(x: &Tensor<f32>, table: &Param<f32>) -> Result<Tensor<f32>> {
    let classes: Tensor<u32> = distance_class(x.scope(), (x.dim(0), x.dim(0)))?;
    ops::permute(&ops::embedding(&classes, table)?, &[2, 0, 1])
}

/// `[T, 8]` to `[T, 8]`: every token attends to all others, but to none of the padding. `T` may have buckets.
#[graphable]
pub fn encode(
    #[host]
    #[dims(T, 8)]
    x: &Tensor<f32>,
    model: &Encoder,
) -> Result<Tensor<f32>> {
    let n = ops::rms_norm(x, &model.norm1, 1e-6)?;
    let heads = |weight: &Param<_>| ops::reshape(&ops::linear(&n, weight)?, (x.dim(0), 2, 4));
    let (q, k, v) = (heads(&model.q)?, heads(&model.k)?, heads(&model.v)?);
    let (length, bias) = (ops::size(x, 0)?, bias_of(x, &model.bias)?);
    let config = AttentionConfig::new(AttentionMask::Lengths(&length)).bias(&bias);
    let a = ops::attention(&q, &k, &v, config, 1.0)?;
    let h = ops::add(x, &ops::linear(&ops::reshape(&a, (x.dim(0), 8))?, &model.o)?)?;
    let n = ops::rms_norm(&h, &model.norm2, 1e-6)?;
    ops::add(&h, &ops::linear(&ops::relu(&ops::linear(&n, &model.up)?)?, &model.down)?)
}

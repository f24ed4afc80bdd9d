//! Gemma 2 ("Gemma 2: Improving Open Language Models at a Practical Size", 2024) with one layer: embeddings that are scaled and
//! used again for the logits, norms by one plus a weight before and after each part, soft caps of scores and logits.

use graphable::{
    ops::{AttentionConfig, AttentionMask, RopeConfig, RopeStyle},
    prelude::*,
};

const ROPE: RopeConfig = RopeConfig::new(10_000.0, RopeStyle::HalfSplit);

/// All weights: two heads of queries and one of keys, each four wide; a vocabulary of ten.
#[derive(Params)]
#[params(config = ())]
pub struct Gemma {
    #[param(shape = [10, 8])]
    embed: Param<f32>,
    #[param(shape = [8, 8])]
    q: Param<f32>,
    #[param(shape = [4, 8])]
    k: Param<f32>,
    #[param(shape = [4, 8])]
    v: Param<f32>,
    #[param(shape = [8, 8])]
    o: Param<f32>,
    #[param(shape = [12, 8])]
    gate: Param<f32>,
    #[param(shape = [12, 8])]
    up: Param<f32>,
    #[param(shape = [8, 12])]
    down: Param<f32>,
    #[param("norm0", shape = [8])]
    before_attention: Param<f32>,
    #[param("norm1", shape = [8])]
    after_attention: Param<f32>,
    #[param("norm2", shape = [8])]
    before_mlp: Param<f32>,
    #[param("norm3", shape = [8])]
    after_mlp: Param<f32>,
    #[param("norm4", shape = [8])]
    last: Param<f32>,
}

/// Files have what is added to one.
#[graphable]
fn norm(x: &Tensor<f32>, weight: &Param<f32>) -> Result<Tensor<f32>> {
    ops::rms_norm(x, &ops::add(&x.scope().view(weight)?, 1.0)?, 1e-6)
}

/// Bends values so that none is larger than `cap`.
#[graphable]
fn capped(x: &Tensor<f32>, cap: f32) -> Result<Tensor<f32>> {
    ops::scale(&ops::tanh(&ops::scale(x, cap.recip())?)?, cap)
}

/// `[T, 8]` to `[T, 8]`.
#[graphable]
fn attend(x: &Tensor<f32>, model: &Gemma) -> Result<Tensor<f32>> {
    let heads =
        |weight: &Param<_>, count: usize| ops::reshape(&ops::linear(x, weight)?, (x.dim(0), count, 4));
    let positions = ops::arange::<u32>(x.scope(), x.dim(0))?;
    let q = ops::rope(&heads(&model.q, 2)?, &positions, ROPE)?;
    let k = ops::rope(&heads(&model.k, 1)?, &positions, ROPE)?;
    let config = AttentionConfig::new(AttentionMask::Causal).soft_cap(5.0);
    let a = ops::attention(&q, &k, &heads(&model.v, 1)?, config, 0.5)?;
    ops::linear(&ops::reshape(&a, (x.dim(0), 8))?, &model.o)
}

/// `[T, 8]` to `[T, 8]`.
#[graphable]
fn mlp(x: &Tensor<f32>, model: &Gemma) -> Result<Tensor<f32>> {
    let gate = ops::gelu_tanh(&ops::linear(x, &model.gate)?)?;
    ops::linear(&ops::mul(&gate, &ops::linear(x, &model.up)?)?, &model.down)
}

/// Logits `[T, 10]` of `T` tokens. `T` may have buckets.
#[graphable]
pub fn gemma(
    #[host]
    #[dims(T)]
    ids: &Tensor<u32>,
    model: &Gemma,
) -> Result<Tensor<f32>> {
    let h = ops::scale(&ops::embedding(ids, &model.embed)?, 8f32.sqrt())?;
    let a = attend(&norm(&h, &model.before_attention)?, model)?;
    let h = ops::add(&h, &norm(&a, &model.after_attention)?)?;
    let m = mlp(&norm(&h, &model.before_mlp)?, model)?;
    let h = ops::add(&h, &norm(&m, &model.after_mlp)?)?;
    capped(&ops::linear(&norm(&h, &model.last)?, &model.embed)?, 3.0)
}

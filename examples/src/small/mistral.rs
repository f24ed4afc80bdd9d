//! Attention as in Mistral ("Mistral 7B", Jiang et al., 2023): fewer heads of keys than of queries, rotary embeddings, and a
//! window of tokens that slides.

use graphable::{
    ops::{AttentionConfig, AttentionMask, RopeConfig, RopeStyle},
    prelude::*,
};

const ROPE: RopeConfig = RopeConfig::new(10_000.0, RopeStyle::HalfSplit);

/// All weights: four heads of queries and two of keys, each four wide.
#[derive(Params)]
#[params(config = ())]
pub struct Attention {
    #[param(shape = [8])]
    norm: Param<f32>,
    #[param(shape = [16, 8])]
    q: Param<f32>,
    #[param(shape = [8, 8])]
    k: Param<f32>,
    #[param(shape = [8, 8])]
    v: Param<f32>,
    #[param(shape = [8, 16])]
    o: Param<f32>,
}

/// `[T, 8]` to `[T, 8]`: each of `T` tokens attends to itself and to the three before it. `T` may have buckets.
#[graphable]
pub fn attend(
    #[host]
    #[dims(T, 8)]
    x: &Tensor<f32>,
    model: &Attention,
) -> Result<Tensor<f32>> {
    let n = ops::rms_norm(x, &model.norm, 1e-5)?;
    let heads =
        |weight: &Param<_>, count: usize| ops::reshape(&ops::linear(&n, weight)?, (x.dim(0), count, 4));
    let positions = ops::arange::<u32>(x.scope(), x.dim(0))?;
    let q = ops::rope(&heads(&model.q, 4)?, &positions, ROPE)?;
    let k = ops::rope(&heads(&model.k, 2)?, &positions, ROPE)?;
    let config = AttentionConfig::new(AttentionMask::Causal).window(3, 0);
    let a = ops::attention(&q, &k, &heads(&model.v, 2)?, config, 0.5)?;
    ops::add(x, &ops::linear(&ops::reshape(&a, (x.dim(0), 16))?, &model.o)?)
}

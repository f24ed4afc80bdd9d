//! Gemma 2 with one layer: scaled embeddings, norms by one plus a weight before and after each part, soft caps.

use graphable::{
    Param, Params, Result, Runtime, Tensor, graphable,
    ops::{self, AttentionConfig, AttentionMask, RopeConfig, RopeStyle},
};

use super::{check, param};
use crate::fixtures::Fixture;

const ROPE: RopeConfig = RopeConfig::new(10_000.0, RopeStyle::HalfSplit);

#[derive(Params)]
struct Gemma {
    embed: Param<f32>,
    /// `[2 * 4, 8]`
    q: Param<f32>,
    /// `[1 * 4, 8]`
    k: Param<f32>,
    v: Param<f32>,
    o: Param<f32>,
    gate: Param<f32>,
    up: Param<f32>,
    down: Param<f32>,
    /// Before and after attention, before and after the MLP, and before the logits.
    norms: Vec<Param<f32>>,
}

#[graphable]
fn norm(x: &Tensor<f32>, weight: &Param<f32>) -> Result<Tensor<f32>> {
    ops::rms_norm(x, &ops::add(&x.scope().view(weight)?, 1.0)?, 1e-6)
}

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

#[graphable]
fn gemma(
    #[host]
    #[dims(T)]
    ids: &Tensor<u32>,
    model: &Gemma,
) -> Result<Tensor<f32>> {
    let h = ops::scale(&ops::embedding(ids, &model.embed)?, 8f32.sqrt())?;
    let a = attend(&norm(&h, &model.norms[0])?, model)?;
    let h = ops::add(&h, &norm(&a, &model.norms[1])?)?;
    let n = norm(&h, &model.norms[2])?;
    let gate = ops::gelu_tanh(&ops::linear(&n, &model.gate)?)?;
    let m = ops::linear(&ops::mul(&gate, &ops::linear(&n, &model.up)?)?, &model.down)?;
    let h = norm(&ops::add(&h, &norm(&m, &model.norms[3])?)?, &model.norms[4])?;
    let logits = ops::linear(&h, &model.embed)?;
    ops::scale(&ops::tanh(&ops::scale(&logits, 1.0 / 3.0)?)?, 3.0)
}

#[test]
fn norms_by_one_plus_a_weight_and_soft_caps() {
    let new = |rt: &Runtime, case: &Fixture| {
        let of = |name: &str| param(rt, case, name);
        Gemma {
            embed: of("embed"),
            q: of("q"),
            k: of("k"),
            v: of("v"),
            o: of("o"),
            gate: of("gate"),
            up: of("up"),
            down: of("down"),
            norms: (0..5).map(|i| of(&format!("norm{i}"))).collect(),
        }
    };
    let ids = |case: &Fixture| -> Vec<u32> { case.array("x").data.iter().map(|&v| v as u32).collect() };
    check!(GemmaGraph, "T" to 12 apart, model: |rt, case| new(rt, case), ["gemma0", "gemma1"], |case| ids(case));
}

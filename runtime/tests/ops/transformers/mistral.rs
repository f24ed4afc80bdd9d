//! Mistral's attention: fewer heads of keys than of queries, rotary embeddings, a sliding window.

use graphable::{
    Param, Params, Result, Runtime, Tensor, graphable,
    ops::{self, AttentionConfig, AttentionMask, RopeConfig, RopeStyle},
};

use super::{check, param, values};
use crate::fixtures::Fixture;

const ROPE: RopeConfig = RopeConfig::new(10_000.0, RopeStyle::HalfSplit);

#[derive(Params)]
struct Attention {
    norm: Param<f32>,
    /// `[4 * 4, 8]`
    q: Param<f32>,
    /// `[2 * 4, 8]`
    k: Param<f32>,
    v: Param<f32>,
    o: Param<f32>,
}

/// Each token attends to itself and to the three before it.
#[graphable]
fn attend(
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

#[test]
fn attention_in_a_sliding_window() {
    let new = |rt: &Runtime, case: &Fixture| {
        let of = |name| param(rt, case, name);
        Attention { norm: of("norm"), q: of("q"), k: of("k"), v: of("v"), o: of("o") }
    };
    check!(AttendGraph, "T" to 12 apart, model: |rt, case| new(rt, case), ["mistral0", "mistral1"], |case| values(case));
}

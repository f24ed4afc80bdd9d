//! A layer with a mixture of experts.

use graphable::{
    Param, Params, Result, Runtime, Tensor, graphable,
    ops::{self, AttentionMask},
};

use super::{check, param, values};
use crate::fixtures::Fixture;

#[derive(Params)]
struct Mixture {
    norm1: Param<f32>,
    q: Param<f32>,
    k: Param<f32>,
    v: Param<f32>,
    o: Param<f32>,
    norm2: Param<f32>,
    /// `[experts, 8]`
    router: Param<f32>,
    /// `[experts, 6, 8]`
    gate: Param<f32>,
    up: Param<f32>,
    /// `[experts, 8, 6]`
    down: Param<f32>,
}

/// Two experts of four for each token, by the probabilities of a router.
#[graphable]
fn experts(x: &Tensor<f32>, model: &Mixture) -> Result<Tensor<f32>> {
    let probabilities = ops::softmax(&ops::linear(x, &model.router)?, 1)?;
    let (weights, choices) = ops::topk(&probabilities, 2, 1)?;
    let weights = ops::div(&weights, &ops::sum_keepdim(&weights, 1)?)?;
    let routes = ops::moe_route(&choices, 4)?;
    let h = ops::moe_permute(x, &routes)?;
    let gate = ops::grouped_mm_nt(&h, &model.gate, routes.ends())?;
    let up = ops::grouped_mm_nt(&h, &model.up, routes.ends())?;
    let h = ops::grouped_mm_nt(&ops::silu_mul(&gate, &up)?, &model.down, routes.ends())?;
    ops::moe_unpermute(&h, &weights, &routes)
}

#[graphable]
fn mixture(
    #[host]
    #[dims(T, 8)]
    x: &Tensor<f32>,
    model: &Mixture,
) -> Result<Tensor<f32>> {
    let n = ops::rms_norm(x, &model.norm1, 1e-6)?;
    let heads = |weight: &Param<_>| ops::reshape(&ops::linear(&n, weight)?, (x.dim(0), 2, 4));
    let (q, k, v) = (heads(&model.q)?, heads(&model.k)?, heads(&model.v)?);
    let a = ops::attention(&q, &k, &v, AttentionMask::Causal, 0.5)?;
    let h = ops::add(x, &ops::linear(&ops::reshape(&a, (x.dim(0), 8))?, &model.o)?)?;
    ops::add(&h, &experts(&ops::rms_norm(&h, &model.norm2, 1e-6)?, model)?)
}

/// Both sequences have routes of their own, and in one bucket the same recording.
#[test]
fn a_layer_with_a_mixture_of_experts() {
    let new = |rt: &Runtime, case: &Fixture| {
        let of = |name| param(rt, case, name);
        Mixture {
            norm1: of("norm1"),
            q: of("q"),
            k: of("k"),
            v: of("v"),
            o: of("o"),
            norm2: of("norm2"),
            router: of("router"),
            gate: of("gate"),
            up: of("up"),
            down: of("down"),
        }
    };
    check!(MixtureGraph, "T" to 8, model: |rt, case| new(rt, case), ["moe0", "moe1"], |case| values(case));
}

//! A layer with a mixture of experts, as in Mixtral ("Mixtral of Experts", Jiang et al., 2024): a router, the two best of four
//! experts for each token, rows that are sorted by expert, and products of groups whose sizes only the device knows.

use graphable::{ops::AttentionMask, prelude::*};

/// The router, and the weights of four experts.
#[derive(Params)]
#[params(config = ())]
struct Experts {
    #[param(shape = [4, 8])]
    router: Param<f32>,
    #[param(shape = [4, 6, 8])]
    gate: Param<f32>,
    #[param(shape = [4, 6, 8])]
    up: Param<f32>,
    #[param(shape = [4, 8, 6])]
    down: Param<f32>,
}

/// All weights.
#[derive(Params)]
#[params(config = ())]
pub struct Mixture {
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
    #[param(shape = [8])]
    norm2: Param<f32>,
    #[param("experts")]
    experts: Experts,
}

/// `[T, 8]` to `[T, 8]`: the two experts that the router prefers for a token, weighted by its probabilities.
#[graphable]
fn experts(x: &Tensor<f32>, model: &Experts) -> Result<Tensor<f32>> {
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

/// `[T, 8]` to `[T, 8]`: attention with two heads, then the experts. `T` may have buckets.
#[graphable]
pub fn mixture(
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
    ops::add(&h, &experts(&ops::rms_norm(&h, &model.norm2, 1e-6)?, &model.experts)?)
}

//! The encoder: weights, and the one function that becomes a graph per bucket.
//!
//! In shapes, `B` is the number of sentences, `T` the longest one's number of tokens, `D` the width of
//! the model, `H` its heads and `E` the width of a head. Both `B` and `T` are rounded up to buckets, so
//! sentences of different lengths share recordings. What is real is told from padding by `lengths`:
//! attention sees no further, the mean leaves the rest out, and rows beyond the batch are cut off.

use graphable::{ops::AttentionMask, prelude::*};

use super::Config;

/// Weights of one layer. Matrices are `[out, in]`.
#[derive(Params)]
#[params(config = Config)]
struct Layer {
    #[param("attention.self.query.weight", shape = [config.dim, config.dim])]
    q: Param<f32>,
    #[param("attention.self.query.bias", shape = [config.dim])]
    q_bias: Param<f32>,
    #[param("attention.self.key.weight", shape = [config.dim, config.dim])]
    k: Param<f32>,
    #[param("attention.self.key.bias", shape = [config.dim])]
    k_bias: Param<f32>,
    #[param("attention.self.value.weight", shape = [config.dim, config.dim])]
    v: Param<f32>,
    #[param("attention.self.value.bias", shape = [config.dim])]
    v_bias: Param<f32>,
    #[param("attention.output.dense.weight", shape = [config.dim, config.dim])]
    o: Param<f32>,
    #[param("attention.output.dense.bias", shape = [config.dim])]
    o_bias: Param<f32>,
    #[param("attention.output.LayerNorm.weight", shape = [config.dim])]
    attended_scale: Param<f32>,
    #[param("attention.output.LayerNorm.bias", shape = [config.dim])]
    attended_shift: Param<f32>,
    #[param("intermediate.dense.weight", shape = [config.ffn, config.dim])]
    up: Param<f32>,
    #[param("intermediate.dense.bias", shape = [config.ffn])]
    up_bias: Param<f32>,
    #[param("output.dense.weight", shape = [config.dim, config.ffn])]
    down: Param<f32>,
    #[param("output.dense.bias", shape = [config.dim])]
    down_bias: Param<f32>,
    #[param("output.LayerNorm.weight", shape = [config.dim])]
    out_scale: Param<f32>,
    #[param("output.LayerNorm.bias", shape = [config.dim])]
    out_shift: Param<f32>,
    #[config(config.heads)]
    heads: usize,
    #[config(config.eps)]
    eps: f32,
}

/// All weights that an embedding needs; the file's pooling layer is not among them.
#[derive(Params)]
#[params(config = Config)]
pub struct Bert {
    #[param("embeddings.word_embeddings.weight", shape = [config.vocab, config.dim])]
    words: Param<f32>,
    #[param("embeddings.position_embeddings.weight", shape = [config.positions, config.dim])]
    positions: Param<f32>,
    #[param("embeddings.token_type_embeddings.weight", shape = [config.kinds, config.dim])]
    kinds: Param<f32>,
    #[param("embeddings.LayerNorm.weight", shape = [config.dim])]
    scale: Param<f32>,
    #[param("embeddings.LayerNorm.bias", shape = [config.dim])]
    shift: Param<f32>,
    #[param("encoder.layer.{}", len = config.layers)]
    layers: Vec<Layer>,
    #[config(config.eps)]
    eps: f32,
}

/// `[B, T, D]` for ids `[B, T]`: what a token is, where it stands, and that all belong to one text.
#[graphable]
fn embed(tokens: &Tensor<u32>, model: &Bert) -> Result<Tensor<f32>> {
    let scope = tokens.scope();
    let words = ops::embedding(tokens, &model.words)?;
    let places = ops::narrow(&scope.view(&model.positions)?, 0, 0, tokens.dim(1))?;
    let kind = ops::narrow(&scope.view(&model.kinds)?, 0, 0, 1)?;
    let sum = ops::add(&ops::add(&words, &places)?, &kind)?;
    ops::layer_norm(&sum, &model.scale, &model.shift, model.eps)
}

/// One layer, `[B, T, D]` to `[B, T, D]`.
#[graphable]
fn layer(h: &Tensor<f32>, lengths: &Tensor<u32>, layer: &Layer) -> Result<Tensor<f32>> {
    let (b, t, d) = (h.dim(0), h.dim(1), h.dim(2));
    let head = d / layer.heads;
    let heads = |weight: &Param<f32>, bias: &Param<f32>| {
        ops::reshape(&ops::linear_bias(h, weight, bias)?, (b, t, layer.heads, head))
    };
    let q = heads(&layer.q, &layer.q_bias)?;
    let k = heads(&layer.k, &layer.k_bias)?;
    let v = heads(&layer.v, &layer.v_bias)?;
    let scale = (head.get()? as f32).sqrt().recip();
    let a = ops::attention(&q, &k, &v, AttentionMask::Lengths(lengths), scale)?;
    let a = ops::linear_bias(&ops::reshape(&a, &[b, t, d])?, &layer.o, &layer.o_bias)?;
    let h = ops::layer_norm(&ops::add(h, &a)?, &layer.attended_scale, &layer.attended_shift, layer.eps)?;

    let inner = ops::gelu(&ops::linear_bias(&h, &layer.up, &layer.up_bias)?)?;
    let out = ops::linear_bias(&inner, &layer.down, &layer.down_bias)?;
    ops::layer_norm(&ops::add(&h, &out)?, &layer.out_scale, &layer.out_shift, layer.eps)
}

/// Embeddings `[B, D]` of length 1, for ids `[B, T]` of which the first `lengths`, `[B]`, are real.
#[graphable]
pub fn encode(
    #[host]
    #[dims(B, T)]
    tokens: &Tensor<u32>,
    #[host]
    #[dims(B)]
    lengths: &Tensor<u32>,
    model: &Bert,
) -> Result<Tensor<f32>> {
    let mut h = embed(tokens, model)?;
    for weights in &model.layers {
        h = layer(&h, lengths, weights)?;
    }
    // `[B, T]`: token `j` of a sentence is real if `j < length`.
    let real = ops::lt(&ops::arange::<u32>(h.scope(), h.dim(1))?, &ops::unsqueeze(lengths, 1)?)?;
    let mean = ops::masked_mean(&h, &ops::unsqueeze(&real, 2)?, 1)?;
    ops::l2_normalize(&mean, 1, 1e-12)
}

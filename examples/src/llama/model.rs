//! The model: weights, cache, and the two functions that become graphs.
//!
//! Read it from top to bottom as a walk through writing a model:
//!
//! 1. Structs that derive [`Params`] hold the weights; a field is found in the file by its name.
//! 2. [`KvCache`] holds [`State`], memory that the functions change in place.
//! 3. Helpers are plain functions under `#[graphable]`; where they are called they are inlined.
//! 4. [`prefill`] has no boundary, so each bucket of prompt lengths is one graph.
//! 5. [`decode`] has a boundary in every layer: attention runs on each call, and what lies between
//!    two attentions is one segment.
//!
//! In shapes, `T` is the number of tokens of a call, `D` the width of the model, `H` and `K` its query
//! and key heads, `E` the width of a head, `V` the vocabulary and `S` the rows of the cache.

use graphable::{
    ops::{AttentionMask, RopeConfig, RopeStyle},
    prelude::*,
};

use super::Config;

/// Weights of one layer. Matrices are `[out, in]`.
///
/// Every `#[config]` value is part of a recording's key: changed, it is recorded anew, instead of
/// replaying what the old value gave.
#[derive(Params)]
#[params(config = Config)]
struct Layer {
    #[param("attn_norm.weight", shape = [config.dim])]
    attn_norm: Param<f32>,
    #[param("attn_q.weight", shape = [config.heads * config.head_dim, config.dim])]
    q: Param<f32>,
    #[param("attn_k.weight", shape = [config.kv_heads * config.head_dim, config.dim])]
    k: Param<f32>,
    #[param("attn_v.weight", shape = [config.kv_heads * config.head_dim, config.dim])]
    v: Param<f32>,
    #[param("attn_output.weight", shape = [config.dim, config.heads * config.head_dim])]
    o: Param<f32>,
    #[param("ffn_norm.weight", shape = [config.dim])]
    ffn_norm: Param<f32>,
    #[param("ffn_gate.weight", shape = [config.ffn, config.dim])]
    gate: Param<f32>,
    #[param("ffn_up.weight", shape = [config.ffn, config.dim])]
    up: Param<f32>,
    #[param("ffn_down.weight", shape = [config.dim, config.ffn])]
    down: Param<f32>,
    #[config(config.eps)]
    eps: f32,
    #[config(config.head_dim)]
    head_dim: usize,
    #[config(config.rope_dim)]
    rope_dim: usize,
    #[config(config.theta)]
    theta: f32,
}

/// All weights.
#[derive(Params)]
#[params(config = Config)]
pub struct Llama {
    /// From ids to vectors and, unless the file has a matrix for that, back to logits.
    #[param("token_embd.weight", shape = [config.vocab, config.dim])]
    embed: Param<f32>,
    #[param("blk.{}", len = config.layers)]
    layers: Vec<Layer>,
    #[param("output_norm.weight", shape = [config.dim])]
    norm: Param<f32>,
    #[param("output.weight", shape = [config.vocab, config.dim], optional)]
    output: Option<Param<f32>>,
    #[config(config.eps)]
    eps: f32,
}

/// Keys and values of one layer, `[S, K, E]` each; row `j` belongs to position `j`.
#[derive(Params)]
struct LayerCache {
    keys: State<f32>,
    values: State<f32>,
}

/// Keys and values of every token so far.
#[derive(Params)]
pub struct KvCache {
    layers: Vec<LayerCache>,
}

impl KvCache {
    /// A cache for `capacity` tokens.
    ///
    /// # Errors
    /// If the device has no room for it.
    pub fn new(rt: &Runtime, config: &Config, capacity: usize) -> Result<Self> {
        let zeros = || State::zeros(rt, &[capacity, config.kv_heads, config.head_dim]);
        let layer = |_| Ok(LayerCache { keys: zeros()?, values: zeros()? });
        Ok(Self { layers: (0..config.layers).map(layer).collect::<Result<_>>()? })
    }
}

/// How `layer` rotates queries and keys.
fn rope(layer: &Layer) -> RopeConfig {
    // In GGUF files of this architecture the rows of Q and K are ordered so that neighbours pair up.
    RopeConfig { theta: layer.theta, style: RopeStyle::Interleaved, dim: Some(layer.rope_dim) }
}

/// A layer's queries `[T, H, E]`, keys and values `[T, K, E]` of `h: [T, D]`; queries are rotated by
/// their positions, keys not yet.
#[graphable]
fn project(h: &Tensor<f32>, positions: &Tensor<u32>, layer: &Layer) -> Result<[Tensor<f32>; 3]> {
    let x = ops::rms_norm(h, &layer.attn_norm, layer.eps)?;
    let heads = |weight: &Param<f32>| {
        let y = ops::linear(&x, weight)?;
        ops::reshape(&y, (y.dim(0), y.dim(1) / layer.head_dim, layer.head_dim))
    };
    let q = ops::rope(&heads(&layer.q)?, positions, rope(layer))?;
    Ok([q, heads(&layer.k)?, heads(&layer.v)?])
}

/// Puts new keys, rotated, and values into the cache, then lets each query see all rows up to its own
/// position. Gives `[T, H * E]`.
#[graphable]
fn attend(
    qkv: &[Tensor<f32>; 3],
    positions: &Tensor<u32>,
    layer: &Layer,
    cache: &LayerCache,
) -> Result<Tensor<f32>> {
    let [q, k, v] = qkv;
    ops::rope_scatter(&cache.keys, positions, k, positions, rope(layer))?;
    ops::scatter_rows(&cache.values, positions, v)?;
    let scale = (q.dim(2).get()? as f32).sqrt().recip();
    let a = ops::attention(q, &cache.keys, &cache.values, AttentionMask::Positions(positions), scale)?;
    ops::reshape(&a, (q.dim(0), q.dim(1) * q.dim(2)))
}

/// The rest of a layer: adds what attention found to `h`, then the feed-forward part.
#[graphable]
fn feed_forward(h: &Tensor<f32>, attended: &Tensor<f32>, layer: &Layer) -> Result<Tensor<f32>> {
    let (h, x) = ops::add_rms_norm(h, &ops::linear(attended, &layer.o)?, &layer.ffn_norm, layer.eps)?;
    let inner = ops::silu_mul(&ops::linear(&x, &layer.gate)?, &ops::linear(&x, &layer.up)?)?;
    ops::add(&h, &ops::linear(&inner, &layer.down)?)
}

/// Logits `[T, V]` of `h: [T, D]`.
#[graphable]
fn logits(h: &Tensor<f32>, model: &Llama) -> Result<Tensor<f32>> {
    let x = ops::rms_norm(h, &model.norm, model.eps)?;
    ops::linear(&x, model.output.as_ref().unwrap_or(&model.embed))
}

/// Reads a piece of a prompt: `tokens` and their `positions`, `[T]`. Gives the logits `[1, V]` after
/// the token at index `last`, `[1]`.
#[graphable]
pub fn prefill(
    #[host]
    #[dims(T)]
    tokens: &Tensor<u32>,
    #[host]
    #[dims(T)]
    positions: &Tensor<u32>,
    #[host]
    #[dims(1)]
    last: &Tensor<u32>,
    model: &Llama,
    kv: &KvCache,
) -> Result<Tensor<f32>> {
    let mut h = ops::embedding(tokens, &model.embed)?;
    for (layer, cache) in model.layers.iter().zip(&kv.layers) {
        let qkv = project(&h, positions, layer)?;
        let attended = attend(&qkv, positions, layer, cache)?;
        h = feed_forward(&h, &attended, layer)?;
    }
    // One row of many: the vocabulary is by far the widest matrix.
    logits(&ops::gather(&h, 0, last)?, model)
}

/// Takes one more token and its position, `[1]` each, and gives the logits `[1, V]` after it.
#[graphable]
pub fn decode(
    #[host]
    #[dims(1)]
    token: &Tensor<u32>,
    #[host]
    #[dims(1)]
    position: &Tensor<u32>,
    model: &Llama,
    kv: &KvCache,
) -> Result<Tensor<f32>> {
    let mut h = ops::embedding(token, &model.embed)?;
    for (layer, cache) in model.layers.iter().zip(&kv.layers) {
        let qkv = project(&h, position, layer)?;
        // Its shape never changes, so the whole call can be one graph too (`--mode full`).
        let attended = #[eager(support = Always)]
        attend(&qkv, position, layer, cache)?;
        h = feed_forward(&h, &attended, layer)?;
    }
    logits(&h, model)
}

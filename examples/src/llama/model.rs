//! The model: weights, cache, and the two functions that become graphs.
//!
//! Read it from top to bottom as a walk through writing a model:
//!
//! 1. Structs that derive [`Params`] hold the weights; a field is found in the file by its name.
//! 2. [`KvCache`] holds [`State`], memory that the functions change in place.
//! 3. Helpers are plain functions under `#[graphable]`; where they are called they are inlined.
//! 4. [`Turn`] is what leads from one token to the next without the host: [`choose`] samples, and [`keep`] leaves the token on
//!    the device for the next call.
//! 5. [`prefill`] has no boundary, so each bucket of prompt lengths is one graph.
//! 6. [`decode`] has a boundary in every layer: attention runs on each call, and what lies between
//!    two attentions is one segment.
//! 7. [`Adapters`] change what the matrices make, in slots that are written without recording anything; without slots they are
//!    not there.
//! 8. [`decode_loop`] decodes until the end of the answer without the host: a loop on the device, in one graph. The host sees
//!    the tokens in a [`PinnedLog`] while it runs.
//!
//! In shapes, `T` is the number of tokens of a call, `D` the width of the model, `H` and `K` its query
//! and key heads, `E` the width of a head, `V` the vocabulary and `S` the rows of the cache.

use std::collections::BTreeMap;

use graphable::{
    BlockFormat, PinnedLog, Weight,
    ops::{AttentionConfig, AttentionMask, MoeRoutes, RopeOptions, SampleConfig},
    prelude::*,
};

use super::{
    Activation, Config,
    adapters::{Adapters, LayerAdapters, adapted, route},
};
use crate::sampling::SamplingOptions;

/// The largest number of rounds of [`decode_loop`].
pub(super) const LONGEST: u32 = 4096;

/// Weights of one layer. Matrices are `[out, in]`, of floats or in blocks.
///
/// Every `#[config]` value is part of a recording's key: changed, it is recorded anew, instead of
/// replaying what the old value gave.
#[derive(Params)]
#[params(config = Config)]
pub(super) struct Layer<T: Float> {
    #[param("attn_norm.weight", shape = [config.dim])]
    attn_norm: Param<T>,
    #[param("attn_q.weight", shape = [config.heads * config.head_dim, config.dim])]
    q: Weight<T>,
    #[param("attn_k.weight", shape = [config.kv_heads * config.head_dim, config.dim])]
    k: Weight<T>,
    #[param("attn_v.weight", shape = [config.kv_heads * config.head_dim, config.dim])]
    v: Weight<T>,
    #[param("attn_q.bias", shape = [config.heads * config.head_dim], optional)]
    q_bias: Option<Param<T>>,
    #[param("attn_k.bias", shape = [config.kv_heads * config.head_dim], optional)]
    k_bias: Option<Param<T>>,
    #[param("attn_v.bias", shape = [config.kv_heads * config.head_dim], optional)]
    v_bias: Option<Param<T>>,
    #[param("attn_q_norm.weight", shape = [config.head_dim], optional)]
    q_norm: Option<Param<T>>,
    #[param("attn_k_norm.weight", shape = [config.head_dim], optional)]
    k_norm: Option<Param<T>>,
    #[param("attn_output.weight", shape = [config.dim, config.heads * config.head_dim])]
    o: Weight<T>,
    #[param("post_attention_norm.weight", shape = [config.dim], optional)]
    attn_post: Option<Param<T>>,
    #[param("ffn_norm.weight", shape = [config.dim])]
    ffn_norm: Param<T>,
    #[param("ffn_gate.weight", shape = [config.ffn, config.dim])]
    gate: Weight<T>,
    #[param("ffn_up.weight", shape = [config.ffn, config.dim])]
    up: Weight<T>,
    #[param("ffn_down.weight", shape = [config.dim, config.ffn])]
    down: Weight<T>,
    #[param("post_ffw_norm.weight", shape = [config.dim], optional)]
    ffn_post: Option<Param<T>>,
    #[config(config.eps)]
    eps: f32,
    #[config(config.head_dim)]
    head_dim: usize,
    #[config(config.activation)]
    activation: Activation,
    #[config(config.attention_scale)]
    scale: f32,
    #[config(config.attention_cap)]
    cap: Option<f32>,
    #[config(config.rope)]
    rope: RopeOptions,
    #[config(config.window)]
    window: Option<usize>,
}

/// All weights.
#[derive(Params)]
#[params(config = Config)]
pub struct Llama<T: Float = f32> {
    /// From ids to vectors and, unless the file has a matrix for that, back to logits.
    #[param("token_embd.weight", shape = [config.vocab, config.dim])]
    embed: Weight<T>,
    #[param("blk.{}", len = config.layers)]
    pub(super) layers: Vec<Layer<T>>,
    #[param("output_norm.weight", shape = [config.dim])]
    norm: Param<T>,
    #[param("output.weight", shape = [config.vocab, config.dim], optional)]
    output: Option<Weight<T>>,
    #[config(config.eps)]
    eps: f32,
    #[config(config.embed_scale)]
    embed_scale: f32,
    #[config(config.logit_cap)]
    cap: Option<f32>,
}

impl<T: Float> Llama<T> {
    /// Gives each layer its window and how it turns queries and keys: loading cannot tell layers apart.
    #[must_use]
    pub(crate) fn with_layers_of(mut self, config: &Config) -> Self {
        for (i, layer) in self.layers.iter_mut().enumerate() {
            (layer.window, layer.rope) = (config.window_of(i), config.rope_of(i));
        }
        self
    }

    /// Its matrices: those of each layer, the embedding, and what leads to logits if that is another one.
    fn matrices(&self) -> impl Iterator<Item = &Weight<T>> {
        let layers = self.layers.iter().flat_map(|layer| {
            let Layer { q, k, v, o, gate, up, down, .. } = layer;
            [q, k, v, o, gate, up, down]
        });
        layers.chain([&self.embed]).chain(&self.output)
    }

    /// The formats of its matrices; `None` stands for floats.
    pub fn formats(&self) -> impl Iterator<Item = Option<BlockFormat>> {
        self.matrices().map(Weight::format)
    }

    /// How most of the elements of its layers' matrices are stored: `f32`, `Q4_1`, or another type or format.
    pub fn stored(&self) -> String {
        let mut elements = BTreeMap::<_, usize>::new();
        // The embedding is often in a format of its own.
        for weight in self.matrices().take(7 * self.layers.len()) {
            *elements.entry(weight.format()).or_default() += weight.shape().iter().product::<usize>();
        }
        let most = elements.into_iter().max_by_key(|(_, n)| *n).and_then(|(format, _)| format);
        most.map_or_else(|| T::DTYPE.to_string(), |format| format.to_string())
    }
}

/// Keys and values of one layer, `[S, K, E]` each; row `j` belongs to position `j`.
#[derive(Params)]
pub(super) struct LayerCache<T: Element> {
    keys: State<T>,
    values: State<T>,
}

/// Keys and values of every token so far.
#[derive(Params)]
pub struct KvCache<T: Element = f32> {
    pub(super) layers: Vec<LayerCache<T>>,
}

impl<T: Element> KvCache<T> {
    /// A cache for `capacity` tokens.
    ///
    /// # Errors
    /// If the device has no room for it.
    pub fn new(rt: &Runtime, config: &Config, capacity: usize) -> Result<Self> {
        let zeros = || State::zeros(rt, &[capacity, config.kv_heads, config.head_dim]);
        let layer = |_| Ok(LayerCache { keys: zeros()?, values: zeros()? });
        Ok(Self { layers: (0..config.layers).map(layer).collect::<Result<_>>()? })
    }

    /// The keys of the first layer.
    pub fn first_keys(&self) -> &State<T> {
        &self.layers[0].keys
    }
}

/// What leads from one token to the next, on the device.
///
/// A call whose result does not count leaves no trace in it: the host may launch a call before it has read whether the
/// call before ended the answer.
#[derive(Params)]
pub struct Turn {
    /// The last token, `[1]`.
    token: State<u32>,
    /// Whether it ended the answer, `[1]`.
    ended: State<bool>,
    /// The tokens of the conversation, `[V]`.
    seen: State<bool>,
    /// Those of the answer, `[V]`.
    answered: State<bool>,
    /// The tokens that end an answer.
    stops: Param<u32>,
    rng: Rng,
    #[config]
    repetition_penalty: f32,
    #[config]
    presence_penalty: f32,
    #[config]
    temperature: f32,
    #[config]
    top_k: u32,
    #[config]
    top_p: f32,
    #[config]
    min_p: f32,
}

impl Turn {
    /// The state of a conversation that has not begun.
    ///
    /// # Errors
    /// If the device has no room for it.
    pub fn new(rt: &Runtime, config: &Config, stops: &[u32], sampling: SamplingOptions) -> Result<Self> {
        // A token that is none ends the answer as well.
        let stops: Vec<u32> = stops.iter().copied().chain([ops::NO_TOKEN]).collect();
        Ok(Self {
            token: State::zeros(rt, &[1])?,
            ended: State::zeros(rt, &[1])?,
            seen: State::zeros(rt, &[config.vocab])?,
            answered: State::zeros(rt, &[config.vocab])?,
            stops: Param::new(rt, &[stops.len()], &stops)?,
            rng: Rng::new(rt, sampling.seed)?,
            repetition_penalty: sampling.repetition_penalty,
            presence_penalty: sampling.presence_penalty,
            temperature: sampling.temperature,
            top_k: sampling.top_k,
            top_p: sampling.top_p,
            min_p: sampling.min_p,
        })
    }

    /// Begins an answer; what was said before stays seen, or is forgotten.
    ///
    /// # Errors
    /// What the runtime says.
    pub fn begin(&self, step: &Step<'_>, forget: bool) -> Result<()> {
        let none = ops::zeros(step.scope(), self.seen.shape())?;
        if forget {
            ops::store(&self.seen, &none)?;
        }
        ops::store(&self.answered, &none)
    }

    /// The generator of its random numbers.
    pub fn rng(&self) -> &Rng {
        &self.rng
    }
}

/// `x` times `weight`, plus the bias if there is one.
#[graphable]
fn project<T: Float>(x: &Tensor<T>, weight: &Weight<T>, bias: &Option<Param<T>>) -> Result<Tensor<T>> {
    match bias {
        Some(bias) => ops::linear_bias(x, weight, bias),
        None => ops::linear(x, weight),
    }
}

/// Rows `[T, N * E]` as heads `[T, N, E]`, each normalised if there is a weight for that.
#[graphable]
fn heads<T: Float>(x: &Tensor<T>, norm: &Option<Param<T>>, layer: &Layer<T>) -> Result<Tensor<T>> {
    let x = ops::reshape(x, (x.dim(0), x.dim(1) / layer.head_dim, layer.head_dim))?;
    match norm {
        Some(norm) => ops::rms_norm(&x, norm, layer.eps),
        None => Ok(x),
    }
}

/// What turns queries and keys of a piece of a prompt: its `positions`, `[T]`, or where angles follow from the length of the whole
/// prompt, `[2, T]`: those, and the position at which the prompt ends, `[1]`, beside each.
#[graphable]
pub(super) fn turning<T: Float>(
    positions: &Tensor<u32>,
    end: &Tensor<u32>,
    model: &Llama<T>,
) -> Result<Tensor<u32>> {
    if !model.layers.iter().any(|layer| layer.rope.depends_on_length()) {
        return Ok(positions.clone());
    }
    ops::stack(&[positions, &ops::broadcast_to(end, (positions.dim(0),))?], 0)
}

impl<T: Float> Layer<T> {
    /// Of what [`turning`] gives, what this layer's angles follow from.
    pub(super) fn turns<'a, 's>(
        &self,
        turning: &'a Tensor<'s, u32>,
        positions: &'a Tensor<'s, u32>,
    ) -> &'a Tensor<'s, u32> {
        if self.rope.depends_on_length() { turning } else { positions }
    }

    /// How queries and keys turn by `turns`, which are positions, or those with the end of the prompt.
    fn rope_by(&self, turns: &Tensor<'_, u32>) -> RopeOptions {
        match turns.rank() {
            2 => self.rope.sections([self.rope.pairs(self.head_dim), 0]),
            _ => self.rope,
        }
    }
}

/// A layer's queries `[T, H, E]`, keys and values `[T, K, E]` of `h: [T, D]`; queries are rotated by
/// `turns`, keys not yet.
pub(super) fn project_heads<'s, T: Float>(
    h: &Tensor<'s, T>,
    turns: &Tensor<'s, u32>,
    layer: &Layer<T>,
    adapters: &LayerAdapters<T>,
    routes: &Option<MoeRoutes<'s>>,
) -> Result<[Tensor<'s, T>; 3]> {
    let x = ops::rms_norm(h, &layer.attn_norm, layer.eps)?;
    let q = adapted(project(&x, &layer.q, &layer.q_bias)?, &x, &adapters.q, routes)?;
    let q = heads(&q, &layer.q_norm, layer)?;
    // Right behind its product, with nothing in between that could keep the two from becoming one launch.
    let q = ops::rope(&q, turns, layer.rope_by(turns))?;
    let k = adapted(project(&x, &layer.k, &layer.k_bias)?, &x, &adapters.k, routes)?;
    let k = heads(&k, &layer.k_norm, layer)?;
    let v = adapted(project(&x, &layer.v, &layer.v_bias)?, &x, &adapters.v, routes)?;
    let v = heads(&v, &None, layer)?;
    Ok([q, k, v])
}

/// Puts new keys, rotated by `turns`, and values into `rows` of the cache, then lets each query see all rows up to its own
/// position, or those of its window. Gives `[T, H * E]`.
#[graphable]
pub(super) fn attend<T: Float>(
    qkv: &[Tensor<T>; 3],
    turns: &Tensor<u32>,
    positions: &Tensor<u32>,
    rows: &Tensor<u32>,
    layer: &Layer<T>,
    cache: &LayerCache<T>,
) -> Result<Tensor<T>> {
    let [q, k, v] = qkv;
    ops::rope_scatter(&cache.keys, rows, k, turns, layer.rope_by(turns))?;
    ops::scatter_rows(&cache.values, rows, v)?;
    let mask = AttentionConfig::new(AttentionMask::Positions(positions));
    let mask = match layer.window {
        None => mask,
        Some(n) => mask.window(n - 1, 0),
    };
    let mask = match layer.cap {
        None => mask,
        Some(cap) => mask.soft_cap(cap),
    };
    let a = ops::attention(q, &cache.keys, &cache.values, mask, layer.scale)?;
    ops::reshape(&a, (q.dim(0), q.dim(1) * q.dim(2)))
}

/// What a part of a layer adds, normalised if there is a weight for that.
#[graphable]
fn added<T: Float>(x: Tensor<T>, norm: &Option<Param<T>>, eps: f32) -> Result<Tensor<T>> {
    match norm {
        Some(norm) => ops::rms_norm(&x, norm, eps),
        None => Ok(x),
    }
}

/// The rest of a layer: adds what attention found to `h`, then the feed-forward part.
pub(super) fn feed_forward<'s, T: Float>(
    h: &Tensor<'s, T>,
    attended: &Tensor<'s, T>,
    layer: &Layer<T>,
    adapters: &LayerAdapters<T>,
    routes: &Option<MoeRoutes<'s>>,
) -> Result<Tensor<'s, T>> {
    let a = adapted(ops::linear(attended, &layer.o)?, attended, &adapters.o, routes)?;
    let (h, x) = ops::add_rms_norm(h, &added(a, &layer.attn_post, layer.eps)?, &layer.ffn_norm, layer.eps)?;
    let gate = adapted(ops::linear(&x, &layer.gate)?, &x, &adapters.gate, routes)?;
    let up = adapted(ops::linear(&x, &layer.up)?, &x, &adapters.up, routes)?;
    let inner = match layer.activation {
        Activation::Silu => ops::silu_mul(&gate, &up)?,
        Activation::GeluTanh => ops::mul(&ops::gelu_tanh(&gate)?, &up)?,
    };
    let down = adapted(ops::linear(&inner, &layer.down)?, &inner, &adapters.down, routes)?;
    ops::add(&h, &added(down, &layer.ffn_post, layer.eps)?)
}

/// Vectors `[T, D]` of `tokens`, `[T]`.
#[graphable]
pub(super) fn embed<T: Float>(tokens: &Tensor<u32>, model: &Llama<T>) -> Result<Tensor<T>> {
    let h = ops::embedding(tokens, &model.embed)?;
    if model.embed_scale == 1.0 { Ok(h) } else { ops::scale(&h, model.embed_scale) }
}

/// Logits `[T, V]` of `h: [T, D]`.
#[graphable]
pub(super) fn logits<T: Float>(h: &Tensor<T>, model: &Llama<T>) -> Result<Tensor<T>> {
    let x = ops::rms_norm(h, &model.norm, model.eps)?;
    let logits = ops::linear(&x, model.output.as_ref().unwrap_or(&model.embed))?;
    match model.cap {
        None => Ok(logits),
        Some(cap) => ops::scale(&ops::tanh(&ops::scale(&logits, 1.0 / cap)?)?, cap),
    }
}

/// Chooses the token that follows by its `logits`, `[1, V]`.
#[graphable]
fn choose<T: Float>(logits: &Tensor<T>, turn: &Turn) -> Result<Tensor<u32>> {
    let config = SampleConfig::new()
        .repetition_penalty(&turn.seen, turn.repetition_penalty)
        .presence_penalty(&turn.answered, turn.presence_penalty)
        .temperature(turn.temperature)
        .top_k(turn.top_k)
        .top_p(turn.top_p)
        .min_p(turn.min_p);
    ops::sample(&turn.rng, logits, config)
}

/// Counts a `token`, `[1]`, for the penalties; none counts nothing.
#[graphable]
fn count_token(token: &Tensor<u32>, turn: &Turn) -> Result<()> {
    if turn.repetition_penalty != 1.0 {
        ops::mark_tokens(&turn.seen, token)?;
    }
    if turn.presence_penalty != 0.0 {
        ops::mark_tokens(&turn.answered, token)?;
    }
    Ok(())
}

/// Keeps a `token`, `[1]`, for the next call. Gives whether it ends the answer, `[1]`.
#[graphable]
fn keep(token: &Tensor<u32>, turn: &Turn) -> Result<Tensor<bool>> {
    ops::store(&turn.token, token)?;
    ops::unsqueeze(&ops::any(&ops::eq(token, &turn.stops)?, 0)?, 0)
}

/// Chooses a token and keeps it, as `choose` and `keep` do. Where the call is `skipped`, `[1]`, nothing changes.
#[graphable]
fn choose_unless<T: Float>(skipped: &Tensor<bool>, logits: &Tensor<T>, turn: &Turn) -> Result<Tensor<u32>> {
    let before = ops::rng_state(&turn.rng, logits.scope())?;
    let token = choose(logits, turn)?;
    let after = ops::rng_state(&turn.rng, logits.scope())?;
    ops::set_rng_state(&turn.rng, &ops::where_(skipped, &before, &after)?)?;

    count_token(&ops::where_(skipped, ops::NO_TOKEN, &token)?, turn)?;
    let token = ops::where_(skipped, &turn.token, &token)?;
    let stops = keep(&token, turn)?;
    ops::store(&turn.ended, &ops::logical_or(skipped, &stops)?)?;
    Ok(token)
}

/// Reads a piece of a prompt that goes up to the position `end`, `[1]`: `tokens` and their `positions`, `[T]`. Gives the token that
/// follows the one at index `last`, `[1]`, and its logits, `[1, V]`; the token counts unless the prompt is `unfinished`, `[1]`.
#[allow(clippy::too_many_arguments, reason = "inputs, weights and states of one graph")]
#[graphable]
pub fn prefill<T: Float>(
    #[host]
    #[dims(T)]
    tokens: &Tensor<u32>,
    #[host]
    #[dims(T)]
    positions: &Tensor<u32>,
    #[host]
    #[dims(1)]
    end: &Tensor<u32>,
    #[host]
    #[dims(1)]
    last: &Tensor<u32>,
    #[host]
    #[dims(1)]
    unfinished: &Tensor<bool>,
    model: &Llama<T>,
    adapters: &Adapters<T>,
    kv: &KvCache<T>,
    turn: &Turn,
) -> Result<(Tensor<u32>, Tensor<T>)> {
    if turn.repetition_penalty != 1.0 {
        ops::mark_tokens(&turn.seen, tokens)?;
    }
    let routes = route(tokens, adapters)?;
    let turning = turning(positions, end, model)?;
    let mut h = embed(tokens, model)?;
    for ((layer, cache), lora) in model.layers.iter().zip(&kv.layers).zip(&adapters.layers) {
        let turns = layer.turns(&turning, positions);
        let qkv = project_heads(&h, turns, layer, lora, &routes)?;
        let attended = attend(&qkv, turns, positions, positions, layer, cache)?;
        h = feed_forward(&h, &attended, layer, lora, &routes)?;
    }
    // One row of many: the vocabulary is by far the widest matrix.
    let logits = logits(&ops::gather(&h, 0, last)?, model)?;
    Ok((choose_unless(unfinished, &logits, turn)?, logits))
}

/// Reads the last token, which goes to this `position`, `[1]`, and gives the one after it, `[1]`. After the end of an
/// answer, it changes nothing.
#[graphable]
pub fn decode<T: Float>(
    #[host]
    #[dims(1)]
    position: &Tensor<u32>,
    model: &Llama<T>,
    adapters: &Adapters<T>,
    kv: &KvCache<T>,
    turn: &Turn,
) -> Result<Tensor<u32>> {
    let ended = ops::load(position.scope(), &turn.ended)?;
    let row = ops::where_(&ended, u32::MAX, position)?;
    let token = ops::where_(&ended, 0, &turn.token)?;
    let routes = route(&token, adapters)?;
    let mut h = embed(&token, model)?;
    for ((layer, cache), lora) in model.layers.iter().zip(&kv.layers).zip(&adapters.layers) {
        let qkv = project_heads(&h, position, layer, lora, &routes)?;
        // Its shape never changes, so the whole call can be one graph too (`--mode full`).
        let attended = #[eager(support = Always)]
        attend(&qkv, position, position, &row, layer, cache)?;
        h = feed_forward(&h, &attended, layer, lora, &routes)?;
    }
    choose_unless(&ended, &logits(&h, model)?, turn)
}

/// Whether another round follows: the answer has not `ended`, and `next` is not its `end` yet.
#[kernel]
fn goes_on(next: u32, end: u32, ended: bool) -> bool {
    !ended && next < end
}

/// Reads the last token, which goes to this `position`, `[1]`, and goes on with the one after it, and so on: at most
/// `rounds`, `[1]`, times, or until the end of the answer. The tokens are appended to `tokens`; gives their number, `[1]`.
#[graphable]
pub fn decode_loop<T: Float>(
    #[host]
    #[dims(1)]
    position: &Tensor<u32>,
    #[host]
    #[dims(1)]
    rounds: &Tensor<u32>,
    model: &Llama<T>,
    adapters: &Adapters<T>,
    kv: &KvCache<T>,
    turn: &Turn,
    tokens: &PinnedLog<u32>,
) -> Result<Tensor<u32>> {
    let end = ops::add(position, rounds)?;
    let routes = route(position, adapters)?;
    let mut next = position.clone();
    #[device(limit = LONGEST)]
    while ops::squeeze(&goes_on(&next, &end, &turn.ended)?, 0)? {
        let token = ops::load(next.scope(), &turn.token)?;
        let mut h = embed(&token, model)?;
        for ((layer, cache), lora) in model.layers.iter().zip(&kv.layers).zip(&adapters.layers) {
            let qkv = project_heads(&h, &next, layer, lora, &routes)?;
            let attended = attend(&qkv, &next, &next, &next, layer, cache)?;
            h = feed_forward(&h, &attended, layer, lora, &routes)?;
        }
        // Each round counts: the loop ends behind the one that ends the answer.
        let token = choose(&logits(&h, model)?, turn)?;
        count_token(&token, turn)?;
        ops::append(tokens, &token)?;
        ops::store(&turn.ended, &keep(&token, turn)?)?;
        next = ops::add(&next, 1)?;
    }
    ops::sub(&next, position)
}

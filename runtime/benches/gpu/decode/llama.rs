//! Decoders with RMS norms, rotary embeddings and gated feed-forward layers.

use std::marker::PhantomData;

use graphable::{
    BlockFormat, Mode, Runtime, Weight, graphable,
    ops::{AttentionMask, RopeConfig, RopeStyle},
    prelude::*,
};

use super::{
    CONTEXT, Decoder,
    random::{Random, ones},
    rows, weights,
};

/// The sizes of a model.
#[derive(Clone, Copy, Debug)]
struct Sizes {
    dim: usize,
    layers: usize,
    heads: usize,
    key_heads: usize,
    ffn: usize,
    vocabulary: usize,
}

/// Elements of a head.
const HEAD: usize = 64;

const LLAMA_1B: Sizes =
    Sizes { dim: 2048, layers: 16, heads: 32, key_heads: 8, ffn: 8192, vocabulary: 128_256 };
const SMOLLM2: Sizes = Sizes { dim: 576, layers: 30, heads: 9, key_heads: 3, ffn: 1536, vocabulary: 49_152 };

#[derive(Params)]
struct Layer<T: Float> {
    norm: Param<T>,
    q: Weight<T>,
    k: Weight<T>,
    v: Weight<T>,
    out: Weight<T>,
    ffn_norm: Param<T>,
    gate: Weight<T>,
    up: Weight<T>,
    down: Weight<T>,
    keys: State<T>,
    values: State<T>,
}

#[derive(Params)]
struct Model<T: Float> {
    embed: Weight<T>,
    layers: Vec<Layer<T>>,
    norm: Param<T>,
}

/// `h` has the tokens of all sequences, of each as many as `positions`, `[sequences, tokens]`, has; `rows` are theirs in the cache.
#[graphable]
fn layer<T: Float>(
    h: &Tensor<T>,
    positions: &Tensor<u32>,
    rows: &Tensor<u32>,
    l: &Layer<T>,
) -> Result<Tensor<T>> {
    let (b, sequences, tokens) = (h.dim(0), positions.dim(0), positions.dim(1));
    let x = ops::rms_norm(h, &l.norm, 1e-5)?;
    let heads = |w: &Weight<T>| {
        let part = ops::linear(&x, w)?;
        let count = part.dim(1) / HEAD;
        ops::reshape(&part, (sequences, tokens, count, HEAD))
    };
    let rope = RopeConfig { theta: 500_000.0, style: RopeStyle::HalfSplit, dim: None };
    let (q, k, v) = (heads(&l.q)?, heads(&l.k)?, heads(&l.v)?);
    let q = ops::rope(&q, positions, rope)?;
    let k = ops::rope(&k, positions, rope)?;
    let key_heads = k.dim(2);
    ops::scatter_rows(&l.keys, rows, &ops::reshape(&k, (b, key_heads, HEAD))?)?;
    ops::scatter_rows(&l.values, rows, &ops::reshape(&v, (b, key_heads, HEAD))?)?;
    let cached = [l.keys.shape()[0] / CONTEXT, CONTEXT, l.keys.shape()[1], HEAD];
    let keys = ops::cache_view(&l.keys).reshape(&cached)?;
    let values = ops::cache_view(&l.values).reshape(&cached)?;
    let a = ops::attention(&q, &keys, &values, AttentionMask::Positions(positions), 0.125)?;
    let width = a.dim(2) * HEAD;
    let h = ops::add(h, &ops::linear(&ops::reshape(&a, (b, width))?, &l.out)?)?;
    let x = ops::rms_norm(&h, &l.ffn_norm, 1e-5)?;
    let inner = ops::silu_mul(&ops::linear(&x, &l.gate)?, &ops::linear(&x, &l.up)?)?;
    ops::add(&h, &ops::linear(&inner, &l.down)?)
}

/// One token of each sequence: `positions` are `[B, 1]`, `rows` the rows of the cache that they go to, `[B]`.
#[graphable]
fn forward<T: Float>(
    #[host]
    #[dims(B)]
    tokens: &Tensor<u32>,
    #[host]
    #[dims(B, 1)]
    positions: &Tensor<u32>,
    #[host]
    #[dims(B)]
    rows: &Tensor<u32>,
    model: &Model<T>,
) -> Result<Tensor<u32>> {
    let mut h = ops::embedding(tokens, &model.embed)?;
    for l in &model.layers {
        h = layer(&h, positions, rows, l)?;
    }
    let logits = ops::linear(&ops::rms_norm(&h, &model.norm, 1e-5)?, &model.embed)?;
    ops::argmax(&logits, 1)
}

/// The tokens of one prompt, and the token that follows it: `positions` are `[1, T]`, and `last` is the index of the last token, `[1]`.
#[graphable]
fn prefill<T: Float>(
    #[host]
    #[dims(T)]
    tokens: &Tensor<u32>,
    #[host]
    #[dims(1, T)]
    positions: &Tensor<u32>,
    #[host]
    #[dims(1)]
    last: &Tensor<u32>,
    model: &Model<T>,
) -> Result<Tensor<u32>> {
    let rows = ops::reshape(positions, (tokens.dim(0),))?;
    let mut h = ops::embedding(tokens, &model.embed)?;
    for l in &model.layers {
        h = layer(&h, positions, &rows, l)?;
    }
    let h = ops::gather(&h, 0, last)?;
    let logits = ops::linear(&ops::rms_norm(&h, &model.norm, 1e-5)?, &model.embed)?;
    ops::argmax(&logits, 1)
}

/// With random matrices in blocks of a format, or of floats, and the table of embeddings, which is the head as well, in another or the same.
fn model<T: Float>(
    rt: &Runtime,
    batch: usize,
    sizes: Sizes,
    [format, head]: [Option<BlockFormat>; 2],
) -> Result<Model<T>> {
    let Sizes { dim, layers, heads, key_heads, ffn, vocabulary } = sizes;
    let random = Random::new();
    let norm = || ones(rt, dim);
    let weight = |shape: &[usize; 2]| random.weight(rt, shape, format);
    let cache = || State::<T>::zeros(rt, &[batch * CONTEXT, key_heads, HEAD]);
    let layer = |_| {
        Ok(Layer {
            norm: norm()?,
            q: weight(&[heads * HEAD, dim])?,
            k: weight(&[key_heads * HEAD, dim])?,
            v: weight(&[key_heads * HEAD, dim])?,
            out: weight(&[dim, heads * HEAD])?,
            ffn_norm: norm()?,
            gate: weight(&[ffn, dim])?,
            up: weight(&[ffn, dim])?,
            down: weight(&[dim, ffn])?,
            keys: cache()?,
            values: cache()?,
        })
    };
    Ok(Model {
        embed: random.weight(rt, &[vocabulary, dim], head)?,
        layers: (0..layers).map(layer).collect::<Result<_>>()?,
        norm: norm()?,
    })
}

/// Which model it is.
pub(super) trait Kind {
    const NAME: &'static str;
    const SIZES: SizesOf;
    /// Of the matrices, if they are in blocks.
    const FORMAT: Option<BlockFormat> = None;
    /// Of the table of embeddings, if it is in blocks.
    const HEAD: Option<BlockFormat> = Self::FORMAT;
}

/// [`Sizes`], private to this file.
pub(super) struct SizesOf(Sizes);

pub(super) struct Llama1B;

impl Kind for Llama1B {
    const NAME: &'static str = "llama-1b";
    const SIZES: SizesOf = SizesOf(LLAMA_1B);
}

/// Kinds whose matrices are in blocks.
macro_rules! in_blocks {
    ($($name:ident: $of:ident, $label:literal, $format:ident $(, head: $head:expr)?;)*) => {$(
        pub(super) struct $name;

        impl Kind for $name {
            const NAME: &'static str = $label;
            const SIZES: SizesOf = SizesOf($of);
            const FORMAT: Option<BlockFormat> = Some(BlockFormat::$format);
            $(const HEAD: Option<BlockFormat> = $head;)?
        }
    )*};
}
in_blocks! {
    Llama1BQ8: LLAMA_1B, "llama-1b q8_0", Q8_0;
    Llama1BQ6K: LLAMA_1B, "llama-1b q6_k", Q6_K;
    Llama1BQ4K: LLAMA_1B, "llama-1b q4_k", Q4_K;
    Llama1BQ40: LLAMA_1B, "llama-1b q4_0", Q4_0;
    Llama1BF8: LLAMA_1B, "llama-1b f8_e4m3", F8_E4M3;
    Llama1BI4: LLAMA_1B, "llama-1b int4", INT4;
    Llama1BQ4KHead: LLAMA_1B, "llama-1b q4_k head q6_k", Q4_K, head: Some(BlockFormat::Q6_K);
    Llama1BI4Head: LLAMA_1B, "llama-1b int4 head bf16", INT4, head: None;
    SmolLM2Q8: SMOLLM2, "smollm2-135m q8_0", Q8_0;
    SmolLM2Q41: SMOLLM2, "smollm2-135m q4_1", Q4_1;
    SmolLM2Q8Bf16: SMOLLM2, "smollm2-135m q8_0 bf16", Q8_0;
    SmolLM2Q41Bf16: SMOLLM2, "smollm2-135m q4_1 bf16", Q4_1;
}

pub(super) struct SmolLM2Bf16;

impl Kind for SmolLM2Bf16 {
    const NAME: &'static str = "smollm2-135m bf16";
    const SIZES: SizesOf = SizesOf(SMOLLM2);
}

pub(super) struct SmolLM2;

impl Kind for SmolLM2 {
    const NAME: &'static str = "smollm2-135m";
    const SIZES: SizesOf = SizesOf(SMOLLM2);
}

/// A model of a kind, and its graph.
pub(super) struct Llama<K, T: Float> {
    model: Model<T>,
    graph: ForwardGraph<T>,
    kind: PhantomData<K>,
}

impl<K: Kind, T: Float> Decoder for Llama<K, T> {
    const NAME: &'static str = K::NAME;

    fn new(rt: &mut Runtime, batch: usize) -> Result<Self> {
        let model = model(rt, batch, K::SIZES.0, [K::FORMAT, K::HEAD])?;
        let graph = ForwardGraph::builder().mode(Mode::Full).build(rt)?;
        Ok(Self { model, graph, kind: PhantomData })
    }

    fn bytes(&self) -> u64 {
        weights(&self.model)
    }

    fn call(&self, step: &Step<'_>, batch: usize, position: u32) -> Result<()> {
        let (tokens, positions) = (vec![1u32; batch], vec![position; batch]);
        drop(self.graph.call(step, &tokens, &positions, &rows(batch, position), &self.model)?);
        Ok(())
    }
}

/// A model of a kind that reads a prompt, and its graph.
pub(super) struct Prompt<K, T: Float> {
    model: Model<T>,
    graph: PrefillGraph<T>,
    kind: PhantomData<K>,
}

impl<K: Kind, T: Float> Prompt<K, T> {
    pub(super) fn new(rt: &mut Runtime) -> Result<Self> {
        let model = model(rt, 1, K::SIZES.0, [K::FORMAT, K::HEAD])?;
        Ok(Self { model, graph: PrefillGraph::builder().mode(Mode::Full).build(rt)?, kind: PhantomData })
    }

    /// Queues a prompt of so many tokens.
    pub(super) fn call(&self, step: &Step<'_>, tokens: usize) -> Result<()> {
        let positions: Vec<u32> = (0..tokens as u32).collect();
        drop(self.graph.call(step, &vec![1; tokens], &positions, &[tokens as u32 - 1], &self.model)?);
        Ok(())
    }
}

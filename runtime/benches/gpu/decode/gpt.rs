//! A decoder with layer norms, biases and GELU, in the shape of GPT-2 XL.

use graphable::{Mode, Runtime, bf16, graphable, ops::AttentionMask, prelude::*};

use super::{
    CONTEXT, Decoder,
    random::{Random, ones},
    rows, weights,
};

const DIM: usize = 1600;
const LAYERS: usize = 48;
const HEADS: usize = 25;
const HEAD: usize = 64;
const FFN: usize = 6400;
const VOCABULARY: usize = 50_257;

/// A product with a bias.
#[derive(Params)]
struct Linear {
    weight: Param<bf16>,
    bias: Param<bf16>,
}

#[derive(Params)]
struct Norm {
    weight: Param<bf16>,
    bias: Param<bf16>,
}

#[derive(Params)]
struct Layer {
    norm: Norm,
    q: Linear,
    k: Linear,
    v: Linear,
    out: Linear,
    ffn_norm: Norm,
    up: Linear,
    down: Linear,
    keys: State<bf16>,
    values: State<bf16>,
}

#[derive(Params)]
struct Model {
    embed: Param<bf16>,
    places: Param<bf16>,
    layers: Vec<Layer>,
    norm: Norm,
}

#[graphable]
fn linear(x: &Tensor<bf16>, l: &Linear) -> Result<Tensor<bf16>> {
    ops::linear_bias(x, &l.weight, &l.bias)
}

#[graphable]
fn norm(x: &Tensor<bf16>, n: &Norm) -> Result<Tensor<bf16>> {
    ops::layer_norm(x, &n.weight, &n.bias, 1e-5)
}

#[graphable]
fn layer(h: &Tensor<bf16>, positions: &Tensor<u32>, rows: &Tensor<u32>, l: &Layer) -> Result<Tensor<bf16>> {
    let b = h.dim(0);
    let x = norm(h, &l.norm)?;
    let q = ops::reshape(&linear(&x, &l.q)?, (b, 1, HEADS, HEAD))?;
    let (k, v) = (linear(&x, &l.k)?, linear(&x, &l.v)?);
    ops::scatter_rows(&l.keys, rows, &ops::reshape(&k, (b, HEADS, HEAD))?)?;
    ops::scatter_rows(&l.values, rows, &ops::reshape(&v, (b, HEADS, HEAD))?)?;
    let cached = [l.keys.shape()[0] / CONTEXT, CONTEXT, HEADS, HEAD];
    let keys = ops::cache_view(&l.keys).reshape(&cached)?;
    let values = ops::cache_view(&l.values).reshape(&cached)?;
    let a = ops::attention(&q, &keys, &values, AttentionMask::Positions(positions), 0.125)?;
    let h = ops::add(h, &linear(&ops::reshape(&a, (b, DIM))?, &l.out)?)?;
    let inner = ops::gelu_tanh(&linear(&norm(&h, &l.ffn_norm)?, &l.up)?)?;
    ops::add(&h, &linear(&inner, &l.down)?)
}

/// One token of each sequence: `positions` are `[B, 1]`, `rows` the rows of the cache that they go to, `[B]`.
#[graphable]
fn forward(
    #[host]
    #[dims(B)]
    tokens: &Tensor<u32>,
    #[host]
    #[dims(B, 1)]
    positions: &Tensor<u32>,
    #[host]
    #[dims(B)]
    rows: &Tensor<u32>,
    model: &Model,
) -> Result<Tensor<u32>> {
    let places = ops::embedding(&ops::reshape(positions, (tokens.dim(0),))?, &model.places)?;
    let mut h = ops::add(&ops::embedding(tokens, &model.embed)?, &places)?;
    for l in &model.layers {
        h = layer(&h, positions, rows, l)?;
    }
    let logits = ops::linear(&norm(&h, &model.norm)?, &model.embed)?;
    ops::argmax(&logits, 1)
}

/// The model, and its graph.
pub(super) struct Gpt {
    model: Model,
    graph: ForwardGraph,
}

impl Decoder for Gpt {
    const NAME: &'static str = "gpt2-xl";

    fn new(rt: &mut Runtime, batch: usize) -> Result<Self> {
        let random = Random::new();
        let weight = |shape: &[usize]| random.floats::<bf16>(rt, shape);
        let linear = |n: usize, k: usize| -> Result<_> {
            Ok(Linear { weight: weight(&[n, k])?, bias: weight(&[n])? })
        };
        let norm = || -> Result<_> { Ok(Norm { weight: ones(rt, DIM)?, bias: weight(&[DIM])? }) };
        let cache = || State::<bf16>::zeros(rt, &[batch * CONTEXT, HEADS, HEAD]);
        let layer = |_| {
            Ok(Layer {
                norm: norm()?,
                q: linear(DIM, DIM)?,
                k: linear(DIM, DIM)?,
                v: linear(DIM, DIM)?,
                out: linear(DIM, DIM)?,
                ffn_norm: norm()?,
                up: linear(FFN, DIM)?,
                down: linear(DIM, FFN)?,
                keys: cache()?,
                values: cache()?,
            })
        };
        let model = Model {
            embed: weight(&[VOCABULARY, DIM])?,
            places: weight(&[CONTEXT, DIM])?,
            layers: (0..LAYERS).map(layer).collect::<Result<_>>()?,
            norm: norm()?,
        };
        let graph = ForwardGraph::builder().mode(Mode::Full).build(rt)?;
        Ok(Self { model, graph })
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

//! A transformer block: prompts of any length, padded to buckets, and a cache of keys and values.

use graphable::{
    ops::{AttentionMask, RopeConfig, RopeStyle},
    prelude::*,
};

use crate::{assert_close, numbers, reference::Weights};

pub const VOCAB: usize = 13;
pub const WIDTH: usize = 8;
pub const HEADS: usize = 2;
pub const HEAD: usize = WIDTH / HEADS;
pub const INNER: usize = 16;
pub const EPS: f32 = 1e-5;
pub const THETA: f32 = 100.0;
/// Sequences that are served at once, and tokens of each.
pub const SLOTS: usize = 4;
pub const CAPACITY: usize = 24;

#[derive(Params)]
pub struct Model {
    embed: Param<f32>,
    norm: Param<f32>,
    q: Param<f32>,
    k: Param<f32>,
    v: Param<f32>,
    out: Param<f32>,
    up: Param<f32>,
    down: Param<f32>,
}

/// Keys and values. Row `slot * CAPACITY + position` belongs to that position of that slot's sequence.
#[derive(Params)]
pub struct Cache {
    keys: State<f32>,
    values: State<f32>,
}

impl Model {
    pub fn new(rt: &Runtime, w: &Weights) -> Result<Self> {
        let matrix = |rows, columns, data: &[f32]| Param::new(rt, &[rows, columns], data);
        Ok(Self {
            embed: matrix(VOCAB, WIDTH, &w.embed)?,
            norm: Param::new(rt, &[WIDTH], &w.norm)?,
            q: matrix(WIDTH, WIDTH, &w.q)?,
            k: matrix(WIDTH, WIDTH, &w.k)?,
            v: matrix(WIDTH, WIDTH, &w.v)?,
            out: matrix(WIDTH, WIDTH, &w.out)?,
            up: matrix(INNER, WIDTH, &w.up)?,
            down: matrix(WIDTH, INNER, &w.down)?,
        })
    }
}

impl Cache {
    pub fn new(rt: &Runtime) -> Result<Self> {
        let zeros = || State::zeros(rt, &[SLOTS * CAPACITY, HEADS, HEAD]);
        Ok(Self { keys: zeros()?, values: zeros()? })
    }
}

/// Queries, keys and values `[T, HEADS, HEAD]`, the first two rotated.
#[graphable]
fn project(h: &Tensor<f32>, positions: &Tensor<u32>, model: &Model) -> Result<[Tensor<f32>; 3]> {
    let x = ops::rms_norm(h, &model.norm, EPS)?;
    let rope = RopeConfig::new(THETA, RopeStyle::HalfSplit);
    let heads = |weight: &Param<f32>| ops::reshape(&ops::linear(&x, weight)?, (h.dim(0), HEADS, HEAD));
    let q = ops::rope(&heads(&model.q)?, positions, rope)?;
    let k = ops::rope(&heads(&model.k)?, positions, rope)?;
    Ok([q, k, heads(&model.v)?])
}

/// The rest of the block, and logits.
#[graphable]
fn finish(h: &Tensor<f32>, attended: &Tensor<f32>, model: &Model) -> Result<Tensor<f32>> {
    let h = ops::add(h, &ops::linear(attended, &model.out)?)?;
    let inner = ops::silu(&ops::linear(&ops::rms_norm(&h, &model.norm, EPS)?, &model.up)?)?;
    let h = ops::add(&h, &ops::linear(&inner, &model.down)?)?;
    ops::linear(&h, &model.embed)
}

fn scale() -> f32 {
    (HEAD as f32).sqrt().recip()
}

/// Reads a whole prompt into the cache. Returns the logits `[1, VOCAB]` after token number `last`.
#[graphable]
pub fn prefill(
    #[host]
    #[dims(T)]
    tokens: &Tensor<u32>,
    #[host]
    #[dims(T)]
    positions: &Tensor<u32>,
    #[host]
    #[dims(T)]
    rows: &Tensor<u32>,
    #[host]
    #[dims(1)]
    last: &Tensor<u32>,
    model: &Model,
    cache: &Cache,
) -> Result<Tensor<f32>> {
    let h = ops::embedding(tokens, &model.embed)?;
    let [q, k, v] = project(&h, positions, model)?;
    ops::scatter_rows(&cache.keys, rows, &k)?;
    ops::scatter_rows(&cache.values, rows, &v)?;
    let attended = ops::attention(&q, &k, &v, AttentionMask::Causal, scale())?;
    let attended = ops::reshape(&attended, (h.dim(0), WIDTH))?;
    finish(&ops::gather(&h, 0, last)?, &ops::gather(&attended, 0, last)?, model)
}

/// Takes one token for each of the first `B` slots. Returns the logits `[B, VOCAB]`.
#[graphable]
pub fn decode(
    #[host]
    #[dims(B)]
    tokens: &Tensor<u32>,
    #[host]
    #[dims(B)]
    positions: &Tensor<u32>,
    #[host]
    #[dims(B)]
    rows: &Tensor<u32>,
    model: &Model,
    cache: &Cache,
) -> Result<Tensor<f32>> {
    let h = ops::embedding(tokens, &model.embed)?;
    let [q, k, v] = project(&h, positions, model)?;
    ops::scatter_rows(&cache.keys, rows, &k)?;
    ops::scatter_rows(&cache.values, rows, &v)?;
    // Slots as a batch: each query sees the rows of its own slot, up to its position.
    let slots =
        |state| ops::cache_view(state).reshape([SLOTS, CAPACITY, HEADS, HEAD])?.narrow(0, 0, h.dim(0));
    let q = ops::unsqueeze(&q, 1)?;
    let seen = ops::unsqueeze(positions, 1)?;
    let mask = AttentionMask::Positions(&seen);
    let attended = ops::attention(&q, &slots(&cache.keys)?, &slots(&cache.values)?, mask, scale())?;
    finish(&h, &ops::reshape(&attended, (h.dim(0), WIDTH))?, model)
}

pub fn run() -> Result<()> {
    let mut rt = Runtime::new(Device::best()?)?;
    let weights = Weights::new();
    let model = Model::new(&rt, &weights)?;
    let cache = Cache::new(&rt)?;
    let graph =
        PrefillGraph::builder().bucket("T", Schedule::new([4, 8, 16])).mode(Mode::Full).build(&mut rt)?;
    graph.capture_all(&mut rt, &model, &cache)?;
    let recorded = rt.stats().recordings;
    assert_eq!(recorded, 3, "one graph for each bucket");
    for length in 1..=16 {
        let tokens: Vec<u32> =
            numbers(length, length as usize).iter().map(|x| ((x + 0.5) * 13.0) as u32).collect();
        let positions: Vec<u32> = (0..length).collect();
        let step = rt.step()?;
        let logits = graph.call(&step, &tokens, &positions, &positions, &[length - 1], &model, &cache)?;
        assert_close(&format!("prefill of {length}"), &step.read(&logits)?, &weights.logits(&tokens));
    }
    let stats = rt.stats();
    assert_eq!((stats.recordings, stats.fallbacks), (recorded, 0));
    println!("prefill: {} recordings, {} replays", recorded, stats.replays);
    Ok(())
}

//! A small model as graphs: `cargo run --release --bin quickstart`

use graphable::prelude::*;

/// Weights of a layer. Every field is part of a recording's key; `#[config]` values are compared.
#[derive(Params)]
struct Layer {
    up: Param<f32>,
    down: Param<f32>,
    #[config]
    eps: f32,
}

/// All weights.
#[derive(Params)]
pub struct Model {
    embed: Param<f32>,
    layers: Vec<Layer>,
}

/// A helper: an ordinary function, inlined where it is called.
#[graphable]
fn mlp(h: &Tensor<f32>, layer: &Layer) -> Result<Tensor<f32>> {
    let x = ops::l2_normalize(h, 1, layer.eps)?;
    let inner = ops::silu(&ops::linear(&x, &layer.up)?)?;
    ops::add(h, &ops::linear(&inner, &layer.down)?)
}

/// Stands in for what cannot be captured: a library call, a read of device data.
#[graphable]
fn mix(h: &Tensor<f32>) -> Result<Tensor<f32>> {
    ops::scale(h, 0.5)
}

/// Scores of the next token for each of `B` tokens, `[B, 10]`.
#[graphable]
pub fn score(
    #[host]
    #[dims(B)]
    tokens: &Tensor<u32>, // a slice at the call, copied to the device each time
    model: &Model, // used where it is, never copied
) -> Result<Tensor<f32>> {
    let mut h = ops::embedding(tokens, &model.embed)?;
    for layer in &model.layers {
        let mixed = #[eager]
        mix(&h)?; // runs on every call; what lies between two of them is a graph
        h = mlp(&mixed, layer)?;
    }
    ops::linear(&h, &model.embed)
}

/// Records the graphs of every bucket, then replays them.
pub fn main() -> Result<()> {
    let mut rt = Runtime::new(Device::best()?)?;
    let weights = |shape: [usize; 2]| {
        let data: Vec<f32> = (0..shape[0] * shape[1]).map(|i| (i as f32).sin()).collect();
        Param::new(&rt, &shape, &data)
    };
    let layer =
        || -> Result<Layer> { Ok(Layer { up: weights([16, 8])?, down: weights([8, 16])?, eps: 1e-6 }) };
    let model = Model { embed: weights([10, 8])?, layers: vec![layer()?, layer()?] };

    print!("{}", ScoreGraph::PLAN);
    let score = ScoreGraph::builder().bucket("B", Schedule::new([1, 2, 4])).build(&mut rt)?;
    score.capture_all(&mut rt, &model)?; // ahead of time, for every bucket
    let recorded = rt.stats().recordings;
    for tokens in [&[1u32, 5, 3][..], &[7], &[2, 2, 2, 2]] {
        let step = rt.step()?; // tensors live no longer than their step
        let logits = score.call(&step, tokens, &model)?;
        assert_eq!(logits.shape(), [tokens.len(), 10]); // padding is cut off again
        println!("{:?} -> {:.3}", tokens, step.read(&logits)?[0]); // the only way to look
    }
    let stats = rt.stats();
    assert_eq!((stats.recordings, stats.fallbacks), (recorded, 0)); // everything was a replay
    println!("{} recordings, {} replays, {} fallbacks", stats.recordings, stats.replays, stats.fallbacks);
    Ok(())
}

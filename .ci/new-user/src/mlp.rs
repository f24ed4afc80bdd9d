//! A classifier: batches of any size, padded to buckets.

use graphable::prelude::*;

use crate::{assert_close, numbers};

const INPUT: usize = 6;
const HIDDEN: usize = 16;
const CLASSES: usize = 3;

#[derive(Params)]
struct Mlp {
    up: Param<f32>,
    up_bias: Param<f32>,
    down: Param<f32>,
}

/// Probabilities `[B, CLASSES]`. The activation runs on every call, between two graphs.
#[graphable]
fn classify(
    #[host]
    #[dims(B, { INPUT })]
    x: &Tensor<f32>,
    model: &Mlp,
) -> Result<Tensor<f32>> {
    let h = ops::linear_bias(x, &model.up, &model.up_bias)?;
    let h = #[eager]
    ops::relu(&h)?;
    ops::softmax(&ops::linear(&h, &model.down)?, 1)
}

fn expected(up: &[f32], bias: &[f32], down: &[f32], x: &[f32]) -> Vec<f32> {
    let mut out = Vec::new();
    for row in x.chunks(INPUT) {
        let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
        let h: Vec<f32> = up.chunks(INPUT).zip(bias).map(|(w, b)| (dot(w, row) + b).max(0.0)).collect();
        let e: Vec<f32> = down.chunks(HIDDEN).map(|w| dot(w, &h).exp()).collect();
        let sum: f32 = e.iter().sum();
        out.extend(e.iter().map(|e| e / sum));
    }
    out
}

pub fn run() -> Result<()> {
    let mut rt = Runtime::new(Device::best()?)?;
    let (up, bias, down) = (numbers(1, HIDDEN * INPUT), numbers(2, HIDDEN), numbers(3, CLASSES * HIDDEN));
    let model = Mlp {
        up: Param::new(&rt, &[HIDDEN, INPUT], &up)?,
        up_bias: Param::new(&rt, &[HIDDEN], &bias)?,
        down: Param::new(&rt, &[CLASSES, HIDDEN], &down)?,
    };
    let graph = ClassifyGraph::builder().bucket("B", Schedule::new([1, 4, 8])).build(&mut rt)?;
    graph.capture_all(&mut rt, &model)?;
    let recorded = rt.stats().recordings;
    for (seed, rows) in [1, 3, 8, 5, 2].into_iter().enumerate() {
        let x = numbers(10 + seed as u32, rows * INPUT);
        let step = rt.step()?;
        let y = graph.call(&step, &x, &model)?;
        assert_eq!(y.shape(), [rows, CLASSES]);
        assert_close("mlp", &step.read(&y)?, &expected(&up, &bias, &down, &x));
    }
    let stats = rt.stats();
    assert_eq!((stats.recordings, stats.fallbacks), (recorded, 0));
    println!("mlp on {}: {} recordings, {} replays", rt.device(), recorded, stats.replays);
    Ok(())
}

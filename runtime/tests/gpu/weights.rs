//! Weights that change and sleep, where memory and order are a GPU's.

use graphable::{Sleep, graphable, prelude::*};

use crate::support::{free_bytes, runtime, skipped};

const N: usize = 2048;

#[derive(Params)]
struct Layers {
    weights: Vec<Param<bf16>>,
}

/// Products of one row, whose kernels ask for their weights before earlier ones have ended.
#[graphable]
fn chain(
    #[host]
    #[dims(1, 2048)]
    x: &Tensor<bf16>,
    layers: &Layers,
) -> Result<Tensor<bf16>> {
    let mut x = ops::scale(x, 1.0)?;
    for weight in &layers.weights {
        x = ops::relu(&ops::linear(&x, weight)?)?;
    }
    Ok(x)
}

fn diagonal(by: f32) -> Vec<bf16> {
    let by = bf16::from_f32(by);
    (0..N * N).map(|i| if i % N == i / N { by } else { bf16::ZERO }).collect()
}

/// Writes lie between replays that are launched as fast as the host can, and nothing waits but at the end.
#[test]
fn writes_keep_their_order_among_replays_in_flight() {
    if skipped("writes_keep_their_order_among_replays_in_flight") {
        return;
    }
    let mut rt = runtime();
    let new = |by: f32| Param::new(&rt, &[N, N], &diagonal(by)).unwrap();
    let layers = Layers { weights: (0..4).map(|_| new(1.0)).collect() };
    let graph = ChainGraph::builder().mode(Mode::Full).build(&mut rt).unwrap();
    let (one, two, half) = (diagonal(1.0), diagonal(2.0), diagonal(0.5));
    let x = vec![bf16::ONE; N];
    for round in 0..8 {
        let step = rt.step().unwrap();
        let on_device = step.tensor(&[N, N], &half).unwrap();
        let mut pending = Vec::new();
        for turn in 0..12 {
            let at = (round + turn) % 4;
            let factor = match turn % 3 {
                0 => {
                    layers.weights[at].write(&step, &two).unwrap();
                    2.0
                }
                1 => {
                    layers.weights[at].write(&step, &on_device).unwrap();
                    0.5
                }
                _ => {
                    layers.weights[at].write_rows(&step, 0..1, &two[..N]).unwrap();
                    1.0
                }
            };
            let y = graph.call(&step, &x, &layers).unwrap();
            pending.push((factor, step.read_later(&y).unwrap()));
            layers.weights[at].write(&step, &one).unwrap();
        }
        for (turn, (factor, read)) in pending.into_iter().enumerate() {
            let y = read.wait().unwrap();
            let first = if turn % 3 == 2 { 2.0 } else { factor };
            assert_eq!(y[0].to_f32(), first, "round {round}, turn {turn}");
            assert!(y[1..].iter().all(|v| v.to_f32() == factor), "round {round}, turn {turn}");
        }
    }
    assert_eq!(rt.stats().recordings, 1);
}

/// What sleeps is free for others, and comes back to where it was.
#[test]
fn a_sleep_frees_memory_of_the_device() {
    const BYTES: u64 = 512 << 20;
    if skipped("a_sleep_frees_memory_of_the_device") {
        return;
    }
    let mut rt = runtime();
    rt.weights_can_sleep(true).unwrap();
    let values: Vec<bf16> = (0..BYTES / 2).map(|i| bf16::from_bits((i % 30000) as u16)).collect();
    let large = Param::new(&rt, &[values.len()], &values).unwrap();
    let new = |by: f32| Param::new(&rt, &[N, N], &diagonal(by)).unwrap();
    let layers = Layers { weights: (0..3).map(|_| new(2.0)).collect() };
    let graph = ChainGraph::builder().mode(Mode::Full).build(&mut rt).unwrap();
    let x = vec![bf16::ONE; N];
    for round in 0..6 {
        {
            let step = rt.step().unwrap();
            let y = graph.call(&step, &x, &layers).unwrap();
            assert!(step.read(&y).unwrap().iter().all(|v| v.to_f32() == 8.0), "round {round}");
        }
        rt.synchronize().unwrap();
        let awake = free_bytes();
        let released = rt.sleep(Sleep::Save).unwrap();
        let asleep = free_bytes();
        assert!(released >= BYTES, "{released}");
        // Other processes may take and free a little meanwhile.
        assert!(asleep >= awake + BYTES - (64 << 20), "{awake} bytes were free awake, and {asleep} asleep");
        rt.wake().unwrap();
    }
    let step = rt.step().unwrap();
    assert!(large.read(&step).unwrap().wait().unwrap() == values);
    assert_eq!(step.stats().recordings, 1);
}

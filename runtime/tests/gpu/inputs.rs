//! Host inputs that travel as parameters: every call sees its own values, however many are in flight.

use graphable::{graphable, prelude::*};

use crate::support::{runtime, skipped};

#[graphable]
fn shifted(
    #[host]
    #[dims(N)]
    x: &Tensor<f32>,
    #[host] by: &Scalar<f32>,
) -> Result<Tensor<f32>> {
    ops::add(x, by.tensor())
}

/// From one parameter of 256 bytes to pinned memory.
#[test]
fn many_calls_in_flight() {
    if skipped("many_calls_in_flight") {
        return;
    }
    for n in [1usize, 60, 250, 1000, 1020, 4000, 9000, 300_000] {
        let mut rt = runtime();
        let graph = ShiftedGraph::builder().build(&mut rt).unwrap();
        for step in 0..4 {
            let calls = if n > 10_000 { 20 } else { 300 };
            let s = rt.step().unwrap();
            let mut reads = Vec::new();
            for call in 0..calls {
                let x: Vec<f32> = (0..n).map(|i| (i % 1000) as f32 + call as f32).collect();
                let y = graph.call(&s, &x, step as f32).unwrap();
                drop(x);
                reads.push(s.read_later(&y).unwrap());
            }
            for (call, read) in reads.into_iter().enumerate() {
                let got = read.wait().unwrap();
                assert_eq!(got.len(), n);
                for (i, v) in got.iter().enumerate() {
                    assert_eq!(
                        *v,
                        (i % 1000) as f32 + call as f32 + step as f32,
                        "n {n} call {call} element {i}"
                    );
                }
            }
        }
        assert!(rt.stats().recordings > 0 && rt.stats().replays > 0, "{:?}", rt.stats());
    }
}

//! What 33 segments with 32 eager regions between them cost the host: the GPU bench's function, on the CPU.
//!
//! `cargo bench -p graphable --bench partition`
//!
//! Each call is 33 replays and 32 eager operations; their kernels run on the stream's own thread. The stream's
//! queue is emptied between batches, outside the timed part.

use std::time::{Duration, Instant};

use criterion::Criterion;
use graphable::prelude::*;

#[path = "shared/partitioned.rs"]
mod partitioned;

use partitioned::PartitionedGraph;

/// Calls in one batch: 65 commands each, and the queue holds 4096.
const BATCH: u64 = 50;
const ELEMENTS: usize = 16;

fn partition(iters: u64) -> Result<Duration> {
    let mut rt = Runtime::new(Device::cpu())?;
    let graph = PartitionedGraph::builder().build(&mut rt)?;
    let one = Param::<f32>::new(&rt, &[ELEMENTS], &[1.0; ELEMENTS])?;
    for _ in 0..4 {
        let step = rt.step()?;
        let x = step.tensor(&[ELEMENTS], &[0.0; ELEMENTS])?;
        graph.call(&step, &x, &one)?;
    }
    let mut taken = Duration::ZERO;
    let mut left = iters;
    while left > 0 {
        let n = left.min(BATCH);
        left -= n;
        let step = rt.step()?;
        let x = step.tensor(&[ELEMENTS], &[0.0; ELEMENTS])?;
        step.synchronize()?;
        let start = Instant::now();
        for _ in 0..n {
            graph.call(&step, &x, &one)?;
        }
        taken += start.elapsed();
    }
    Ok(taken)
}

fn main() {
    let mut c = Criterion::default().configure_from_args();
    c.bench_function("33 segments, 32 regions", |b| {
        b.iter_custom(|iters| match partition(iters) {
            Ok(taken) => taken,
            Err(error) => panic!("{error}"),
        });
    });
    c.final_summary();
}

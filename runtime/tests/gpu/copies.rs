//! Large copies on the way into a graph, and a host that runs ahead of the device.

use std::collections::BTreeMap;

use graphable::{
    backend::{
        Arenas as _, DeviceCopy, HostUpload, Stream as _,
        cuda::{CudaBackend, CudaOptions},
    },
    graphable,
    prelude::*,
};

use crate::support::{free_bytes, runtime, skipped};

/// One copy of so many bytes, from and to such offsets: its first and last bytes, and those beside it.
fn copied(bytes: u64, from: u64, to: u64) {
    let mut gpu = CudaBackend::new(0, CudaOptions::default()).unwrap();
    let (source, target) = (gpu.alloc(bytes + 64).unwrap(), gpu.alloc(bytes + 64).unwrap());
    let marks: Vec<u64> =
        [0, 1, 5, 4096, 1 << 32, bytes / 2 + 3, bytes - 1].into_iter().filter(|at| *at < bytes).collect();
    let mut block = HostUpload { bytes: (1..=marks.len() as u8).collect(), ..HostUpload::default() };
    for (i, at) in marks.iter().enumerate() {
        block.writes.push((source.addr() + from + at, i, 1));
    }
    gpu.host_write(block).unwrap();
    let copy = DeviceCopy { to: target.addr() + to, from: source.addr() + from, bytes };
    gpu.host_write(HostUpload { copies: vec![copy], ..HostUpload::default() }).unwrap();
    let byte = |gpu: &mut CudaBackend, at: u64| gpu.read(at, 1).unwrap().wait().unwrap()[0];
    // Of equal places the last mark counts.
    let places: BTreeMap<u64, u8> = marks.iter().enumerate().map(|(i, &at)| (at, i as u8 + 1)).collect();
    for (at, mark) in places {
        assert_eq!(byte(&mut gpu, target.addr() + to + at), mark, "byte {at} of {bytes}, {from} to {to}");
    }
    if to > 0 {
        assert_eq!(byte(&mut gpu, target.addr() + to - 1), 0, "before it");
    }
    assert_eq!(byte(&mut gpu, target.addr() + to + bytes), 0, "behind it");
}

#[test]
fn copies_of_any_size_and_alignment() {
    if skipped("copies_of_any_size_and_alignment") {
        return;
    }
    for bytes in [1u64, 7, 100, 4096, 16_384, 16_385, 16_400, 1 << 20, (1 << 20) + 5, 50 << 20] {
        for (from, to) in [(0, 0), (4, 4), (3, 3), (0, 4), (5, 1), (2, 0), (0, 7), (16, 8)] {
            copied(bytes, from, to);
        }
    }
}

#[test]
fn a_copy_beyond_32_bits() {
    const BYTES: u64 = (5 << 30) + 3;
    if skipped("a_copy_beyond_32_bits") || free_bytes() < 3 * BYTES {
        return;
    }
    copied(BYTES, 0, 0);
}

#[graphable]
fn summed(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    ops::add(&ops::sum(x, 0)?, &ops::narrow(x, 0, x.dim(0) - 1, 1)?)
}

/// A live-in of 48 MB that lies elsewhere at each call is copied in the end, whole.
#[test]
fn a_large_live_in_that_keeps_moving() {
    if skipped("a_large_live_in_that_keeps_moving") {
        return;
    }
    const N: usize = 12 << 20;
    let mut rt = runtime();
    let graph = SummedGraph::builder().limits(|l| l.max_moves = 2).audit_every(5).build(&mut rt).unwrap();
    for round in 0..12usize {
        let step = rt.step().unwrap();
        // Something in front of it moves it.
        let _front = ops::zeros::<f32>(step.scope(), &[1024 * (round + 1)]).unwrap();
        // Powers of two: sums are exact.
        let value = (1 << (round % 4)) as f32;
        let x = ops::full(step.scope(), &[N], value).unwrap();
        let y = graph.call(&step, &x).unwrap();
        assert_eq!(step.read(&y).unwrap(), [(N as f32 + 1.0) * value], "round {round}");
    }
    let copied = rt.copied_slots();
    assert!(copied.iter().any(|slot| slot.bytes == 4 * N as u64 && slot.copies > 2), "{copied:?}");
}

#[graphable]
fn slow(
    #[host]
    #[dims(N)]
    x: &Tensor<f32>,
    w: &Param<f32>,
) -> Result<Tensor<f32>> {
    let square = ops::reshape(x, &[512, 512])?;
    let mut y = ops::matmul(&square, w)?;
    for _ in 0..400 {
        y = ops::matmul(&y, w)?;
    }
    ops::add(&ops::narrow(&y, 0, 0, 1)?, &ops::narrow(&square, 0, 0, 1)?)
}

/// Inputs of 1 MiB for work that takes longer than bringing them: the host waits, and every call has its own values.
#[test]
fn a_host_that_runs_ahead_waits() {
    if skipped("a_host_that_runs_ahead_waits") {
        return;
    }
    const N: usize = 512 * 512;
    let mut rt = runtime();
    let w = Param::<f32>::zeros(&rt, &[512, 512]).unwrap();
    let graph = SlowGraph::builder().build(&mut rt).unwrap();
    for round in 0..4 {
        let step = rt.step().unwrap();
        let reads: Vec<_> = (0..400)
            .map(|call| {
                let y = graph.call(&step, &vec![(round * 1000 + call) as f32; N], &w).unwrap();
                step.read_later(&y).unwrap()
            })
            .collect();
        for (call, read) in reads.into_iter().enumerate() {
            assert!(read.wait().unwrap().iter().all(|&v| v == (round * 1000 + call) as f32), "call {call}");
        }
    }
    let stats = rt.stats();
    assert!(stats.replays > 500 && stats.staging_waits > 0, "{stats:?}");
}

//! Eager operations between segments, whose kernels are launched as graphs of one with the parameter replaced: each
//! launch has its own parameter, however many are in flight, and the graphs are few.

use graphable::{graphable, prelude::*};

use crate::support::{runtime, skipped};

/// In test mode.
const KEPT: usize = 8;

fn twice<'s>(x: &Tensor<'s, f32>) -> Result<Tensor<'s, f32>> {
    ops::neg(&ops::scale(x, 2.0)?)
}

#[graphable]
fn alone(#[dims(N)] x: &Tensor<f32>, #[host] by: &Scalar<f32>) -> Result<Tensor<f32>> {
    let y = ops::scale(x, 3.0)?;
    let y = #[eager]
    ops::neg(&y)?;
    let y = ops::add(&y, by.tensor())?;
    let y = #[eager]
    ops::neg(&y)?;
    ops::add(&y, by.tensor())
}

#[graphable]
fn together(#[dims(N)] x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let y = ops::scale(x, 3.0)?;
    let y = #[eager]
    twice(&y)?;
    ops::scale(&y, 0.5)
}

#[test]
fn each_launch_has_its_own_parameter() {
    if skipped("each_launch_has_its_own_parameter") {
        return;
    }
    let mut rt = runtime();
    let graph = AloneGraph::builder().build(&mut rt).unwrap();
    let x: Vec<f32> = (0..1000).map(|i| i as f32).collect();
    for round in 0..4 {
        let step = rt.step().unwrap();
        let t = step.tensor(&[1000], &x).unwrap();
        let (mut held, mut reads) = (Vec::new(), Vec::new());
        for call in 0..300 {
            let y = graph.call(&step, &t, (call * 7) as f32).unwrap();
            reads.push(step.read_later(&y).unwrap());
            if call % 50 == 0 {
                // From here on eager outputs have other addresses.
                held.push(ops::neg(&t).unwrap());
            }
        }
        for (call, read) in reads.into_iter().enumerate() {
            // -(-3x + by) + by
            assert_eq!(read.wait().unwrap(), x.iter().map(|x| 3.0 * x).collect::<Vec<_>>(), "{round} {call}");
        }
    }
    let (memory, stats) = (rt.memory(), rt.stats());
    assert!(stats.replays > 1000 && memory.eager_graphs >= 1, "{stats:?}, {} graphs", memory.eager_graphs);
}

#[test]
fn kernels_side_by_side_stay_kernels() {
    if skipped("kernels_side_by_side_stay_kernels") {
        return;
    }
    let mut rt = runtime();
    let graph = TogetherGraph::builder().build(&mut rt).unwrap();
    for _ in 0..20 {
        let step = rt.step().unwrap();
        let t = step.tensor(&[3], &[1.0f32, 2.0, 3.0]).unwrap();
        assert_eq!(step.read(&graph.call(&step, &t).unwrap()).unwrap(), [-3.0, -6.0, -9.0]);
    }
    assert_eq!(rt.memory().eager_graphs, 0, "each is brought up while the one before ends");
}

#[test]
fn graphs_make_room_for_others_and_are_given_back() {
    if skipped("graphs_make_room_for_others_and_are_given_back") {
        return;
    }
    let mut rt = runtime();
    let graph = AloneGraph::builder().build(&mut rt).unwrap();
    // Filled once: this crate is not optimised, so filling and reading large tensors takes longer than the calls.
    let values = vec![1.5f32; 1 + 49 * 8_192];
    let check = |rt: &mut Runtime, size: usize, calls: usize| {
        for call in 0..calls {
            let step = rt.step().unwrap();
            let x = step.tensor(&[size], &values[..size]).unwrap();
            let y = graph.call(&step, &x, call as f32).unwrap();
            assert_eq!(step.read(&y).unwrap()[size - 1], 4.5, "size {size}, call {call}");
        }
    };
    let mut most = 0;
    for round in 0..20 {
        for size in (round * 2..round * 2 + 12).map(|n| 1 + n * 8_192) {
            check(&mut rt, size, 6);
        }
        let now = rt.memory().eager_graphs;
        assert!(now <= KEPT, "round {round}: {now} graphs");
        most = most.max(now);
    }
    assert_eq!(most, KEPT);
    rt.trim().unwrap();
    let memory = rt.memory();
    assert_eq!((memory.eager_graphs, memory.eager_graph_bytes), (0, 0), "trimmed");
    check(&mut rt, 1000, 10);
    assert_eq!(rt.memory().eager_graphs, 1, "made again");
}

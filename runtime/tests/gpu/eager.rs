//! Eager operations, whose kernels are launched as graphs of one with the parameter replaced: each launch has its
//! own parameter, however many are in flight, and the graphs are few.

use graphable::prelude::*;

use crate::support::{runtime, skipped};

/// In test mode.
const KEPT: usize = 8;

#[test]
fn each_launch_has_its_own_parameter() {
    if skipped("each_launch_has_its_own_parameter") {
        return;
    }
    let mut rt = runtime();
    let step = rt.step().unwrap();
    let one = step.tensor(&[1000], &[1.0f32; 1000]).unwrap();
    let (mut values, mut reads) = (vec![step.tensor(&[1000], &[0.0f32; 1000]).unwrap()], Vec::new());
    for i in 0..2000 {
        let next = ops::add(&values[i], &one).unwrap();
        reads.push(step.read_later(&next).unwrap());
        values.push(next);
    }
    for (i, read) in reads.into_iter().enumerate() {
        assert_eq!(read.wait().unwrap(), [(i + 1) as f32; 1000], "launch {i}");
    }
    assert_eq!(step.memory().eager_graphs, 1);
}

#[test]
fn kernels_that_come_in_turn_get_the_graphs_in_turn() {
    if skipped("kernels_that_come_in_turn_get_the_graphs_in_turn") {
        return;
    }
    let mut rt = runtime();
    let mut most = 0;
    for round in 0..30usize {
        let step = rt.step().unwrap();
        // Others in each round; some of them stay for several.
        for size in (round / 3 * 5..round / 3 * 5 + 12).map(|n| 1 + n * 4096) {
            let x = step.tensor(&[size], &vec![round as f32; size]).unwrap();
            for _ in 0..20 {
                let y = ops::scale(&x, 2.0).unwrap();
                let y = ops::neg(&y).unwrap();
                let sums = ops::add(&y, &x).unwrap();
                drop(y);
                assert_eq!(step.read(&sums).unwrap()[size - 1], -(round as f32), "round {round} size {size}");
            }
        }
        let now = step.memory().eager_graphs;
        assert!(now <= KEPT, "round {round}: {now} graphs");
        most = most.max(now);
    }
    assert_eq!(most, KEPT);
    rt.trim().unwrap();
    let memory = rt.memory();
    assert_eq!((memory.eager_graphs, memory.eager_graph_bytes), (0, 0), "trimmed");
    let step = rt.step().unwrap();
    let x = step.tensor(&[3], &[1.0f32, 2.0, 3.0]).unwrap();
    for _ in 0..5 {
        assert_eq!(step.read(&ops::neg(&x).unwrap()).unwrap(), [-1.0, -2.0, -3.0]);
    }
    assert_eq!(step.memory().eager_graphs, 1, "made again");
}

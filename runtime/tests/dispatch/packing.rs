//! Items of different sizes, packed into batches that have graphs.

use graphable::{Error, FallbackReason, Mode, Schedule, Step};

use crate::{model::*, support};

/// One graph for each power of two; every item is computed once, by the smallest graph that holds its batch, and
/// what is too large runs without one.
#[test]
fn items_are_packed_into_budgets() {
    let mut rt = support::runtime();
    let budgets = Schedule::powers_of_two(16);
    let graph = WholeGraph::builder().mode(Mode::Full).bucket("T", budgets.clone()).build(&mut rt).unwrap();
    graph.capture_all(&mut rt).unwrap();
    assert_eq!(rt.stats().live_recordings, 5);
    rt.close_capture();
    let before = rt.stats();
    let items: Vec<Vec<f32>> =
        [3, 9, 1, 20, 5, 8, 2, 16].iter().enumerate().map(|(i, &n)| rows(n, i)).collect();
    let sizes: Vec<usize> = items.iter().map(|x| x.len() / 2).collect();
    let batches = budgets.pack(&sizes, 4);
    let mut results = vec![Vec::new(); items.len()];
    for packed in &batches {
        let x: Vec<f32> = packed.items.iter().flat_map(|&i| items[i].clone()).collect();
        let step = rt.step().unwrap();
        let y = compute(&graph, &step, &x).unwrap();
        let mut left = &y[..];
        for &i in &packed.items {
            let (one, rest) = left.split_at(items[i].len());
            (results[i], left) = (one.to_vec(), rest);
        }
    }
    for (x, y) in items.iter().zip(&results) {
        assert_eq!(*y, x.iter().map(|v| 2.0 * v + 1.0).collect::<Vec<_>>());
    }
    let after = rt.stats();
    let hits = batches.iter().filter(|b| b.size.is_some()).count() as u64;
    // 1, 2, 3 and 5; 8; 9; 16; and 20, which is too large.
    assert_eq!((batches.len(), hits), (5, 4));
    assert_eq!((after.replays - before.replays, after.fallbacks), (hits, 1));
    let [(FallbackReason::OverLargestBucket { size: 20, largest: 16, .. }, 1)] = after.fallback_reasons[..]
    else {
        panic!("{:?}", after.fallback_reasons)
    };
    // Forgetting gives graphs and pool back.
    rt.reset().unwrap();
    assert_eq!((rt.stats().live_recordings, rt.memory().executable_bytes), (0, 0));
}

fn compute(graph: &WholeGraph, step: &Step<'_>, x: &Vec<f32>) -> Result<Vec<f32>, Error> {
    let y = graph.call(step, (x, &[x.len() / 2, 2]))?;
    step.read(&y)
}

//! Memory after very many replays over a tree that changes.

use graphable::{graphable, prelude::*};

use crate::support::{free_bytes, runtime, skipped};

#[derive(Params)]
struct Model {
    weight: Param<f32>,
}

fn odd(cx: &Eager<'_>, x: &Tensor<f32>) -> Result<bool> {
    Ok(cx.item(x)? as i64 % 2 != 0)
}

#[graphable]
fn branching(x: &Tensor<f32>, #[host] which: &Scalar<f32>, model: &Model) -> Result<Tensor<f32>> {
    let y = ops::mul(x, &model.weight)?;
    let w = ops::scale(which.tensor(), 1.0)?;
    let odd = #[eager(cx)]
    odd(cx, &w)?;
    let y = if odd { ops::neg(&y)? } else { ops::scale(&y, 2.0)? };
    ops::add(&y, which.tensor())
}

#[test]
fn memory_stays_where_it_was() {
    if skipped("memory_stays_where_it_was") {
        return;
    }
    let replays: u64 = match std::env::var("GRAPHABLE_SOAK") {
        Ok(n) => n.parse().expect("GRAPHABLE_SOAK is a number"),
        Err(_) => 20_000,
    };
    let mut rt = runtime();
    let graph = BranchingGraph::builder().build(&mut rt).unwrap();
    let make = |rt: &Runtime, i: u64| Model { weight: Param::new(rt, &[64], &[(i % 5) as f32; 64]).unwrap() };
    let mut model = make(&rt, 0);
    let (mut round, mut before) = (0u64, None);
    let (mut told, start) = (0, std::time::Instant::now());
    while rt.stats().replays < replays {
        round += 1;
        let tenth = rt.stats().replays * 10 / replays;
        if tenth > told {
            told = tenth;
            println!("{} replays after {:.1} s", rt.stats().replays, start.elapsed().as_secs_f32());
        }
        // The tree changes: the weight is replaced, and what was recorded with the old one goes.
        if round % 50 == 0 {
            model = make(&rt, round / 50);
        }
        let weight = (round / 50 % 5) as f32;
        let step = rt.step().unwrap();
        let x = step.tensor(&[64], &[3.0; 64]).unwrap();
        for i in 0..20u64 {
            let which = (i % 2) as f32;
            let y = graph.call(&step, &x, which, &model).unwrap();
            let want = if i % 2 == 1 { 1.0 - 3.0 * weight } else { 6.0 * weight };
            if i > 17 {
                assert_eq!(step.read(&y).unwrap(), [want; 64], "round {round} call {i}");
            }
        }
        if round == 200 {
            step.synchronize().unwrap();
            before = Some(free_bytes());
        }
    }
    rt.step().unwrap();
    rt.synchronize().unwrap();
    let stats = rt.stats();
    if let Some(before) = before {
        let after = free_bytes();
        println!(
            "{} replays, {} recordings, {} evicted; free before {before}, after {after}",
            stats.replays, stats.recordings, stats.evicted
        );
        // What a driver allocates at once; a leak of one graph a round would be far more.
        assert!(before.saturating_sub(after) <= 4 << 20, "{} bytes are gone", before - after);
    }
    assert_eq!(stats.fallbacks, 0);
}

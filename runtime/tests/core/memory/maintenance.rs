//! Maintenance of memory: preallocation, trimming, resets, and the idle pool borrowed by eager code.

use graphable::{Error, MemoryArena, Mode, Runtime, Step, ops};

use crate::support::*;

const MIB: u64 = 1 << 20;

/// `x` of `n` elements through some temporaries of its size.
fn grow<'s>(graph: &Graph, step: &Step<'s>, x: &[f32], n: usize) -> T<'s> {
    let y = graph.call(step, &[In::Host(x.into())], n, |cx, a| {
        let (h,) = seg!("a", cx, (&a.t[0], &n), |k| {
            let wide = ops::full(k.0.scope(), &[*k.1], 1.0f32)?;
            Ok((ops::add(k.0, &ops::mean(&ops::neg(&wide)?, 0)?)?,))
        })?;
        seg!("b", cx, (&h,), |k| ops::scale(k.0, 2.0))
    });
    y.unwrap()
}

fn settle(rt: &mut Runtime, graph: &Graph, n: usize) {
    for _ in 0..4 {
        let step = rt.step().unwrap();
        assert_eq!(step.read(&grow(graph, &step, &X, n)).unwrap(), [0.0, 2.0]);
        step.check_memory().unwrap();
    }
}

#[test]
fn a_preallocated_pool_does_not_grow() {
    if crate::device::skipped_with_gaps("a_preallocated_pool_does_not_grow") {
        return;
    }
    let mut rt = runtime();
    rt.preallocate(MemoryArena::Pool, 40 * MIB).unwrap();
    rt.preallocate(MemoryArena::Results, 2 * MIB).unwrap();
    assert_eq!(rt.memory().pool.committed_bytes, 40 * MIB);
    let graph = vector(&mut rt, Mode::Piecewise);
    settle(&mut rt, &graph, 2 << 20);
    let memory = rt.memory();
    assert_eq!((memory.pool.committed_bytes, memory.results.committed_bytes), (40 * MIB, 2 * MIB));
    assert!(memory.pool.peak_bytes >= 16 * MIB, "{memory:?}");
    // Less is there already; too much is an error, and nothing changes.
    rt.preallocate(MemoryArena::Pool, MIB).unwrap();
    assert!(matches!(rt.preallocate(MemoryArena::Pool, 1 << 60), Err(Error::OutOfMemory { .. })));
    assert_eq!(rt.memory().pool.committed_bytes, 40 * MIB);
    settle(&mut rt, &graph, 2 << 20);
}

#[test]
fn trimming_keeps_what_recordings_use() {
    if crate::device::skipped_with_gaps("trimming_keeps_what_recordings_use") {
        return;
    }
    let mut rt = runtime();
    let (small, large) = (vector(&mut rt, Mode::Piecewise), vector(&mut rt, Mode::Full));
    settle(&mut rt, &small, 64);
    settle(&mut rt, &large, 4 << 20);
    {
        let step = rt.step().unwrap();
        step.tensor(&[1 << 20], &vec![1.0f32; 1 << 20]).unwrap();
    }
    let before = rt.memory();
    assert!(before.eager.committed_bytes >= 4 * MIB && before.pool.committed_bytes >= 32 * MIB, "{before:?}");
    rt.trim().unwrap();
    let after = rt.memory();
    assert_eq!(after.eager.committed_bytes, 0);
    assert!(after.pool.committed_bytes >= after.pool_recorded_bytes, "{after:?}");
    let recorded = rt.stats().recordings;
    settle(&mut rt, &large, 4 << 20);
    settle(&mut rt, &small, 64);
    assert_eq!(rt.stats().recordings, recorded, "recordings made before are still good");
    // The large one's recordings go with it; then its memory can go.
    drop(large);
    assert!(rt.trim().unwrap() >= 16 * MIB);
    assert_eq!(rt.memory().pool.committed_bytes, 2 * MIB);
    settle(&mut rt, &small, 64);
    assert_eq!(rt.stats().recordings, recorded);
    assert_eq!(rt.trim().unwrap(), 0, "nothing more to give");
    // And it grows again.
    let large = vector(&mut rt, Mode::Piecewise);
    settle(&mut rt, &large, 4 << 20);
    still_usable(&mut rt);
}

#[test]
fn after_a_reset_nothing_is_left_and_all_works() {
    for mode in MODES {
        let mut rt = runtime();
        let graph = vector(&mut rt, mode);
        for _ in 0..2 {
            settle(&mut rt, &graph, 1 << 20);
            rt.reset().unwrap();
            let memory = rt.memory();
            assert_eq!((rt.stats().live_recordings, memory.recordings.len()), (0, 0));
            for arena in [memory.pool, memory.results, memory.eager] {
                assert_eq!((arena.live_bytes, arena.committed_bytes), (0, 0));
            }
        }
        still_usable(&mut rt);
    }
}

/// The pool is as large as the largest path; the sum is told beside it.
#[test]
fn recordings_share_the_pool() {
    if crate::device::skipped_with_gaps("recordings_share_the_pool") {
        return;
    }
    let mut rt = runtime();
    let graph = vector(&mut rt, Mode::Piecewise);
    let sizes = [65536usize, 4096, 16384, 1024];
    for n in sizes {
        settle(&mut rt, &graph, n);
    }
    let memory = rt.memory();
    let wide: Vec<u64> =
        memory.recordings.iter().map(|n| n.pool_peak_bytes).filter(|&bytes| bytes > 4096).collect();
    assert_eq!(wide.len(), sizes.len(), "{memory:?}");
    let (sum, largest) = (wide.iter().sum::<u64>(), wide.iter().copied().max().unwrap());
    assert_eq!(
        memory.pool_recorded_bytes,
        memory.recordings.iter().map(|n| n.pool_extent_bytes).max().unwrap()
    );
    assert!(memory.pool_recorded_bytes <= largest + 1024, "{memory:?}");
    assert!(memory.pool_sum_bytes >= sum && sum > largest, "{memory:?}");
    assert!(memory.pool.peak_bytes * 10 <= largest * 11, "{memory:?}");
    // Two functions share it, too.
    let other = vector(&mut rt, Mode::Full);
    settle(&mut rt, &other, 4096);
    let memory = rt.memory();
    assert!(memory.pool_recorded_bytes <= largest + 1024);
    assert_eq!(memory.functions.len(), 2);
    // What follows the segment of all these sizes is recorded once more, behind one of its warm-ups.
    assert_eq!(memory.functions.iter().map(|f| f.recordings).collect::<Vec<_>>(), [6, 1]);
    assert_eq!(memory.pool_sum_bytes, memory.functions.iter().map(|f| f.pool_sum_bytes).sum::<u64>());
    assert!(memory.functions.iter().all(|f| f.static_bytes > 0 && f.pool_bytes > 0));
}

#[test]
fn the_idle_pool_serves_eager_code() {
    if crate::device::skipped_with_gaps("the_idle_pool_serves_eager_code") {
        return;
    }
    let mut rt = runtime();
    let graph = vector(&mut rt, Mode::Piecewise);
    settle(&mut rt, &graph, 1 << 20);
    let before = rt.memory();
    let data: Vec<f32> = (0..1 << 18).map(|i| (i % 100) as f32).collect();
    for _ in 0..3 {
        let mut step = rt.step().unwrap();
        let y = grow(&graph, &step, &X, 1 << 20);
        let kept = {
            let pool = step.borrow_pool().unwrap();
            let x = pool.tensor(&[1 << 18], &data).unwrap();
            let twice = ops::add(&x, &x).unwrap();
            // Results of the step are there, too.
            let sum = ops::add(&ops::narrow(&twice, 0, 0, 2).unwrap(), &y).unwrap();
            pool.check_memory().unwrap();
            assert_eq!(pool.read(&sum).unwrap(), [0.0, 4.0]);
            assert_eq!(pool.read(&twice).unwrap()[99], 198.0);
            pool.keep(&sum).unwrap()
        };
        assert_eq!(step.read(&y).unwrap(), [0.0, 2.0]);
        assert_eq!(step.read(&kept.view(step.scope()).unwrap()).unwrap(), [0.0, 4.0]);
        let again = grow(&graph, &step, &X, 1 << 20);
        assert_eq!(step.read(&again).unwrap(), [0.0, 2.0]);
    }
    let after = rt.memory();
    assert_eq!(after.pool.committed_bytes, before.pool.committed_bytes);
    assert_eq!(after.eager, before.eager, "nothing of it went to the eager arena");
    assert!(after.borrowed_peak_bytes >= 2 * MIB);
}

#[test]
fn what_does_not_fit_goes_to_the_eager_arena() {
    let mut rt = runtime();
    let mut step = rt.step().unwrap();
    let pool = step.borrow_pool().unwrap();
    // The pool has nothing yet.
    let x = pool.tensor(&[2], &X).unwrap();
    assert_eq!(pool.read(&ops::neg(&x).unwrap()).unwrap(), [-1.0, -2.0]);
    drop((x, pool));
    let memory = rt.memory();
    assert_eq!((memory.borrowed_peak_bytes, memory.pool.committed_bytes), (0, 0));
    assert!(memory.eager.peak_bytes > 0);
}

#[test]
fn a_tensor_of_a_borrow_is_void_afterwards() {
    if crate::device::skipped_with_gaps("a_tensor_of_a_borrow_is_void_afterwards") {
        return;
    }
    let mut rt = runtime();
    rt.preallocate(MemoryArena::Pool, MIB).unwrap();
    let graph = vector(&mut rt, Mode::Piecewise);
    for forget in [false, true] {
        for _ in 0..3 {
            let mut step = rt.step().unwrap();
            let y = grow(&graph, &step, &X, 64);
            let pool = step.borrow_pool().unwrap();
            // Its lifetime is that of `y`.
            let left = ops::neg(&y).unwrap();
            if forget {
                std::mem::forget(pool);
                // Another one ends it, too.
                let again = step.borrow_pool().unwrap();
                let other = ops::neg(&y).unwrap();
                assert_eq!(again.read(&other).unwrap(), [0.0, -2.0]);
                assert!(matches!(again.read(&left), Err(Error::NeverComputed { op: "read" })));
                std::mem::forget(again);
            } else {
                drop(pool);
                assert!(matches!(step.read(&left), Err(Error::NeverComputed { op: "read" })));
                assert!(matches!(ops::neg(&left), Err(Error::NeverComputed { .. })));
            }
            // A forgotten borrow ends with the next call.
            let z = grow(&graph, &step, &X, 64);
            assert_eq!(step.read(&z).unwrap(), [0.0, 2.0]);
            assert!(matches!(step.read(&left), Err(Error::NeverComputed { op: "read" })));
            drop((left, z));
            assert_eq!(step.read(&y).unwrap(), [0.0, 2.0]);
            step.check_memory().unwrap();
        }
    }
    still_usable(&mut rt);
}

#[test]
fn a_step_after_a_forgotten_borrow_is_a_usual_one() {
    let mut rt = runtime();
    rt.preallocate(MemoryArena::Pool, MIB).unwrap();
    let mut step = rt.step().unwrap();
    std::mem::forget(step.borrow_pool().unwrap());
    drop(step);
    let step = rt.step().unwrap();
    let x = step.tensor(&[2], &X).unwrap();
    assert_eq!(step.read(&x).unwrap(), X);
    drop((x, step));
    assert_eq!(rt.memory().borrowed_peak_bytes, 0);
    still_usable(&mut rt);
}

/// Sizes of results, byte by byte; one stays usable after its graph object is gone.
#[test]
fn results_are_counted_exactly_and_outlive_their_graph() {
    let mut rt = runtime();
    for n in [1usize, 64, 65, 4096, 1 << 18] {
        let graph = Spec::inputs(vec![host("x", &[Dim::Const(2)])]).build(&mut rt);
        let mut graph = Some(graph);
        for i in 0..4 {
            let step = rt.step().unwrap();
            let of = graph.as_ref().unwrap();
            let y = of
                .call(&step, &[x()], n, |cx, a| {
                    seg!("a", cx, (&a.t[0], &n), |k| ops::full(k.0.scope(), &[*k.1], 3.0f32))
                })
                .unwrap();
            let z = of.call(&step, &[x()], n, |cx, a| seg!("b", cx, (&a.t[0],), |k| ops::neg(k.0))).unwrap();
            if i == 3 {
                graph = None;
            }
            let bytes = (4 * n as u64).next_multiple_of(256);
            assert_eq!(step.stats().live_recordings, if i == 0 { 0 } else { 2 });
            assert_eq!(memory(&step).results.live_bytes, bytes + 256, "{n} elements");
            assert_eq!(step.read(&y).unwrap(), vec![3.0; n]);
            drop(y);
            assert_eq!(memory(&step).results.live_bytes, 256);
            drop(z);
            assert_eq!(memory(&step).results.live_bytes, 0);
        }
        // The next step learns that the graph object is gone.
        rt.reset().unwrap();
    }
}

fn memory(step: &Step<'_>) -> graphable::MemoryStats {
    step.memory()
}

#[test]
fn capturing_and_dropping_again_and_again_does_not_grow() {
    let mut rt = runtime();
    let mut sizes = Vec::new();
    for _ in 0..100 {
        let graph = vector(&mut rt, Mode::Full);
        for _ in 0..3 {
            let step = rt.step().unwrap();
            assert_eq!(step.read(&grow(&graph, &step, &X, 1000)).unwrap(), [0.0, 2.0]);
        }
        assert_eq!(rt.stats().live_recordings, 1);
        drop(graph);
        rt.step().unwrap();
        let memory = rt.memory();
        assert_eq!((memory.recordings.len(), memory.executable_bytes, memory.static_bytes), (0, 0, 0));
        sizes.push([memory.pool, memory.results, memory.eager].map(|a| (a.committed_bytes, a.peak_bytes)));
    }
    assert_eq!(sizes[99], sizes[0]);
    assert_eq!(rt.stats().recordings, 100);
}

/// A segment that only shows its input launches nothing, and is a recording all the same.
#[test]
fn a_segment_without_a_kernel_has_a_node() {
    let mut rt = runtime();
    let graph = Spec::inputs(vec![device("x", &[Dim::Const(2)])]).build(&mut rt);
    for i in 0..4 {
        let step = rt.step().unwrap();
        let data = step.tensor(&[2], &[i as f32, 5.0]).unwrap();
        let part = graph
            .call(&step, &[In::Device(&data)], (), |cx, a| {
                seg!("a", cx, (&a.t[0],), |k| ops::narrow(k.0, 0, 0, 1))
            })
            .unwrap();
        assert_eq!(step.read(&part).unwrap(), [i as f32]);
    }
    let memory = rt.memory();
    assert_eq!(memory.recordings.len(), 1);
    assert_eq!((memory.recordings[0].executable_nodes, memory.recordings[0].executable_bytes), (0, 0));
    assert_eq!((memory.recordings[0].pool_peak_bytes, memory.recordings[0].result_bytes), (0, 0));
}

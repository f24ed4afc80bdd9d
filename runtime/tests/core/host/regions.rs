//! Results of eager regions: of one size, of changing sizes, behind any number of temporaries.

use std::cell::Cell;

use graphable::{Result, Runtime, Step, ops};
use rand::{Rng, SeedableRng, rngs::StdRng};

use crate::support::*;

/// What a region does in one call.
#[derive(Clone, Copy, Debug)]
struct Shape {
    /// Elements of the result that no segment uses.
    scores: usize,
    /// Values made and dropped before the results.
    temporaries: usize,
    /// Whether one of them is alive until the results are there.
    held: bool,
}

/// `-(6 x)`; the scores are all 1.
fn call<'s>(graph: &Graph, step: &Step<'s>, x: f32, shape: Shape) -> Result<(T<'s>, Vec<f32>)> {
    graph.call(step, &[In::Host((&[x, 1.0]).into())], (), |cx, a| {
        let (h,) = seg!("a", cx, (&a.t[0],), |k| Ok((ops::scale(k.0, 2.0)?,)))?;
        let (scores, e) = eager!("e", cx, |e| {
            let mut held = None;
            for _ in 0..shape.temporaries {
                let t = ops::neg(&h)?;
                held = shape.held.then_some(t);
            }
            let scores = ops::full(e.scope(), &[shape.scores], 1.0f32)?;
            let result = ops::scale(&h, 3.0)?;
            drop(held);
            Ok::<_, graphable::Error>((scores, result))
        });
        let (y,) = seg!("b", cx, (&e,), |k| Ok((ops::neg(&ops::neg(k.0)?)?,)))?;
        let ones = eager!("r", cx, |e| e.read(&scores));
        let z = seg!("c", cx, (&y,), |k| ops::neg(k.0))?;
        Ok((z, ones))
    })
}

fn checked(rt: &mut Runtime, graph: &Graph, i: usize, shape: Shape) {
    let step = rt.step().unwrap();
    let (z, ones) = call(graph, &step, i as f32, shape).unwrap();
    assert_eq!(step.read(&z).unwrap(), [-6.0 * i as f32, -6.0], "{i}: {shape:?}");
    assert_eq!(ones, vec![1.0; shape.scores], "{i}: {shape:?}");
}

fn strict(rt: &mut Runtime) -> Graph {
    Spec::inputs(vec![host("x", &[Dim::Const(2)])]).with(|o| o.deny_fallback(true)).build(rt)
}

#[test]
fn a_result_that_grows_changes_nothing_for_others() {
    for repeated in [1, 2, 3] {
        let mut rt = runtime();
        let graph = strict(&mut rt);
        for i in 0..200 {
            let scores = 64 * (1 + i / repeated);
            checked(&mut rt, &graph, i, Shape { scores, temporaries: 0, held: false });
        }
        let stats = rt.stats();
        assert!(stats.recordings <= 5, "{repeated}: {}", stats.recordings);
        assert_eq!((stats.fallbacks, stats.waits), (0, 0));
        assert!(stats.copies <= 2, "{repeated}: {}", stats.copies);
    }
}

#[test]
fn sizes_that_come_and_go() {
    let mut rt = runtime();
    let graph = strict(&mut rt);
    for i in 0..200 {
        let scores = 1 + 100 * (i * i % 11);
        checked(&mut rt, &graph, i, Shape { scores, temporaries: i % 2, held: false });
    }
    let stats = rt.stats();
    assert!(stats.recordings <= 5 && stats.fallbacks == 0, "{stats:?}");
}

/// Captured with one size and closed: any other one does as well.
#[test]
fn closed_capture_with_a_result_of_another_size() {
    let mut rt = runtime();
    let graph = strict(&mut rt);
    for i in 0..5 {
        checked(&mut rt, &graph, i, Shape { scores: 100, temporaries: 0, held: false });
    }
    rt.close_capture();
    for i in 0..50 {
        let shape = Shape { scores: 64 * (1 + i % 7), temporaries: i % 3, held: i % 2 == 0 };
        checked(&mut rt, &graph, i, shape);
    }
    let stats = rt.stats();
    assert_eq!((stats.recordings, stats.fallbacks), (3, 0));
}

#[test]
fn temporaries_of_any_number() {
    for held in [false, true] {
        let mut rt = runtime();
        let graph = strict(&mut rt);
        for i in 0..100 {
            checked(&mut rt, &graph, i, Shape { scores: 2, temporaries: i * 7 % 5, held });
        }
        let stats = rt.stats();
        assert!(stats.recordings <= 9 && stats.fallbacks == 0, "{held}: {stats:?}");
        // Once guessing ended each call copies both results; it records nothing.
        let before = stats;
        for i in 0..20 {
            checked(&mut rt, &graph, i, Shape { scores: 2, temporaries: i % 4, held });
        }
        let stats = rt.stats();
        assert_eq!((stats.recordings, stats.warmups), (before.recordings, before.warmups));
        assert!(stats.copies - before.copies <= 40);
        // The pool holds no more for it.
        assert!(rt.memory().pool.peak_bytes <= 8 * 256, "{:?}", rt.memory().pool);
    }
}

/// Of many layers, another one makes a temporary in each call. Guesses end for all of them at once, so the pool settles after a
/// few calls, however many layers there are.
#[test]
fn guesses_end_for_all_layers() {
    const LAYERS: usize = 12;
    let mut rt = runtime();
    let graph = strict(&mut rt);
    let mut recorded = Vec::new();
    for i in 0..100 {
        let before = rt.stats().recordings;
        let step = rt.step().unwrap();
        let y = graph.call(&step, &[In::Host((&[1.0, i as f32]).into())], (), |cx, a| {
            let mut h = a.t[0].clone();
            for layer in 0..LAYERS {
                let (t, u) = eager!("e", cx, |_e| {
                    if layer == i * 5 % LAYERS {
                        drop(ops::neg(&h)?);
                    }
                    Ok::<_, graphable::Error>((ops::scale(&h, 0.75)?, ops::scale(&h, 0.25)?))
                });
                (h,) = seg!("s", cx, (&t, &u), |k| Ok((ops::add(k.0, k.1)?,)))?;
            }
            Ok(h)
        });
        assert_eq!(step.read(&y.unwrap()).unwrap(), [1.0, i as f32], "{i}");
        drop(step);
        if rt.stats().recordings > before {
            recorded.push(i);
        }
    }
    let stats = rt.stats();
    assert!(recorded.len() <= 5 && recorded.iter().all(|i| *i < 10), "{recorded:?}: {stats:?}");
    assert_eq!(stats.fallbacks, 0);
}

/// A temporary that was taken for the result and lives on in the driver.
#[test]
fn a_temporary_that_outlives_its_region() {
    let mut rt = runtime();
    let graph = strict(&mut rt);
    let n = Cell::new(0);
    for i in 0..40 {
        let step = rt.step().unwrap();
        let y = graph.call(&step, &[In::Host((&[i as f32, 1.0]).into())], (), |cx, a| {
            let (h,) = seg!("a", cx, (&a.t[0],), |k| Ok((ops::scale(k.0, 2.0)?,)))?;
            let mut saved = Vec::new();
            let e = eager!("e", cx, |_e| {
                n.set((n.get() + i) % 3);
                for _ in 0..n.get() {
                    saved.push(ops::neg(&h)?);
                }
                ops::scale(&h, 3.0)
            });
            let (y,) = seg!("b", cx, (&e,), |k| Ok((ops::neg(k.0)?,)))?;
            let sum = eager!("s", cx, |_e| {
                let mut sum = y.clone();
                for t in &saved {
                    sum = ops::add(&sum, t)?;
                }
                Ok::<_, graphable::Error>(sum)
            });
            drop(saved);
            seg!("c", cx, (&sum,), |k| ops::neg(k.0))
        });
        let expected = 2.0 * i as f32 * (3.0 + n.get() as f32);
        assert_eq!(step.read(&y.unwrap()).unwrap()[0], expected, "{i}");
    }
    assert_eq!(rt.stats().fallbacks, 0);
    assert!(rt.stats().recordings <= 12, "{:?}", rt.stats());
}

/// Results that are there in some calls only, or change places; a region that fails.
#[test]
fn results_that_come_and_go() {
    let mut rt = runtime();
    let graph = strict(&mut rt);
    for i in 0..60usize {
        let step = rt.step().unwrap();
        let y = graph.call(&step, &[In::Host((&[i as f32, 1.0]).into())], (), |cx, a| {
            let (h,) = seg!("a", cx, (&a.t[0],), |k| Ok((ops::scale(k.0, 2.0)?,)))?;
            let (p, q) = eager!("e", cx, |_e| {
                let (p, q) = (ops::neg(&h)?, ops::scale(&h, 3.0)?);
                if i % 10 == 9 {
                    return Err(graphable::Error::Argument { op: "test", reason: "on purpose".into() });
                }
                Ok::<_, graphable::Error>(if i % 3 == 0 { (None, q) } else { (Some(p), q) })
            });
            let (y,) = seg!("b", cx, (&p, &q), |k| match k.0 {
                Some(p) => Ok((ops::sub(k.1, p)?,)),
                None => Ok((ops::neg(k.1)?,)),
            })?;
            drop((p, q));
            seg!("c", cx, (&y,), |k| ops::neg(k.0))
        });
        match y {
            Ok(y) => {
                let expected = if i % 3 == 0 { 6.0 } else { -8.0 };
                assert_eq!(step.read(&y).unwrap(), [expected * i as f32, expected], "{i}");
            }
            Err(error) => assert!(i % 10 == 9, "{error}"),
        }
    }
    assert_eq!(rt.stats().fallbacks, 0);
    assert!(rt.stats().recordings <= 12, "{:?}", rt.stats());
}

/// Held, and of a changing size: nothing is lost in any mode.
#[test]
fn results_of_regions_that_are_outputs() {
    for mode in [graphable::Mode::None, graphable::Mode::Piecewise] {
        let mut rt = runtime();
        let graph = vector(&mut rt, mode);
        for round in 0..4 {
            let step = rt.step().unwrap();
            let mut held = Vec::new();
            for i in 0..20usize {
                let n = 1 + (i * 37 + round) % 90;
                let y = graph.call(&step, &[In::Host((&[i as f32, 1.0]).into())], (), |cx, a| {
                    let (h,) = seg!("a", cx, (&a.t[0],), |k| Ok((ops::scale(k.0, 2.0)?,)))?;
                    let (r, s) = eager!("e", cx, |e| {
                        Ok::<_, graphable::Error>((ops::full(e.scope(), &[n], n as f32)?, ops::neg(&h)?))
                    });
                    let t = seg!("b", cx, (&s,), |k| ops::neg(k.0))?;
                    Ok((r, s, t))
                });
                held.push((y.unwrap(), n, i as f32));
            }
            for ((r, s, t), n, i) in &held {
                assert_eq!(step.read(r).unwrap(), vec![*n as f32; *n], "{mode} {round}");
                assert_eq!(step.read(s).unwrap(), [-2.0 * i, -2.0], "{mode} {round}");
                assert_eq!(step.read(t).unwrap(), [2.0 * i, 2.0], "{mode} {round}");
            }
        }
        assert_eq!(rt.stats().fallbacks, 0);
        assert!(rt.stats().recordings <= 12, "{mode}: {:?}", rt.stats());
    }
}

/// A copy of a result to its block fails, wherever: the block goes once, and everything is as before.
#[test]
fn a_copy_of_a_result_that_fails() {
    use graphable::backend::faulty::FaultCall;
    let two = |graph: &Graph, step: &Step<'_>, more: bool| -> Result<Vec<f32>> {
        let y = graph.call(step, &[x()], (), |cx, a| {
            let (h,) = seg!("a", cx, (&a.t[0],), |k| Ok((ops::scale(k.0, 2.0)?,)))?;
            let (p, q) = eager!("e", cx, |e| {
                // Behind these the results are other allocations than before, so both are copied.
                let first = || ops::full(e.scope(), &[1000], 1.0f32);
                let first = if more { Some((first()?, first()?)) } else { None };
                let (p, q) = (ops::scale(&h, 3.0)?, ops::scale(&h, 4.0)?);
                drop(first);
                Ok::<_, graphable::Error>((p, q))
            });
            seg!("b", cx, (&p, &q), |k| ops::add(k.0, k.1))
        });
        step.read(&y?)
    };
    for (call, places) in [(FaultCall::Launch, 4), (FaultCall::Copy, 2)] {
        let mut failed = 0;
        for at in 0..8 {
            let (mut rt, plan) = faulty();
            let graph = strict(&mut rt);
            for _ in 0..4 {
                let step = rt.step().unwrap();
                assert_eq!(two(&graph, &step, false).unwrap(), [14.0, 28.0]);
            }
            let step = rt.step().unwrap();
            plan.arm(Some(call), at, false);
            failed += u32::from(two(&graph, &step, true).is_err());
            plan.disarm();
            step.check_memory().unwrap();
            drop(step);
            for more in [false, true, true, false] {
                let step = rt.step().unwrap();
                assert_eq!(two(&graph, &step, more).unwrap(), [14.0, 28.0]);
            }
        }
        assert_eq!(failed, places, "{call:?}");
    }
}

/// A first result that is not always there moves nothing of the second, also once capture is closed.
#[test]
fn an_optional_result_before_another() {
    let mut rt = runtime();
    let graph = strict(&mut rt);
    for i in 0..40 {
        if i == 4 {
            rt.close_capture();
        }
        let there = i < 3 || i % 3 > 0;
        let step = rt.step().unwrap();
        let x = i as f32;
        let out = graph.call(&step, &[In::Host((&[x, 1.0]).into())], (), |cx, a| {
            let (h,) = seg!("a", cx, (&a.t[0],), |k| Ok((ops::scale(k.0, 2.0)?,)))?;
            let (first, second) = eager!("e", cx, |_e| {
                let (first, second) = (ops::scale(&h, 3.0)?, ops::neg(&h)?);
                Ok::<_, graphable::Error>((there.then_some(first), second))
            });
            if let Some(first) = first {
                let y = seg!("b", cx, (&first,), |k| ops::neg(k.0))?;
                eager!("r", cx, |e| {
                    assert_eq!(e.read(&y)?, [-6.0 * x, -6.0]);
                    Ok::<_, graphable::Error>(())
                });
            }
            seg!("c", cx, (&second,), |k| ops::scale(k.0, 5.0))
        });
        assert_eq!(step.read(&out.unwrap()).unwrap(), [-10.0 * x, -10.0], "call {i}");
    }
    let stats = rt.stats();
    assert_eq!(stats.fallbacks, 0, "{stats:?}");
    // That of the call: its output leaves the pool.
    assert!(stats.copies <= 8, "{stats:?}");
}

/// A wrong guess for one result may take the block of another. Each has its own after a few calls all the same.
#[test]
fn results_of_one_size_behind_temporaries() {
    let mut rng = StdRng::seed_from_u64(7);
    for round in 0..200 {
        let mut rt = runtime();
        let graph = strict(&mut rt);
        for i in 0..40 {
            let step = rt.step().unwrap();
            let x = i as f32;
            let y = graph
                .call(&step, &[In::Host((&[x, 1.0]).into())], (), |cx, _| {
                    let (e, f) = eager!("e", cx, |e| {
                        let temporaries = (0..rng.random_range(0..4)).map(|_| e.tensor(&[2], &[x; 2]));
                        let temporaries = temporaries.collect::<Result<Vec<_>>>()?;
                        let held = rng.random::<bool>().then_some(temporaries);
                        let early = e.tensor(&[2], &[x, 1.0])?;
                        let late = ops::scale(&early, 3.0)?;
                        drop(held);
                        Ok::<_, graphable::Error>((late, early))
                    });
                    seg!("b", cx, (&e, &f), |k| ops::add(k.0, k.1))
                })
                .unwrap();
            assert_eq!(step.read(&y).unwrap(), [4.0 * x, 4.0], "call {i}");
        }
        let stats = rt.stats();
        assert!(stats.recordings <= 3 && stats.fallbacks == 0, "{round}: {stats:?}");
    }
}

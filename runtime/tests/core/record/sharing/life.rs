//! Sharing and what else happens to recordings.

use graphable::{__private::Synthetic, State};

use super::*;

/// Two parameters, one place: their recordings share.
#[test]
fn eviction_of_one_sharer_leaves_the_other() {
    // The one that the executable was made from, and runs now, goes first, or last.
    for (first, last_run) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        let (mut rt, plan) = sharing();
        let graph = bucketed(&mut rt, Mode::Piecewise, &[SMALL]);
        let mut weights = vec![(weight(&rt, 3.0), 3.0), (weight(&rt, 5.0), 5.0)];
        for i in [0, 0, 1, 1, 0, last_run] {
            run(&mut rt, &graph, SMALL, 2.0, (&weights[i].0, weights[i].1));
        }
        // `b` has one recording: it does not use the parameter.
        assert_eq!((rt.stats().live_recordings, rt.stats().executables, rt.stats().shares), (3, 2, 1));
        let before = plan.live_memory().1;
        drop(weights.remove(first));
        rt.step().unwrap();
        rt.step().unwrap().synchronize().unwrap();
        for _ in 0..100 {
            // A device lets go of what its launches use when they have ended, at one of the next calls.
            if plan.live_memory().1 < before {
                break;
            }
            let step = rt.step().unwrap();
            drop(step.tensor(&[1], &[0.0f32]).unwrap());
            step.synchronize().unwrap();
        }
        assert_eq!(plan.live_memory().1, before - 256, "the executable keeps nothing of it");
        for s in [1.0, 2.0, 3.0] {
            run(&mut rt, &graph, SMALL, s, (&weights[0].0, weights[0].1));
        }
        let stats = rt.stats();
        assert_eq!((stats.live_recordings, stats.executables, stats.evicted), (2, 2, 1));
        assert_eq!((plan.count(FaultCall::Instantiate), stats.recordings), (2, 3));
    }
}

#[test]
fn trim_and_reset() {
    let (mut rt, plan) = sharing();
    let graph = bucketed(&mut rt, Mode::Piecewise, &[SMALL, LARGE]);
    let w = weight(&rt, 3.0);
    for round in 0..3 {
        for n in [SMALL, SMALL, LARGE, LARGE, SMALL] {
            run(&mut rt, &graph, n, 2.0, (&w, 3.0));
        }
        assert_eq!((rt.stats().live_recordings, rt.stats().executables), (4, 2), "round {round}");
        rt.trim().unwrap();
        for i in 0..6 {
            run(&mut rt, &graph, [SMALL, LARGE][i % 2], i as f32, (&w, 3.0));
        }
        rt.reset().unwrap();
        assert_eq!((rt.stats().live_recordings, rt.stats().executables, plan.live_executables()), (0, 0, 0));
    }
}

#[test]
fn a_dropped_graph_object_leaves_nothing() {
    let (mut rt, plan) = sharing();
    let graph = bucketed(&mut rt, Mode::Piecewise, &[SMALL, LARGE]);
    let w = weight(&rt, 3.0);
    for n in [SMALL, SMALL, LARGE, LARGE, SMALL] {
        run(&mut rt, &graph, n, 2.0, (&w, 3.0));
    }
    drop((graph, w));
    rt.step().unwrap();
    assert_eq!((rt.stats().live_recordings, rt.stats().executables, plan.live_executables()), (0, 0, 0));
}

#[test]
fn audited() {
    for mode in [Mode::Piecewise, Mode::Full] {
        let (mut rt, _) = sharing();
        let spec = Spec { symbols: &["B"], ..Spec::inputs(vec![device("x", ROWS), scalar("s")]) };
        let spec = spec.mode(mode).with(|o| {
            o.bucket("B", Schedule::new([SMALL, LARGE]));
            o.audit_every(2);
        });
        let graph = spec.build(&mut rt);
        let w = weight(&rt, 3.0);
        for i in 0..24 {
            run(&mut rt, &graph, [SMALL, SMALL, LARGE][i % 3], i as f32, (&w, 3.0));
        }
        let stats = rt.stats();
        let places = if mode == Mode::Full { 1 } else { 2 };
        assert_eq!(
            (stats.live_recordings, stats.executables, stats.unshared),
            (2 * places, places, 0),
            "{mode}"
        );
        assert!(stats.audits >= 8 && stats.updates >= 12, "{stats:?}");
    }
}

/// State that sharers write is saved and put back by a capture ahead of time; afterwards only updates follow.
#[test]
fn captured_ahead_of_time() {
    let (mut rt, plan) = sharing();
    // All of them padded: what need not be padded takes its host values by one kernel more on a GPU.
    let graph = bucketed(&mut rt, Mode::Piecewise, &[2, 4, 16, 64]);
    let counter = State::new(&rt, &[64], &[0.0f32; 64]).unwrap();
    fn call<'s>(graph: &Graph, step: &Step<'s>, x: &T<'s>, counter: &State<f32>) -> Result<Vec<f32>> {
        let y = graph.call(step, &[In::Device(x), In::Scalar(2.0)], counter, |cx, a| {
            seg!("a", cx, (&a.t[0], &a.scalars[0], counter), |k| {
                let next = ops::add(&ops::load(k.0.scope(), k.2)?, &ops::full(k.0.scope(), &[64], 1.0f32)?)?;
                ops::store(k.2, &next)?;
                ops::add(&ops::mul(k.0, k.1)?, &next)
            })
        })?;
        step.read(&y)
    }
    let captures =
        |step: &Step<'_>, s: &Synthetic<'_>| call(&graph, step, &s.device(step, 0)?, &counter).map(drop);
    graph.capture_all(&mut rt, captures, |_| {}).unwrap();
    let captured = rt.stats();
    assert_eq!(
        (captured.live_recordings, captured.executables, plan.count(FaultCall::Instantiate)),
        (4, 1, 1),
        "{captured:?} {:?}",
        rt.take_events()
    );
    rt.close_capture();
    for (i, n) in [64, 1, 3, 16, 2, 4, 40].into_iter().enumerate() {
        let step = rt.step().unwrap();
        let x = step.tensor(&[n, 64], &vec![1.0f32; 64 * n]).unwrap();
        let y = call(&graph, &step, &x, &counter).unwrap();
        assert_eq!(y, vec![2.0 + (i + 1) as f32; 64 * n], "{n} rows");
    }
    let stats = rt.stats();
    assert_eq!((stats.recordings, stats.executables, stats.unshared), (captured.recordings, 1, 0));
}

/// A live-in that keeps moving is copied; the copies come with the host block, after the update.
#[test]
fn copied_live_ins() {
    let (mut rt, plan) = sharing();
    let spec = Spec::inputs(vec![any_device("x"), scalar("s")]);
    let graph = spec.with(|o| o.limits(|l| l.max_moves = 1)).build(&mut rt);
    let run = |rt: &mut Runtime, factor: u32, blocks: usize| {
        let step = rt.step().unwrap();
        let _before: Vec<_> = (0..blocks).map(|_| step.tensor(&[1], &[0.0f32]).unwrap()).collect();
        let x = step.tensor(&[2], &[1.0f32 + blocks as f32, 2.0]).unwrap();
        let s = 1.0 + blocks as f32;
        let y = graph.call(&step, &[In::Device(&x), In::Scalar(s)], factor, |cx, a| {
            seg!("a", cx, (&a.t[0], &a.scalars[0], &factor), |k| {
                ops::mul(&ops::scale(k.0, *k.2 as f32)?, k.1)
            })
        });
        let f = factor as f32 * s;
        assert_eq!(step.read(&y.unwrap()).unwrap(), [f * (1.0 + blocks as f32), f * 2.0]);
    };
    for factor in [3, 5] {
        for blocks in [0, 0, 1, 2] {
            run(&mut rt, factor, blocks);
        }
    }
    let settled = rt.stats();
    // A place that is copied to is another kernel's parameter, not another kernel.
    assert_eq!((settled.live_recordings, settled.copied_slots), (4, 2));
    let made = plan.count(FaultCall::Instantiate);
    for i in 0..20 {
        run(&mut rt, [3, 5][i % 2], 3 + i % 4);
    }
    let stats = rt.stats();
    assert_eq!((stats.recordings, plan.count(FaultCall::Instantiate)), (settled.recordings, made));
    assert_eq!(stats.updates - settled.updates, 20, "{stats:?}");
    assert_eq!(stats.copies - settled.copies, 20);
}

/// An update brings the host values with which the recording was captured. A replay that has none of its own,
/// since something before it sent them, must not write those.
#[test]
fn host_values_of_the_capture_are_not_written_again() {
    let (mut rt, _) = sharing();
    let graph = Spec::inputs(vec![scalar("s")]).build(&mut rt);
    let run = |rt: &mut Runtime, n: u32, s: f32, first: bool| {
        let step = rt.step().unwrap();
        let y = graph.call(&step, &[In::Scalar(s)], n, |cx, a| {
            if first {
                let (h,) = seg!("x", cx, (&a.scalars[0],), |k| Ok((ops::neg(k.0)?,)))?;
                drop(h);
            }
            seg!("a", cx, (&a.scalars[0], &n), |k| ops::scale(k.0, *k.1 as f32))
        });
        assert_eq!(step.read(&y.unwrap()).unwrap(), [n as f32 * s], "n = {n}, s = {s}");
    };
    for n in [2, 2, 3, 3] {
        run(&mut rt, n, 7.0, false);
    }
    for i in 0..20u32 {
        run(&mut rt, 2 + i % 2, i as f32, i % 5 != 4);
    }
    assert_eq!((rt.stats().live_recordings, rt.stats().executables), (3, 2));
}

//! What is forbidden, and what has a limit: closed capture, fallbacks, inputs that keep moving.

use graphable::{Error, FallbackReason, Mode, Param, Result, Runtime, Schedule, Step, Support, ops};

use crate::{support::*, warnings::counting_warnings};

#[test]
fn capture_can_be_closed() {
    let mut rt = runtime();
    let graph = vector(&mut rt, Mode::Piecewise);
    let call = |rt: &mut Runtime, n: u32| {
        let step = rt.step().unwrap();
        let y = graph
            .call(&step, &[x()], n, |cx, a| seg!("a", cx, (&a.t[0], &n), |k| ops::scale(k.0, *k.1 as f32)));
        y.and_then(|y| step.read(&y))
    };
    for n in [1, 1, 2] {
        call(&mut rt, n).unwrap();
    }
    rt.close_capture();
    for n in [2, 3] {
        let closed = call(&mut rt, n);
        assert!(matches!(closed, Err(Error::CaptureClosed { .. })), "warm or not: {closed:?}");
        assert_eq!(call(&mut rt, 1).unwrap(), X, "what is recorded still replays");
    }
    assert_eq!((rt.stats().warmups, rt.stats().recordings), (2, 1));
    rt.open_capture();
    assert_eq!(call(&mut rt, 2).unwrap(), [2.0, 4.0]);
    assert_eq!(rt.stats().recordings, 2);
}

/// Whoever wants the weights to stay where they are closes the capture.
#[test]
fn a_moved_parameter_can_be_an_error() {
    let mut rt = runtime();
    let graph = vector(&mut rt, Mode::Piecewise);
    let call = |rt: &mut Runtime, w: &Param<f32>| {
        let step = rt.step().unwrap();
        let y = graph.call(&step, &[x()], w, |cx, a| seg!("a", cx, (&a.t[0], w), |k| ops::add(k.0, k.1)));
        y.and_then(|y| step.read(&y))
    };
    let old = Param::new(&rt, &[2], &[1.0, 1.0]).unwrap();
    for _ in 0..2 {
        call(&mut rt, &old).unwrap();
    }
    rt.close_capture();
    let new = Param::new(&rt, &[2], &[5.0, 5.0]).unwrap();
    let moved = call(&mut rt, &new);
    assert!(matches!(moved, Err(Error::CaptureClosed { .. })), "{moved:?}");
    assert_eq!(call(&mut rt, &old).unwrap(), [2.0, 3.0]);
    rt.open_capture();
    assert_eq!(call(&mut rt, &new).unwrap(), [6.0, 7.0]);
    assert_eq!((rt.stats().recordings, rt.stats().fallbacks), (2, 0));
}

#[test]
fn a_fallback_can_be_forbidden() {
    static BOUNDARY: &[Dim] = &[Dim::Symbol(0)];
    let mut rt = runtime();
    let bucketed = |rt: &mut Runtime, deny_fallback: bool| {
        let spec = Spec { symbols: &["B"], ..Spec::inputs(vec![host("x", BOUNDARY)]) };
        spec.with(|o| {
            o.bucket("B", Schedule::new([1, 2, 4]));
            o.deny_fallback(deny_fallback);
        })
        .build(rt)
    };
    let (strict, lenient) = (bucketed(&mut rt, true), bucketed(&mut rt, false));
    let data = [1.0f32; 5];
    let call = |graph: &Graph, step: &Step<'_>| {
        let y = graph.call(step, &[In::Host((&data).into())], (), |cx, a| {
            seg!("a", cx, (&a.t[0],), |k| ops::scale(k.0, 2.0))
        });
        y.and_then(|y| step.read(&y))
    };
    let reason = FallbackReason::OverLargestBucket { symbol: "B", size: 5, largest: 4 };
    for _ in 0..2 {
        let step = rt.step().unwrap();
        match call(&strict, &step) {
            Err(Error::FallbackForbidden { function: "test", reason: found }) => assert_eq!(found, reason),
            other => panic!("{other:?}"),
        }
        assert_eq!(call(&lenient, &step).unwrap(), [2.0; 5]);
        assert_eq!(
            step.take_events(),
            [graphable::Event::FellBack { function: "test", reason: reason.clone() }]
        );
    }
    assert_eq!((rt.stats().fallbacks, rt.stats().fallback_reasons.clone()), (2, vec![(reason, 2)]));

    let never = boundary(site!("e"), Support::Never);
    for deny_fallback in [true, false] {
        let spec = Spec { plan: never, ..Spec::inputs(vec![host("x", &[Dim::Const(2)])]) };
        let graph = spec.mode(Mode::Full).with(|o| o.deny_fallback(deny_fallback)).build(&mut rt);
        for _ in 0..3 {
            let step = rt.step().unwrap();
            let y = graph.call(&step, &[x()], (), |cx, a| {
                let (h,) = seg!("a", cx, (&a.t[0],), |k| Ok((ops::neg(k.0)?,)))?;
                Ok(eager!("e", cx, |_e| ops::scale(&h, 2.0)))
            });
            match y.map(|y| step.read(&y).unwrap()) {
                Err(Error::FallbackForbidden {
                    reason: FallbackReason::FullNotSupported { boundary },
                    ..
                }) => {
                    assert!(deny_fallback && boundary.contains("forbidden.rs:"), "{boundary}");
                }
                Ok(values) => assert_eq!((deny_fallback, values), (false, vec![-2.0, -4.0])),
                Err(other) => panic!("{other}"),
            }
        }
    }
    assert_eq!(rt.stats().fallbacks, 5);
}

/// Calls with a device input that lies at another address every time.
fn moving(rt: &mut Runtime, graph: &Graph, place: usize) -> (Result<Vec<f32>>, Vec<String>) {
    let step = rt.step().unwrap();
    let below: Vec<_> = (0..place).map(|_| step.tensor(&[2], &[0.0f32; 2]).unwrap()).collect();
    let t = step.tensor(&[2], &X).unwrap();
    let y = graph.call(&step, &[In::Device(&t)], (), |cx, a| {
        let (h,) = seg!("a", cx, (&a.t[0],), |k| Ok((ops::scale(k.0, 2.0)?,)))?;
        seg!("b", cx, (&h,), |k| ops::neg(k.0))
    });
    drop(below);
    (y.and_then(|y| step.read(&y)), events(&step))
}

#[test]
fn an_input_that_keeps_moving() {
    let mut rt = runtime();
    let graph = Spec::inputs(vec![any_device("x")]).with(|o| o.max_recordings(2)).build(&mut rt);
    let limit = "fell back: `a` #0 (";
    for (round, place) in [0usize, 0, 1, 0, 1, 2, 3, 2, 0, 1].into_iter().enumerate() {
        let (values, log) = moving(&mut rt, &graph, place);
        assert_eq!(values.unwrap(), [-2.0, -4.0], "round {round}");
        match round {
            0 => assert_eq!(log, ["warmed a", "warmed b"]),
            1 => assert_eq!(log, ["recorded a", "recorded b"]),
            2 => assert_eq!(log, ["again a: InputMoved { live_in: 0 }", "recorded a", "replayed b"]),
            3 | 4 | 8 | 9 => assert_eq!(log, ["replayed a", "replayed b"], "round {round}"),
            _ => {
                assert!(log[0].starts_with(limit) && log[0].contains("2 times"), "{log:?}");
                assert_eq!(log[1..], ["replayed b"], "the rest goes on with graphs");
            }
        }
    }
    let stats = rt.stats();
    assert_eq!((stats.live_recordings, stats.rerecordings, stats.fallbacks), (3, 1, 3));
    assert_eq!(stats.fallback_reasons.len(), 1);
    assert_eq!(stats.fallback_reasons[0].1, 3);

    let strict = Spec::inputs(vec![any_device("x")]).with(|o| {
        o.max_recordings(1);
        o.deny_fallback(true);
    });
    let strict = strict.build(&mut rt);
    for place in [10, 10, 10] {
        // The segments have recordings from before: graph objects of one function share them.
        let (values, _) = moving(&mut rt, &strict, place);
        match values {
            Err(Error::FallbackForbidden {
                reason: FallbackReason::TooManyRecordings { limit: 1, .. },
                ..
            }) => {}
            other => panic!("{other:?}"),
        }
    }
    still_usable(&mut rt);
}

/// A segment that begins some calls and comes second in others: what is skipped where it begins is not replayed there,
/// also not by the recording that calls began with last, and goes on where it comes second.
#[test]
fn what_is_skipped_does_not_begin_a_call() {
    let mut rt = runtime();
    let skip = |l: &mut graphable::Limits| (l.max_moves, l.on_move) = (1, graphable::OnMove::Skip);
    let graph = Spec::inputs(vec![any_device("x")]).with(|o| o.limits(skip)).build(&mut rt);
    let mut call = |second: bool, place: usize| {
        let before = rt.stats();
        let step = rt.step().unwrap();
        let all: Vec<_> = (0..3).map(|_| step.tensor(&[2], &X).unwrap()).collect();
        let y = graph.call(&step, &[In::Device(&all[place])], (), |cx, a| {
            if second {
                let (h,) = seg!("a", cx, (&a.t[0],), |k| Ok((ops::scale(k.0, 2.0)?,)))?;
                drop(h);
            }
            seg!("b", cx, (&a.t[0],), |k| ops::neg(k.0))
        });
        assert_eq!(step.read(&y.unwrap()).unwrap(), [-1.0, -2.0]);
        let now = step.stats();
        (now.replays - before.replays, now.recordings - before.recordings, now.fallbacks - before.fallbacks)
    };
    for _ in 0..3 {
        call(true, 0);
    }
    assert_eq!(call(true, 0), (2, 0, 0));
    assert_eq!(call(false, 0), (1, 0, 0), "found by the state");
    assert_eq!(call(false, 1), (0, 1, 0));
    assert_eq!(call(false, 0), (1, 0, 0));
    assert_eq!(call(false, 2), (0, 0, 1), "moved once too often");
    assert_eq!(call(false, 0), (0, 0, 1), "the call began so the last time");
    assert_eq!(call(true, 0), (2, 0, 0));
}

#[test]
fn a_reason_is_warned_of_once() {
    counting_warnings(|warnings| {
        let mut rt = runtime();
        let graph = Spec::inputs(vec![any_device("x")]).with(|o| o.max_recordings(1)).build(&mut rt);
        for place in [0, 0, 0] {
            moving(&mut rt, &graph, place).0.unwrap();
        }
        assert_eq!(warnings(), 0);
        for place in 1..6 {
            moving(&mut rt, &graph, place).0.unwrap();
        }
        assert_eq!((warnings(), rt.stats().fallbacks), (1, 5));
    });
}

#[test]
fn a_moved_parameter_does_not_spend_the_limit() {
    let mut rt = runtime();
    let graph = Spec::inputs(vec![host("x", &[Dim::Const(2)])]).with(|o| o.max_recordings(1)).build(&mut rt);
    let weights: Vec<_> = (0..5).map(|i| Param::new(&rt, &[2], &[i as f32, 1.0]).unwrap()).collect();
    for round in 0..4 {
        for (i, w) in weights.iter().enumerate() {
            let step = rt.step().unwrap();
            let y = graph.call(&step, &[x()], w, |cx, a| seg!("a", cx, (&a.t[0], w), |k| ops::add(k.0, k.1)));
            assert_eq!(step.read(&y.unwrap()).unwrap(), [1.0 + i as f32, 3.0], "round {round}");
        }
    }
    let stats = rt.stats();
    assert_eq!((stats.recordings, stats.fallbacks), (5, 0));
}

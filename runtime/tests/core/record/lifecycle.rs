//! The life of a segment, and what its recordings are told apart by.

use std::cell::Cell;

use graphable::{Error, FallbackReason, Mode, Param, Result, Runtime, Step, backend::faulty::FaultCall, ops};

use crate::support::*;

thread_local! {
    /// How often bodies ran.
    static RUNS: Cell<u32> = const { Cell::new(0) };
}

fn ran() {
    RUNS.set(RUNS.get() + 1);
}

/// `x * w + x` in one segment; counts how often the body runs.
fn one<'s>(graph: &Graph, step: &Step<'s>, x: &[f32], w: &Param<f32>) -> Result<T<'s>> {
    graph.call(step, &[In::Host(x.into())], w, |cx, a| {
        seg!("a", cx, (&a.t[0], w), |k| {
            ran();
            ops::add(&ops::mul(k.0, k.1)?, k.0)
        })
    })
}

#[test]
fn warm_record_replay() {
    let mut rt = runtime();
    let graph = vector(&mut rt, Mode::default());
    let w = Param::new(&rt, &[2], &[10.0, 20.0]).unwrap();
    RUNS.set(0);
    let mut log = Vec::new();
    for i in 0..5 {
        let step = rt.step().unwrap();
        let x = i as f32;
        let y = one(&graph, &step, &[x, 1.0], &w).unwrap();
        assert_eq!(step.read(&y).unwrap(), [11.0 * x, 21.0]);
        drop(y);
        log.push(events(&step));
    }
    assert_eq!(log[0], ["warmed a"]);
    assert_eq!(log[1], ["recorded a"]);
    assert_eq!(log[2..], [["replayed a"], ["replayed a"], ["replayed a"]]);
    assert_eq!(RUNS.get(), 2, "a replay does not run the body");
    let stats = rt.stats();
    assert_eq!((stats.warmups, stats.recordings, stats.replays, stats.live_recordings), (1, 1, 3, 1));
    assert_eq!((stats.copies, stats.fallbacks, stats.rerecordings, stats.aborted), (0, 0, 0, 0));
}

#[test]
fn what_warmed_up_in_one_call_is_recorded_in_the_next() {
    let mut rt = runtime();
    let graph = vector(&mut rt, Mode::default());
    let call = |step: &Step<'_>, n: u32| {
        let y = graph.call(step, &[In::Host([1.0, 2.0][..].into())], n, |cx, a| {
            seg!("a", cx, (&a.t[0], &n), |k| ops::scale(k.0, *k.1 as f32))
        });
        assert_eq!(step.read(&y.unwrap()).unwrap(), [n as f32, 2.0 * n as f32]);
        events(step)
    };
    let step = rt.step().unwrap();
    assert_eq!(call(&step, 1), ["warmed a"]);
    assert_eq!(call(&step, 2), ["warmed a"]);
    assert_eq!(call(&step, 1), ["recorded a"], "whatever else warmed up in this step");
    let step = rt.step().unwrap();
    assert_eq!(call(&step, 3), ["warmed a"]);
    assert_eq!(call(&step, 1), ["replayed a"]);
    assert_eq!(call(&step, 2), ["recorded a"]);
    assert_eq!(call(&step, 3), ["recorded a"]);
    assert_eq!([call(&step, 3), call(&step, 2)], [["replayed a"], ["replayed a"]]);
    assert_eq!((rt.stats().live_recordings, rt.stats().waits), (3, 0));
}

/// Everything in one step: warmed up in the first call, recorded in the second, replayed from then on.
#[test]
fn a_thousand_calls_in_one_step() {
    for mode in [Mode::Piecewise, Mode::Full] {
        let mut rt = runtime();
        let graph = Spec::inputs(vec![host("x", &[Dim::Const(2)])])
            .mode(mode)
            .with(|o| o.deny_fallback(true))
            .build(&mut rt);
        let step = rt.step().unwrap();
        for i in 0..1000 {
            let y = graph.call(&step, &[In::Host((&[i as f32, 1.0]).into())], (), |cx, a| {
                let (h,) = seg!("a", cx, (&a.t[0],), |k| Ok((ops::scale(k.0, 2.0)?,)))?;
                let e = eager!("e", Always, cx, |_e| ops::neg(&h));
                seg!("b", cx, (&e,), |k| ops::neg(k.0))
            });
            assert_eq!(step.read(&y.unwrap()).unwrap(), [2.0 * i as f32, 2.0]);
        }
        let stats = step.stats();
        let segments = if mode == Mode::Full { 1 } else { 2 };
        assert_eq!((stats.warmups, stats.recordings), (segments, segments), "{mode}");
        assert_eq!((stats.replays, stats.fallbacks, stats.copies), (998 * segments, 0, 0), "{mode}");
    }
}

/// Requests of one step each: a prompt of a length that never was before, then decodes that always look the same.
#[test]
fn new_shapes_do_not_hold_back_what_is_known() {
    let mut rt = runtime();
    let spec = |n: &'static str| Spec::inputs(vec![any_device(n)]).with(|o| o.deny_fallback(true));
    let (prefill, decode) = (spec("p").build(&mut rt), spec("d").build(&mut rt));
    for request in 0..60usize {
        let step = rt.step().unwrap();
        let x = step.tensor(&[2], &X).unwrap();
        let prompt = step.tensor(&[request + 1], &vec![1.0f32; request + 1]).unwrap();
        let y = prefill.call(&step, &[In::Device(&prompt)], (), |cx, a| {
            let (h,) = seg!("p", cx, (&a.t[0],), |k| Ok((ops::scale(k.0, 2.0)?,)))?;
            let e = eager!("pe", cx, |_e| ops::neg(&h));
            seg!("q", cx, (&e,), |k| ops::neg(k.0))
        });
        assert_eq!(step.read(&y.unwrap()).unwrap(), vec![2.0; request + 1]);
        for _ in 0..20 {
            let y = decode.call(&step, &[In::Device(&x)], (), |cx, a| {
                let (h,) = seg!("a", cx, (&a.t[0],), |k| Ok((ops::scale(k.0, 2.0)?,)))?;
                let e = eager!("e", cx, |_e| ops::neg(&h));
                seg!("b", cx, (&e,), |k| ops::neg(k.0))
            });
            assert_eq!(step.read(&y.unwrap()).unwrap(), [2.0, 4.0]);
        }
    }
    let stats = rt.stats();
    // The lengths are new each time; the decodes are recorded in the first request.
    assert_eq!((stats.warmups, stats.recordings, stats.replays), (60 * 2 + 2, 2, (60 * 20 - 2) * 2));
    assert_eq!((stats.fallbacks, stats.copies), (0, 0));
}

/// A call whose first segment is new each time: the second one, which is not, waits once.
#[test]
fn behind_a_new_shape_a_segment_waits_once() {
    let mut rt = runtime();
    let graph = vector(&mut rt, Mode::default());
    let mut log = Vec::new();
    for n in 0..6u32 {
        let step = rt.step().unwrap();
        let y = graph.call(&step, &[In::Host((&[n as f32, 1.0]).into())], (), |cx, a| {
            let (h,) = seg!("a", cx, (&a.t[0], &n), |k| Ok((ops::scale(k.0, *k.1 as f32)?,)))?;
            seg!("b", cx, (&h,), |k| ops::neg(k.0))
        });
        assert_eq!(step.read(&y.unwrap()).unwrap(), [-((n * n) as f32), -(n as f32)]);
        log.push(events(&step).into_iter().filter(|e| e.ends_with(" b")).collect::<Vec<_>>());
    }
    assert_eq!(
        log,
        [["warmed b"], ["warmed b"], ["recorded b"], ["replayed b"], ["replayed b"], ["replayed b"]]
    );
    assert_eq!((rt.stats().waits, rt.stats().fallbacks), (1, 0));
}

/// A body that goes on after an error is never learnt: from the second call on that is a fallback.
#[test]
fn a_body_that_swallows_errors_is_told() {
    for deny_fallback in [false, true] {
        let (mut rt, plan) = faulty();
        let graph = Spec::inputs(vec![host("x", &[Dim::Const(2)])])
            .with(|o| o.deny_fallback(deny_fallback))
            .build(&mut rt);
        for i in 0..6 {
            let step = rt.step().unwrap();
            if i < 4 {
                plan.arm(Some(FaultCall::Launch), 0, false);
            }
            let y = graph.call(&step, &[x()], (), |cx, a| {
                seg!("a", cx, (&a.t[0],), |k| {
                    let _ = ops::scale(k.0, 2.0);
                    ops::neg(k.0)
                })
            });
            match y {
                Ok(y) => {
                    assert!(!deny_fallback || i == 0 || i > 3);
                    assert_eq!(step.read(&y).unwrap(), [-1.0, -2.0]);
                }
                Err(Error::FallbackForbidden { reason, .. }) => {
                    assert!(deny_fallback && (1..4).contains(&i), "{i}: {reason}");
                    assert!(matches!(reason, FallbackReason::NeverWarm { .. }), "{reason}");
                }
                Err(other) => panic!("{other}"),
            }
        }
        let stats = rt.stats();
        let fallbacks = if deny_fallback { 0 } else { 3 };
        assert_eq!((stats.warmups, stats.fallbacks, stats.recordings), (5, fallbacks, 1));
    }
}

fn times<'s, const N: u32>(cx: Piecewise<'s>, x: &T<'s>) -> Result<T<'s>> {
    seg!("g", cx, (x,), |k| ops::scale(k.0, N as f32))
}

#[test]
fn instances_of_a_generic_segment_are_apart() {
    let mut rt = runtime();
    let graph = vector(&mut rt, Mode::default());
    for i in 0..4 {
        let step = rt.step().unwrap();
        let y = graph.call(&step, &[In::Host([1.0, 2.0][..].into())], (), |cx, a| {
            let two = times::<2>(cx, &a.t[0])?;
            let three = times::<3>(cx, &a.t[0])?;
            Ok((two, three))
        });
        let (two, three) = y.unwrap();
        assert_eq!(step.read(&two).unwrap(), [2.0, 4.0], "step {i}");
        assert_eq!(step.read(&three).unwrap(), [3.0, 6.0], "step {i}");
    }
    let stats = rt.stats();
    assert_eq!((stats.warmups, stats.recordings, stats.replays, stats.live_recordings), (2, 2, 4, 2));
}

#[test]
fn layers_of_one_shape_share_a_body_and_not_a_recording() {
    let mut rt = runtime();
    let graph = vector(&mut rt, Mode::default());
    let layers: Vec<_> = (0..4).map(|i| Param::new(&rt, &[2], &[i as f32, 1.0]).unwrap()).collect();
    for i in 0..4 {
        let step = rt.step().unwrap();
        let x = i as f32;
        let y = graph.call(&step, &[In::Host([x, x][..].into())], &layers, |cx, a| {
            let mut h = a.t[0].clone();
            for w in &layers {
                (h,) = seg!("layer", cx, (&h, w), |k| Ok((ops::add(k.0, k.1)?,)))?;
            }
            Ok(h)
        });
        assert_eq!(step.read(&y.unwrap()).unwrap(), [x + 6.0, x + 4.0]);
    }
    let stats = rt.stats();
    // One body: its shape is warm after the first layer, and the other layers only follow in that step.
    assert_eq!((stats.warmups, stats.recordings, stats.replays), (4, 4, 8));
    assert_eq!((stats.live_recordings, stats.rerecordings), (4, 0));
}

/// Runs `call(0)` and `call(1)` until both are recorded, then checks that both replay, one node each.
fn two_recordings(rt: &mut Runtime, call: impl Fn(&Step<'_>, usize) -> Vec<f32>, expected: [&[f32]; 2]) {
    for round in 0..4 {
        for which in [0, 1, 1, 0] {
            let step = rt.step().unwrap();
            assert_eq!(call(&step, which), expected[which], "round {round}, variant {which}");
        }
    }
    let stats = rt.stats();
    assert_eq!((stats.warmups, stats.recordings, stats.live_recordings), (2, 2, 2));
    assert_eq!((stats.replays, stats.rerecordings), (12, 0));
}

#[test]
fn host_values_are_keys() {
    let mut rt = runtime();
    let graph = vector(&mut rt, Mode::default());
    let call = |step: &Step<'_>, which: usize| {
        let factor = [2.0f32, 3.0][which];
        let y = graph.call(step, &[In::Host([1.0, 2.0][..].into())], (), |cx, a| {
            seg!("a", cx, (&a.t[0], &factor), |k| ops::scale(k.0, *k.1))
        });
        step.read(&y.unwrap()).unwrap()
    };
    two_recordings(&mut rt, call, [&[2.0, 4.0], &[3.0, 6.0]]);
}

#[test]
fn options_that_swap_places_are_apart() {
    let mut rt = runtime();
    let graph = vector(&mut rt, Mode::default());
    let w = Param::new(&rt, &[2], &[10.0, 20.0]).unwrap();
    let call = |step: &Step<'_>, which: usize| {
        let pair = if which == 0 { (Some(&w), None) } else { (None, Some(&w)) };
        let y = graph.call(step, &[In::Host([1.0, 2.0][..].into())], (), |cx, a| {
            seg!("a", cx, (&a.t[0], &pair), |k| match *k.1 {
                (Some(w), _) => ops::add(k.0, w),
                (_, Some(w)) => ops::mul(k.0, w),
                _ => Ok(k.0.clone()),
            })
        });
        step.read(&y.unwrap()).unwrap()
    };
    two_recordings(&mut rt, call, [&[11.0, 22.0], &[10.0, 40.0]]);
}

#[test]
fn a_transposed_square_is_another_live_in() {
    let mut rt = runtime();
    let graph = Spec::inputs(vec![host("x", &[Dim::Const(2), Dim::Const(2)])]).build(&mut rt);
    let call = |step: &Step<'_>, which: usize| {
        let x = [1.0, 2.0, 3.0, 4.0];
        let y = graph.call(step, &[In::Host((&x[..], &[2, 2]).into())], (), |cx, a| {
            let (x,) = seg!("a", cx, (&a.t[0], &which), |k| {
                Ok((if *k.1 == 0 { k.0.clone() } else { ops::transpose(k.0, 0, 1)? },))
            })?;
            seg!("b", cx, (&x,), |k| ops::scale(k.0, 1.0))
        });
        step.read(&y.unwrap()).unwrap()
    };
    for round in 0..4 {
        for which in [0, 1] {
            let step = rt.step().unwrap();
            let expected = [[1.0, 2.0, 3.0, 4.0], [1.0, 3.0, 2.0, 4.0]][which];
            assert_eq!(call(&step, which), expected, "round {round}, variant {which}");
        }
    }
    let stats = rt.stats();
    assert_eq!((stats.warmups, stats.recordings, stats.live_recordings, stats.replays), (4, 4, 4, 8));
}

#[test]
fn host_scalars_are_refreshed_and_are_no_keys() {
    let mut rt = runtime();
    let inputs = vec![scalar("a"), host("x", &[Dim::Const(2)]), scalar("b")];
    let graph = Spec::inputs(inputs).build(&mut rt);
    for i in 0..5 {
        let step = rt.step().unwrap();
        let (a, b) = (i as f32, 10.0 * i as f32);
        let ins = [In::Scalar(a), In::Host([1.0, 2.0][..].into()), In::Scalar(b)];
        let y = graph.call(&step, &ins, (), |cx, args| {
            seg!("a", cx, (&args.scalars[0], &args.t[0], &args.scalars[1]), |k| {
                ops::add(&ops::mul(k.1, k.0)?, k.2)
            })
        });
        assert_eq!(step.read(&y.unwrap()).unwrap(), [a + b, 2.0 * a + b]);
    }
    assert_eq!((rt.stats().recordings, rt.stats().replays), (1, 3));
}

#[test]
fn host_inputs_are_taken_at_the_call() {
    let mut rt = runtime();
    let graph = vector(&mut rt, Mode::default());
    let w = Param::new(&rt, &[2], &[10.0, 20.0]).unwrap();
    for _ in 0..2 {
        let step = rt.step().unwrap();
        one(&graph, &step, &[1.0, 1.0], &w).unwrap();
    }
    let step = rt.step().unwrap();
    let mut x = [0.0; 2];
    // Many calls in flight, none waited for; the caller's array is overwritten right after each.
    let reads: Vec<_> = (0..100)
        .map(|i| {
            x = [i as f32, 1.0];
            let y = one(&graph, &step, &x, &w).unwrap();
            step.read_later(&y).unwrap()
        })
        .collect();
    for (i, read) in reads.into_iter().enumerate() {
        assert_eq!(read.wait().unwrap(), [11.0 * i as f32, 21.0]);
    }
    assert_eq!(rt.stats().live_recordings, 1);
}

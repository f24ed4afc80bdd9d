//! Replays of recordings whose memory is elsewhere or in use: results that are held, inputs at other addresses, capture
//! that is closed. Each costs copies, which are counted, and never a fallback or a recording for every address.

use std::time::Duration;

use graphable::{Error, Mode, Result, Runtime, Schedule, Stats, Step, ops};

use crate::support::*;

/// How a program is run.
#[derive(Clone, Copy, Debug)]
struct Setup {
    mode: Mode,
    audit_every: u32,
    shares: bool,
    closed: bool,
}

fn setups() -> Vec<Setup> {
    let mut all = Vec::new();
    for mode in [Mode::Piecewise, Mode::Full] {
        for closed in [false, true] {
            all.push(Setup { mode, audit_every: 0, shares: false, closed });
            all.push(Setup { mode, audit_every: 3, shares: true, closed });
        }
    }
    all
}

fn started(setup: Setup) -> Checked {
    let rt = runtime();
    rt.share_executables(setup.shares.then_some(Duration::MAX));
    rt
}

/// Blocks that push what is allocated after them up.
fn blocks<'s>(step: &Step<'s>, count: usize) -> Vec<T<'s>> {
    (0..count).map(|_| step.tensor(&[1], &[0.0f32]).unwrap()).collect()
}

/// `3 x`, of a graph of its own.
fn thrice<'s>(graph: &Graph, step: &Step<'s>) -> T<'s> {
    graph.call(step, &[x()], (), |cx, a| seg!("o", cx, (&a.t[0],), |k| ops::scale(k.0, 3.0))).unwrap()
}

/// `(2 x + 1, 3 x)`: the first output also feeds the second segment.
fn two<'s>(graph: &Graph, step: &Step<'s>, x: In<'_, 's>) -> Result<(T<'s>, T<'s>)> {
    graph.call(step, &[x], (), |cx, a| {
        let (h,) = seg!("a", cx, (&a.t[0],), |k| Ok((ops::scale(k.0, 2.0)?,)))?;
        let e = eager!("e", Always, cx, |_e| ops::scale(&h, 1.5));
        seg!("b", cx, (&h, &e), |k| {
            let one = ops::full(k.0.scope(), &[1], 1.0f32)?;
            Ok((ops::add(k.0, &one)?, k.1.clone()))
        })
    })
}

fn since(rt: &Runtime, before: &Stats) -> (u64, u64, u64, u64) {
    let now = rt.stats();
    let n = |f: fn(&Stats) -> u64| f(&now) - f(before);
    (n(|s| s.recordings), n(|s| s.warmups), n(|s| s.fallbacks), n(|s| s.copies))
}

#[test]
fn a_step_that_collects_its_outputs() {
    const CALLS: usize = 500;
    for setup in setups() {
        let mut rt = started(setup);
        let graph = Spec::inputs(vec![host("x", &[Dim::Const(2)])])
            .mode(setup.mode)
            .with(|o| {
                o.audit_every(setup.audit_every);
                o.deny_fallback(true);
            })
            .build(&mut rt);
        let capture = |step: &Step<'_>, s: &graphable::__private::Synthetic<'_>| {
            two(&graph, step, In::Host((&s.host::<f32>(0)?).into())).map(drop)
        };
        graph.capture_all(&mut rt, capture, |_| {}).unwrap();
        if setup.closed {
            rt.close_capture();
        }
        for round in 0..4 {
            let before = rt.stats();
            let step = rt.step().unwrap();
            let mut held = Vec::new();
            for i in 0..CALLS {
                let x = [i as f32, round as f32];
                held.push(two(&graph, &step, In::Host((&x).into())).unwrap());
            }
            for (i, (a, b)) in held.iter().enumerate() {
                let (x, r) = (i as f32, round as f32);
                assert_eq!(step.read(a).unwrap(), [2.0 * x + 1.0, 2.0 * r + 1.0], "{setup:?} {round} {i}");
                assert_eq!(step.read(b).unwrap(), [3.0 * x, 3.0 * r], "{setup:?} {round} {i}");
            }
            drop(held);
            let (recordings, warmups, fallbacks, copies) = since(&rt, &before);
            // A few for each of the two segments; the second round is the first to begin with all of them.
            let most = if setup.closed { 0 } else { [8, 1].get(round).copied().unwrap_or(0) };
            assert!(
                recordings <= most && warmups == 0 && fallbacks == 0,
                "{setup:?}: {recordings} {warmups}"
            );
            // Two for each call: its results in full mode, and piecewise a result and a live-in that is made elsewhere.
            assert!(copies <= 2 * CALLS as u64, "{setup:?}: {copies} copies");
            assert!(copies >= CALLS as u64 - 4, "{setup:?}: {copies} copies");
        }
        // Nothing is held any more: in a few steps the results are handed out where they are made.
        for i in 0..12 {
            let before = rt.stats();
            let step = rt.step().unwrap();
            let (a, _) = two(&graph, &step, In::Host((&[i as f32, 1.0]).into())).unwrap();
            assert_eq!(step.read(&a).unwrap(), [2.0 * i as f32 + 1.0, 3.0]);
            drop(a);
            let (recordings, _, _, copies) = since(&rt, &before);
            assert_eq!(recordings, 0);
            assert!(i < 9 || copies == 0, "{setup:?}, {i}: {copies} copies");
        }
    }
}

/// What is held while others are made is what it was, whatever is dropped in which order.
#[test]
fn held_in_every_order() {
    for setup in setups() {
        let mut rt = started(setup);
        let graph = Spec::inputs(vec![host("x", &[Dim::Const(2)])])
            .mode(setup.mode)
            .with(|o| o.audit_every(setup.audit_every))
            .build(&mut rt);
        for _ in 0..3 {
            let step = rt.step().unwrap();
            two(&graph, &step, x()).unwrap();
        }
        if setup.closed {
            rt.close_capture();
        }
        let mut seed = 1u64;
        for round in 0..30 {
            let step = rt.step().unwrap();
            let mut held: Vec<(f32, T<'_>)> = Vec::new();
            for i in 0..12 {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let n = (round * 100 + i) as f32;
                let (a, b) = two(&graph, &step, In::Host((&[n, 1.0]).into())).unwrap();
                held.push((2.0 * n + 1.0, a));
                held.push((3.0 * n, b));
                while !held.is_empty() && (seed >> 33) % 3 < (held.len() as u64 / 4) {
                    seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(99);
                    held.swap_remove((seed >> 40) as usize % held.len());
                }
                for (value, t) in &held {
                    assert_eq!(step.read(t).unwrap()[0], *value, "{setup:?} round {round}, {i}");
                }
            }
        }
        assert_eq!(rt.stats().fallbacks, 0);
        assert!(rt.stats().live_recordings < 20, "{setup:?}: {}", rt.stats().live_recordings);
    }
}

/// Closed, each at its first mismatch: a device input anywhere, an output of another graph, the same tensor twice.
#[test]
fn closed_capture_takes_inputs_anywhere() {
    for setup in setups().into_iter().filter(|s| s.closed) {
        let mut rt = started(setup);
        let graph = Spec::inputs(vec![any_device("x"), any_device("y")])
            .mode(setup.mode)
            .with(|o| {
                o.audit_every(setup.audit_every);
                o.deny_fallback(true);
            })
            .build(&mut rt);
        let other = vector(&mut rt, setup.mode);
        fn run<'s>(graph: &Graph, step: &Step<'s>, x: &T<'s>, y: &T<'s>) -> (T<'s>, T<'s>, T<'s>) {
            let out = graph.call(step, &[In::Device(x), In::Device(y)], (), |cx, a| {
                let (x, z) = seg!("a", cx, (&a.t[0], &a.t[1]), |k| {
                    Ok((k.0.clone(), ops::sub(k.0, &ops::scale(k.1, 10.0)?)?))
                })?;
                seg!("b", cx, (&x, &z), |k| Ok((ops::narrow(k.0, 0, 1, 1)?, ops::neg(k.0)?, k.1.clone())))
            });
            out.unwrap()
        }
        for _ in 0..4 {
            let step = rt.step().unwrap();
            let (a, b) = (step.tensor(&[2], &X).unwrap(), step.tensor(&[2], &X).unwrap());
            run(&graph, &step, &a, &b);
            drop((a, b));
            thrice(&other, &step);
        }
        rt.close_capture();
        let before = rt.stats();
        for place in 0..6 {
            let step = rt.step().unwrap();
            let below = blocks(&step, place);
            let p = place as f32;
            let (a, b) = (step.tensor(&[2], &[p, 2.0]).unwrap(), step.tensor(&[2], &[5.0, p]).unwrap());
            let o = thrice(&other, &step);
            let values = [[p, 2.0], [5.0, p], [3.0, 6.0]];
            let tensors = [&a, &b, &o];
            let mut held = Vec::new();
            for (i, j) in [(0, 1), (1, 0), (2, 0), (0, 2), (1, 1), (2, 2), (0, 0)] {
                let (view, neg, z) = run(&graph, &step, tensors[i], tensors[j]);
                let (x, y) = (values[i], values[j]);
                assert!(!neg.same_memory(&z));
                let what = format!("{setup:?}, place {place}, {i} and {j}");
                assert!(view.same_memory(&ops::narrow(tensors[i], 0, 1, 1).unwrap()), "{what}");
                held.push((view, vec![x[1]], what.clone()));
                held.push((neg, vec![-x[0], -x[1]], what.clone()));
                held.push((z, vec![x[0] - 10.0 * y[0], x[1] - 10.0 * y[1]], what));
                for (t, value, what) in &held {
                    assert_eq!(step.read(t).unwrap(), *value, "{what}");
                }
            }
            drop(below);
            for (t, value) in tensors.iter().zip(values) {
                assert_eq!(step.read(t).unwrap(), value);
            }
        }
        let (recordings, warmups, fallbacks, copies) = since(&rt, &before);
        assert_eq!((recordings, warmups, fallbacks), (0, 0, 0), "{setup:?}");
        assert!(copies > 0);
    }
}

#[test]
fn a_moved_input_costs_one_copy_when_closed() {
    let mut rt = runtime();
    let graph = Spec::inputs(vec![any_device("x")]).build(&mut rt);
    let run = |rt: &mut Runtime, place: usize| {
        let step = rt.step().unwrap();
        let below = blocks(&step, place);
        let x = step.tensor(&[2], &[place as f32, 1.0]).unwrap();
        let y =
            graph.call(&step, &[In::Device(&x)], (), |cx, a| seg!("a", cx, (&a.t[0],), |k| ops::neg(k.0)));
        drop(below);
        assert_eq!(step.read(&y.unwrap()).unwrap(), [-(place as f32), -1.0]);
        events(&step)
    };
    run(&mut rt, 3);
    assert_eq!(run(&mut rt, 3), ["recorded a"]);
    rt.close_capture();
    assert_eq!(run(&mut rt, 3), ["replayed a"]);
    // Where it lay nothing lives now.
    assert_eq!(run(&mut rt, 0), ["copied LiveIn 8", "replayed a"]);
    // Another tensor does: it is saved, and put back.
    assert_eq!(run(&mut rt, 5), ["copied LiveIn 24", "replayed a"]);
    // What is trimmed is there again.
    rt.trim().unwrap();
    assert_eq!(run(&mut rt, 0), ["copied LiveIn 8", "replayed a"]);
    // Another shape is another matter.
    let step = rt.step().unwrap();
    let x = step.tensor(&[3], &[1.0f32; 3]).unwrap();
    let y = graph.call(&step, &[In::Device(&x)], (), |cx, a| seg!("a", cx, (&a.t[0],), |k| ops::neg(k.0)));
    assert!(matches!(y, Err(Error::CaptureClosed { .. })), "{y:?}");
}

/// Outputs that are cut back from their bucket, of every bucket, held.
#[test]
fn held_outputs_of_buckets() {
    for setup in setups() {
        let mut rt = started(setup);
        let spec = Spec {
            symbols: &["B"],
            ..Spec::inputs(vec![host("x", &[Dim::Symbol(0), Dim::Const(2)]), device("d", &[Dim::Symbol(0)])])
        };
        let graph = spec
            .mode(setup.mode)
            .with(|o| {
                o.bucket("B", Schedule::new([2, 4]));
                o.audit_every(setup.audit_every);
                o.deny_fallback(true);
            })
            .build(&mut rt);
        fn call<'s>(graph: &Graph, step: &Step<'s>, x: In<'_, 's>, d: &T<'s>) -> Result<T<'s>> {
            graph.call(step, &[x, In::Device(d)], (), |cx, a| {
                let (h,) = seg!("a", cx, (&a.t[0],), |k| Ok((ops::scale(k.0, 2.0)?,)))?;
                let e = eager!("e", Always, cx, |_e| ops::neg(&h));
                seg!("b", cx, (&e, &a.t[1]), |k| ops::add(k.0, &ops::unsqueeze(k.1, 1)?))
            })
        }
        let capture = |step: &Step<'_>, s: &graphable::__private::Synthetic<'_>| {
            let d = s.device::<f32>(step, 1)?;
            call(&graph, step, In::Host((&s.host::<f32>(0)?).into()), &d).map(drop)
        };
        graph.capture_all(&mut rt, capture, |_| {}).unwrap();
        if setup.closed {
            rt.close_capture();
        }
        let nodes = rt.stats().live_recordings;
        for _ in 0..3 {
            let step = rt.step().unwrap();
            let mut held = Vec::new();
            for i in 0..24 {
                let rows = 1 + i % 4;
                let data: Vec<f32> = (0..2 * rows).map(|n| (n + i) as f32).collect();
                let d = step.tensor(&[rows], &vec![i as f32; rows]).unwrap();
                let y = call(&graph, &step, In::Host((&data[..], &[rows, 2]).into()), &d).unwrap();
                let expected: Vec<f32> = data.iter().map(|v| i as f32 - 2.0 * v).collect();
                held.push((y, d, expected));
            }
            for (i, (y, _, expected)) in held.iter().enumerate() {
                assert_eq!(step.read(y).unwrap(), *expected, "{setup:?}: {i}");
            }
        }
        let stats = rt.stats();
        assert_eq!(stats.fallbacks, 0);
        assert!(
            stats.live_recordings <= nodes + if setup.closed { 0 } else { 12 },
            "{setup:?}: {nodes}, {}",
            stats.live_recordings
        );
    }
}

/// A result that goes to a block of its own keeps clear of what is saved, and of the gaps in it, which are put back, too.
#[test]
fn results_keep_clear_of_what_is_put_back() {
    let mut rt = runtime();
    let graph = Spec::inputs(vec![host("x", &[Dim::Const(96)])]).build(&mut rt);
    let small = vector(&mut rt, Mode::Piecewise);
    fn run<'s>(graph: &Graph, step: &Step<'s>, n: usize) -> (T<'s>, T<'s>) {
        let data: Vec<f32> = (0..96).map(|i| (i + n) as f32).collect();
        let out = graph.call(step, &[In::Host((&data[..]).into())], (), |cx, a| {
            let (v,) = seg!("a", cx, (&a.t[0],), |k| Ok((ops::scale(k.0, 2.0)?,)))?;
            let (w,) = seg!("b", cx, (&v,), |k| Ok((ops::narrow(&ops::neg(k.0)?, 0, 0, 2)?.clone(),)))?;
            Ok((v, w))
        });
        out.unwrap()
    }
    let check = |step: &Step<'_>, (v, w): &(T<'_>, T<'_>), n: usize| {
        let expected: Vec<f32> = (0..96).map(|i| 2.0 * (i + n) as f32).collect();
        assert_eq!(step.read(v).unwrap(), expected);
        assert_eq!(step.read(w).unwrap(), [-expected[0], -expected[1]]);
    };
    for round in 0..6 {
        let step = rt.step().unwrap();
        let first = run(&graph, &step, round);
        let second = run(&graph, &step, round + 10);
        check(&step, &first, round);
        check(&step, &second, round + 10);
        drop((first, second));
        let o = thrice(&small, &step);
        let third = run(&graph, &step, round + 20);
        check(&step, &third, round + 20);
        assert_eq!(step.read(&o).unwrap(), [3.0, 6.0]);
    }
}

/// Layers whose value leaves the call at the end: it lies in turn in a few places, each of which has its recordings.
#[test]
fn a_loop_whose_value_leaves_the_call_is_not_copied() {
    type Body = for<'s> fn(Piecewise<'s>, &T<'s>) -> Result<T<'s>>;
    fn layer<'s>(cx: Piecewise<'s>, h: &T<'s>) -> Result<T<'s>> {
        let (q,) = seg!("q", cx, (h,), |k| Ok((ops::scale(k.0, 0.5)?,)))?;
        let a = eager!("a", cx, |_e| ops::scale(&q, 2.0));
        seg!("h", cx, (h, &a), |k| ops::scale(&ops::add(k.0, k.1)?, 0.5))
    }
    fn plain<'s>(cx: Piecewise<'s>, x: &T<'s>) -> Result<T<'s>> {
        let mut h = seg!("n", cx, (x,), |k| ops::neg(k.0))?;
        for _ in 0..30 {
            h = layer(cx, &h)?;
        }
        Ok(h)
    }
    fn residual<'s>(cx: Piecewise<'s>, x: &T<'s>) -> Result<T<'s>> {
        let mut h = seg!("n", cx, (x,), |k| ops::neg(k.0))?;
        for _ in 0..10 {
            let before = h.clone();
            for _ in 0..3 {
                h = layer(cx, &h)?;
            }
            h = seg!("r", cx, (&h, &before), |k| ops::scale(&ops::add(k.0, k.1)?, 0.5))?;
        }
        Ok(h)
    }
    fn three<'s>(cx: Piecewise<'s>, x: &T<'s>) -> Result<T<'s>> {
        let one = |h: &T<'s>| seg!("n", cx, (h,), |k| ops::neg(k.0));
        let (mut a, mut b) = (one(x)?, one(x)?);
        for _ in 0..30 {
            let c = layer(cx, &a)?;
            (a, b) = (b, c);
        }
        seg!("s", cx, (&a, &b), |k| ops::scale(&ops::add(k.0, k.1)?, 0.5))
    }
    let bodies: [(&str, Body); 3] = [("plain", plain), ("residual", residual), ("three", three)];
    for (name, body) in bodies {
        let mut rt = runtime();
        let graph =
            Spec::inputs(vec![host("x", &[Dim::Const(2)])]).with(|o| o.deny_fallback(true)).build(&mut rt);
        let mut before = rt.stats();
        for call in 0..12 {
            if call == 8 {
                before = rt.stats();
            }
            let step = rt.step().unwrap();
            let y = graph.call(&step, &[x()], (), |cx, a| body(cx, &a.t[0])).unwrap();
            assert_eq!(step.read(&y).unwrap(), [-1.0, -2.0], "{name}");
        }
        assert_eq!(since(&rt, &before), (0, 0, 0, 0), "{name}: recordings, warm-ups, fallbacks, copies");
    }
}

/// Graphs have as much memory as they may: what has a recording at all is replayed, with a copy.
#[test]
fn over_the_limit_of_memory_inputs_are_copied() {
    let mut rt = runtime();
    let graph = Spec::inputs(vec![any_device("x")]).with(|o| o.deny_fallback(true)).build(&mut rt);
    let run = |rt: &mut Runtime, others: usize| {
        let step = rt.step().unwrap();
        let _others = blocks(&step, others);
        let x = step.tensor(&[2], &X).unwrap();
        let y =
            graph.call(&step, &[In::Device(&x)], (), |cx, a| seg!("a", cx, (&a.t[0],), |k| ops::neg(k.0)));
        assert_eq!(step.read(&y.unwrap()).unwrap(), [-1.0, -2.0]);
    };
    (0..3).for_each(|_| run(&mut rt, 0));
    let before = rt.stats();
    rt.limit_graph_memory(Some(1));
    (1..=20).for_each(|others| run(&mut rt, others));
    assert_eq!(since(&rt, &before), (0, 0, 0, 20));
    assert_eq!(rt.stats().replays - before.replays, 20);
}

/// Outputs that are live-ins, of one storage when they were recorded: each is what the call brings for it, wherever
/// that is.
#[test]
fn views_of_one_storage_pass_through() {
    const EIGHT: [f32; 8] = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0];
    for setup in setups() {
        let mut rt = started(setup);
        let inputs = ["a", "b", "c"].map(any_device).to_vec();
        let graph = Spec::inputs(inputs)
            .mode(setup.mode)
            .with(|o| {
                o.audit_every(setup.audit_every);
            })
            .build(&mut rt);
        for call in 0..60usize {
            if setup.closed && call == 6 {
                rt.close_capture();
            }
            let step = rt.step().unwrap();
            let (one, two) = (step.tensor(&[8], &EIGHT).unwrap(), step.tensor(&[8], &EIGHT).unwrap());
            // Recorded as three views of one storage, then with other views, of two.
            let at = if call < 6 { [0, 2, 4] } else { [call * 5 % 7, call * 3 % 5, call % 6] };
            let views = [0, 1, 2].map(|i| {
                let of = if call < 6 || call >> i & 1 == 0 { &one } else { &two };
                ops::narrow(of, 0, at[i], 2).unwrap()
            });
            let ins = views.each_ref().map(In::Device);
            let out = graph
                .call(&step, &ins, (), |cx, a| {
                    seg!("pass", cx, (&a.t[0], &a.t[1], &a.t[2]), |k| {
                        Ok(((k.0.clone(), ops::neg(k.1)?), (k.1.clone(), ops::narrow(k.2, 0, 1, 1)?)))
                    })
                })
                .unwrap();
            let ((a, b), (c, d)) = &out;
            let at = at.map(|at| at as f32);
            let tell = format!("{setup:?}, call {call}");
            assert_eq!(step.read(a).unwrap(), [at[0], at[0] + 1.0], "{tell}");
            assert_eq!(step.read(b).unwrap(), [-at[1], -at[1] - 1.0], "{tell}");
            assert_eq!(step.read(c).unwrap(), [at[1], at[1] + 1.0], "{tell}");
            assert_eq!(step.read(d).unwrap(), [at[2] + 1.0], "{tell}");
        }
    }
}

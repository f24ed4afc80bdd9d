//! Limits on shapes: sizes that alone are captured, how many shapes are too many, segments that are too
//! small.

use graphable::{Error, FallbackReason, Result, Runtime, Schedule, ops};

use crate::{support::*, warnings::counting_warnings};

const B: &[Dim] = &[Dim::Symbol(0)];

fn vectors(symbols: &'static [&'static str]) -> Spec {
    let inputs = ["x", "y", "z"].into_iter().zip(DIMS).map(|(name, dims)| device(name, dims));
    Spec { symbols, ..Spec::inputs(inputs.take(symbols.len()).collect()) }
}
const DIMS: [&[Dim]; 3] = [&[Dim::Symbol(0)], &[Dim::Symbol(1)], &[Dim::Symbol(2)]];

/// Doubles each input; gives what was recorded in the call.
fn call(rt: &mut Runtime, graph: &Graph, sizes: &[usize]) -> Result<Vec<String>> {
    let step = rt.step().unwrap();
    let data: Vec<Vec<f32>> = sizes.iter().map(|&n| (0..n).map(|i| (i + n) as f32).collect()).collect();
    let tensors: Vec<T<'_>> = data.iter().map(|d| step.tensor(&[d.len()], d).unwrap()).collect();
    let ins: Vec<In<'_, '_>> = tensors.iter().map(In::Device).collect();
    let outs = graph.call(&step, &ins, (), |cx, a| {
        seg!("a", cx, (&a.t,), |k| k.0.iter().map(|t| ops::scale(t, 2.0)).collect::<Result<Vec<_>>>())
    })?;
    for (out, data) in outs.iter().zip(&data) {
        assert_eq!(step.read(out)?, data.iter().map(|x| 2.0 * x).collect::<Vec<_>>());
    }
    Ok(events(&step))
}

#[test]
fn only_listed_sizes_are_captured() {
    let mut rt = runtime();
    let graph = vectors(&["B"]).with(|o| o.capture_only(["B"], [[2], [5], [7]])).build(&mut rt);
    for round in 0..4 {
        for n in 1..10 {
            let log = call(&mut rt, &graph, &[n]).unwrap();
            match ([2, 5, 7].contains(&n), round) {
                (false, _) => {
                    assert_eq!(log, [format!("fell back: B = [{n}] is not listed in `capture_only`")])
                }
                (true, 0) => assert_eq!(log, ["warmed a"]),
                (true, 1) => assert_eq!(log, ["recorded a"]),
                (true, _) => assert_eq!(log, ["replayed a"]),
            }
        }
    }
    let stats = rt.stats();
    assert_eq!((stats.recordings, stats.fallbacks), (3, 24));
    // One reason, however many sizes there are.
    assert_eq!(stats.fallback_reasons.len(), 1, "{:?}", stats.fallback_reasons);
    assert_eq!(stats.fallback_reasons[0].1, 24);
}

#[test]
fn two_and_three_symbols_are_listed_together() {
    let mut rt = runtime();
    let two = [[2, 3], [5, 1], [7, 7], [1, 9]];
    let graph = vectors(&["B", "T"]).with(|o| o.capture_only(["B", "T"], two)).build(&mut rt);
    for _ in 0..3 {
        for pair in [[2, 3], [3, 2], [5, 1], [7, 7], [7, 1], [1, 9], [2, 9]] {
            let log = call(&mut rt, &graph, &pair).unwrap();
            assert_eq!(log[0].starts_with("fell back"), !two.contains(&pair), "{pair:?}: {log:?}");
        }
    }
    assert_eq!(rt.stats().recordings, 4);

    let three = [[2, 3, 4], [4, 3, 2], [1, 1, 1], [9, 1, 9]];
    // In another order than the function has them.
    let reversed = three.map(|[a, b, c]| [c, b, a]);
    let graph = vectors(&["B", "T", "D"]).with(|o| o.capture_only(["D", "T", "B"], reversed)).build(&mut rt);
    for _ in 0..3 {
        for triple in [[2, 3, 4], [4, 3, 2], [2, 3, 2], [1, 1, 1], [9, 1, 9], [9, 9, 1]] {
            let log = call(&mut rt, &graph, &triple).unwrap();
            assert_eq!(log[0].starts_with("fell back"), !three.contains(&triple), "{triple:?}: {log:?}");
        }
    }
    assert_eq!(rt.stats().recordings, 8);
}

#[test]
fn a_size_is_listed_as_it_is_after_rounding_up() {
    let mut rt = runtime();
    let graph = vectors(&["B"])
        .with(|o| {
            o.bucket("B", Schedule::new([2, 4, 8]));
            o.capture_only(["B"], [[4]]);
        })
        .build(&mut rt);
    for _ in 0..3 {
        for n in 1..9 {
            let log = call(&mut rt, &graph, &[n]).unwrap();
            assert_eq!(log[0].starts_with("fell back"), ![3, 4].contains(&n), "{n}: {log:?}");
        }
    }
    assert_eq!(rt.stats().recordings, 1);
}

#[test]
fn what_is_listed_is_captured_ahead() {
    let mut rt = runtime();
    let graph = vectors(&["B", "T"]).with(|o| o.capture_only(["B", "T"], [[2, 3], [5, 1]])).build(&mut rt);
    let mut sizes = Vec::new();
    let one = |step: &graphable::Step<'_>, s: &graphable::__private::Synthetic<'_>| {
        let (x, y): (T<'_>, T<'_>) = (s.device(step, 0)?, s.device(step, 1)?);
        graph
            .call(step, &[In::Device(&x), In::Device(&y)], (), |cx, a| {
                seg!("ahead", cx, (&a.t,), |k| ops::concat(&[&k.0[0], &k.0[1]], 0))
            })
            .map(drop)
    };
    graph.capture_all(&mut rt, one, |p| sizes.push(p.sizes.to_vec())).unwrap();
    assert_eq!(sizes, [vec![2, 3], vec![5, 1], vec![]]);
    assert_eq!(rt.stats().fallbacks, 0);
}

#[test]
fn lists_are_checked() {
    let mut rt = runtime();
    let mut refused = |set: &dyn Fn(&mut graphable::__private::Options)| match vectors(&["B", "T"])
        .with(|o| set(o))
        .try_build(&mut rt)
        .map(drop)
    {
        Err(Error::Config { what, reason }) => format!("{what}: {reason}"),
        other => panic!("{other:?}"),
    };
    assert_eq!(
        refused(&|o| o.capture_only(["C"], [[1]])),
        "`capture_only` of C: `test` has no `#[dims]` symbol `C`; it has B, T"
    );
    assert_eq!(
        refused(&|o| o.capture_only(["B", "B"], [[1, 1]])),
        "`capture_only` of B, B: B is named twice"
    );
    assert!(refused(&|o| o.capture_only(["B"], [])).contains("an empty list"));
    assert!(refused(&|o| o.capture_only(["B"], [[0]])).contains("a size of 0"));
    assert!(refused(&|o| o.capture_only([], [[]])).contains("names no symbol"));
    assert!(refused(&|o| o.limits(|l| l.max_recordings = 0)).starts_with("max_recordings: 0"));
    assert!(refused(&|o| o.limits(|l| l.max_moves = 0)).starts_with("max_moves: 0"));
    assert!(refused(&|o| o.limits(|l| l.max_shapes = Some(0))).starts_with("max_shapes: 0"));
}

#[test]
fn dynamic_sizes_can_be_left_out() {
    let mut rt = runtime();
    let dynamic = vectors(&["B"]).with(|o| o.limits(|l| l.static_only = true)).build(&mut rt);
    let fixed = Spec::inputs(vec![device("x", &[Dim::Const(3)])])
        .with(|o| o.limits(|l| l.static_only = true))
        .build(&mut rt);
    let listed = vectors(&["B"])
        .with(|o| {
            o.limits(|l| l.static_only = true);
            o.capture_only(["B"], [[4]]);
        })
        .build(&mut rt);
    for _ in 0..3 {
        let log = call(&mut rt, &dynamic, &[2]).unwrap();
        assert_eq!(log, ["fell back: B may have any size, and `static_only` is set"]);
        for (graph, n) in [(&fixed, 3), (&listed, 4)] {
            assert!(!call(&mut rt, graph, &[n]).unwrap()[0].starts_with("fell back"));
        }
    }
    let stats = rt.stats();
    assert_eq!((stats.recordings, stats.fallbacks), (2, 3));
}

#[test]
fn many_shapes_are_told_once() {
    counting_warnings(|warnings| {
        let mut rt = runtime();
        let graph = vectors(&["B"]).build(&mut rt);
        let mut told = Vec::new();
        for _ in 0..2 {
            for n in 1..20 {
                told.extend(
                    call(&mut rt, &graph, &[n]).unwrap().into_iter().filter(|e| e.ends_with("shapes")),
                );
                assert_eq!(
                    (told.len(), warnings()),
                    if n < 8 && rt.stats().recordings == 0 { (0, 0) } else { (1, 1) }
                );
            }
        }
        assert_eq!(told, ["8 shapes"]);
        assert_eq!((rt.stats().recordings, rt.stats().fallbacks), (19, 0));
    });
}

/// Sizes that were asked for are no reason to worry.
#[test]
fn buckets_are_not_many_shapes() {
    let mut rt = runtime();
    let graph = vectors(&["B"])
        .with(|o| {
            o.bucket("B", Schedule::new(1..=20));
            o.limits(|l| l.max_shapes = Some(1));
        })
        .build(&mut rt);
    for _ in 0..2 {
        for n in 1..20 {
            let log = call(&mut rt, &graph, &[n]).unwrap();
            assert!(!log.iter().any(|e| e.ends_with("shapes") || e.starts_with("fell back")), "{log:?}");
        }
    }
    assert_eq!(rt.stats().recordings, 19);
}

#[test]
fn shapes_have_a_hard_limit() {
    counting_warnings(|warnings| {
        let mut rt = runtime();
        let graph = vectors(&["B"]).with(|o| o.limits(|l| l.max_shapes = Some(2))).build(&mut rt);
        for round in 0..4 {
            for n in [3usize, 5, 1, 2, 4] {
                let log = call(&mut rt, &graph, &[n]).unwrap();
                match ([3, 5].contains(&n), round) {
                    (false, _) => {
                        assert_eq!(
                            log[0],
                            "fell back: 2 shapes are recorded, as many as `max_shapes` allows"
                        );
                    }
                    (true, 0) => assert_eq!(log, ["warmed a"]),
                    (true, 1) => assert!(log.contains(&"recorded a".to_owned()), "{log:?}"),
                    (true, _) => assert_eq!(log, ["replayed a"], "{round}"),
                }
            }
        }
        let stats = rt.stats();
        assert_eq!((stats.recordings, stats.warmups, stats.fallbacks, warnings()), (2, 2, 12, 1));
        assert_eq!(stats.fallback_reasons, [(FallbackReason::TooManyShapes { limit: 2 }, 12)]);
    });
}

/// Several segments in a call meet its shape: it counts once.
#[test]
fn a_call_counts_once_however_many_segments_it_has() {
    let mut rt = runtime();
    let graph = Spec { symbols: &["B"], ..Spec::inputs(vec![host("x", B)]) }
        .with(|o| o.limits(|l| l.max_shapes = Some(2)))
        .build(&mut rt);
    for round in 0..3 {
        for n in [2usize, 3, 4] {
            let step = rt.step().unwrap();
            let data = vec![1.0f32; n];
            let out = graph.call(&step, &[In::Host((&data).into())], (), |cx, a| {
                let mut h = a.t[0].clone();
                for layer in 0..5u32 {
                    h = seg!("layer", cx, (&h, &layer), |k| ops::scale(k.0, (1 + *k.1) as f32))?;
                }
                seg!("last", cx, (&h,), |k| ops::neg(k.0))
            });
            assert_eq!(step.read(&out.unwrap()).unwrap(), vec![-120.0; n]);
            let log = events(&step);
            assert_eq!(log[0].starts_with("fell back"), n == 4, "round {round}: {log:?}");
        }
    }
}

#[test]
fn small_segments_run_eagerly() {
    let mut rt = runtime();
    let spec = || Spec::inputs(vec![host("x", &[Dim::Const(2)])]);
    let graph = spec()
        .with(|o| {
            o.limits(|l| l.min_kernels = 3);
            o.deny_fallback(true);
        })
        .build(&mut rt);
    let run = |rt: &mut Runtime, graph: &Graph| {
        let step = rt.step().unwrap();
        let out = graph.call(&step, &[x()], (), |cx, a| {
            let (s,) = seg!("two", cx, (&a.t[0],), |k| Ok((ops::neg(&ops::scale(k.0, 2.0)?)?,)))?;
            let (e,) = seg!("three", cx, (&s,), |k| Ok((ops::neg(&ops::neg(&ops::neg(k.0)?)?)?,)))?;
            seg!("none", cx, (&e,), |k| ops::narrow(k.0, 0, 0, 1))
        });
        assert_eq!(step.read(&out.unwrap()).unwrap(), [2.0]);
        events(&step)
    };
    assert_eq!(run(&mut rt, &graph), ["warmed two", "warmed three", "warmed none"]);
    let small = |e: &String| e.starts_with("fell back: `") && e.contains("`min_kernels` is 3");
    for round in 0..3 {
        let log = run(&mut rt, &graph);
        assert!(small(&log[0]) && log[0].contains("`two`") && log[0].contains("2 operations"), "{log:?}");
        assert_eq!(log[1], if round == 0 { "recorded three" } else { "replayed three" });
        assert!(small(&log[2]) && log[2].contains("launches 0"), "{log:?}");
    }
    // Closed, they still run: nothing is recorded for them.
    rt.close_capture();
    assert_eq!(run(&mut rt, &graph)[1], "replayed three");
    rt.open_capture();
    let stats = rt.stats();
    assert_eq!((stats.recordings, stats.skips, stats.fallbacks), (1, 8, 0));
    // A limit of another graph object of the same function is its own.
    let all = spec().build(&mut rt);
    run(&mut rt, &all);
    assert_eq!(run(&mut rt, &all), ["replayed two", "replayed three", "replayed none"]);
}

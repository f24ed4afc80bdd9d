//! Sizes that are rounded up, and capture ahead of time.

use graphable::{DType, Error, Mode, Param, Result, Runtime, Schedule, State, Step, ops};

use crate::support::*;

const ROWS: &[Dim] = &[Dim::Symbol(0), Dim::Const(2)];
const ONE: &[Dim] = &[Dim::Symbol(0)];

fn bucketed(rt: &mut Runtime, mode: Mode, sizes: &[usize]) -> Graph {
    let spec = Spec { symbols: &["B"], ..Spec::inputs(vec![host("x", ROWS), ids("at", ONE)]) };
    spec.mode(mode).with(|o| o.bucket("B", Schedule::new(sizes.iter().copied()))).build(rt)
}

/// `x w^T + 1`, with the rows written to `kv` at `at` in between, and an eager region.
fn call<'s>(graph: &Graph, step: &Step<'s>, n: usize, w: &Param<f32>, kv: &State<f32>) -> Result<T<'s>> {
    let x: Vec<f32> = (0..2 * n).map(|i| i as f32).collect();
    let at: Vec<u32> = (0..n as u32).map(|i| (i + 1) % 16).collect();
    forward(graph, step, In::Host((&x).into()), In::Ids((&at).into()), w, kv)
}

fn forward<'s>(
    graph: &Graph,
    step: &Step<'s>,
    x: In<'_, 's>,
    at: In<'_, 's>,
    w: &Param<f32>,
    kv: &State<f32>,
) -> Result<T<'s>> {
    graph.call(step, &[x, at], (w, kv), |cx, a| {
        let (h,) = seg!("a", cx, (&a.t[0], &a.ids[0], w, kv), |k| {
            let h = ops::linear(k.0, k.2)?;
            ops::scatter_rows(k.3, k.1, &h)?;
            Ok((h,))
        })?;
        let e = eager!("e", Always, cx, |_e| ops::scale(&h, 10.0));
        seg!("b", cx, (&e,), |k| ops::add(k.0, &ops::full(k.0.scope(), &[2], 1.0f32)?))
    })
}

/// What `call` gives, and what it leaves in `kv`.
fn expected(n: usize, kv: &mut [f32]) -> Vec<f32> {
    let rows = (0..n).map(|i| [2.0 * (2 * i) as f32, 3.0 * (2 * i + 1) as f32]);
    rows.enumerate()
        .flat_map(|(i, row)| {
            let at = 2 * ((i + 1) % 16);
            kv[at..at + 2].copy_from_slice(&row);
            row.map(|v| v * 10.0 + 1.0)
        })
        .collect()
}

fn model(rt: &Runtime) -> (Param<f32>, State<f32>) {
    (Param::new(rt, &[2, 2], &[2.0, 0.0, 0.0, 3.0]).unwrap(), State::new(rt, &[16, 2], &[-1.0; 32]).unwrap())
}

fn contents(step: &Step<'_>, state: &State<f32>) -> Vec<f32> {
    step.read(&ops::load(step.scope(), state).unwrap()).unwrap()
}

#[test]
fn every_size_in_every_mode() {
    for mode in [Mode::None, Mode::Piecewise, Mode::Full] {
        let mut rt = runtime();
        let graph = bucketed(&mut rt, mode, &[1, 2, 4, 8]);
        let (w, kv) = model(&rt);
        let mut mirror = vec![-1.0; 32];
        for round in 0..4 {
            for n in [8, 1, 3, 2, 7, 4, 11, 5, 6, 9] {
                let step = rt.step().unwrap();
                let y = call(&graph, &step, n, &w, &kv).unwrap();
                assert_eq!(y.shape(), [n, 2], "the padding is cut off");
                assert_eq!(
                    step.read(&y).unwrap(),
                    expected(n, &mut mirror),
                    "{mode}, round {round}, {n} rows"
                );
                assert_eq!(contents(&step, &kv), mirror, "{mode}, round {round}, {n} rows");
            }
        }
        let stats = rt.stats();
        let per_bucket = match mode {
            Mode::Piecewise => 2,
            Mode::Full => 1,
            _ => 0,
        };
        assert_eq!(stats.live_recordings, 4 * per_bucket, "{mode}");
        // 9 and 11 are above the largest bucket.
        assert_eq!(stats.fallbacks, if mode == Mode::None { 0 } else { 8 }, "{mode}");
    }
}

#[test]
fn capture_ahead_of_time() {
    for mode in [Mode::Piecewise, Mode::Full] {
        let mut rt = runtime();
        let graph = bucketed(&mut rt, mode, &[1, 4, 2, 8]);
        let (w, kv) = model(&rt);
        let mut order = Vec::new();
        graph
            .capture_all(
                &mut rt,
                |step, synthetic| {
                    let (x, at) = (synthetic.host::<f32>(0)?, synthetic.host::<u32>(1)?);
                    forward(&graph, step, In::Host((&x).into()), In::Ids((&at).into()), &w, &kv).map(drop)
                },
                |p| order.push((p.done, p.total, p.sizes.to_vec())),
            )
            .unwrap();
        let sizes: Vec<(usize, usize, Vec<usize>)> =
            vec![(0, 4, vec![8]), (1, 4, vec![4]), (2, 4, vec![2]), (3, 4, vec![1]), (4, 4, vec![])];
        assert_eq!(order, sizes, "largest first");
        let (before, bytes) = (rt.stats(), rt.memory().pool.peak_bytes);
        rt.take_events();
        rt.close_capture();
        let mut mirror = vec![-1.0; 32];
        assert_eq!(contents(&rt.step().unwrap(), &kv), mirror, "{mode}: the state is as before");
        for n in [8, 1, 3, 2, 7, 4, 5, 6] {
            let step = rt.step().unwrap();
            let y = call(&graph, &step, n, &w, &kv).unwrap();
            assert_eq!(step.read(&y).unwrap(), expected(n, &mut mirror), "{mode}, {n} rows");
            assert_eq!(contents(&step, &kv), mirror, "{mode}, {n} rows");
        }
        let after = rt.stats();
        assert_eq!(
            (after.warmups, after.recordings, after.live_recordings),
            (before.warmups, before.recordings, before.live_recordings)
        );
        assert_eq!((after.copies, rt.memory().pool.peak_bytes), (before.copies, bytes), "{mode}");
        assert_eq!(after.replays - before.replays, if mode == Mode::Full { 8 } else { 16 });
    }
}

/// A call that fails while it is captured ahead of time leaves the state as it was.
#[test]
fn a_failed_capture_ahead_of_time() {
    let mut rt = runtime();
    let graph = bucketed(&mut rt, Mode::Piecewise, &[1, 4]);
    let (w, kv) = model(&rt);
    let mut calls = 0;
    let outcome = graph.capture_all(
        &mut rt,
        |step, synthetic| {
            let (x, at) = (synthetic.host::<f32>(0)?, synthetic.host::<u32>(1)?);
            forward(&graph, step, In::Host((&x).into()), In::Ids((&at).into()), &w, &kv)?;
            calls += 1;
            if calls == 4 { Err(Error::Argument { op: "call", reason: "on purpose".into() }) } else { Ok(()) }
        },
        |_| {},
    );
    assert!(matches!(outcome, Err(Error::Argument { .. })), "{outcome:?}");
    let mut mirror = vec![-1.0; 32];
    assert_eq!(contents(&rt.step().unwrap(), &kv), mirror);
    for n in [1, 4, 1, 4, 3, 3] {
        let step = rt.step().unwrap();
        let y = call(&graph, &step, n, &w, &kv).unwrap();
        assert_eq!(step.read(&y).unwrap(), expected(n, &mut mirror));
    }
}

#[test]
fn capture_ahead_needs_sizes() {
    let mut rt = runtime();
    let spec = Spec { symbols: &["B"], ..Spec::inputs(vec![host("x", ROWS)]) };
    let graph = spec.build(&mut rt);
    let error = graph.capture_all(&mut rt, |_, _| Ok(()), |_| {}).unwrap_err();
    assert!(matches!(&error, Error::Config { reason, .. } if reason.contains("B")), "{error}");
    let graph = Spec::inputs(vec![any_device("x")]).build(&mut rt);
    let ask = |step: &Step<'_>, s: &graphable::__private::Synthetic<'_>| s.device::<f32>(step, 0).map(drop);
    assert!(matches!(graph.capture_all(&mut rt, ask, |_| {}), Err(Error::Config { .. })));
}

#[test]
fn device_inputs_are_padded_into_their_slots() {
    let mut rt = runtime();
    let spec = Spec { symbols: &["B"], ..Spec::inputs(vec![device("x", ROWS)]) };
    let graph = spec.with(|o| o.bucket("B", Schedule::new([4]))).build(&mut rt);
    for round in 0..3 {
        for n in 1..=4usize {
            let step = rt.step().unwrap();
            // Strided, and at another address every time.
            let wide: Vec<f32> = (0..3 * n).map(|i| i as f32).collect();
            let _moved: Vec<_> = (0..round).map(|_| step.tensor(&[1], &[0.0f32]).unwrap()).collect();
            let x = ops::narrow(&step.tensor(&[n, 3], &wide).unwrap(), 1, 1, 2).unwrap();
            let y = graph
                .call(&step, &[In::Device(&x)], (), |cx, a| {
                    let rows = a.t[0].dim(0);
                    assert!(rows.is_padded() && a.t[0].dim(1) == 2, "{rows}");
                    seg!("a", cx, (&a.t[0],), |k| Ok((ops::scale(k.0, 2.0)?, ops::transpose(k.0, 0, 1)?)))
                })
                .unwrap();
            let doubled: Vec<f32> =
                (0..n).flat_map(|r| [6.0 * r as f32 + 2.0, 6.0 * r as f32 + 4.0]).collect();
            assert_eq!(y.0.shape(), [n, 2]);
            assert_eq!(y.1.shape(), [2, n]);
            assert_eq!(step.read(&y.0).unwrap(), doubled);
            let columns: Vec<f32> =
                (0..2).flat_map(|c| (0..n).map(move |r| (3 * r + 1 + c) as f32)).collect();
            assert_eq!(step.read(&y.1).unwrap(), columns);
        }
    }
    assert_eq!(rt.stats().live_recordings, 1);
}

#[test]
fn padded_values_in_the_call_are_read_without_padding() {
    let mut rt = runtime();
    let spec = Spec { symbols: &["B"], ..Spec::inputs(vec![host("x", ROWS)]) };
    let graph = spec.with(|o| o.bucket("B", Schedule::new([8]))).build(&mut rt);
    for n in [3usize, 8, 1, 5] {
        let step = rt.step().unwrap();
        let x: Vec<f32> = (0..2 * n).map(|i| i as f32).collect();
        graph
            .call(&step, &[In::Host((&x).into())], (), |cx, a| {
                let (h,) = seg!("a", cx, (&a.t[0],), |k| Ok((ops::neg(k.0)?,)))?;
                assert_eq!((h.dim(0).is_padded(), h.dim(1).get()?, h.dtype()), (true, 2, DType::F32));
                eager!("e", cx, |e| {
                    let minus: Vec<f32> = x.iter().map(|v| -v).collect();
                    assert_eq!(e.read(&h)?, minus);
                    assert_eq!(e.read(&ops::transpose(&h, 0, 1)?)?.len(), 2 * n);
                    Ok::<_, Error>(())
                });
                // Mixing padding into real values is refused.
                let mixed = seg!("b", cx, (&h,), |k| ops::sum(k.0, 0));
                assert!(matches!(mixed, Err(Error::PaddedMix { op: "sum", axis: 0, .. })), "{mixed:?}");
                Ok(())
            })
            .unwrap();
    }
}

#[test]
fn sizes_that_disagree() {
    let mut rt = runtime();
    let graph = bucketed(&mut rt, Mode::Piecewise, &[4]);
    let (w, kv) = model(&rt);
    let step = rt.step().unwrap();
    let go = |x: &[f32], at: &[u32]| {
        forward(&graph, &step, In::Host(x.into()), In::Ids(at.into()), &w, &kv).map(drop)
    };
    assert!(matches!(go(&[0.0; 4], &[0; 3]), Err(Error::DimsDisagree { first: 2, second: 3, .. })));
    assert!(matches!(go(&[0.0; 3], &[0; 1]), Err(Error::Input { input: "x", .. })));
    assert!(matches!(go(&[], &[]), Err(Error::Input { .. })));
    let flat = (&[0.0f32; 6][..], &[3usize, 3][..]);
    let y = forward(&graph, &step, In::Host(flat.into()), In::Ids((&[0; 3]).into()), &w, &kv);
    assert!(matches!(y, Err(Error::Input { .. })), "{y:?}");
    go(&[0.0; 4], &[0; 2]).unwrap();
}

/// Three symbols with the default schedule make 132,651 combinations: an error before anything is captured, and
/// none where only some of them are listed.
#[test]
fn combinations_without_bound_are_refused() {
    static SYMBOLS: [&str; 3] = ["B", "S", "T"];
    const SHAPE: [Dim; 3] = [Dim::Symbol(0), Dim::Symbol(1), Dim::Symbol(2)];
    let graph = |rt: &mut Runtime, listed: bool| {
        let mut spec = Spec::inputs(vec![host("x", &SHAPE)]);
        spec.symbols = &SYMBOLS;
        let spec = spec.with(|o| {
            for symbol in SYMBOLS {
                o.bucket(symbol, Schedule::default());
            }
            if listed {
                o.capture_only(SYMBOLS, [[1, 1, 1], [2, 2, 2]]);
            }
        });
        spec.build(rt)
    };
    let mut rt = runtime();
    let capture = |rt: &mut Runtime, graph: &Graph| {
        let mut sizes = Vec::new();
        let captured = graph.capture_all(rt, |_, _| Ok(()), |p| sizes.push(p.sizes.to_vec()));
        captured.map(|()| sizes)
    };
    let all = graph(&mut rt, false);
    let error = capture(&mut rt, &all).unwrap_err();
    assert!(matches!(error, Error::Config { .. }));
    assert!(error.to_string().contains("51 of B, 51 of S, 51 of T"), "{error}");
    let few = graph(&mut rt, true);
    assert_eq!(capture(&mut rt, &few).unwrap(), [vec![2, 2, 2], vec![1, 1, 1], vec![]]);
    still_usable(&mut rt);
}

/// Many combinations are told before the first of them is captured.
#[test]
fn many_combinations_are_told() {
    static SYMBOLS: [&str; 2] = ["B", "S"];
    const SHAPE: [Dim; 2] = [Dim::Symbol(0), Dim::Symbol(1)];
    for (sizes, told) in [(32usize, None), (33, Some(33 * 33))] {
        let mut rt = runtime();
        let mut spec = Spec::inputs(vec![host("x", &SHAPE)]);
        spec.symbols = &SYMBOLS;
        let all = |o: &mut graphable::__private::Options| {
            SYMBOLS.iter().for_each(|symbol| o.bucket(symbol, Schedule::new(1..=sizes)));
        };
        let graph = spec.with(all).build(&mut rt);
        let stop = |_: &Step<'_>, _: &graphable::__private::Synthetic<'_>| {
            Err(Error::CaptureClosed { segment: "stop".into() })
        };
        graph.capture_all(&mut rt, stop, |_| {}).unwrap_err();
        let many = rt.take_events().into_iter().find_map(|event| match event {
            graphable::Event::ManyCaptures { function: "test", captures } => Some(captures),
            _ => None,
        });
        assert_eq!(many, told);
    }
}

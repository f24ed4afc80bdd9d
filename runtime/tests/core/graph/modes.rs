//! How much of a call becomes graphs.

use graphable::{FallbackReason, Mode, Param, Result, Runtime, State, Step, Support, ops};

use crate::support::*;

fn program(rt: &mut Runtime, mode: Mode, support: Support) -> Graph {
    let plan = boundary(site!("e"), support);
    let inputs = vec![host("x", &[Dim::Const(2)]), scalar("s"), any_device("d")];
    Spec { plan, ..Spec::inputs(inputs) }.mode(mode).build(rt)
}

/// Two segments in a loop around an eager region, state, and a branch on a host value.
fn call<'s>(
    graph: &Graph,
    step: &Step<'s>,
    (x, s, d): ([f32; 2], f32, &T<'s>),
    weights: &[Param<f32>],
    state: &State<f32>,
    deep: bool,
) -> Result<(T<'s>, usize)> {
    graph.call(
        step,
        &[In::Host((&x).into()), In::Scalar(s), In::Device(d)],
        (weights, state, deep),
        |cx, a| {
            let mut h = a.t[0].clone();
            for w in weights {
                (h,) =
                    seg!("a", cx, (&h, w, &a.scalars[0]), |k| Ok((ops::mul(&ops::add(k.0, k.1)?, k.2)?,)))?;
                h = eager!("e", Always, cx, |_e| ops::add(&h, &a.t[1]));
            }
            if deep {
                (h,) = seg!("b", cx, (&h, state), |k| {
                    let sum = ops::add(k.0, k.1)?;
                    ops::store(k.1, &sum)?;
                    Ok((sum,))
                })?;
            }
            seg!("c", cx, (&h, &deep), |k| Ok((ops::neg(k.0)?, usize::from(*k.1))))
        },
    )
}

/// The same on the host.
fn expected(
    (x, s, d): ([f32; 2], f32, [f32; 2]),
    weights: &[f32],
    state: &mut [f32; 2],
    deep: bool,
) -> [f32; 2] {
    [0, 1].map(|i| {
        let mut h = x[i];
        for w in weights {
            h = (h + w) * s + d[i];
        }
        if deep {
            state[i] += h;
            h = state[i];
        }
        -h
    })
}

#[test]
fn all_modes_give_equal_values() {
    let mut counts = Vec::new();
    for mode in [Mode::None, Mode::Piecewise, Mode::Full] {
        let mut rt = runtime();
        let graph = program(&mut rt, mode, Support::Always);
        let host_weights = [1.0f32, 2.0, 3.0];
        let weights = host_weights.map(|w| Param::new(&rt, &[2], &[w; 2]).unwrap());
        let state = State::new(&rt, &[2], &[0.0; 2]).unwrap();
        let mut mirror = [0.0; 2];
        for i in 0..10 {
            let step = rt.step().unwrap();
            let given = ([i as f32, 1.0], 1.0 + (i % 3) as f32, [0.5, i as f32]);
            let d = step.tensor(&[2], &given.2).unwrap();
            let deep = i % 2 == 0;
            let (y, flag) = call(&graph, &step, (given.0, given.1, &d), &weights, &state, deep).unwrap();
            let values = expected(given, &host_weights, &mut mirror, deep);
            assert_eq!(
                (step.read(&y).unwrap(), flag),
                (values.to_vec(), usize::from(deep)),
                "{mode}, step {i}"
            );
        }
        let stats = rt.stats();
        assert_eq!((stats.fallbacks, stats.copies, stats.aborted), (0, 0, 0), "{mode}");
        counts.push((stats.live_recordings, stats.replays > 0));
    }
    assert_eq!((counts[0], counts[2]), ((0, false), (2, true)), "none: no node; full: one per path");
    assert!(counts[1].0 >= 6 && counts[1].1, "{counts:?}");
}

#[test]
fn full_falls_back_for_a_boundary_that_cannot_be_captured() {
    let mut rt = runtime();
    let graph = program(&mut rt, Mode::Full, Support::Never);
    let weights = [Param::new(&rt, &[2], &[1.0; 2]).unwrap()];
    let state = State::new(&rt, &[2], &[0.0; 2]).unwrap();
    for i in 0..5 {
        let step = rt.step().unwrap();
        let d = step.tensor(&[2], &[0.0; 2]).unwrap();
        let (y, _) = call(&graph, &step, ([i as f32, 1.0], 2.0, &d), &weights, &state, false).unwrap();
        assert_eq!(step.read(&y).unwrap(), [-2.0 * (i as f32 + 1.0), -4.0]);
    }
    let stats = rt.stats();
    assert_eq!((stats.fallbacks, stats.live_recordings, stats.eager_calls), (5, 2, 5), "piecewise instead");
    let [(FallbackReason::FullNotSupported { boundary }, 5)] = &stats.fallback_reasons[..] else {
        panic!("{:?}", stats.fallback_reasons)
    };
    assert!(boundary.contains("modes.rs:"), "{boundary}");
}

#[test]
fn full_mode_is_one_recording() {
    let mut rt = runtime();
    let graph = program(&mut rt, Mode::Full, Support::Always);
    let weights = [1.0f32, 2.0].map(|w| Param::new(&rt, &[2], &[w; 2]).unwrap());
    let state = State::new(&rt, &[2], &[0.0; 2]).unwrap();
    let mut log = Vec::new();
    for i in 0..4 {
        let step = rt.step().unwrap();
        let d = step.tensor(&[2], &[0.0; 2]).unwrap();
        let (y, _) = call(&graph, &step, ([i as f32, 0.0], 1.0, &d), &weights, &state, true).unwrap();
        assert_eq!(step.read(&y).unwrap()[1], -3.0 * (i + 1) as f32, "the state counts every call once");
        drop((y, d));
        log.push(events(&step));
    }
    assert_eq!(log, [["warmed e"], ["recorded e"], ["replayed e"], ["replayed e"]]);
}

fn through<'s>(chain: &Graph, step: &Step<'s>, x: &T<'s>) -> T<'s> {
    let y = chain.call(step, &[In::Device(x)], (), |cx, a| {
        let (h,) = seg!("b", cx, (&a.t[0],), |k| Ok((ops::scale(k.0, 3.0)?,)))?;
        let e = eager!("e", cx, |_e| ops::neg(&h));
        seg!("c", cx, (&e,), |k| ops::neg(k.0))
    });
    y.unwrap()
}

#[test]
fn several_functions_in_one_step() {
    let mut rt = runtime();
    let graphs: Vec<Graph> =
        (0..3).map(|_| Spec::inputs(vec![host("x", &[Dim::Const(2)])]).build(&mut rt)).collect();
    let chain = Spec::inputs(vec![any_device("x")]).build(&mut rt);
    for round in 0..5 {
        let step = rt.step().unwrap();
        let first: Vec<T<'_>> = graphs
            .iter()
            .enumerate()
            .map(|(i, graph)| {
                let x = [i as f32, round as f32];
                let y = graph.call(&step, &[In::Host((&x).into())], (), |cx, a| {
                    seg!("a", cx, (&a.t[0],), |k| ops::scale(k.0, 2.0))
                });
                y.unwrap()
            })
            .collect();
        // One function on the outputs of the others, and then on its own.
        let third: Vec<T<'_>> =
            first.iter().map(|x| through(&chain, &step, &through(&chain, &step, x))).collect();
        for (i, (a, b)) in first.iter().zip(&third).enumerate() {
            let x = [i as f32, round as f32];
            assert_eq!(step.read(a).unwrap(), x.map(|v| 2.0 * v), "round {round}");
            assert_eq!(step.read(b).unwrap(), x.map(|v| 18.0 * v), "round {round}");
        }
        drop((first, third));
        let log = events(&step);
        match round {
            0 | 1 => assert!(log.iter().any(|e| e.starts_with("recorded")), "{log:?}"),
            _ => assert!(log.iter().all(|e| e.starts_with("replayed") || e.starts_with("eager")), "{log:?}"),
        }
    }
}

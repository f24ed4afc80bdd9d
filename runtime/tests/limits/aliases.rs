//! Bodies that ask whether tensors show the same memory: the answer is part of what a recording is for.

use graphable::{Mode, Param, Result, Runtime, Schedule, Step, ops};
use rand::{Rng, SeedableRng, rngs::StdRng};

use crate::{moves::blocks, support::*};

/// Which tensors a body finds to be the same.
fn body<'s>(cx: Piecewise<'s>, x: &T<'s>, y: &T<'s>, z: &T<'s>) -> Result<T<'s>> {
    let (h,) = seg!("a", cx, (x, y, z), |k| {
        let (x, y, z) = (k.0, k.1, k.2);
        let whole = x.same_memory(y);
        let last = ops::narrow(x, 0, 2, 2)?.same_memory(&ops::narrow(z, 0, 0, 2)?);
        Ok((match (whole, last) {
            (true, true) => ops::scale(x, 1000.0)?,
            (true, false) => ops::scale(x, 100.0)?,
            (false, true) => ops::neg(&ops::add(x, y)?)?,
            (false, false) => ops::add(&ops::add(x, y)?, z)?,
        },))
    })?;
    seg!("b", cx, (&h,), |k| ops::scale(k.0, 1.0))
}

fn meaning(x: &[f32], y: &[f32], z: &[f32], whole: bool, last: bool) -> Vec<f32> {
    (0..4)
        .map(|i| match (whole, last) {
            (true, true) => 1000.0 * x[i],
            (true, false) => 100.0 * x[i],
            (false, true) => -(x[i] + y[i]),
            (false, false) => x[i] + y[i] + z[i],
        })
        .collect()
}

fn call<'s>(graph: &Graph, step: &Step<'s>, ins: [&T<'s>; 3]) -> Vec<f32> {
    let given = ins.map(In::Device);
    let out = graph.call(step, &given, (), |cx, a| body(cx, &a.t[0], &a.t[1], &a.t[2]));
    step.read(&out.unwrap()).unwrap()
}

fn graph(rt: &mut Runtime, mode: Mode, moves: usize, audit_every: u32, bucket: Option<usize>) -> Graph {
    let spec = match bucket {
        Some(_) => Spec {
            symbols: &["B"],
            ..Spec::inputs(["x", "y", "z"].map(|n| device(n, &[Dim::Symbol(0)])).into())
        },
        None => Spec::inputs(["x", "y", "z"].map(any_device).into()),
    };
    spec.mode(mode)
        .with(|o| {
            o.limits(|l| l.max_moves = moves);
            o.audit_every(audit_every);
            if let Some(size) = bucket {
                o.bucket("B", Schedule::new([size]));
            }
        })
        .build(rt)
}

/// Random ways of giving one tensor twice, views of one, and tensors that move; a low limit of moves.
#[test]
fn random_aliases() {
    let mut seed = 7u64;
    let mut random = move |n: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % n
    };
    for mode in MODES {
        for (moves, audit_every) in [(1, 0), (1, 2), (2, 0), (usize::MAX, 3)] {
            let mut rt = runtime();
            let graph = graph(&mut rt, mode, moves, audit_every, None);
            for round in 0..150 {
                let step = rt.step().unwrap();
                let below = blocks(&step, random(5));
                let data: Vec<f32> = (0..12).map(|i| (i + round) as f32).collect();
                let t = step.tensor(&[12], &data).unwrap();
                let gap = blocks(&step, random(3));
                let u = step.tensor(&[4], &data[..4]).unwrap();
                drop((below, gap));
                let at = |from: usize| (ops::narrow(&t, 0, from, 4).unwrap(), &data[from..from + 4], from);
                let pick = |n: usize| match n {
                    0 => (u.clone(), &data[..4], 100),
                    1 => at(0),
                    _ => at(2),
                };
                let (x, y, z) = (pick(random(3)), pick(random(3)), pick(random(3)));
                let whole = x.2 == y.2;
                let last = x.2 + 2 == z.2;
                let expected = meaning(x.1, y.1, z.1, whole, last);
                let got = call(&graph, &step, [&x.0, &y.0, &z.0]);
                assert_eq!(got, expected, "{mode} {moves} round {round}: {} {} {}", x.2, y.2, z.2);
            }
            assert!(mode == Mode::None || moves == usize::MAX || rt.stats().replays > 20, "{:?}", rt.stats());
            assert!(moves == usize::MAX || rt.stats().fallbacks == 0, "{:?}", rt.stats());
        }
    }
}

/// Parameters and kept values, some of them given twice, and views of them, beside tensors. Their addresses are in every key, but what
/// is learned from a warm-up is for several addresses.
#[test]
fn random_aliases_of_parameters() {
    let mut rng = StdRng::seed_from_u64(11);
    for mode in MODES {
        for audit_every in [0, 2] {
            let mut rt = runtime();
            let graph = graph(&mut rt, mode, usize::MAX, audit_every, None);
            let values: Vec<f32> = (0..12).map(|i| i as f32).collect();
            let params = [Param::new(&rt, &[12], &values).unwrap(), Param::new(&rt, &[12], &values).unwrap()];
            let kept = {
                let step = rt.step().unwrap();
                step.keep(&step.tensor(&[12], &values).unwrap()).unwrap()
            };
            for round in 0..200 {
                let step = rt.step().unwrap();
                let t = step.tensor(&[12], &values).unwrap();
                let sources: Vec<T<'_>> = params
                    .iter()
                    .map(|param| step.scope().view(param).unwrap())
                    .chain([kept.view(step.scope()).unwrap(), t])
                    .collect();
                let mut pick = || {
                    let (source, from) = (rng.random_range(0..sources.len()), [0, 2][rng.random_range(0..2)]);
                    (ops::narrow(&sources[source], 0, from, 4).unwrap(), 100 * source + from, from)
                };
                let (x, y, z) = (pick(), pick(), pick());
                let [a, b, c] = [x.2, y.2, z.2].map(|from| &values[from..from + 4]);
                let expected = meaning(a, b, c, x.1 == y.1, x.1 + 2 == z.1);
                let got = call(&graph, &step, [&x.0, &y.0, &z.0]);
                assert_eq!(got, expected, "{mode} round {round}: {} {} {}", x.1, y.1, z.1);
            }
            assert!(mode == Mode::None || rt.stats().replays > 20, "{:?}", rt.stats());
            assert_eq!(rt.stats().fallbacks, 0);
        }
    }
}

/// A call with the same tensor twice, after a recording that copies both inputs.
#[test]
fn a_copied_live_in_does_not_hide_an_alias() {
    for mode in [Mode::Piecewise, Mode::Full] {
        let mut rt = runtime();
        let graph = Spec::inputs(vec![any_device("x"), any_device("y")])
            .mode(mode)
            .with(|o| o.limits(|l| l.max_moves = 1))
            .build(&mut rt);
        for place in 0..8 {
            let step = rt.step().unwrap();
            let _below = blocks(&step, place);
            let x = step.tensor(&[1], &[1.0f32]).unwrap();
            let y = step.tensor(&[1], &[1.0f32]).unwrap();
            for (a, b, expected) in [(&x, &y, 2.0), (&y, &y, 100.0), (&y, &x, 2.0), (&x, &x, 100.0)] {
                if place < 3 && expected > 2.0 {
                    continue;
                }
                let out = graph.call(&step, &[In::Device(a), In::Device(b)], (), |cx, a| {
                    seg!("s", cx, (&a.t[0], &a.t[1]), |k| {
                        if k.0.same_memory(k.1) { ops::scale(k.0, 100.0) } else { ops::add(k.0, k.1) }
                    })
                });
                assert_eq!(step.read(&out.unwrap()).unwrap(), [expected], "{mode}, place {place}");
            }
        }
        assert_eq!(rt.stats().fallbacks, 0);
    }
}

/// Padded inputs stand for what was given.
#[test]
fn padded_inputs_that_are_one_tensor() {
    for mode in MODES {
        for size in [4, 8] {
            let mut rt = runtime();
            let graph = graph(&mut rt, mode, 5, 0, Some(size));
            for round in 0..8 {
                let step = rt.step().unwrap();
                let v = |n: f32| step.tensor(&[4], &[n, 1.0, 2.0, 3.0]).unwrap();
                let (a, b, c) = (v(round as f32), v(10.0), v(20.0));
                let values = [[round as f32, 1.0, 2.0, 3.0], [10.0, 1.0, 2.0, 3.0], [20.0, 1.0, 2.0, 3.0]];
                let all = [&a, &b, &c];
                for (i, j, k) in [(0, 1, 2), (0, 0, 1), (1, 1, 1), (2, 1, 1), (1, 0, 2)] {
                    let given = [i, j, k].map(|n| In::Device(all[n]));
                    let out = graph.call(&step, &given, (), |cx, a| {
                        let (h,) = seg!("a", cx, (&a.t[0], &a.t[1], &a.t[2]), |k| {
                            Ok((match (k.0.same_memory(k.1), k.1.same_memory(k.2)) {
                                (true, true) => ops::scale(k.0, 1000.0)?,
                                (true, false) => ops::scale(k.0, 100.0)?,
                                (false, true) => ops::neg(&ops::add(k.0, k.1)?)?,
                                (false, false) => ops::add(&ops::add(k.0, k.1)?, k.2)?,
                            },))
                        })?;
                        seg!("b", cx, (&h,), |k| ops::scale(k.0, 1.0))
                    });
                    let got = step.read(&out.unwrap()).unwrap();
                    let expected = meaning(&values[i], &values[j], &values[k], i == j, j == k);
                    assert_eq!(got, expected, "{mode}, bucket {size}, round {round}: {i} {j} {k}");
                }
            }
            assert_eq!(rt.stats().fallbacks, 0);
        }
    }
}

/// Memory that was given back at its last use is another's by now, and yet not the same.
#[test]
fn what_is_given_back_early_is_nobody_elses() {
    for mode in MODES {
        let mut rt = runtime();
        let graph = Spec::inputs(vec![host("x", &[Dim::Const(2)])]).mode(mode).build(&mut rt);
        for _ in 0..4 {
            let step = rt.step().unwrap();
            let out = graph.call(&step, &[x()], (), |cx, a| {
                seg!("a", cx, (&a.t[0],), |k| {
                    let first = ops::scale(k.0, 2.0)?;
                    let second = ops::neg(&first)?;
                    let third = ops::neg(&second)?;
                    Ok((third.same_memory(&first), third))
                })
            });
            let (same, third) = out.unwrap();
            assert!(!same, "{mode}");
            assert_eq!(step.read(&third).unwrap(), [2.0, 4.0]);
        }
    }
}

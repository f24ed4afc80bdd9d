//! Recordings that read copies of live-ins: in every mode, with every net, and when something fails.

use graphable::{
    Error, Mode, Result, Runtime,
    backend::faulty::{FaultCall, FaultPlan},
    ops,
};

use crate::{moves::blocks, support::*};

fn graph(rt: &mut Runtime, mode: Mode, audit_every: u32) -> Graph {
    Spec::inputs(vec![any_device("x")])
        .mode(mode)
        .with(|o| {
            o.limits(|l| l.max_moves = 1);
            o.audit_every(audit_every);
        })
        .build(rt)
}

/// `-(x * x)`, with `x` behind `place` blocks.
fn call(rt: &mut Runtime, graph: &Graph, place: usize, x: [f32; 2]) -> (Result<Vec<f32>>, Vec<String>) {
    let step = rt.step().unwrap();
    let below = blocks(&step, place);
    let t = step.tensor(&[2], &x).unwrap();
    let out = graph.call(&step, &[In::Device(&t)], (), |cx, a| {
        let (h,) = seg!("a", cx, (&a.t[0],), |k| Ok((ops::mul(k.0, k.0)?,)))?;
        seg!("b", cx, (&h,), |k| ops::neg(k.0))
    });
    drop((below, t));
    (out.and_then(|out| step.read(&out)), events(&step))
}

#[test]
fn a_whole_call_copies_its_inputs() {
    for mode in [Mode::Piecewise, Mode::Full] {
        for audit_every in [0, 1, 2] {
            let mut rt = runtime();
            let graph = graph(&mut rt, mode, audit_every);
            for (round, place) in [0usize, 0, 1, 2, 3, 4, 5, 2, 0].into_iter().enumerate() {
                let n = round as f32;
                let (values, log) = call(&mut rt, &graph, place, [n, 3.0]);
                assert_eq!(
                    values.unwrap(),
                    [-n * n, -9.0],
                    "{mode}, every {audit_every}, round {round}: {log:?}"
                );
            }
            let stats = rt.stats();
            assert_eq!((stats.copied_slots, stats.fallbacks), (1, 0));
            assert_eq!(rt.copied_slots()[0].copies, 6, "{mode}: at 1, 2, 3, 4, 5 and 2");
            assert_eq!(stats.audits > 0, audit_every > 0);
        }
    }
}

/// Only what is read is copied, from where the view begins, whatever its strides.
#[test]
fn views_are_copied_as_far_as_they_are_read() {
    let mut rt = runtime();
    let graph = graph(&mut rt, Mode::Piecewise, 0);
    for place in [0usize, 0, 1, 2, 3] {
        let step = rt.step().unwrap();
        let _below = blocks(&step, place);
        let data: Vec<f32> = (0..600).map(|i| (i + place) as f32).collect();
        let rows = step.tensor(&[6, 100], &data).unwrap();
        // Columns 10 to 13 of rows 2 to 4, transposed: 203 elements from the first to the last.
        let part = ops::narrow(&ops::narrow(&rows, 0, 2, 3).unwrap(), 1, 10, 3).unwrap();
        let x = ops::transpose(&part, 0, 1).unwrap();
        let out = graph
            .call(&step, &[In::Device(&x)], (), |cx, a| seg!("a", cx, (&a.t[0],), |k| ops::scale(k.0, 2.0)))
            .unwrap();
        let expected: Vec<f32> = (0..3)
            .flat_map(|column| (2..5).map(move |row| 2.0 * (row * 100 + 10 + column + place) as f32))
            .collect();
        assert_eq!(step.read(&out).unwrap(), expected);
    }
    let slots = rt.copied_slots();
    assert_eq!((slots[0].bytes, slots[0].copies), (203 * 4, 3), "{slots:?}");
}

#[test]
fn large_live_ins_are_copied_whole() {
    let mut rt = runtime();
    let graph = graph(&mut rt, Mode::Piecewise, 0);
    const N: usize = 300_001;
    for place in [0usize, 0, 1, 2] {
        let step = rt.step().unwrap();
        let _below = blocks(&step, place);
        let data: Vec<f32> = (0..N).map(|i| (i % 1000 + place) as f32).collect();
        let x = step.tensor(&[N], &data).unwrap();
        let out = graph
            .call(&step, &[In::Device(&x)], (), |cx, a| seg!("a", cx, (&a.t[0],), |k| ops::scale(k.0, 2.0)))
            .unwrap();
        let values = step.read(&out).unwrap();
        assert!(values.iter().zip(&data).all(|(v, x)| *v == 2.0 * x), "place {place}");
    }
    assert_eq!(rt.copied_slots()[0].bytes, 4 * N as u64);
}

/// What a segment does not look at is not copied, and may lie anywhere all the same.
#[test]
fn an_unused_live_in_costs_nothing() {
    let mut rt = runtime();
    let graph = graph(&mut rt, Mode::Piecewise, 0);
    for place in [0usize, 0, 1, 2, 3, 4] {
        let step = rt.step().unwrap();
        let _below = blocks(&step, place);
        let x = step.tensor(&[2], &X).unwrap();
        let out = graph.call(&step, &[In::Device(&x)], (), |cx, a| {
            seg!("a", cx, (&a.t[0],), |k| ops::full(k.0.scope(), &[2], 7.0f32))
        });
        assert_eq!(step.read(&out.unwrap()).unwrap(), [7.0, 7.0]);
    }
    let stats = rt.stats();
    assert_eq!((stats.recordings, stats.copied_slots, stats.copied_bytes), (2, 1, 0));
}

/// The pool's own tensors: the same two blocks, in turns as the one and the other.
#[test]
fn live_ins_in_the_pool_are_copied_too() {
    let mut rt = runtime();
    let graph = Spec::inputs(vec![host("x", &[Dim::Const(2)])])
        .with(|o| o.limits(|l| l.max_moves = 1))
        .build(&mut rt);
    let run = |rt: &mut Runtime, swap: bool| {
        let step = rt.step().unwrap();
        let out = graph.call(&step, &[x()], (), |cx, a| {
            let (p, q) = seg!("a", cx, (&a.t[0],), |k| Ok((ops::scale(k.0, 2.0)?, ops::scale(k.0, 3.0)?)))?;
            let (p, q) = if swap { (q, p) } else { (p, q) };
            seg!("b", cx, (&p, &q), |k| ops::sub(k.0, k.1))
        });
        let sign = if swap { 1.0 } else { -1.0 };
        assert_eq!(step.read(&out.unwrap()).unwrap(), [sign, 2.0 * sign]);
        events(&step)
    };
    for _ in 0..3 {
        run(&mut rt, false);
    }
    let log = run(&mut rt, true);
    assert_eq!(log[1..3], ["demoted 0 of b after 1", "demoted 1 of b after 1"], "{log:?}");
    assert_eq!(run(&mut rt, true)[1..], ["copied LiveIn 8", "copied LiveIn 8", "replayed b"]);
    assert_eq!(run(&mut rt, false), ["replayed a", "replayed b"]);
    assert_eq!(rt.stats().copied_slots, 2);
}

/// Inputs that travel with a replay and copies go together, in either order of arrival.
#[test]
fn host_inputs_and_copies_travel_together() {
    let mut rt = runtime();
    let graph = Spec::inputs(vec![host("h", &[Dim::Const(2)]), any_device("x")])
        .with(|o| o.limits(|l| l.max_moves = 1))
        .build(&mut rt);
    for (round, place) in [0usize, 0, 1, 2, 3, 1].into_iter().enumerate() {
        let step = rt.step().unwrap();
        let _below = blocks(&step, place);
        let h = [round as f32, 1.0];
        let x = step.tensor(&[2], &[10.0 * round as f32, 5.0]).unwrap();
        let out = graph.call(&step, &[In::Host((&h).into()), In::Device(&x)], (), |cx, a| {
            let (s,) = seg!("a", cx, (&a.t[0], &a.t[1]), |k| Ok((ops::add(k.0, k.1)?,)))?;
            seg!("b", cx, (&s, &a.t[0]), |k| ops::sub(k.0, k.1))
        });
        assert_eq!(step.read(&out.unwrap()).unwrap(), [10.0 * round as f32, 5.0], "round {round}");
    }
    assert_eq!(rt.copied_slots()[0].copies, 4);
}

/// Two live-ins are copied; in one call both are one tensor. Each copy has the right bytes.
#[test]
fn a_tensor_given_twice_to_a_copying_recording() {
    let mut rt = runtime();
    let graph = Spec::inputs(vec![any_device("x"), any_device("y")])
        .with(|o| o.limits(|l| l.max_moves = 1))
        .build(&mut rt);
    for (round, place) in [0usize, 0, 1, 2, 3].into_iter().enumerate() {
        let step = rt.step().unwrap();
        let _below = blocks(&step, place);
        let x = step.tensor(&[2], &[1.0f32, 2.0]).unwrap();
        let y = step.tensor(&[2], &[10.0f32, 20.0]).unwrap();
        // Twice the same only when the copying recording is there.
        let seconds = [(&y, [-9.0, -18.0]), (&x, [0.0, 0.0])];
        for (second, expected) in seconds.into_iter().take(if round < 3 { 1 } else { 2 }) {
            let out = graph.call(&step, &[In::Device(&x), In::Device(second)], (), |cx, a| {
                seg!("a", cx, (&a.t[0], &a.t[1]), |k| ops::sub(k.0, k.1))
            });
            assert_eq!(step.read(&out.unwrap()).unwrap(), expected, "round {round}");
        }
    }
    assert_eq!(rt.stats().copied_slots, 2);
}

/// Every call of the device that the demotion makes may fail: the error is typed, and the next call right.
#[test]
fn a_demotion_that_fails() {
    let run = |arm: &dyn Fn(&FaultPlan)| {
        let (mut rt, plan) = faulty();
        let graph = graph(&mut rt, Mode::Piecewise, 0);
        for place in [0, 0] {
            call(&mut rt, &graph, place, X).0.unwrap();
        }
        // The upload in the step's beginning is a host write; what the demotion calls comes after.
        arm(&plan);
        let (values, log) = call(&mut rt, &graph, 1, X);
        let failed = match values {
            Ok(values) => {
                assert_eq!(values, [-1.0, -4.0]);
                false
            }
            Err(Error::Device { device, .. }) => {
                assert_eq!(device, "faulty", "{log:?}");
                true
            }
            Err(other) => panic!("{other}"),
        };
        plan.disarm();
        for (n, place) in [(2.0, 1), (3.0, 2), (4.0, 3), (5.0, 0)] {
            let (values, log) = call(&mut rt, &graph, place, [n, 1.0]);
            assert_eq!(values.unwrap(), [-n * n, -1.0], "{log:?}");
        }
        assert_eq!(rt.stats().copied_slots, 1);
        still_usable(&mut rt);
        failed
    };
    for call in [FaultCall::Alloc, FaultCall::BeginCapture, FaultCall::EndCapture, FaultCall::Replay] {
        assert!(run(&|plan| plan.arm(Some(call), 0, false)), "{call:?} is called");
    }
    assert!(!run(&|_| {}));
}

/// The replay of a copying recording fails: nothing of its copies is left for the next one.
#[test]
fn a_copying_replay_that_fails() {
    let (mut rt, plan) = faulty();
    let graph = graph(&mut rt, Mode::Piecewise, 0);
    for place in [0, 0, 1, 2] {
        call(&mut rt, &graph, place, X).0.unwrap();
    }
    for place in [3, 4] {
        plan.arm(Some(FaultCall::Replay), 0, false);
        assert!(matches!(call(&mut rt, &graph, place, X).0, Err(Error::Device { .. })));
        for (n, place) in [(2.0, place), (3.0, 0), (4.0, 7)] {
            assert_eq!(call(&mut rt, &graph, place, [n, 1.0]).0.unwrap(), [-n * n, -1.0]);
        }
    }
    still_usable(&mut rt);
}

//! Failures of ahead-of-time capture.

use std::{
    cell::Cell,
    panic::{AssertUnwindSafe, catch_unwind},
};

use graphable::{
    Error, Event, Mode, Result, Runtime, Schedule, State, Step, backend::faulty::FaultCall, ops,
};

use crate::support::*;

const ROWS: &[Dim] = &[Dim::Symbol(0), Dim::Const(2)];

fn bucketed(rt: &mut Runtime, mode: Mode, deny_fallback: bool) -> Graph {
    let spec = Spec { symbols: &["B"], ..Spec::inputs(vec![host("x", ROWS)]) };
    spec.mode(mode)
        .with(|o| {
            o.bucket("B", Schedule::new([1, 2]));
            o.deny_fallback(deny_fallback);
        })
        .build(rt)
}

/// Adds 1 to both states, and gives `-x`.
fn call<'s>(
    graph: &Graph,
    step: &Step<'s>,
    x: In<'_, 's>,
    states: &[State<f32>; 2],
    n: u32,
) -> Result<T<'s>> {
    let [a, b] = states;
    graph.call(step, &[x], (a, b, n), |cx, args| {
        seg!("a", cx, (&args.t[0], a, b, &n), |k| {
            let one = ops::full(k.0.scope(), &[2], 1.0f32)?;
            ops::store(k.1, &ops::add(&one, k.1)?)?;
            ops::store(k.2, &ops::add(&one, k.2)?)?;
            ops::neg(k.0)
        })
    })
}

fn states(rt: &Runtime) -> [State<f32>; 2] {
    [10.0, 20.0].map(|v| State::new(rt, &[2], &[v; 2]).unwrap())
}

fn held(rt: &mut Runtime, states: &[State<f32>; 2]) -> [f32; 2] {
    let step = rt.step().unwrap();
    [0, 1].map(|i| step.read(&ops::load(step.scope(), &states[i]).unwrap()).unwrap()[0])
}

fn ahead(
    rt: &mut Runtime,
    graph: &Graph,
    states: &[State<f32>; 2],
    hook: impl Fn(),
    progress: impl Fn(usize),
) -> Result<()> {
    graph.capture_all(
        rt,
        |step, synthetic| {
            let x = synthetic.host::<f32>(0)?;
            call(graph, step, In::Host((&x).into()), states, 0)?;
            hook();
            Ok(())
        },
        |p| progress(p.done),
    )
}

/// Nothing saves any more, and calls go on as they would have.
fn goes_on(rt: &mut Runtime, graph: &Graph, states: &[State<f32>; 2]) {
    let [a, b] = held(rt, states);
    for i in 1..4 {
        let step = rt.step().unwrap();
        let y = call(graph, &step, In::Host((&[1.0f32, 2.0]).into()), states, 0).unwrap();
        assert_eq!(step.read(&y).unwrap(), [-1.0, -2.0]);
        drop(y);
        assert_eq!(held(rt, states), [a + i as f32, b + i as f32]);
    }
}

#[test]
fn panics_put_the_state_back() {
    for mode in [Mode::Piecewise, Mode::Full] {
        for at in 0..5 {
            let mut rt = runtime();
            let graph = bucketed(&mut rt, mode, false);
            let states = states(&rt);
            let calls = Cell::new(0);
            let in_call = || {
                calls.set(calls.get() + 1);
                assert!(calls.get() <= at, "on purpose");
            };
            let outcome = catch_unwind(AssertUnwindSafe(|| ahead(&mut rt, &graph, &states, in_call, |_| ())));
            assert!(outcome.is_err(), "{mode} {at}");
            assert_eq!(held(&mut rt, &states), [10.0, 20.0], "{mode}, call {at}");
            goes_on(&mut rt, &graph, &states);
        }
        for at in 0..3 {
            let mut rt = runtime();
            let graph = bucketed(&mut rt, mode, false);
            let states = states(&rt);
            let outcome = catch_unwind(AssertUnwindSafe(|| {
                ahead(&mut rt, &graph, &states, || (), |done| assert!(done < at, "on purpose"))
            }));
            assert!(outcome.is_err(), "{mode} {at}");
            assert_eq!(held(&mut rt, &states), [10.0, 20.0], "{mode}, progress {at}");
            goes_on(&mut rt, &graph, &states);
        }
    }
}

/// Every launch fails once: one state that cannot be put back does not keep the other from it.
#[test]
fn copies_that_fail() {
    let mut lost = 0;
    for call in [FaultCall::Launch, FaultCall::Copy] {
        for nth in 0.. {
            let (mut rt, faults) = faulty();
            let graph = bucketed(&mut rt, Mode::Piecewise, false);
            let states = states(&rt);
            faults.arm(Some(call), nth, false);
            let outcome = ahead(&mut rt, &graph, &states, || (), |_| ());
            if faults.disarm() {
                outcome.unwrap();
                break;
            }
            let what = format!("{call:?} {nth}");
            assert!(matches!(outcome, Err(Error::Device { .. })), "{what}: {outcome:?}");
            let now = held(&mut rt, &states);
            let changed = now.into_iter().zip([10.0, 20.0]).filter(|(a, b)| a != b).count();
            assert!(changed <= 1, "{what}: neither was put back");
            lost += changed;
            goes_on(&mut rt, &graph, &states);
        }
    }
    assert_eq!(lost, 2, "one copy back for each state");
}

#[test]
fn what_never_settles_is_told() {
    for (mode, deny_fallback) in
        [Mode::Piecewise, Mode::Full].into_iter().flat_map(|m| [(m, false), (m, true)])
    {
        let mut rt = runtime();
        let graph = bucketed(&mut rt, mode, deny_fallback);
        let states = states(&rt);
        let (n, rows) = (Cell::new(0), Cell::new(0));
        let mut order = Vec::new();
        let outcome = graph.capture_all(
            &mut rt,
            |step, synthetic| {
                let x = synthetic.host::<f32>(0)?;
                // Another key on every call with two rows.
                n.set(n.get() + u32::from(rows.get() == 2));
                call(&graph, step, In::Host((&x).into()), &states, n.get()).map(drop)
            },
            |p| {
                order.push(p.done);
                rows.set(p.sizes.first().copied().unwrap_or(0));
            },
        );
        let told: Vec<Event> =
            rt.take_events().into_iter().filter(|e| matches!(e, Event::NotConverged { .. })).collect();
        let name = if mode == Mode::Full { "` #0" } else { "`a` #0" };
        match outcome {
            Ok(()) => {
                assert!(!deny_fallback);
                assert_eq!(order, [0, 1, 2], "the others are captured all the same");
                match told.as_slice() {
                    [Event::NotConverged { function: "test", sizes, segments }] => {
                        assert_eq!(sizes, &[2]);
                        assert!(segments.len() == 1 && segments[0].contains(name), "{segments:?}");
                    }
                    other => panic!("{other:?}"),
                }
                assert_eq!(rt.stats().not_converged, 1);
            }
            Err(error @ Error::NotConverged { .. }) => {
                assert!(deny_fallback && told.is_empty(), "{told:?}");
                assert!(error.to_string().contains("[2]") && error.to_string().contains(name), "{error}");
            }
            Err(other) => panic!("{other}"),
        }
        assert_eq!(held(&mut rt, &states), [10.0, 20.0]);
        goes_on(&mut rt, &graph, &states);
    }
}

#[test]
fn what_settles_is_not_told() {
    for mode in [Mode::Piecewise, Mode::Full] {
        let mut rt = runtime();
        let graph = bucketed(&mut rt, mode, true);
        let states = states(&rt);
        ahead(&mut rt, &graph, &states, || (), |_| ()).unwrap();
        assert_eq!(rt.stats().not_converged, 0);
        rt.close_capture();
        goes_on(&mut rt, &graph, &states);
    }
}

/// Sizes that no memory holds are errors, in every build.
#[test]
fn buckets_of_impossible_sizes() {
    for size in [usize::MAX, usize::MAX / 2, 1 << 62, 1 << 58] {
        let mut rt = runtime();
        for spec in [host("x", ROWS), device("x", ROWS)] {
            let device = spec.kind == graphable::__private::InputKind::DeviceTensor;
            let spec = Spec { symbols: &["B"], ..Spec::inputs(vec![spec]) };
            let graph = spec.with(|o| o.bucket("B", Schedule::new([size]))).build(&mut rt);
            let outcome = graph.capture_all(
                &mut rt,
                |step, synthetic| {
                    if device {
                        synthetic.device::<f32>(step, 0).map(drop)
                    } else {
                        synthetic.host::<f32>(0).map(drop)
                    }
                },
                |_| (),
            );
            assert!(matches!(outcome, Err(Error::TooLarge { .. })), "{size}: {outcome:?}");
            let step = rt.step().unwrap();
            let y = graph.call(&step, &[In::Host((&[1.0f32, 2.0]).into())], (), |cx, a| {
                seg!("a", cx, (&a.t[0],), |k| ops::neg(k.0))
            });
            assert!(matches!(y, Err(Error::TooLarge { .. } | Error::OutOfMemory { .. })), "{size}");
        }
    }
}

/// Shapes whose sizes overflow are errors, in every build.
#[test]
fn host_data_of_impossible_shapes() {
    let mut rt = runtime();
    let graph = bucketed(&mut rt, Mode::Piecewise, false);
    let step = rt.step().unwrap();
    let data: [f32; 0] = [];
    for shape in [[1usize << 63, 2], [usize::MAX, usize::MAX], [1 << 32, 1 << 32]] {
        let outcome = graph.call(&step, &[In::Host((&data[..], &shape).into())], (), |_, _| Ok(()));
        assert!(matches!(outcome, Err(Error::TooLarge { .. })), "{shape:?}: {outcome:?}");
    }
    for shape in [vec![1usize << 62], vec![usize::MAX], vec![1 << 31, 1 << 31], vec![usize::MAX / 2, 2]] {
        let full = ops::full(step.scope(), &shape, 1.0f32);
        assert!(matches!(full, Err(Error::TooLarge { .. })), "{shape:?}: {full:?}");
        let state = State::<f32>::zeros(&runtime(), &shape);
        assert!(matches!(state, Err(Error::TooLarge { .. })), "{shape:?}: {state:?}");
    }
}

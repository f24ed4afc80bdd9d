//! What types cannot see is caught when it runs, as a typed error, and the runtime stays usable.

use std::{
    cell::{Cell, RefCell},
    panic::{AssertUnwindSafe, catch_unwind},
};

use graphable::{Error, FallbackReason, Mode, Param, Result, Runtime, Schedule, Step, Support, ops};

use crate::support::*;

const X: [f32; 2] = [1.0, 2.0];
const MODES: [Mode; 3] = [Mode::None, Mode::Piecewise, Mode::Full];

thread_local! {
    /// What bodies wrongly depend on.
    static VARIANT: Cell<u32> = const { Cell::new(0) };
    static SMUGGLED: RefCell<Option<Param<f32>>> = const { RefCell::new(None) };
    static STEP: RefCell<Option<Step<'static>>> = const { RefCell::new(None) };
}

fn vector(rt: &mut Runtime, mode: Mode) -> Graph {
    Spec::inputs(vec![host("x", &[Dim::Const(2)])]).mode(mode).build(rt)
}

fn x() -> In<'static, 'static> {
    In::Host((&X).into())
}

/// A graph that nothing went wrong with: works in every state of the runtime.
fn still_usable(rt: &mut Runtime) {
    let graph = vector(rt, Mode::Piecewise);
    rt.take_events();
    for i in 0..4 {
        let step = rt.step().unwrap();
        let y = graph.call(&step, &[x()], (), |cx, a| {
            let (h,) = seg!("p", cx, (&a.t[0],), |k| Ok((ops::scale(k.0, 2.0)?,)))?;
            let e = eager!("q", cx, |_e| ops::scale(&h, 3.0));
            seg!("r", cx, (&e,), |k| ops::neg(k.0))
        });
        assert_eq!(step.read(&y.unwrap()).unwrap(), [-6.0, -12.0]);
        let log = events(&step);
        assert!(!log.iter().any(|e| e.starts_with("aborted") || e.starts_with("fell back")), "{log:?}");
        if i > 1 {
            assert_eq!(log, ["replayed p", "eager q", "replayed r"]);
        }
    }
}

/// A body whose operations depend on `VARIANT`.
fn varying(graph: &Graph, rt: &mut Runtime, variant: u32) -> Result<Vec<f32>> {
    VARIANT.set(variant);
    let step = rt.step().unwrap();
    let y = graph.call(&step, &[x()], (), |cx, a| {
        seg!("a", cx, (&a.t[0],), |k| match VARIANT.get() {
            0 => ops::neg(&ops::scale(k.0, 2.0)?),
            1 => ops::neg(&ops::scale(k.0, 3.0)?),
            2 => ops::exp(&ops::scale(k.0, 2.0)?),
            3 => ops::scale(k.0, 2.0),
            _ => ops::neg(&ops::neg(&ops::scale(k.0, 2.0)?)?),
        })
    });
    y.and_then(|y| step.read(&y))
}

#[test]
fn a_body_that_changes_between_warm_up_and_recording() {
    for variant in 1..5 {
        let mut rt = runtime();
        let graph = vector(&mut rt, Mode::Piecewise);
        assert_eq!(varying(&graph, &mut rt, 0).unwrap(), [-2.0, -4.0]);
        rt.take_events();
        let error = varying(&graph, &mut rt, variant).unwrap_err();
        let at = if variant == 1 {
            0
        } else if variant == 4 {
            2
        } else {
            1
        };
        match &error {
            Error::TraceMismatch { segment, index, warm, recorded } => {
                assert!(segment.contains("`a`"), "{segment}");
                // Variant 4 differs in its last operation only: the second is `neg` in both.
                assert_eq!(*index, at, "variant {variant}: {warm} and {recorded}");
            }
            other => panic!("{other}"),
        }
        assert!(error.to_string().contains("#[key]"), "the remedy: {error}");
        assert_eq!(list(&rt.take_events()), ["aborted a"]);
        assert_eq!(rt.stats().nodes, 0);
        still_usable(&mut rt);
        // The change may have been the last one (something initialised lazily): it gets another life.
        let settled = varying(&graph, &mut rt, variant).unwrap();
        assert_eq!(list(&rt.take_events()).last().unwrap(), "warmed a");
        for event in ["recorded a", "replayed a"] {
            assert_eq!(varying(&graph, &mut rt, variant).unwrap(), settled);
            assert_eq!(list(&rt.take_events()), [event]);
        }
    }
}

#[test]
fn memory_that_is_no_live_in() {
    let mut rt = runtime();
    let graph = vector(&mut rt, Mode::Piecewise);
    SMUGGLED.set(Some(Param::new(&rt, &[2], &[10.0, 20.0]).unwrap()));
    for round in 0..3 {
        let step = rt.step().unwrap();
        let y = graph.call(&step, &[x()], (), |cx, a| {
            seg!("a", cx, (&a.t[0],), |k| SMUGGLED.with_borrow(|w| ops::add(k.0, w.as_ref().unwrap())))
        });
        match y.map(|y| step.read(&y).unwrap()) {
            Ok(values) => assert_eq!((round, values), (0, vec![11.0, 22.0])),
            Err(Error::UnkeyedAddress { segment, op, .. }) => {
                assert!(segment.contains("`a`") && op == "add", "{segment} {op}");
            }
            Err(other) => panic!("{other}"),
        }
    }
    assert_eq!((rt.stats().nodes, rt.stats().aborted), (0, 2));
    SMUGGLED.take();
    still_usable(&mut rt);
}

#[test]
fn a_tensor_that_is_leaked_in_a_segment() {
    let mut rt = runtime();
    let graph = vector(&mut rt, Mode::Piecewise);
    let call = |rt: &mut Runtime, leak: u32, n: u32| {
        VARIANT.set(leak);
        let step = rt.step().unwrap();
        let y = graph.call(&step, &[x()], n, |cx, a| {
            seg!("a", cx, (&a.t[0], &n), |k| {
                let y = ops::neg(k.0)?;
                if VARIANT.get() == 1 {
                    std::mem::forget(y.clone());
                }
                let z = ops::scale(&y, 2.0)?;
                Ok(z)
            })
        });
        y.and_then(|y| step.read(&y))
    };
    let leaked = |r: Result<Vec<f32>>| {
        assert!(matches!(r, Err(Error::UnownedAllocation { op: "neg", bytes: 8, .. })), "{r:?}");
    };
    leaked(call(&mut rt, 1, 0));
    leaked(call(&mut rt, 1, 0));
    for _ in 0..3 {
        assert_eq!(call(&mut rt, 0, 0).unwrap(), [-2.0, -4.0]);
    }
    // In a recording too.
    assert_eq!(call(&mut rt, 0, 1).unwrap(), [-2.0, -4.0]);
    leaked(call(&mut rt, 1, 1));
    for _ in 0..3 {
        assert_eq!(call(&mut rt, 0, 1).unwrap(), [-2.0, -4.0]);
    }
    assert_eq!(rt.stats().nodes, 2);
    still_usable(&mut rt);
}

#[test]
fn a_tensor_that_is_leaked_in_the_driver() {
    let mut rt = runtime();
    let graph = vector(&mut rt, Mode::Piecewise);
    for _ in 0..3 {
        let step = rt.step().unwrap();
        let y = graph.call(&step, &[x()], (), |cx, a| {
            let (h,) = seg!("a", cx, (&a.t[0],), |k| Ok((ops::scale(k.0, 2.0)?,)))?;
            std::mem::forget(h);
            Ok(())
        });
        assert!(matches!(y, Err(Error::UnownedAllocation { op: "scale", .. })), "{y:?}");
    }
    still_usable(&mut rt);
}

#[test]
fn a_capability_in_a_segment() {
    type Look = fn(&Step<'static>, &T<'_>) -> Result<()>;
    let looks: [(&str, Look); 5] = [
        ("read", |s, t| s.read(t).map(drop)),
        ("item", |s, t| s.item(t).map(drop)),
        ("read_later", |s, t| s.read_later(t).map(drop)),
        ("tensor", |s, _| s.tensor(&[1], &[1.0f32]).map(drop)),
        ("nonzero", |s, t| s.nonzero(t).map(drop)),
    ];
    thread_local!(static LOOK: Cell<usize> = const { Cell::new(0) });
    thread_local!(static LOOKS: RefCell<Vec<Look>> = const { RefCell::new(Vec::new()) });
    LOOKS.set(looks.iter().map(|l| l.1).collect());
    for mode in MODES {
        for (at, (name, _)) in looks.iter().enumerate() {
            LOOK.set(at);
            // No safe code gets a step into a segment unless it lives for ever.
            let rt: &'static mut Runtime = Box::leak(Box::new(runtime()));
            let graph = vector(rt, mode);
            let step = rt.step().unwrap();
            STEP.set(Some(step));
            STEP.with_borrow(|step| {
                let step = step.as_ref().unwrap();
                for _ in 0..2 {
                    let y = graph.call(step, &[x()], (), |cx, a| {
                        seg!("a", cx, (&a.t[0],), |k| {
                            let y = ops::neg(k.0)?;
                            let look = LOOKS.with_borrow(|l| l[LOOK.get()]);
                            STEP.with_borrow(|s| look(s.as_ref().unwrap(), &y))?;
                            Ok(y)
                        })
                    });
                    match y {
                        Err(Error::CapabilityInSegment { call, segment }) => {
                            assert!(call == *name && segment.contains("`a`"), "{mode}: {call} in {segment}");
                        }
                        other => panic!("{mode}, {name}: {other:?}"),
                    }
                }
                // Outside it looks as it may.
                assert_eq!(step.read(&step.tensor(&[2], &X).unwrap()).unwrap(), X);
            });
            STEP.take();
        }
    }
}

#[test]
fn a_capability_between_segments() {
    for mode in MODES {
        let mut rt = runtime();
        let graph = vector(&mut rt, mode);
        for _ in 0..3 {
            let step = rt.step().unwrap();
            let y = graph.call(&step, &[x()], (), |cx, a| {
                let (h,) = seg!("a", cx, (&a.t[0],), |k| Ok((ops::neg(k.0)?,)))?;
                step.read(&h)?;
                Ok(h)
            });
            assert!(
                matches!(y, Err(Error::OutsideSegment { op: "read", function: "test" })),
                "{mode}: {y:?}"
            );
        }
        still_usable(&mut rt);
    }
}

#[test]
fn an_operation_between_segments() {
    for mode in MODES {
        let mut rt = runtime();
        let graph = vector(&mut rt, mode);
        for _ in 0..3 {
            let step = rt.step().unwrap();
            let y = graph.call(&step, &[x()], (), |cx, a| {
                let (h,) = seg!("a", cx, (&a.t[0],), |k| Ok((ops::neg(k.0)?,)))?;
                let bound = ops::scale(&h, 2.0)?;
                seg!("b", cx, (&bound,), |k| ops::neg(k.0))
            });
            match y {
                Err(Error::OutsideSegment { op, function }) => assert_eq!((op, function), ("scale", "test")),
                other => panic!("{mode}: {other:?}"),
            }
        }
        still_usable(&mut rt);
    }
}

#[test]
fn a_call_in_a_call() {
    for mode in MODES {
        let mut rt = runtime();
        let (outer, inner) = (vector(&mut rt, mode), vector(&mut rt, mode));
        for _ in 0..3 {
            let step = rt.step().unwrap();
            let y = outer.call(&step, &[x()], (), |cx, a| {
                let _ = a;
                Ok(eager!("e", Always, cx, |_e| inner.call(&step, &[x()], (), |_, a| Ok(a.t[0].clone()))))
            });
            assert!(matches!(y, Err(Error::NestedCall { outer: "test", inner: "test" })), "{mode}: {y:?}");
        }
        still_usable(&mut rt);
    }
}

#[test]
fn two_runtimes() {
    let (mut one, mut two) = (runtime(), runtime());
    let graph = vector(&mut one, Mode::Piecewise);
    let takes = Spec::inputs(vec![any_device("x")]).build(&mut one);
    let foreign = Param::new(&two, &[2], &X).unwrap();
    let (s1, s2) = (one.step().unwrap(), two.step().unwrap());
    let (a, b) = (s1.tensor(&[2], &X).unwrap(), s2.tensor(&[2], &X).unwrap());
    let different = |r: Result<()>| assert!(matches!(r, Err(Error::DifferentRuntimes { .. })), "{r:?}");
    different(ops::add(&a, &b).map(drop));
    different(ops::add(&a, &foreign).map(drop));
    different(s1.read(&b).map(drop));
    different(graph.call(&s2, &[x()], (), |_, _| Ok(())));
    different(takes.call(&s1, &[In::Device(&b)], (), |_, _| Ok(())));
    for _ in 0..2 {
        different(takes.call(&s1, &[In::Device(&a)], &foreign, |cx, args| {
            seg!("a", cx, (&args.t[0], &foreign), |k| ops::add(k.0, k.1)).map(drop)
        }));
    }
    drop((a, b, s1, s2));
    still_usable(&mut one);
    still_usable(&mut two);
}

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

#[test]
fn a_fallback_can_be_forbidden() {
    static BOUNDARY: &[Dim] = &[Dim::Symbol(0)];
    let mut rt = runtime();
    let bucketed = |rt: &mut Runtime, or_error: bool| {
        let spec = Spec { symbols: &["B"], ..Spec::inputs(vec![host("x", BOUNDARY)]) };
        spec.with(|o| {
            o.bucket("B", Schedule::new([1, 2, 4]));
            o.or_error(or_error);
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
            [graphable::Event::FellBack { function: "test", why: reason.clone() }]
        );
    }
    assert_eq!((rt.stats().fallbacks, rt.stats().fallback_reasons.clone()), (2, vec![(reason, 2)]));

    let never = boundary(site!("e"), Support::Never);
    for or_error in [true, false] {
        let spec = Spec { plan: never, ..Spec::inputs(vec![host("x", &[Dim::Const(2)])]) };
        let graph = spec.mode(Mode::Full).with(|o| o.or_error(or_error)).build(&mut rt);
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
                    assert!(or_error && boundary.contains("nets.rs:"), "{boundary}");
                }
                Ok(values) => assert_eq!((or_error, values), (false, vec![-2.0, -4.0])),
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
    assert_eq!((stats.nodes, stats.rerecordings, stats.fallbacks), (3, 1, 3));
    assert_eq!(stats.fallback_reasons.len(), 1);
    assert_eq!(stats.fallback_reasons[0].1, 3);

    let strict = Spec::inputs(vec![any_device("x")]).with(|o| {
        o.max_recordings(1);
        o.or_error(true);
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

/// Counts what is logged at the level of warnings.
struct Warnings(std::sync::Arc<std::sync::atomic::AtomicU32>);

impl tracing::Subscriber for Warnings {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        *metadata.level() <= tracing::Level::WARN
    }
    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }
    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
    fn event(&self, _: &tracing::Event<'_>) {
        self.0.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
    }
    fn enter(&self, _: &tracing::span::Id) {}
    fn exit(&self, _: &tracing::span::Id) {}
}

#[test]
fn a_reason_is_warned_of_once() {
    let count = std::sync::Arc::new(std::sync::atomic::AtomicU32::new(0));
    let warnings = || count.load(std::sync::atomic::Ordering::SeqCst);
    tracing::subscriber::with_default(Warnings(std::sync::Arc::clone(&count)), || {
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

#[test]
fn panics_in_bodies() {
    let mut rt = runtime();
    let graph = vector(&mut rt, Mode::Piecewise);
    let full = vector(&mut rt, Mode::Full);
    let call = |rt: &mut Runtime, graph: &Graph, n: u32, bad: u32| {
        VARIANT.set(bad);
        let step = rt.step().unwrap();
        let y = graph.call(&step, &[x()], n, |cx, a| {
            let (h,) = seg!("a", cx, (&a.t[0],), |k| Ok((ops::scale(k.0, 2.0)?,)))?;
            seg!("b", cx, (&h, &n), |k| {
                let y = ops::neg(k.0)?;
                assert!(VARIANT.get() != 1, "on purpose");
                if VARIANT.get() == 2 {
                    return Err(Error::Argument { op: "body", why: "on purpose".into() });
                }
                Ok(y)
            })
        });
        y.and_then(|y| step.read(&y))
    };
    for graph in [&graph, &full] {
        for bad in [1, 2] {
            // While warming up, and while recording.
            for _ in 0..2 {
                let outcome = catch_unwind(AssertUnwindSafe(|| call(&mut rt, graph, bad, bad)));
                match (bad, outcome) {
                    (1, Err(panic)) => assert!(panic.is::<&str>() || panic.is::<String>()),
                    (2, Ok(Err(Error::Argument { op: "body", .. }))) => {}
                    (_, other) => panic!("{other:?}"),
                }
                still_usable(&mut rt);
                assert_eq!(call(&mut rt, graph, bad, 0).unwrap(), [-2.0, -4.0]);
            }
        }
    }
}

#[test]
fn panics_in_the_driver_and_in_regions() {
    for mode in MODES {
        let mut rt = runtime();
        let graph = vector(&mut rt, mode);
        for place in 0..6 {
            let outcome = catch_unwind(AssertUnwindSafe(|| {
                let step = rt.step().unwrap();
                let y = graph.call(&step, &[x()], (), |cx, a| {
                    let (h,) = seg!("a", cx, (&a.t[0],), |k| Ok((ops::scale(k.0, 2.0)?,)))?;
                    assert!(place % 3 != 0, "on purpose");
                    let e = eager!("e", Always, cx, |_e| {
                        assert!(place % 3 != 1, "on purpose");
                        ops::neg(&h)
                    });
                    seg!("b", cx, (&e,), |k| ops::neg(k.0))
                });
                step.read(&y.unwrap()).unwrap()
            }));
            match outcome {
                Ok(values) => assert_eq!((place % 3, values), (2, vec![2.0, 4.0])),
                Err(_) => assert!(place % 3 != 2, "{mode}, place {place}"),
            }
        }
        still_usable(&mut rt);
    }
}

/// Failed operations whose error the body swallows: what it does then must not become a recording.
#[test]
fn errors_that_a_body_swallows() {
    let (mut rt, faults) = faulty();
    let graph = vector(&mut rt, Mode::Piecewise);
    let call = |rt: &mut Runtime| {
        let step = rt.step()?;
        let y = graph.call(&step, &[x()], (), |cx, a| {
            seg!("a", cx, (&a.t[0],), |k| {
                let first = ops::scale(k.0, 2.0);
                let second = ops::neg(k.0)?;
                first.map_or(Ok(second), |f| ops::neg(&f))
            })
        });
        y.and_then(|y| step.read(&y))
    };
    for _ in 0..2 {
        faults.arm(Some(graphable::backend::faulty::FaultCall::Launch), 0, false);
        match call(&mut rt) {
            Ok(values) => assert_eq!(values, [-1.0, -2.0], "what the body chose"),
            Err(error) => assert!(matches!(error, Error::Device { .. }), "{error}"),
        }
        assert!(!faults.disarm());
        assert_eq!(rt.stats().recordings, 0);
        assert_eq!(call(&mut rt).unwrap(), [-2.0, -4.0]);
    }
}

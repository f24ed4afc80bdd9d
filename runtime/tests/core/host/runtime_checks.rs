//! Mistakes that types cannot catch are typed errors at run time, and the runtime stays usable.

use std::cell::{Cell, RefCell};

use graphable::{Error, Mode, Param, Result, Runtime, Step, ops};

use crate::support::*;

thread_local! {
    /// What bodies wrongly depend on.
    static VARIANT: Cell<u32> = const { Cell::new(0) };
    static SMUGGLED: RefCell<Option<Param<f32>>> = const { RefCell::new(None) };
    static STEP: RefCell<Option<Step<'static>>> = const { RefCell::new(None) };
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
        assert_eq!(rt.stats().live_recordings, 0);
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

/// A body that changed for good: what was recorded of it before does not come back.
#[test]
fn recordings_from_before_a_change() {
    let mut rt = runtime();
    let graph = Spec::inputs(vec![any_device("x")]).build(&mut rt);
    let call = |rt: &mut Runtime, variant: u32, moved: bool| {
        VARIANT.set(variant);
        let step = rt.step().unwrap();
        let _below = moved.then(|| step.tensor(&[2], &X).unwrap());
        let t = step.tensor(&[2], &X).unwrap();
        let y = graph.call(&step, &[In::Device(&t)], (), |cx, a| {
            seg!("a", cx, (&a.t[0],), |k| if VARIANT.get() == 0 {
                ops::neg(k.0)
            } else {
                ops::scale(k.0, 2.0)
            })
        });
        y.and_then(|y| step.read(&y))
    };
    for _ in 0..4 {
        assert_eq!(call(&mut rt, 0, false).unwrap(), [-1.0, -2.0]);
    }
    assert!(matches!(call(&mut rt, 1, true), Err(Error::TraceMismatch { .. })));
    // It was told; from the next warm-up on, the old recording is known to be wrong.
    assert_eq!(call(&mut rt, 1, true).unwrap(), [2.0, 4.0]);
    for moved in [false, true, false, true] {
        assert_eq!(call(&mut rt, 1, moved).unwrap(), [2.0, 4.0], "moved: {moved}");
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
    assert_eq!((rt.stats().live_recordings, rt.stats().aborted), (0, 2));
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
    assert_eq!(rt.stats().live_recordings, 2);
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
            let checked = Box::leak(Box::new(runtime()));
            let rt: &'static mut Runtime = checked;
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

/// Tensors of another runtime where only slots are looked at: live-ins, outputs, results of regions.
#[test]
fn tensors_of_another_runtime() {
    for mode in MODES {
        let (mut one, mut two) = (runtime(), runtime());
        let graph = vector(&mut one, mode);
        let foreign = Param::new(&two, &[2], &X).unwrap();
        for _ in 0..3 {
            let (s1, s2) = (one.step().unwrap(), two.step().unwrap());
            // Slots that the other runtime does not have.
            let many: Vec<_> = (0..40).map(|_| s2.tensor(&[2], &X).unwrap()).collect();
            let t = &many[39];
            let different = |what: &str, r: Result<()>| {
                assert!(matches!(r, Err(Error::DifferentRuntimes { .. })), "{mode}, {what}: {r:?}");
            };
            let out = graph.call(&s1, &[x()], (), |_, _| Ok(t.clone()));
            different("an output", out.map(drop));
            let out = graph.call(&s1, &[x()], (), |cx, _| seg!("a", cx, (t,), |k| Ok(k.0.clone())));
            different("a live-in that goes through", out.map(drop));
            let out = graph.call(&s1, &[x()], (), |cx, _| seg!("b", cx, (t,), |k| ops::neg(k.0)));
            different("a live-in", out.map(drop));
            let out = graph.call(&s1, &[x()], (), |cx, a| {
                let _ = a;
                Ok(eager!("e", cx, |_e| std::result::Result::<_, Error>::Ok(t.clone())))
            });
            different("a region", out.map(drop));
            let out = graph
                .call(&s1, &[x()], (), |cx, a| seg!("c", cx, (&a.t[0], &foreign), |k| ops::add(k.0, k.1)));
            different("a parameter", out.map(drop));
            assert_eq!(s2.read(t).unwrap(), X);
        }
        still_usable(&mut one);
        still_usable(&mut two);
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

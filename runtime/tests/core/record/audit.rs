//! Replays against their bodies.

use std::{
    cell::{Cell, RefCell},
    panic::{AssertUnwindSafe, catch_unwind},
};

use graphable::{Error, Mode, Result, Runtime, State, Step, backend::faulty::FaultCall, ops};

use crate::{
    listening::{Said, listening, take},
    support::*,
};

thread_local! {
    /// What the bodies wrongly depend on; warm-up and recording see 1.
    static AMBIENT: Cell<f32> = const { Cell::new(1.0) };
}

fn audited(rt: &mut Runtime, mode: Mode, every: u32) -> Graph {
    Spec::inputs(vec![host("x", &[Dim::Const(2)])]).mode(mode).with(|o| o.audit_every(every)).build(rt)
}

/// `x`, or `-x` if the world changed: by the same operations, so that only values tell.
fn same_or_negated<'s>(x: &T<'s>) -> Result<T<'s>> {
    let twice = ops::scale(x, 2.0)?;
    if AMBIENT.get() == 1.0 { ops::sub(&twice, x) } else { ops::sub(x, &twice) }
}

#[test]
fn right_replays_are_counted() {
    for mode in [Mode::Piecewise, Mode::Full] {
        let mut rt = runtime();
        let graph = audited(&mut rt, mode, 3);
        let mut log = Vec::new();
        for i in 0..10 {
            let step = rt.step().unwrap();
            let y = graph.call(&step, &[In::Host((&[i as f32, 1.0]).into())], (), |cx, a| {
                seg!("a", cx, (&a.t[0],), |k| Ok((ops::scale(k.0, 2.0)?, k.0.clone(), 7u32)))
            });
            let (y, x, seven) = y.unwrap();
            assert_eq!((step.read(&y).unwrap(), seven), (vec![2.0 * i as f32, 2.0], 7), "{mode}");
            assert_eq!(step.read(&x).unwrap(), [i as f32, 1.0], "{mode}");
            drop((x, y));
            log.extend(events(&step));
        }
        log.retain(|e| !e.starts_with("copied"));
        assert_eq!(log.iter().filter(|e| e.starts_with("audited")).count(), 3, "{mode}: {log:?}");
        // Recorded once, then two replays between audits.
        assert!(
            log[2].starts_with("replayed") && log[3].starts_with("replayed") && log[4].starts_with("audited")
        );
        assert_eq!((rt.stats().audits, rt.stats().replays, rt.stats().live_recordings), (3, 8, 1), "{mode}");
    }
}

#[test]
fn a_wrong_replay_is_caught() {
    for mode in [Mode::Piecewise, Mode::Full] {
        AMBIENT.set(1.0);
        let mut rt = runtime();
        let graph = audited(&mut rt, mode, 2);
        let call = |step: &Step<'_>| {
            let y = graph.call(step, &[In::Host((&[1.0, 2.0]).into())], (), |cx, a| {
                seg!("a", cx, (&a.t[0],), |k| same_or_negated(k.0))
            });
            y.and_then(|y| step.read(&y))
        };
        for _ in 0..2 {
            call(&rt.step().unwrap()).unwrap();
        }
        AMBIENT.set(3.0);
        let step = rt.step().unwrap();
        match call(&step) {
            Err(Error::AuditMismatch { what, detail, .. }) => {
                assert_eq!((what.as_str(), detail.as_str()), ("output 0", "first at byte 3 of 8"), "{mode}");
            }
            other => panic!("{mode}: {other:?}"),
        }
        AMBIENT.set(1.0);
        // Usable after that, in the same step too.
        for _ in 0..4 {
            assert_eq!(call(&step).unwrap(), [1.0, 2.0], "{mode}");
        }
        assert_eq!(rt.stats().live_recordings, 1);
    }
}

#[test]
fn a_wrong_host_output_is_caught() {
    AMBIENT.set(1.0);
    let mut rt = runtime();
    let graph = audited(&mut rt, Mode::Piecewise, 2);
    let call = |rt: &mut Runtime| {
        let step = rt.step().unwrap();
        graph
            .call(&step, &[In::Host((&[1.0, 2.0]).into())], (), |cx, a| {
                seg!("a", cx, (&a.t[0],), |k| Ok((AMBIENT.get(), ops::neg(k.0)?)))
            })
            .map(|(host, _)| host)
    };
    for _ in 0..2 {
        assert_eq!(call(&mut rt).unwrap(), 1.0);
    }
    AMBIENT.set(2.0);
    let error = call(&mut rt).unwrap_err();
    assert!(matches!(&error, Error::AuditMismatch { what, .. } if what == "output 0"), "{error}");
}

/// A counter in device memory: every call adds `x` once, audited or not.
#[test]
fn state_is_not_written_twice() {
    for mode in [Mode::Piecewise, Mode::Full] {
        AMBIENT.set(1.0);
        let mut rt = runtime();
        let graph = audited(&mut rt, mode, 1);
        let state = State::new(&rt, &[2], &[0.0, 100.0]).unwrap();
        let call = |step: &Step<'_>| {
            let y = graph.call(step, &[In::Host((&[1.0, 2.0]).into())], &state, |cx, a| {
                seg!("a", cx, (&a.t[0], &state), |k| {
                    let next = ops::add(&ops::scale(k.0, AMBIENT.get())?, k.1)?;
                    ops::store(k.1, &next)?;
                    Ok(next)
                })
            });
            y.and_then(|y| step.read(&y))
        };
        for i in 1..8 {
            let step = rt.step().unwrap();
            assert_eq!(call(&step).unwrap(), [i as f32, 100.0 + 2.0 * i as f32], "{mode}");
            assert_eq!(step.read(&ops::load(step.scope(), &state).unwrap()).unwrap()[0], i as f32, "{mode}");
        }
        assert_eq!(rt.stats().audits, 5, "{mode}");
    }
}

/// One state for two parameters is one state that is written, wherever other states are among them.
#[test]
fn a_state_may_be_passed_twice() {
    for mode in [Mode::Piecewise, Mode::Full] {
        AMBIENT.set(1.0);
        let mut rt = runtime();
        let graph = audited(&mut rt, mode, 1);
        let [s, u] = [0.0, 100.0].map(|v| State::new(&rt, &[2], &[v; 2]).unwrap());
        let call = |step: &Step<'_>, x: f32| {
            let y = graph.call(step, &[In::Host((&[x, 1.0]).into())], (&s, &s, &u), |cx, a| {
                seg!("a", cx, (&a.t[0], &s, &s, &u), |k| {
                    ops::store(k.1, k.0)?;
                    ops::store(k.2, &ops::add(&ops::load(k.0.scope(), k.1)?, k.0)?)?;
                    ops::store(if AMBIENT.get() == 1.0 { k.2 } else { k.3 }, &ops::scale(k.0, 3.0)?)?;
                    ops::store(k.3, &ops::scale(k.0, 4.0)?)?;
                    ops::load(k.0.scope(), k.2)
                })
            });
            y.and_then(|y| step.read(&y))
        };
        for i in 1..6 {
            let step = rt.step().unwrap();
            assert_eq!(call(&step, i as f32).unwrap(), [3.0 * i as f32, 3.0], "{mode}");
            let now = step.read(&ops::load(step.scope(), &u).unwrap()).unwrap();
            assert_eq!(now, [4.0 * i as f32, 4.0], "{mode}");
        }
        assert_eq!(rt.stats().audits, 3, "{mode}");
        AMBIENT.set(2.0);
        let error = call(&rt.step().unwrap(), 9.0).unwrap_err();
        assert!(matches!(&error, Error::AuditMismatch { what, .. } if what == "output 0"), "{error}");
        AMBIENT.set(1.0);
    }
}

/// The output is right and the state is not.
#[test]
fn a_wrong_write_is_caught() {
    AMBIENT.set(1.0);
    let mut rt = runtime();
    let graph = audited(&mut rt, Mode::Piecewise, 1);
    let state = State::new(&rt, &[2], &[0.0, 0.0]).unwrap();
    let call = |rt: &mut Runtime| {
        let step = rt.step().unwrap();
        graph
            .call(&step, &[In::Host((&[1.0, 2.0]).into())], &state, |cx, a| {
                seg!("a", cx, (&a.t[0], &state), |k| {
                    ops::store(k.1, &same_or_negated(k.0)?)?;
                    ops::neg(k.0)
                })
            })
            .map(drop)
    };
    for _ in 0..3 {
        call(&mut rt).unwrap();
    }
    AMBIENT.set(5.0);
    let error = call(&mut rt).unwrap_err();
    assert!(matches!(&error, Error::AuditMismatch { what, .. } if what == "state 0"), "{error}");
    AMBIENT.set(1.0);
    call(&mut rt).unwrap();
}

#[test]
fn a_body_that_fails_in_an_audit() {
    AMBIENT.set(1.0);
    let mut rt = runtime();
    let graph = audited(&mut rt, Mode::Piecewise, 1);
    let state = State::new(&rt, &[2], &[0.0, 0.0]).unwrap();
    let call = |rt: &mut Runtime| {
        let step = rt.step().unwrap();
        let y = graph.call(&step, &[In::Host((&[1.0, 2.0]).into())], &state, |cx, a| {
            seg!("a", cx, (&a.t[0], &state), |k| {
                let next = ops::add(k.0, k.1)?;
                ops::store(k.1, &next)?;
                if AMBIENT.get() > 1.0 {
                    return Err(Error::Argument { op: "body", reason: "on purpose".into() });
                }
                Ok(next)
            })
        });
        y.and_then(|y| step.read(&y))
    };
    for i in 1..4 {
        assert_eq!(call(&mut rt).unwrap(), [i as f32, 2.0 * i as f32]);
    }
    AMBIENT.set(2.0);
    assert!(matches!(call(&mut rt), Err(Error::Argument { .. })));
    AMBIENT.set(1.0);
    let step = rt.step().unwrap();
    let now = step.read(&ops::load(step.scope(), &state).unwrap()).unwrap();
    assert_eq!(now, [3.0, 6.0], "what the audited body wrote is taken back");
    assert_eq!(call(&mut rt).unwrap(), [4.0, 8.0]);
}

thread_local! {
    /// State that bodies reach without a key.
    static HIDDEN: RefCell<Option<State<f32>>> = const { RefCell::new(None) };
}

/// What a body does in an audit that its recording did not do.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Extra {
    Nothing,
    WritesMore,
    WritesAnother,
    WritesHidden,
    Computes,
    ComputesLess,
    WritesAndPanics,
    WritesAndFails,
    SwallowsTheError,
}

thread_local!(static EXTRA: Cell<Extra> = const { Cell::new(Extra::Nothing) });

/// `a += x`, and what `EXTRA` says.
fn body<'s>(x: &T<'s>, a: &State<f32>, b: &State<f32>) -> Result<T<'s>> {
    let next = ops::add(x, a)?;
    let extra = EXTRA.get();
    ops::store(if extra == Extra::WritesAnother { b } else { a }, &next)?;
    let failed = || Err(Error::Argument { op: "body", reason: "on purpose".into() });
    match extra {
        Extra::WritesMore => ops::store(b, &next)?,
        Extra::WritesHidden => HIDDEN.with_borrow(|h| ops::store(h.as_ref().unwrap(), &next))?,
        Extra::Computes => drop(ops::exp(x)?),
        Extra::ComputesLess => return Ok(next),
        Extra::WritesAndPanics => ops::store(b, &next).map(|()| panic!("on purpose"))?,
        Extra::WritesAndFails => ops::store(b, &next).and_then(|()| failed())?,
        Extra::SwallowsTheError => drop(ops::store(b, &next)),
        Extra::Nothing | Extra::WritesAnother => {}
    }
    ops::neg(&next)
}

/// The body of an audit does something else than the recording: it is told, and no state shows it.
#[test]
fn a_body_that_does_something_else() {
    use Extra::*;
    let all = [
        WritesMore,
        WritesAnother,
        WritesHidden,
        Computes,
        ComputesLess,
        WritesAndPanics,
        WritesAndFails,
        SwallowsTheError,
    ];
    for (mode, extra) in [Mode::Piecewise, Mode::Full].into_iter().flat_map(|m| all.map(|e| (m, e))) {
        EXTRA.set(Nothing);
        let mut rt = runtime();
        let graph = audited(&mut rt, mode, 1);
        let states = [0.0, 100.0, 200.0].map(|v| State::new(&rt, &[2], &[v; 2]).unwrap());
        let [a, b, hidden] = &states;
        HIDDEN.set(Some(hidden.clone()));
        let call = |step: &Step<'_>| {
            let y = graph.call(step, &[In::Host((&[1.0, 2.0]).into())], (a, b), |cx, args| {
                seg!("a", cx, (&args.t[0], a, b), |k| body(k.0, k.1, k.2))
            });
            y.and_then(|y| step.read(&y))
        };
        let held = |step: &Step<'_>| {
            [a, b, hidden].map(|s| step.read(&ops::load(step.scope(), s).unwrap()).unwrap()[0])
        };
        for i in 1..4 {
            assert_eq!(call(&rt.step().unwrap()).unwrap(), [-i as f32, -2.0 * i as f32]);
        }
        assert_eq!(held(&rt.step().unwrap()), [3.0, 100.0, 200.0]);
        EXTRA.set(extra);
        let outcome = catch_unwind(AssertUnwindSafe(|| call(&rt.step().unwrap())));
        EXTRA.set(Nothing);
        match (extra, outcome) {
            (_, Ok(Err(Error::AuditMismatch { what, detail, .. }))) => {
                let expected = match extra {
                    ComputesLess => ("operation 2", "the recording has `neg`, the body nothing"),
                    Computes => ("operation 2", "the recording has `neg`, the body `exp`"),
                    // Refused again at its next operation.
                    SwallowsTheError => ("operation 3", "the recording has nothing, the body `neg`"),
                    WritesAnother => {
                        ("the state that is written", "the body writes one that the recording does not")
                    }
                    _ => ("operation 2", "the recording has `neg`, the body `copy`"),
                };
                assert_eq!((what.as_str(), detail.as_str()), expected, "{mode} {extra:?}");
            }
            // The differing write is refused before the panic and the failure.
            (_, other) => panic!("{mode} {extra:?}: {other:?}"),
        }
        assert_eq!(held(&rt.step().unwrap()), [3.0, 100.0, 200.0], "{mode} {extra:?}");
        assert_eq!(call(&rt.step().unwrap()).unwrap(), [-4.0, -8.0], "{mode} {extra:?}");
        assert_eq!(held(&rt.step().unwrap()), [4.0, 100.0, 200.0], "{mode} {extra:?}");
        HIDDEN.take();
    }
}

/// The same operations, but to another state, and then a failure or a panic.
#[test]
fn an_unrecorded_write_is_undone_in_every_outcome() {
    for (mode, panics) in [Mode::Piecewise, Mode::Full].into_iter().flat_map(|m| [(m, false), (m, true)]) {
        AMBIENT.set(1.0);
        let mut rt = runtime();
        let graph = audited(&mut rt, mode, 1);
        let [a, b] = [0.0, 100.0].map(|v| State::new(&rt, &[2], &[v; 2]).unwrap());
        let call = |step: &Step<'_>| {
            let y = graph.call(step, &[In::Host((&[1.0, 2.0]).into())], (&a, &b), |cx, args| {
                seg!("a", cx, (&args.t[0], &a, &b), |k| {
                    let next = ops::add(k.0, k.1)?;
                    match AMBIENT.get() {
                        1.0 => ops::store(k.1, &next)?,
                        2.0 => {
                            ops::store(k.2, &next)?;
                            return Err(Error::Argument { op: "body", reason: "on purpose".into() });
                        }
                        _ => ops::store(k.2, &next).map(|()| panic!("on purpose"))?,
                    }
                    Ok(next)
                })
            });
            y.and_then(|y| step.read(&y))
        };
        for i in 1..4 {
            assert_eq!(call(&rt.step().unwrap()).unwrap()[0], i as f32);
        }
        AMBIENT.set(if panics { 3.0 } else { 2.0 });
        let outcome = catch_unwind(AssertUnwindSafe(|| call(&rt.step().unwrap())));
        match outcome {
            Ok(Err(Error::Argument { op: "body", .. })) => assert!(!panics),
            Err(_) => assert!(panics),
            Ok(other) => panic!("{other:?}"),
        }
        AMBIENT.set(1.0);
        let step = rt.step().unwrap();
        let held = [&a, &b].map(|s| step.read(&ops::load(step.scope(), s).unwrap()).unwrap()[0]);
        assert_eq!(held, [3.0, 100.0], "{mode}, panics: {panics}");
        assert_eq!(call(&step).unwrap()[0], 4.0);
    }
}

/// Every read of an audit fails once: the state is as before the call until the replay ran.
#[test]
fn a_read_that_fails_in_an_audit() {
    for (mode, nth) in [Mode::Piecewise, Mode::Full].into_iter().flat_map(|m| (0..4).map(move |n| (m, n))) {
        AMBIENT.set(1.0);
        let (mut rt, faults) = faulty();
        let graph = audited(&mut rt, mode, 1);
        let state = State::new(&rt, &[2], &[0.0, 100.0]).unwrap();
        let call = |step: &Step<'_>| {
            let y = graph.call(step, &[In::Host((&[1.0, 2.0]).into())], &state, |cx, a| {
                seg!("a", cx, (&a.t[0], &state), |k| {
                    let next = ops::add(k.0, k.1)?;
                    ops::store(k.1, &next)?;
                    Ok(next)
                })
            });
            y.and_then(|y| step.read(&y))
        };
        for i in 1..4 {
            assert_eq!(call(&rt.step().unwrap()).unwrap()[0], i as f32);
        }
        // The body's output and state are read, then the replay's.
        faults.arm(Some(FaultCall::Read), nth, false);
        assert!(matches!(call(&rt.step().unwrap()), Err(Error::Device { .. })), "{mode} {nth}");
        assert!(!faults.disarm());
        let step = rt.step().unwrap();
        let now = step.read(&ops::load(step.scope(), &state).unwrap()).unwrap()[0];
        assert_eq!(now, if nth < 2 { 3.0 } else { 4.0 }, "{mode}, read {nth}");
        assert_eq!(call(&step).unwrap()[0], now + 1.0);
    }
}

/// How a product is computed may depend on where its operands lie: the body of an audit reads a copied live-in
/// where the recording reads it.
#[test]
fn the_body_of_an_audit_reads_copied_live_ins_where_the_recording_does() {
    // There, what is placed after another size is at the same place.
    if crate::device::skipped_with_gaps("the_body_of_an_audit_reads_copied_live_ins") {
        return;
    }
    let (mut rt, heard, _) = listening();
    let graph = Spec::inputs(vec![]).mode(Mode::Piecewise).with(|o| o.audit_every(3)).build(&mut rt);
    let (mut places, mut audits, mut demoted) = (Vec::new(), 0, false);
    for n in 0..200 {
        let step = rt.step().unwrap();
        // Something before it: each time elsewhere.
        let before = step.tensor(&[64 * n + 1], &vec![0.0; 64 * n + 1]).unwrap();
        let x = step.tensor(&[2], &[n as f32, 1.0]).unwrap();
        take(&heard);
        let y = graph
            .call(&step, &[], (), |cx, _| seg!("moving", cx, (&x,), |k| ops::scale(&ops::neg(k.0)?, 2.0)))
            .unwrap();
        let said = take(&heard);
        assert_eq!(step.read(&y).unwrap(), [-2.0 * n as f32, -2.0]);
        drop((x, y, before));
        let log = events(&step);
        demoted |= log.iter().any(|e| e.starts_with("demoted"));
        if demoted && log.iter().any(|e| e.starts_with("audited")) {
            audits += 1;
            places.extend(said.iter().find_map(|s| match s {
                Said::Launch { op: "neg", reads, .. } => Some(reads[0].0),
                _ => None,
            }));
        }
    }
    assert!(audits > 20, "{audits} audits");
    assert_eq!(places.len(), audits, "one body each");
    places.dedup();
    assert_eq!(places.len(), 1, "always the recording's buffer");
}

//! Replays against their bodies.

use std::cell::Cell;

use graphable::{Error, Mode, Runtime, State, Step, ops};

use crate::support::*;

thread_local! {
    /// What the bodies wrongly depend on; warm-up and recording see 1.
    static AMBIENT: Cell<f32> = const { Cell::new(1.0) };
}

fn audited(rt: &mut Runtime, mode: Mode, every: u32) -> Graph {
    Spec::inputs(vec![host("x", &[Dim::Const(2)])]).mode(mode).with(|o| o.audit_every(every)).build(rt)
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
        assert_eq!((rt.stats().audits, rt.stats().replays, rt.stats().nodes), (3, 8, 1), "{mode}");
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
                seg!("a", cx, (&a.t[0],), |k| ops::scale(k.0, AMBIENT.get()))
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
                assert_eq!((what.as_str(), detail.as_str()), ("output 0", "first at byte 2 of 8"), "{mode}");
            }
            other => panic!("{mode}: {other:?}"),
        }
        AMBIENT.set(1.0);
        // Usable after that, in the same step too.
        for _ in 0..4 {
            assert_eq!(call(&step).unwrap(), [1.0, 2.0], "{mode}");
        }
        assert_eq!(rt.stats().nodes, 1);
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
                    ops::store(k.1, &ops::scale(k.0, AMBIENT.get())?)?;
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
                    return Err(Error::Argument { op: "body", why: "on purpose".into() });
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
